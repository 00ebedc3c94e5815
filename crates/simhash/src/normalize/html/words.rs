//! Counts words, to tell sentences from labels.

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
    let bytes = text.as_bytes();
    let (mut words, mut quarters) = (0u32, 0u32);
    let mut in_word = false;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match KINDS[usize::from(byte)] {
            Kind::WhiteSpace => in_word = false,
            Kind::Mark => {}
            Kind::Letter => {
                words += u32::from(!in_word);
                in_word = true;
            }
            Kind::Han => {
                quarters += HAN_QUARTERS;
                in_word = false;
            }
            Kind::Second => match (byte, bytes.get(at).copied().unwrap_or_default()) {
                // Punctuation of Chinese and Japanese.
                (0xe3, 0x80) => {}
                (0xe3, _) => {
                    quarters += HAN_QUARTERS;
                    in_word = false;
                }
                // Thai and Lao; Burmese; Khmer.
                (0xe0, 0xb8..=0xbb) | (0xe1, 0x80..=0x82 | 0x9e | 0x9f) => {
                    quarters += THAI_QUARTERS;
                    in_word = false;
                }
                _ => {
                    words += u32::from(!in_word);
                    in_word = true;
                }
            },
        }
    }
    words + quarters / 4
}

#[cfg(test)]
mod tests {
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
}
