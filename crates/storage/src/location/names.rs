//! Which names a listing leaves out.

/// Whether a name ends in one of the extensions, in upper or lower case.
pub(super) fn has_extension(name: &str, extensions: &[&str]) -> bool {
    let name = name.as_bytes();
    extensions.iter().any(|extension| {
        let from = name.len().checked_sub(extension.len());
        from.is_some_and(|from| name[from..].eq_ignore_ascii_case(extension.as_bytes()))
    })
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
