//! Passages: the lines and sentences of a text, by which templates are found.

use simhash::hash::murmur3_low64;

/// A line or a sentence of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage<'t> {
    /// The passage, with the white space behind it. It need not be UTF-8.
    pub text: &'t [u8],
    /// Hash of its words: passages that differ in case, white space, punctuation, numbers, or addresses alone have equal keys. What
    /// has a digit is a number. `None` if it has no word.
    pub key: Option<u32>,
    /// The number of its words; a Han, Kana or Hangul character is a word.
    pub words: u32,
}

/// Cuts texts into passages, with a buffer that is reused from text to text.
#[derive(Debug, Clone, Default)]
pub struct Passages {
    words: Vec<u8>,
}

/// The first byte of a Han, Kana or Hangul character, in UTF-8. A few other characters begin so, too.
fn starts_cjk_word(byte: u8) -> bool {
    matches!(byte, 0xe3..=0xed | 0xf0)
}

impl Passages {
    /// Calls `each` with the passages of `text`, in order. Together they are the text.
    pub fn each<'t>(&mut self, text: &'t [u8], mut each: impl FnMut(Passage<'t>)) {
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
    fn key(&mut self, passage: &[u8]) -> (Option<u32>, u32) {
        self.words.clear();
        let mut words = 0;
        // What stands between white space is read in runs of ASCII and of other characters.
        for token in passage.split(u8::is_ascii_whitespace) {
            let before = self.words.len();
            let mut of_cjk = 0;
            for run in token.chunk_by(|a, b| a.is_ascii() == b.is_ascii()) {
                match run.first() {
                    Some(first) if first.is_ascii() => self.add_ascii(run),
                    _ => {
                        self.words.extend_from_slice(run);
                        let starts = run.iter().filter(|byte| starts_cjk_word(**byte));
                        of_cjk += starts.count() as u32;
                    }
                }
            }
            if self.words.len() > before {
                words += of_cjk.max(1);
                self.words.push(b' ');
            }
        }
        match self.words.is_empty() {
            true => (None, 0),
            false => (Some((murmur3_low64(&self.words, 0) >> 32) as u32), words),
        }
    }

    /// Adds the letters of a run of ASCII. What has a digit is a number, and so is an address.
    fn add_ascii(&mut self, run: &[u8]) {
        let is_number = run.iter().any(u8::is_ascii_digit);
        if is_number || run.windows(3).any(|window| window == b"://") {
            self.words.push(b'0');
            return;
        }
        let letters = run.iter().filter(|byte| byte.is_ascii_alphabetic());
        self.words.extend(letters.map(u8::to_ascii_lowercase));
    }
}

/// The end of the first passage of a text, behind the white space that follows it.
fn end_of_first(bytes: &[u8]) -> usize {
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
        Passages::default().each(text.as_bytes(), |passage| {
            let text = str::from_utf8(passage.text).unwrap();
            found.push((text.trim().to_owned(), passage.words));
        });
        found
    }

    fn key(text: &str) -> Option<u32> {
        Passages::default().key(text.as_bytes()).0
    }

    #[test]
    fn lines_and_sentences_are_passages() {
        let text = "Home\n  News \r\nVersion 1.5 is out. Get it now! 近似。重复？\n\n---\nend";
        let expected = [
            ("Home", 1),
            ("News", 1),
            ("Version 1.5 is out.", 4),
            ("Get it now!", 3),
            ("近似。", 3),
            ("重复？", 2),
            ("---", 0),
            ("end", 1),
        ];
        assert_eq!(
            cut(text),
            expected.map(|(text, words)| (text.to_owned(), words))
        );
    }

    #[test]
    fn keys_leave_out_case_punctuation_numbers_and_addresses() {
        for same in [
            ["Seen 1,234 times (id 8f3a)", "seen 9 TIMES id: x77"],
            ["From https://a.example/b", "from: 2026-01-01"],
            ["第 3 页", "第 12 页。"],
            ["naïve", "Naïve!"],
        ] {
            let [left, right] = same.map(|text| key(text.trim_end_matches('。')));
            assert_eq!(left, right, "{same:?}");
        }
        for other in [
            ["seen often", "seen rarely"],
            ["a b", "ab"],
            ["近似 1", "重复 1"],
        ] {
            assert_ne!(key(other[0]), key(other[1]), "{other:?}");
        }
        assert_eq!(key(" --- "), None);
    }

    proptest! {
        #[test]
        fn passages_are_the_text(text in "\\PC{0,40}|[a-c.!? \\n\\r。！]{0,60}") {
            let mut joined: Vec<u8> = Vec::new();
            Passages::default().each(text.as_bytes(), |passage| joined.extend(passage.text));
            prop_assert_eq!(joined, text.as_bytes());
        }
    }
}
