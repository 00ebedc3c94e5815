//! Which names a listing leaves out.

/// Whether a file's name has an ending, in upper or lower case.
pub fn has_ending(name: &str, ending: &str) -> bool {
    let from = name.len().checked_sub(ending.len());
    from.is_some_and(|from| name.as_bytes()[from..].eq_ignore_ascii_case(ending.as_bytes()))
}

pub(super) fn has_extension(name: &str, extensions: &[&str]) -> bool {
    let mut extensions = extensions.iter();
    extensions.any(|extension| has_ending(name, extension))
}

/// Files that a listing leaves out for a reason: how many, and the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// How many there are. A directory counts as one.
    pub number: u64,
    /// The name of the first.
    pub first: String,
}

impl Others {
    pub(super) fn add(&mut self, name: &str) {
        if self.number == 0 {
            name.clone_into(&mut self.first);
        }
        self.number += 1;
    }

    /// Says that the files of `given` are not all read.
    fn warn(&self, given: &str, reason: &str) {
        let Self { number, first } = self;
        match number {
            0 => {}
            1 => tracing::warn!("{given}: {first} is not read, because {reason}"),
            _ => tracing::warn!(
                "{given}: {number} files are not read, because {reason}: {first} is the first"
            ),
        }
    }
}

/// Files that a listing leaves out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skipped {
    /// Hidden files, and those by which jobs mark what they did.
    pub hidden: Others,
    /// Those without one of the extensions.
    pub other_endings: Others,
    /// Those whose paths are not UTF-8, or have empty parts, `.`, `..` or control characters.
    pub unreadable_names: Others,
    /// Pipes, devices and sockets.
    pub no_files: Others,
}

impl Skipped {
    /// Says which files of `given` are not read, but for hidden ones.
    pub(super) fn warn(&self, given: &str) {
        self.other_endings
            .warn(given, "of the endings of their names");
        self.unreadable_names.warn(
            given,
            "their names are not UTF-8, or have empty parts, parts . or .., or control characters",
        );
        self.no_files.warn(given, "they are no regular files");
    }
}

/// What programs leave beside their data, marks that a job is done or not, logs and metadata of tables: names up to a dot.
const MARKS: [&str; 15] = [
    "_SUCCESS",
    "_FAILURE",
    "_ERROR",
    "_log",
    "_logs",
    "_tmp",
    "_temp",
    "_temporary",
    "_staging",
    "_metadata",
    "_common_metadata",
    "_change_data",
    "_spark_metadata",
    "_symlink_format_manifest",
    "_dedup-job",
];
const BEGINNINGS: [&str; 5] = ["_committed_", "_started_", "_delta_", "_tmp_", "_hoodie"];

/// Whether listings leave out files and directories of this name.
pub(super) fn is_hidden(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    stem.is_empty() || MARKS.contains(&stem) || BEGINNINGS.iter().any(|mark| name.starts_with(mark))
}

/// Whether a listing shows a file: `below`, its path below the listed directory, has no hidden
/// component.
pub(super) fn is_visible(below: &str) -> bool {
    !below.split('/').any(is_hidden)
}

/// Whether a listing leaves out a path that the pattern matches: the path's last component is hidden, and the pattern's
/// last component does not ask for hidden names by beginning with `_` or `.`.
pub(super) fn is_hidden_by_pattern(pattern: &str, path: &str) -> bool {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    is_hidden(&name(path)) && !name(pattern).starts_with(['_', '.'])
}
