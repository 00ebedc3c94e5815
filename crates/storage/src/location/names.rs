//! Which names a listing leaves out.

/// Whether a file's name has an ending, in upper or lower case.
#[must_use]
pub fn has_ending(name: &str, ending: &str) -> bool {
    let from = name.len().checked_sub(ending.len());
    from.is_some_and(|from| name.as_bytes()[from..].eq_ignore_ascii_case(ending.as_bytes()))
}

/// Whether a name has one of the endings.
pub(super) fn has_extension(name: &str, extensions: &[&str]) -> bool {
    extensions
        .iter()
        .any(|extension| has_ending(name, extension))
}

/// Files that a listing leaves out because of their names' endings.
#[derive(Debug, Default)]
pub(super) struct Others {
    pub(super) number: usize,
    /// The name of one of them.
    name: String,
}

impl Others {
    pub(super) fn add(&mut self, name: &str) {
        if self.number == 0 {
            name.clone_into(&mut self.name);
        }
        self.number += 1;
    }

    /// Says that the files of `given` are not all read.
    pub(super) fn warn(&self, given: &str) {
        let Self { number, name } = self;
        match number {
            0 => {}
            1 => tracing::warn!("{given}: {name} is not read, because of its name's ending"),
            _ => tracing::warn!(
                "{given}: {number} files are not read, because of their names' endings: {name} is the first"
            ),
        }
    }
}

/// Whether listings leave out files and directories of this name.
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with(['_', '.'])
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
    is_hidden(&name(path)) && !is_hidden(&name(pattern))
}
