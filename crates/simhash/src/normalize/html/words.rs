//! Counts words, to tell sentences from labels.

use std::ops::Range;

use crate::isa::{Isa as _, Portable};

/// How a byte counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Ends a word.
    WhiteSpace,
    /// Belongs to a word, but makes none: punctuation, symbols, the further bytes of characters.
    Mark,
    /// A letter or digit: the run of bytes that has one is a word.
    Letter,
    /// Begins a character of Han or Hangul, or of a few rare scripts.
    Han,
    /// The first byte of a character whose kind depends on its second byte.
    Second,
}

/// The kinds of bytes of UTF-8 text.
static KINDS: [Kind; 256] = {
    let mut kinds = [Kind::Mark; 256];
    let mut byte = 0;
    while byte < 256 {
        kinds[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\x0c' | b'\r' => Kind::WhiteSpace,
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => Kind::Letter,
            // U+00C0 to U+07FF. Before that come symbols of Latin-1.
            0xc3..=0xdf => Kind::Letter,
            0xe0 | 0xe1 | 0xe3 => Kind::Second,
            // Hangul has spaces between words, but such a word often says as much as two of English.
            0xe4..=0xed => Kind::Han,
            // 0xe2 has punctuation and symbols; 0xef full-width forms; 0xf0 emoji.
            _ => Kind::Mark,
        };
        byte += 1;
    }
    kinds
};

/// A quarter of a word: how much a character counts in scripts without spaces between words.
const HAN_QUARTERS: u32 = 2;
const THAI_QUARTERS: u32 = 1;

/// The number of words of `text`: what stands between white space and has a letter or digit; every two characters of
/// Han, Kana and Hangul; every four characters of the scripts of Thai, Lao, Burmese and Khmer.
pub(super) fn count(text: &str) -> u32 {
    /// Fewer bytes than this are counted one by one.
    const SHORT: usize = 16;
    let bytes = text.as_bytes();
    let (chunks, rest) = bytes.as_chunks::<64>();
    let mut words = Words::default();
    for (at, chunk) in chunks.iter().enumerate() {
        if chunk.is_ascii() {
            words.add_ascii(chunk)
        } else {
            words.add(bytes, 64 * at..64 * (at + 1))
        }
    }
    if rest.len() >= SHORT && rest.is_ascii() {
        let mut last = [b' '; 64];
        last[..rest.len()].copy_from_slice(rest);
        words.add_ascii(&last);
    } else {
        words.add(bytes, bytes.len() - rest.len()..bytes.len());
    }
    words.words + words.quarters / 4
}

/// The words so far.
#[derive(Debug, Default)]
struct Words {
    words: u32,
    quarters: u32,
    /// Whether the run of bytes that are no white space, which may go on, has a letter or digit.
    in_word: bool,
}

impl Words {
    /// Adds the bytes of `text` in `range`.
    fn add(&mut self, text: &[u8], range: Range<usize>) {
        let Self {
            words,
            quarters,
            in_word,
        } = self;
        for at in range {
            let byte = text[at];
            let next = || text.get(at + 1).copied().unwrap_or_default();
            match KINDS[usize::from(byte)] {
                Kind::WhiteSpace => *in_word = false,
                Kind::Mark => {}
                Kind::Letter => {
                    *words += u32::from(!*in_word);
                    *in_word = true;
                }
                Kind::Han => {
                    *quarters += HAN_QUARTERS;
                    *in_word = false;
                }
                Kind::Second => match (byte, next()) {
                    // Punctuation of Chinese and Japanese.
                    (0xe3, 0x80) => {}
                    (0xe3, _) => {
                        *quarters += HAN_QUARTERS;
                        *in_word = false;
                    }
                    // Thai and Lao; Burmese; Khmer.
                    (0xe0, 0xb8..=0xbb) | (0xe1, 0x80..=0x82 | 0x9e | 0x9f) => {
                        *quarters += THAI_QUARTERS;
                        *in_word = false;
                    }
                    _ => {
                        *words += u32::from(!*in_word);
                        *in_word = true;
                    }
                },
            }
        }
    }

    /// Adds 64 bytes of ASCII.
    fn add_ascii(&mut self, bytes: &[u8; 64]) {
        let spaces = Portable.mask(bytes, |byte| {
            (byte == b' ') | ((byte.wrapping_sub(b'\t') < 5) & (byte != 0x0b))
        });
        let letters = Portable.mask(bytes, |byte| {
            ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10)
        });
        // A letter begins a word behind white space. Behind a mark, it does if the mark's run has no letter before.
        let firsts = letters & !(letters << 1);
        let behind_space = firsts & spaces << 1;
        self.words += behind_space.count_ones();
        let mut others = firsts & !behind_space;
        while others != 0 {
            let before = (others & others.wrapping_neg()) - 1;
            others &= others - 1;
            self.words += u32::from(!self.is_in_word(spaces & before, letters & before));
        }
        self.in_word = self.is_in_word(spaces, letters);
    }

    /// Whether a letter follows the last of `spaces`, or stands before these bytes if they have no white space.
    fn is_in_word(&self, spaces: u64, letters: u64) -> bool {
        // Higher than a letter if the last white space is.
        letters > spaces || (spaces == 0 && self.in_word)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_counted() {
        for (text, words) in [
            ("", 0),
            (" one  two\nthree ", 3),
            ("It's 3.14 – e.g. «naïve» | › • Straße", 5),
            ("Привет мир, שלום 안녕하세요 한국어 Việt हिन्दी", 9),
            ("近似重复的网页，非常多。", 5),
            ("カタカナ ひらがな", 4),
            ("Rust语言 2024", 3),
            ("ภาษาไทย", 1),
            ("👍 👍", 0),
        ] {
            assert_eq!(count(text), words, "{text}");
        }
    }

    proptest! {
        #[test]
        fn ascii_counts_as_its_words(text in "([a-zA-Z0-9]{1,9}|[-'.,_\\x0b]{1,3}|[ \\t\\n\\r\\x0c]{1,2}|é|近){0,120}") {
            let mut bytes = Words::default();
            bytes.add(text.as_bytes(), 0..text.len());
            prop_assert_eq!(count(&text), bytes.words + bytes.quarters / 4);
            if text.is_ascii() {
                let words = text.split([' ', '\t', '\n', '\r', '\x0c']);
                let words = words.filter(|word| word.contains(|c: char| c.is_ascii_alphanumeric()));
                prop_assert_eq!(count(&text) as usize, words.count());
            }
        }
    }
}
