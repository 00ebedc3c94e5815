//! Passages: the lines and sentences of a text, by which templates are found.

use simhash::hash::murmur3_low64;

/// A line or a sentence of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage<'t> {
    /// The passage, with the white space behind it.
    pub text: &'t str,
    /// Hash of its words: passages that differ in case, white space, punctuation, or numbers alone have equal keys. `None` if it
    /// has no word.
    pub key: Option<u32>,
    /// The number of its words; a Han, Kana or Hangul character is a word.
    pub words: u32,
}

/// Cuts texts into passages, with a buffer that is reused from text to text.
#[derive(Debug, Clone, Default)]
pub struct Passages {
    words: Vec<u8>,
}

/// A byte that stands between words.
const BETWEEN: u8 = 0;

/// For each byte: in lower case, if it is part of a word.
const WORD_BYTES: [u8; 256] = {
    let mut bytes = [BETWEEN; 256];
    let mut byte = 0;
    while byte < 256 {
        let value = byte as u8;
        if value.is_ascii_alphanumeric() || value >= 0x80 {
            bytes[byte] = value.to_ascii_lowercase();
        }
        byte += 1;
    }
    bytes
};

/// The first byte of a Han, Kana or Hangul character, in UTF-8. A few other characters begin so, too.
fn starts_cjk_word(byte: u8) -> bool {
    matches!(byte, 0xe3..=0xed | 0xf0)
}

impl Passages {
    /// Calls `each` with the passages of `text`, in order. Together they are the text.
    pub fn each<'t>(&mut self, text: &'t str, mut each: impl FnMut(Passage<'t>)) {
        let mut rest = text;
        while !rest.is_empty() {
            let (passage, behind) = rest.split_at(end_of_first(rest));
            let (key, words) = self.key(passage);
            each(Passage {
                text: passage,
                key,
                words,
            });
            rest = behind;
        }
    }

    /// The key and the number of words of a passage.
    fn key(&mut self, passage: &str) -> (Option<u32>, u32) {
        let out = &mut self.words;
        out.clear();
        let mut words = 0;
        // Where the word that is read begins, and whether it has a digit: then it counts as a number.
        let (mut start, mut has_digit) = (0, false);
        for &byte in passage.as_bytes() {
            let lower = WORD_BYTES[usize::from(byte)];
            if lower == BETWEEN {
                if out.len() > start {
                    end_word(out, start, has_digit);
                    (start, has_digit) = (out.len(), false);
                    words += 1;
                }
                continue;
            }
            words += u32::from(starts_cjk_word(byte));
            has_digit |= byte.is_ascii_digit();
            out.push(lower);
        }
        if out.len() > start {
            end_word(out, start, has_digit);
            words += 1;
        }
        match out.is_empty() {
            true => (None, 0),
            false => (Some((murmur3_low64(out, 0) >> 32) as u32), words),
        }
    }
}

/// Ends the word that begins at `start`.
fn end_word(out: &mut Vec<u8>, start: usize, has_digit: bool) {
    if has_digit {
        out.truncate(start);
        out.push(b'0');
    }
    out.push(b' ');
}

/// The end of the first passage of a text, behind the white space that follows it.
fn end_of_first(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'\n' | b'\r' => Some(at + 1),
            // A stop ends a sentence before white space.
            b'.' | b'!' | b'?' => bytes
                .get(at + 1)
                .filter(|next| next.is_ascii_whitespace())
                .map(|_| at + 1),
            // 。 ！ ？ ；
            0xe3 if bytes[at..].starts_with("。".as_bytes()) => Some(at + 3),
            0xef if ["！", "？", "；"]
                .iter()
                .any(|stop| bytes[at..].starts_with(stop.as_bytes())) =>
            {
                Some(at + 3)
            }
            _ => None,
        };
        if let Some(end) = end {
            let behind = bytes[end..].iter();
            return end + behind.take_while(|byte| byte.is_ascii_whitespace()).count();
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(text: &str) -> Vec<(String, u32)> {
        let mut found = Vec::new();
        Passages::default().each(text, |passage| {
            found.push((passage.text.trim().to_owned(), passage.words));
        });
        found
    }

    fn key(text: &str) -> Option<u32> {
        Passages::default().key(text).0
    }

    #[test]
    fn lines_and_sentences_are_passages() {
        let text = "Home\n  News \r\nVersion 1.5 is out. Get it now! 近似。重复？\n\n---\nend";
        let expected = [
            ("Home", 1),
            ("News", 1),
            ("Version 1.5 is out.", 5),
            ("Get it now!", 3),
            ("近似。", 4),
            ("重复？", 3),
            ("---", 0),
            ("end", 1),
        ];
        assert_eq!(cut(text), expected.map(|(text, words)| (text.to_owned(), words)));
    }

    #[test]
    fn keys_leave_out_case_punctuation_and_numbers() {
        let same = ["Seen 1,234 times (id 8f3a)", "seen 9,1 TIMES id: 77"];
        assert_eq!(key(same[0]), key(same[1]));
        assert_ne!(key("seen often"), key("seen rarely"));
        assert_ne!(key("a b"), key("ab"));
        assert_eq!(key("--- …".trim_end_matches('…')), None);
    }

    proptest! {
        #[test]
        fn passages_are_the_text(text in "\\PC{0,40}|[a-c.!? \\n\\r。！]{0,60}") {
            let mut joined = String::new();
            Passages::default().each(&text, |passage| joined.push_str(passage.text));
            prop_assert_eq!(joined, text);
        }
    }
}
