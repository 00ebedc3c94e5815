//! The keywords of `display` that browsers know. They drop a declaration with another.

/// The keywords of `display` that stand alone, besides `none`.
#[rustfmt::skip]
pub(super) const DISPLAYS: &[&str] = &[
    "contents", "inline-block", "inline-flex", "inline-grid", "inline-table", "table-caption", "table-cell",
    "table-column", "table-column-group", "table-footer-group", "table-header-group", "table-row", "table-row-group",
    "ruby-base", "ruby-base-container", "ruby-text", "ruby-text-container", "-webkit-box", "-webkit-flex",
    "-webkit-inline-box", "-webkit-inline-flex", "inherit", "initial", "unset",
];

/// What a keyword of `display` says that others may stand beside; 0 if none may. Those that share a bit exclude each other.
pub(super) fn display_parts(keyword: &[u8]) -> u8 {
    const OUTSIDE: u8 = 1;
    const INSIDE: u8 = 1 << 1;
    // Only what flows inside can be an item of a list.
    const ITEM: u8 = 1 << 2;
    if is_any(keyword, &["block", "inline"]) {
        OUTSIDE
    } else if is_any(keyword, &["flow", "flow-root"]) {
        INSIDE
    } else if is_any(keyword, &["flex", "grid", "math", "ruby", "table"]) {
        INSIDE | ITEM
    } else if is_any(keyword, &["list-item"]) {
        ITEM
    } else {
        0
    }
}

/// Whether a keyword is one of these, in either case.
pub(super) fn is_any(keyword: &[u8], names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| keyword.eq_ignore_ascii_case(name.as_bytes()))
}
