//! Passages: the lines and sentences of a text, by which templates are found.

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

/// What a byte of a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    /// A byte of a character that is not ASCII.
    High,
    Space,
    LineEnd,
    Stop,
    Other,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            0x80.. => Class::High,
            b'\n' | b'\r' => Class::LineEnd,
            b' ' | b'\t' | 0x0c => Class::Space,
            b'.' | b'!' | b'?' => Class::Stop,
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
};

/// The stops of Chinese and Japanese: 。 ！ ？ ；
const HIGH_STOPS: [[u8; 3]; 4] = [
    [0xe3, 0x80, 0x82],
    [0xef, 0xbc, 0x81],
    [0xef, 0xbc, 0x9f],
    [0xef, 0xbc, 0x9b],
];

/// The hash of a passage: FNV-1a of the lower-case letters of its words, with a space behind each word, and mixed at the end.
#[derive(Debug, Clone, Copy)]
struct Words {
    hash: u64,
    /// The number of words that have ended.
    count: u32,
    /// The hash before the run of ASCII that is read, and whether this run is a number or an address.
    before_run: u64,
    is_number: bool,
    /// Whether the word that is read has anything, and its characters that are words.
    has_any: bool,
    of_cjk: u32,
}

const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

#[inline(always)]
fn mixed(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(PRIME)
}

impl Words {
    const NONE: Self = Self {
        hash: START,
        count: 0,
        before_run: START,
        is_number: false,
        has_any: false,
        of_cjk: 0,
    };

    #[inline(always)]
    fn letter(&mut self, byte: u8) {
        self.hash = mixed(self.hash, byte | 0x20);
        self.has_any = true;
    }

    #[inline(always)]
    fn high(&mut self, byte: u8) {
        self.end_run();
        self.hash = mixed(self.hash, byte);
        self.before_run = self.hash;
        self.has_any = true;
        // The first byte of a Han, Kana or Hangul character. A few other characters begin so, too.
        self.of_cjk += u32::from(matches!(byte, 0xe3..=0xed | 0xf0));
    }

    #[inline(always)]
    fn number(&mut self) {
        self.is_number = true;
        self.has_any = true;
    }

    #[inline(always)]
    fn end_run(&mut self) {
        if self.is_number {
            self.hash = mixed(self.before_run, b'0');
            self.is_number = false;
        }
    }

    #[inline(always)]
    fn end_word(&mut self) {
        if self.has_any {
            self.end_run();
            self.hash = mixed(self.hash, b' ');
            self.count += self.of_cjk.max(1);
            self.has_any = false;
            self.of_cjk = 0;
        }
        self.before_run = self.hash;
    }

    fn key(&self) -> Option<u32> {
        let mut hash = self.hash;
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 33;
        (self.count > 0).then_some((hash >> 32) as u32)
    }
}

/// Calls `each` with the passages of `text`, in order. Together they are the text.
pub fn each_passage<'t>(text: &'t [u8], mut each: impl FnMut(Passage<'t>)) {
    let (mut start, mut at) = (0, 0);
    let mut words = Words::NONE;
    while let Some(&byte) = text.get(at) {
        let end = match CLASSES[usize::from(byte)] {
            Class::Letter => {
                words.letter(byte);
                None
            }
            Class::Digit => {
                words.number();
                None
            }
            Class::High => {
                let is_stop = matches!(byte, 0xe3 | 0xef)
                    && HIGH_STOPS.iter().any(|stop| text[at..].starts_with(stop));
                words.high(byte);
                match is_stop {
                    true => {
                        words.high(text[at + 1]);
                        words.high(text[at + 2]);
                        Some(at + 3)
                    }
                    false => None,
                }
            }
            Class::Space => {
                words.end_word();
                None
            }
            Class::LineEnd => Some(at + 1),
            // A stop ends a sentence before white space.
            Class::Stop => {
                let next = text.get(at + 1).map(|next| CLASSES[usize::from(*next)]);
                matches!(next, Some(Class::Space | Class::LineEnd)).then_some(at + 1)
            }
            Class::Other => {
                if byte == b':' && text[at..].starts_with(b"://") {
                    words.number();
                }
                None
            }
        };
        let Some(end) = end else {
            at += 1;
            continue;
        };
        let behind = text[end..].iter();
        let spaces = behind.take_while(|byte| {
            matches!(CLASSES[usize::from(**byte)], Class::Space | Class::LineEnd)
        });
        at = end + spaces.count();
        words.end_word();
        each(passage(&text[start..at], words));
        (start, words) = (at, Words::NONE);
    }
    if start < text.len() {
        words.end_word();
        each(passage(&text[start..], words));
    }
}

fn passage(text: &[u8], words: Words) -> Passage<'_> {
    Passage {
        text,
        key: words.key(),
        words: words.count,
    }
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
            each_passage(text.as_bytes(), |passage| joined.extend(passage.text));
            prop_assert_eq!(joined, text.as_bytes());
        }
    }
}
