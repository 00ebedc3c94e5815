//! The title of a page, as its `title` element has it.
//!
//! A `title` element names the article, and mostly the site: `Near-duplicates | The Harbour Post`. The longest of its parts is
//! taken for the article's title, or for a part of it: `Near-duplicates - A study | The Harbour Post`.

use std::ops::Range;

use super::write::Writer;

/// The most bytes of a title that are read.
const MOST_BYTES: usize = 1 << 10;

/// The text of the `title` element.
#[derive(Debug, Default)]
pub(super) struct PageTitle {
    /// Empty if the page has none.
    text: String,
    /// The longest of its parts.
    longest: Range<usize>,
}

impl PageTitle {
    /// The title whose text is `raw`, with character references.
    pub(super) fn new(raw: &str) -> Self {
        let mut text = String::new();
        Writer::new(&mut text).text(&raw[..raw.floor_char_boundary(MOST_BYTES)]);
        let text = without_count(&text).to_owned();
        let ends = (1..text.len()).filter(|&at| is_end(&text, at));
        let mut begin = 0;
        let mut longest = 0..0;
        for end in ends.chain([text.len()]) {
            let is_between = |c: char| c.is_whitespace() || SEPARATORS.contains(c);
            let part = text[begin..end].trim_start_matches(is_between);
            if part.len() > longest.len() {
                longest = end - part.len()..end;
            }
            begin = end;
        }
        Self { text, longest }
    }

    /// Whether `line` is the title of the article by this element: one or more of its first or of its last parts, with the
    /// longest one.
    pub(super) fn names(&self, line: &str) -> bool {
        let is_first = self.begins_with(line) && line.len() >= self.longest.end;
        is_first || (self.ends_with(line) && self.text.len() - line.len() <= self.longest.start)
    }

    /// Whether `line` is one or more of the first parts.
    pub(super) fn begins_with(&self, line: &str) -> bool {
        let is_part = !line.is_empty() && self.text.starts_with(line);
        is_part && (line.len() == self.text.len() || is_end(&self.text, line.len()))
    }

    /// Whether `line` is one or more of the last parts.
    fn ends_with(&self, line: &str) -> bool {
        let is_part = !line.is_empty() && self.text.ends_with(line);
        let before = &self.text[..self.text.len() - line.len() * usize::from(is_part)];
        is_part && before.trim_end().ends_with(|c| SEPARATORS.contains(c))
    }
}

/// What stands between the parts of a title.
const SEPARATORS: &str = "|-–—·•»«:_/";

/// The separators that need no white space around them.
const TIGHT: [char; 2] = ['|', '_'];

/// Whether a part of the title may end at `at`, and a separator follows.
fn is_end(title: &str, at: usize) -> bool {
    let Some(rest) = title.get(at..) else {
        return false;
    };
    let separator = rest.trim_start();
    let mut chars = separator.chars();
    let Some(first) = chars.next().filter(|&first| SEPARATORS.contains(first)) else {
        return false;
    };
    let is_apart = separator.len() < rest.len() || first == ':';
    TIGHT.contains(&first) || (is_apart && chars.next().is_none_or(char::is_whitespace))
}

/// A title without the number of messages before it: `(3) Near-duplicates`.
fn without_count(title: &str) -> &str {
    let rest = title.strip_prefix('(');
    let rest = rest.map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.and_then(|rest| rest.strip_prefix(") "))
        .unwrap_or(title)
}

/// The first line of a block, without the sign behind a heading that links to it.
pub(super) fn first_line(block: &str) -> &str {
    let line = block.lines().next().unwrap_or_default();
    let line = line.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '¶' | '§' | '🔗'));
    line.strip_suffix(" #").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_names_the_article() {
        let soft = "Near\u{ad}ness & more";
        for (raw, line) in [
            ("\n Near&shy;ness &amp; more |\n News ", soft),
            ("News: Near&shy;ness &amp; more", soft),
            ("(12) Near&shy;ness &amp; more", soft),
            (
                "News_Near&shy;ness &amp; more_More news",
                "Near\u{ad}ness & more_More news",
            ),
            (
                "A study of cats - Part 2 – News",
                "A study of cats - Part 2",
            ),
            (
                "News / A study of cats - Part 2",
                "A study of cats - Part 2",
            ),
            ("C/C++ of e-mails", "C/C++ of e-mails"),
        ] {
            assert!(PageTitle::new(raw).names(line), "{raw}: {line}");
        }
        for (raw, line) in [
            ("Near-duplicates study | News", "News"),
            ("Near-duplicates study | News", "Near"),
            ("Near-duplicates study | News", "study | News"),
            ("News: near-duplicates", "duplicates"),
            ("C/C++ of e-mails", "C"),
            ("", ""),
            ("x", ""),
        ] {
            assert!(!PageTitle::new(raw).names(line), "{raw}: {line}");
        }
    }

    #[test]
    fn an_element_begins_with_a_text() {
        assert!(PageTitle::new("union - Old Wires Home Page").begins_with("union"));
        assert!(!PageTitle::new("union - Old Wires Home Page").begins_with("Old Wires Home Page"));
        assert!(!PageTitle::new("unions").begins_with("union"));
        assert!(!PageTitle::new("bread-made things").begins_with("bread"));
        // A title is cut between two characters.
        let long = "é".repeat(1_000);
        assert!(PageTitle::new(&long).begins_with(&"é".repeat(512)));
    }

    #[test]
    fn first_lines_have_no_marks() {
        for (block, line) in [
            ("Title ¶", "Title"),
            ("Title🔗\nby Ada", "Title"),
            ("Title #", "Title"),
            ("Learn C#", "Learn C#"),
            ("", ""),
        ] {
            assert_eq!(first_line(block), line);
        }
    }
}
