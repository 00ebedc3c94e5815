//! Plain characters, which folding and cutting into words treat 64 bytes at a time, each character by masks of its bytes:
//!
//! - ASCII;
//! - letters of two bytes: U+00C0 to U+027F (Latin) and U+0400 to U+047F (Cyrillic), without × and ÷;
//! - the commonest marks of two and three bytes, such as « and “;
//! - the characters of Han, Hangul, Hiragana and Katakana in the ranges of [`Firsts::cjk`].

use crate::isa::Isa;

/// The number of bytes of a character of three bytes that follow its first.
const BEYOND: usize = 2;

/// 64 bytes of a text, and the bytes behind them that may belong to a character that begins in the 64.
pub(crate) type Window = [u8; 64 + BEYOND];

/// The plain characters of two and three bytes that begin in a window: bit i of each mask says that one of the kind begins
/// at byte i.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Firsts {
    /// Letters, of two bytes each.
    pub(crate) letters: u64,
    /// The letters among them that folding at most makes lowercase, and [`crate::isa::push_lowercase`] can: those from
    /// U+00C0 to U+00FF, without ß, and from U+0400 to U+045F.
    pub(crate) simple_letters: u64,
    /// Marks of two bytes, except the middle dot.
    pub(crate) short_marks: u64,
    /// The middle dot, of two bytes, which joins letters as a colon does.
    pub(crate) dots: u64,
    /// Marks of three bytes, with [`Self::quotes`].
    pub(crate) marks: u64,
    /// The marks among them that join letters, or digits, as an apostrophe does: ‘ and ’.
    pub(crate) quotes: u64,
    /// The marks among them that folding makes ASCII: [`Self::quotes`], ‐, – and —.
    pub(crate) typographic: u64,
    /// Characters of Han (U+4E00 to U+9FFF), Hangul (U+AC00 to U+D77F), Hiragana (U+3041 to U+3096) and Katakana (U+30A1 to
    /// U+30FA and U+30FC to U+30FE), of three bytes each.
    pub(crate) cjk: u64,
}

impl Firsts {
    /// Finds the characters in text that is UTF-8. `not_ascii` says which of the 64 bytes are not ASCII.
    #[inline(always)]
    pub(crate) fn find(isa: impl Isa, window: &Window, not_ascii: u64) -> Self {
        let mut found = Self::default();
        if not_ascii == 0 {
            return found;
        }
        // Each call names one function, so the compiler inlines it, although it goes through a pointer.
        let first = |is: fn(u8) -> bool| isa.mask(part::<0>(window), is);
        let second = |is: fn(u8) -> bool| isa.mask(part::<1>(window), is);
        let third = |is: fn(u8) -> bool| isa.mask(part::<2>(window), is);

        let of_two = first(|byte| byte.wrapping_sub(0xc2) < 0x10);
        if of_two != 0 {
            let latin = first(|byte| byte == 0xc3);
            let signs = latin & second(|byte| (byte == 0x97) | (byte == 0xb7));
            let cyrillic = first(|byte| byte.wrapping_sub(0xd0) < 2);
            let extended = first(|byte| byte.wrapping_sub(0xc4) < 6);
            found.letters = latin & !signs | cyrillic | extended;
            let sharp_s = latin & second(|byte| byte == 0x9f);
            let pairs = first(|byte| byte == 0xd1) & second(|byte| byte >= 0xa0);
            found.simple_letters = found.letters & !(extended | sharp_s | pairs);
            let latin_signs = first(|byte| byte == 0xc2);
            found.short_marks = signs | latin_signs & second(is_mark_of_two);
            found.dots = latin_signs & second(|byte| byte == 0xb7);
        }
        let of_three = first(|byte| byte.wrapping_sub(0xe2) < 0x0c);
        if of_three != 0 {
            let punctuation = first(|byte| byte == 0xe2);
            if punctuation != 0 {
                let general = punctuation & second(|byte| byte == 0x80);
                found.quotes = general & third(|byte| byte.wrapping_sub(0x98) < 2);
                let euro = punctuation & second(|byte| byte == 0x82) & third(|byte| byte == 0xac);
                found.typographic = found.quotes | general & third(is_dash);
                found.marks = found.quotes | general & third(is_general_mark) | euro;
            }
            let kana_or_mark = first(|byte| byte == 0xe3);
            if kana_or_mark != 0 {
                found.marks |= kana_or_mark & second(|byte| byte == 0x80) & third(is_cjk_mark);
                let hiragana = second(|byte| byte == 0x81) & third(|byte| byte != 0x80);
                let middle =
                    second(|byte| byte == 0x82) & third(|byte| byte.wrapping_sub(0x97) >= 10);
                let katakana =
                    second(|byte| byte == 0x83) & third(|byte| (byte != 0xbb) & (byte != 0xbf));
                found.cjk = kana_or_mark & (hiragana | middle | katakana);
            }
            let han = first(|byte| byte.wrapping_sub(0xe5) < 5)
                | first(|byte| byte == 0xe4) & second(|byte| byte >= 0xb8);
            let hangul = first(|byte| byte.wrapping_sub(0xeb) < 2)
                | first(|byte| byte == 0xea) & second(|byte| byte >= 0xb0)
                | first(|byte| byte == 0xed) & second(|byte| byte < 0x9e);
            found.cjk |= han | hangul;
        }
        found
    }
}

/// Whether a character is a mark, by the byte after C2: one of `¡¢£¤¥¦§©«¬®°±¶»¿`.
#[inline(always)]
fn is_mark_of_two(byte: u8) -> bool {
    (byte.wrapping_sub(0xa1) < 7)
        | (byte == 0xa9)
        | (byte.wrapping_sub(0xab) < 2)
        | (byte == 0xae)
        | (byte.wrapping_sub(0xb0) < 2)
        | (byte == 0xb6)
        | (byte == 0xbb)
        | (byte == 0xbf)
}

/// Whether a character is a mark that joins nothing, by the byte after E2 80: one of `‐–—“”„•‹›`.
#[inline(always)]
fn is_general_mark(byte: u8) -> bool {
    is_dash(byte) | (byte.wrapping_sub(0x9c) < 3) | (byte == 0xa2) | (byte.wrapping_sub(0xb9) < 2)
}

/// Whether a character is one of `‐–—`, by the byte after E2 80.
#[inline(always)]
fn is_dash(byte: u8) -> bool {
    (byte == 0x90) | (byte.wrapping_sub(0x93) < 2)
}

/// Whether a character is a mark, by the byte after E3 80: one of `、。〈〉《》「」『』【】`.
#[inline(always)]
fn is_cjk_mark(byte: u8) -> bool {
    (byte.wrapping_sub(0x81) < 2) | (byte.wrapping_sub(0x88) < 10)
}

/// The 64 bytes from byte `FROM` on.
#[inline(always)]
fn part<const FROM: usize>(window: &Window) -> &[u8; 64] {
    const { assert!(FROM <= BEYOND) };
    match window[FROM..].first_chunk() {
        Some(part) => part,
        None => unreachable!(),
    }
}
