//! Which names a listing leaves out.

/// Whether a name ends in one of the extensions.
pub(super) fn has_extension(name: &str, extensions: &[&str]) -> bool {
    extensions.iter().any(|extension| name.ends_with(extension))
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
