//! The title of a page, as its `title` element has it, and which texts of the page repeat it.
//!
//! A `title` element names the article, and mostly the site: `Near-duplicates | The Harbour Post`. So a text of the page is
//! its title if the element has it, as whole words.

use super::write::Writer;

/// The most bytes of a title that are read.
const MOST_BYTES: usize = 1 << 10;

/// The text of the `title` element; empty if the page has none.
#[derive(Debug, Default)]
pub(super) struct PageTitle(String);

impl PageTitle {
    /// The title whose text is `raw`, with character references.
    pub(super) fn new(raw: &str) -> Self {
        let mut text = String::new();
        Writer::new(&mut text).text(&raw[..raw.floor_char_boundary(MOST_BYTES)]);
        Self(text)
    }

    /// The length in bytes of the first line of `text`, if the page's title contains it.
    pub(super) fn matched_len(&self, text: &str) -> Option<usize> {
        let line = without_marks(text.lines().next().unwrap_or_default());
        let is_inside = !line.is_empty()
            && self.0.match_indices(line).any(|(at, found)| {
                let (before, after) = (&self.0[..at], &self.0[at + found.len()..]);
                !before.ends_with(char::is_alphanumeric)
                    && !after.starts_with(char::is_alphanumeric)
            });
        is_inside.then_some(line.len())
    }

    /// The length in bytes of the first line of `text`, if it is the whole title, or the first of its parts.
    pub(super) fn begun_len(&self, text: &str) -> Option<usize> {
        let line = text.lines().next().unwrap_or_default();
        let rest = self.0.strip_prefix(line)?;
        let is_part = rest.is_empty() || rest.trim_start().starts_with(|c| SEPARATORS.contains(c));
        (!line.is_empty() && is_part).then_some(line.len())
    }
}

/// What may stand between the parts of a title, with spaces around.
const SEPARATORS: &str = "|-–—·•»«:_/";

/// A heading without the sign behind it that links to it.
fn without_marks(heading: &str) -> &str {
    heading.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '¶' | '§' | '#' | '🔗'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_contains_its_parts_as_whole_words() {
        let title = PageTitle::new("\n Near&shy;ness &amp; more |\n Harbour Post ");
        for (text, len) in [
            ("Near\u{ad}ness & more", Some(17)),
            ("Near\u{ad}ness & more ¶\nby Ada", Some(17)),
            ("Harbour Post", Some(12)),
            ("Harbour", Some(7)),
            ("Harb", None),
            ("our Post", None),
            ("near\u{ad}ness & more", None),
            ("¶", None),
            ("", None),
        ] {
            assert_eq!(title.matched_len(text), len, "{text}");
        }
        assert_eq!(PageTitle::default().matched_len("Harbour"), None);
    }
}
