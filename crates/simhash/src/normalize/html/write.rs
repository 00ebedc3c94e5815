//! Writes text with collapsed white space.
//!
//! White space is what the standard calls ASCII white space, and the no-break space, with which pages indent and pad.
//! It becomes one space, or one newline where a line ends, and none at the beginning and end of the output.

use memchr::memchr2;

use super::entities::References;

/// What separates two texts; of several, the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// The words go on.
    None,
    /// One space.
    Space,
    /// A newline within a block.
    Line,
    /// A newline, and the block ends.
    Block,
}

/// Appends runs of text to a string.
#[derive(Debug)]
pub(super) struct Writer<'p, 'o> {
    references: References<'p>,
    collapsed: Collapsed<'o>,
}

impl<'p, 'o> Writer<'p, 'o> {
    /// Appends to `out`.
    pub(super) fn new(out: &'o mut String) -> Self {
        Self {
            references: References::default(),
            collapsed: Collapsed {
                begin: out.len(),
                out,
                gap: Gap::None,
            },
        }
    }

    /// Removes all that was written.
    pub(super) fn restart(&mut self) {
        self.collapsed.out.truncate(self.collapsed.begin);
        self.collapsed.gap = Gap::None;
    }

    /// Separates the text that follows.
    pub(super) fn separate(&mut self, gap: Gap) {
        self.collapsed.gap = self.collapsed.gap.max(gap);
    }

    /// Appends a text with character references. NUL characters are left out, as in the standard.
    pub(super) fn text(&mut self, mut text: &'p str) {
        while let Some(at) = memchr2(b'&', 0, text.as_bytes()) {
            self.collapsed.push(&text[..at]);
            if text.as_bytes()[at] == 0 {
                text = &text[at + 1..];
                continue;
            }
            let (len, decoded) = self.references.read(&text[at..]);
            self.collapsed.push(decoded);
            text = &text[at + len..];
        }
        self.collapsed.push(text);
    }

    /// Appends a text in which `&` is a character like others.
    pub(super) fn raw_text(&mut self, text: &str) {
        self.collapsed.push(text);
    }

    /// What was written.
    pub(super) fn written(&self) -> &str {
        &self.collapsed.out[self.collapsed.begin..]
    }
}

#[derive(Debug)]
struct Collapsed<'o> {
    out: &'o mut String,
    /// The length of `out` before anything was written.
    begin: usize,
    /// What comes before the next character that is not white space.
    gap: Gap,
}

impl Collapsed<'_> {
    fn push(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        loop {
            let begin = skip_white_space(bytes, at);
            if begin > at {
                self.gap = self.gap.max(Gap::Space);
            }
            if begin == bytes.len() {
                return;
            }
            self.close_gap();
            at = begin + unchanged_len(&bytes[begin..]);
            self.out.push_str(&text[begin..at]);
        }
    }

    #[inline]
    fn close_gap(&mut self) {
        if self.gap == Gap::None {
            return;
        }
        if self.out.len() > self.begin {
            self.out.push(match self.gap {
                Gap::Space => ' ',
                _ => '\n',
            });
        }
        self.gap = Gap::None;
    }
}

/// The position of the first character at or after `at` that is not white space.
#[inline]
fn skip_white_space(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match white_space_len(&bytes[at..]) {
            0 => return at,
            len => at += len,
        }
    }
}

/// The length of the white space character at the start of `bytes`; 0 if `bytes` begins with another character.
#[inline]
fn white_space_len(bytes: &[u8]) -> usize {
    match bytes {
        [b' ' | b'\t' | b'\n' | b'\x0c' | b'\r', ..] => 1,
        // The no-break space.
        [0xc2, 0xa0, ..] => 2,
        _ => 0,
    }
}

/// The number of bytes that are looked at together.
const CHUNK: usize = 32;

/// The length of the text at the start of `bytes` in which collapsing changes nothing: up to the first white space that
/// is not one space between two words. The first character is not white space.
fn unchanged_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        while let Some(chunk) = bytes[at..].first_chunk::<{ CHUNK + 1 }>()
            && !may_change(chunk)
        {
            at += CHUNK;
        }
        let end = bytes.len().min(at + CHUNK);
        while at < end {
            match white_space_len(&bytes[at..]) {
                0 => at += 1,
                _ if bytes[at] != b' ' => return at,
                _ if at + 1 == bytes.len() || white_space_len(&bytes[at + 1..]) > 0 => return at,
                _ => at += 1,
            }
        }
        if at == bytes.len() {
            return at;
        }
    }
}

/// Whether collapsing may change any but the last of these bytes. Without branches, so that it becomes a few vector
/// instructions; so it is also true for some characters that do not change.
#[inline]
fn may_change(chunk: &[u8; CHUNK + 1]) -> bool {
    let mut changes = false;
    for (&byte, &next) in chunk[..CHUNK].iter().zip(&chunk[1..]) {
        let before_space = (next <= b' ') | (next == 0xc2);
        changes |= (byte < b' ') | (byte == 0xc2) | ((byte == b' ') & before_space);
    }
    changes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn collapse(runs: &[&str]) -> String {
        let mut out = "before".to_owned();
        let mut writer = Writer::new(&mut out);
        for run in runs {
            writer.raw_text(run);
        }
        let written = writer.written().to_owned();
        assert_eq!(out, format!("before{written}"));
        written
    }

    #[test]
    fn white_space_collapses() {
        assert_eq!(
            collapse(&["  a\n b ", "\t", " c d\u{a0}\u{a0} ", ""]),
            "a b c d"
        );
        assert_eq!(collapse(&["a", "b", " ", "c"]), "ab c");
        assert_eq!(collapse(&[" \n"]), "");
        // No white space here.
        assert_eq!(
            collapse(&["\u{ab}a\u{bb}\u{3000}\u{b}b"]),
            "\u{ab}a\u{bb}\u{3000}\u{b}b"
        );
    }

    #[test]
    fn the_greatest_gap_counts() {
        let mut out = String::new();
        let mut writer = Writer::new(&mut out);
        writer.separate(Gap::Block);
        writer.text("a &amp;");
        writer.separate(Gap::Line);
        writer.text(" b");
        writer.separate(Gap::None);
        writer.text("c&nbsp;&#32;");
        writer.separate(Gap::Space);
        writer.text("d");
        writer.separate(Gap::Block);
        assert_eq!(writer.written(), "a &\nbc d");
        writer.restart();
        writer.text(" e");
        assert_eq!(writer.written(), "e");
    }

    proptest! {
        #[test]
        fn runs_collapse_as_their_characters_do(text in "( |\n|\r|\t|\u{a0}|\u{ab}|\u{b}|近|[a-z ]{0,40}|x){0,30}") {
            let white_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\x0c' | '\r' | '\u{a0}');
            let words: Vec<&str> = text.split(white_space).filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(collapse(&[&text]), words.join(" "));
        }
    }
}
