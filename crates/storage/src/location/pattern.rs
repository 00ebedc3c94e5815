//! Glob patterns, as in the file system: a star does not match a slash.

use glob::{MatchOptions, Pattern};

const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

pub(super) fn first_wildcard(text: &str) -> Option<usize> {
    text.find(['*', '?', '['])
}

pub(super) fn is_pattern(text: &str) -> bool {
    first_wildcard(text).is_some()
}

/// Whether the pattern matches the whole path.
pub(super) fn matches(pattern: &Pattern, path: &str) -> bool {
    pattern.matches_with(path, OPTIONS)
}

/// Whether `pattern` has a wildcard, and matches `path` or a directory above it.
pub(super) fn matches_at_or_above(pattern: &str, path: &str) -> bool {
    match Pattern::new(pattern) {
        Ok(compiled) if is_pattern(pattern) => {
            let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
            let mut all = parents.chain([path]);
            all.any(|path| matches(&compiled, path))
        }
        _ => false,
    }
}
