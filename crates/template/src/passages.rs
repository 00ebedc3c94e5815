//! Passages: the lines and sentences of a text, by which templates are found.

use memchr::{memchr, memchr2, memchr3};

/// A line or a sentence of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passage<'t> {
    /// The passage, with the white space behind it. It need not be UTF-8.
    pub text: &'t [u8],
    /// Hash of its words: passages that differ in case, punctuation at their ends, numbers, or addresses alone have equal keys. What
    /// has a digit is a number. `None` if it has no word.
    pub key: Option<u32>,
    /// About the number of its words; a Han, Kana or Hangul character is a word.
    pub words: u32,
}

/// Calls `each` with the passages of `text`, in order. Together they are the text.
pub fn each_passage<'t>(text: &'t [u8], mut each: impl FnMut(Passage<'t>)) {
    let mut rest = text;
    while !rest.is_empty() {
        let line = memchr2(b'\n', b'\r', rest).map_or(rest.len(), |at| at + 1);
        let mut start = 0;
        while start < line {
            let end = end_of_sentence(&rest[start..line]).map_or(line, |end| start + end);
            // White space goes with the passage before it.
            let end = end + spaces(&rest[end..]);
            each(passage(&rest[start..end]));
            start = end;
        }
        rest = &rest[start..];
    }
}

/// The number of bytes of white space at the start.
fn spaces(text: &[u8]) -> usize {
    text.iter().take_while(|byte| is_space(**byte)).count()
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | 0x0c)
}

/// The end of the first sentence of a line, behind its stop, if it has one.
fn end_of_sentence(line: &[u8]) -> Option<usize> {
    let mut from = 0;
    let ascii = loop {
        let Some(at) = memchr3(b'.', b'!', b'?', &line[from..]) else {
            break None;
        };
        let end = from + at + 1;
        // A stop ends a sentence before white space.
        if line.get(end).is_some_and(|next| is_space(*next)) {
            break Some(end);
        }
        from = end;
    };
    // 。 ！ ？ ；
    let line = &line[..ascii.unwrap_or(line.len())];
    let mut from = 0;
    while let Some(at) = memchr2(0xe3, 0xef, &line[from..]) {
        let stop = &line[from + at..];
        if let [0xe3, 0x80, 0x82, ..] | [0xef, 0xbc, 0x81 | 0x9f | 0x9b, ..] = stop {
            return Some(from + at + 3);
        }
        from += at + 1;
    }
    ascii
}

fn passage(text: &[u8]) -> Passage<'_> {
    let words = text.trim_ascii_start();
    let end = words
        .iter()
        .rposition(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    let Some(end) = end else {
        return Passage {
            text,
            key: None,
            words: 0,
        };
    };
    let words = &words[..=end];
    let read = Letters::read(words);
    let hash = if read.may_have_number && has_number(words) {
        hash_of_words(words)
    } else {
        read.hash
    };
    let of_cjk = if read.is_ascii { 0 } else { cjk_words(words) };
    Passage {
        text,
        key: Some((hash >> 32) as u32),
        words: read.spaces + 1 + of_cjk,
    }
}

/// The number of Han, Kana and Hangul characters, by their first bytes in UTF-8. A few other characters begin so, too.
fn cjk_words(text: &[u8]) -> u32 {
    let starts = text
        .iter()
        .map(|byte| u32::from(matches!(byte, 0xe3..=0xed | 0xf0)));
    starts.sum()
}

/// A byte of value 1 in each of eight places.
const ONES: u64 = 0x0101_0101_0101_0101;

/// The bit 128 of each byte that is zero, and no other.
#[inline(always)]
fn zeros(bytes: u64) -> u64 {
    !(((bytes & (0x7f * ONES)) + 0x7f * ONES) | bytes | (0x7f * ONES))
}

#[inline(always)]
fn mixed(hash: u64, word: u64) -> u64 {
    const FACTOR: u128 = 0x9e37_79b9_7f4a_7c15;
    let product = u128::from(hash ^ word ^ 0xf39c_c060_5ced_c835) * FACTOR;
    (product >> 64) as u64 ^ product as u64
}

/// What is read of a passage, eight bytes at a time.
struct Letters {
    /// The hash of its lower-case letters.
    hash: u64,
    spaces: u32,
    /// Whether it has a digit or a colon.
    may_have_number: bool,
    is_ascii: bool,
}

impl Letters {
    fn read(words: &[u8]) -> Self {
        let (mut hash, mut spaces, mut others, mut all) = (words.len() as u64, 0, 0, 0);
        let mut add = |word: u64| {
            spaces += zeros(word ^ (0x20 * ONES)).count_ones();
            // A digit is 0x30 and less than ten.
            let digit = word ^ (0x30 * ONES);
            let not_digit = (digit | ((digit & (0x7f * ONES)) + 6 * ONES)) & (0xf0 * ONES);
            others |= zeros(not_digit) | zeros(word ^ (0x3a * ONES));
            all |= word;
            let letters = word & (0x40 * ONES) & !((word & (0x80 * ONES)) >> 1);
            hash = mixed(hash, word | letters >> 1);
        };
        let (whole, rest) = words.as_chunks::<8>();
        for bytes in whole {
            add(u64::from_le_bytes(*bytes));
        }
        if !rest.is_empty() {
            let mut bytes = [0; 8];
            bytes[..rest.len()].copy_from_slice(rest);
            add(u64::from_le_bytes(bytes));
        }
        Self {
            hash,
            spaces,
            may_have_number: others != 0,
            is_ascii: all & (0x80 * ONES) == 0,
        }
    }
}

/// Whether a passage has a digit or an address, and not only a colon.
fn has_number(words: &[u8]) -> bool {
    let colon = memchr(b':', words);
    words.iter().any(u8::is_ascii_digit)
        || colon.is_some_and(|at| words[at..].windows(3).any(|window| window == b"://"))
}

/// The hash of the words of a passage, of which those that are numbers or addresses are alike.
fn hash_of_words(words: &[u8]) -> u64 {
    let mut hash = 0;
    for token in words.split(|byte| is_space(*byte)) {
        // ASCII and other characters are read in runs: not all that touches a number is one.
        for run in token.chunk_by(|a, b| a.is_ascii() == b.is_ascii()) {
            let is_ascii = run.first().is_some_and(u8::is_ascii);
            if is_ascii && has_number(run) {
                hash = mixed(hash, u64::from(b'0'));
                continue;
            }
            for byte in run {
                if !byte.is_ascii() || byte.is_ascii_alphabetic() {
                    hash = mixed(hash, u64::from(byte.to_ascii_lowercase()));
                }
            }
        }
        hash = mixed(hash, u64::from(b' '));
    }
    hash
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(text: &str) -> Vec<(String, u32)> {
        let mut found = Vec::new();
        each_passage(text.as_bytes(), |passage| {
            let text = str::from_utf8(passage.text).unwrap();
            found.push((text.trim().to_owned(), passage.words));
        });
        found
    }

    fn key(text: &str) -> Option<u32> {
        let mut keys = Vec::new();
        each_passage(text.as_bytes(), |passage| keys.push(passage.key));
        assert_eq!(keys.len(), 1, "{text:?}");
        keys[0]
    }

    #[test]
    fn lines_and_sentences_are_passages() {
        let text = "Home\n  News \r\nVersion 1.5 is out. Get it now! 近似。重复？\n\n---\nend";
        let expected = [
            ("Home", 1),
            ("News", 1),
            ("Version 1.5 is out.", 4),
            ("Get it now!", 3),
            ("近似。", 4),
            ("重复？", 3),
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
            ["Home: news", "home: NEWS:"],
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
            each_passage(text.as_bytes(), |passage| joined.extend(passage.text));
            prop_assert_eq!(joined, text.as_bytes());
        }
    }
}
