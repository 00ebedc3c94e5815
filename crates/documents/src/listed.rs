//! Names of columns, as errors list them.

/// The most names of columns that an error lists.
const LISTED: usize = 20;
/// The most characters of each name: of a file without a header, the first record is taken for
/// names.
const LISTED_CHARS: usize = 60;

/// The column names as an error lists them: the first ones, each shortened.
pub(super) fn listed(names: &[&str]) -> String {
    let short = |name: &&str| -> String {
        // Control characters would break the message's line.
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        let mut short: String = name.chars().take(LISTED_CHARS).map(visible).collect();
        if name.chars().nth(LISTED_CHARS).is_some() {
            short.push_str("...");
        }
        short
    };
    let shown: Vec<String> = names.iter().take(LISTED).map(short).collect();
    let shown = shown.join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
