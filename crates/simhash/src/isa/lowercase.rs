//! Makes the simple letters of a text lowercase ([`crate::plain::Firsts::simple_letters`], and ASCII). It stands in this folder
//! because it writes the bytes of a string, which is `unsafe`.

use super::{Isa, Kernel, Work};

/// Appends `text` to `out`, with lowercase letters instead of `A` to `Z`, U+00C0 to U+00DE and U+0400 to U+042F.
pub(crate) fn push_lowercase(kernel: Kernel, text: &str, out: &mut String) {
    // SAFETY: the bytes from `start` on are UTF-8 again when this function returns: `Lowercase` writes all of them, and
    // puts a letter of as many bytes in the place of each letter that it changes. It cannot panic, having no allocation, and
    // no index that is not in range.
    let out = unsafe { out.as_mut_vec() };
    let start = out.len();
    out.resize(start + text.len(), 0);
    kernel.run(Lowercase {
        from: text.as_bytes(),
        to: &mut out[start..],
    });
}

struct Lowercase<'a> {
    from: &'a [u8],
    /// As many bytes as in `from`.
    to: &'a mut [u8],
}

impl Work for Lowercase<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const LANES: usize>(self, _: impl Isa) {
        let Self { from, to } = self;
        let (parts, rest) = to.as_chunks_mut::<64>();
        let rest_start = 64 * parts.len();
        for (index, part) in parts.iter_mut().enumerate() {
            let start = 64 * index;
            let bytes = from[start..].first_chunk::<64>();
            let before = start
                .checked_sub(1)
                .and_then(|at| from[at..].first_chunk::<64>());
            let after = from[start + 1..].first_chunk::<64>();
            match (before, bytes, after) {
                (_, Some(bytes), _) if bytes.is_ascii() => {
                    for (to, &byte) in part.iter_mut().zip(bytes) {
                        *to = byte + (u8::from(byte.is_ascii_uppercase()) << 5);
                    }
                }
                (Some(before), Some(bytes), Some(after)) => {
                    let around = before.iter().zip(bytes).zip(after);
                    for (to, ((&before, &byte), &after)) in part.iter_mut().zip(around) {
                        *to = lower(before, byte, after);
                    }
                }
                _ => lower_any(from, start, part),
            }
        }
        lower_any(from, rest_start, rest);
    }
}

/// Writes the lowercase of the bytes of `from` from `start` on to `to`.
#[inline(always)]
fn lower_any(from: &[u8], start: usize, to: &mut [u8]) {
    // Zeros stand around the text: no letter of two bytes begins with its last byte, or ends with its first.
    let byte = |at: usize| from.get(at).copied().unwrap_or(0);
    for (at, to) in (start..).zip(to) {
        *to = lower(byte(at.wrapping_sub(1)), byte(at), byte(at + 1));
    }
}

/// The lowercase of `byte`, which stands between two bytes.
#[inline(always)]
fn lower(before: u8, byte: u8, after: u8) -> u8 {
    let is_among = |byte: u8, first: u8, count: u8| byte.wrapping_sub(first) < count;
    let ascii = is_among(byte, b'A', 26);
    // U+00C0 to U+00DE, except ×: C3 80 becomes C3 A0.
    let latin = (before == 0xc3) & is_among(byte, 0x80, 0x1f) & (byte != 0x97);
    // U+0400 to U+040F: D0 80 becomes D1 90.
    let from_80 = (before == 0xd0) & is_among(byte, 0x80, 0x10);
    // U+0410 to U+041F: D0 90 becomes D0 B0.
    let from_90 = (before == 0xd0) & is_among(byte, 0x90, 0x10);
    // U+0420 to U+042F: D0 A0 becomes D1 80.
    let from_a0 = (before == 0xd0) & is_among(byte, 0xa0, 0x10);
    let begins_80_or_a0 =
        (byte == 0xd0) & (is_among(after, 0x80, 0x10) | is_among(after, 0xa0, 0x10));
    let add = |is: bool, difference: u8| difference & u8::from(is).wrapping_neg();
    byte.wrapping_add(add(ascii | latin | from_90, 0x20))
        .wrapping_add(add(from_80, 0x10))
        .wrapping_sub(add(from_a0, 0x20))
        .wrapping_add(add(begins_80_or_a0, 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn by_definition(text: &str) -> String {
        let letters = ['A'..='Z', '\u{c0}'..='\u{de}', '\u{400}'..='\u{42f}'];
        let is_simple = |c: char| c != '×' && letters.iter().any(|letters| letters.contains(&c));
        let lower = |c: char| {
            if is_simple(c) {
                c.to_lowercase().next()
            } else {
                Some(c)
            }
        };
        text.chars().filter_map(lower).collect()
    }

    #[test]
    fn every_character() {
        let all: String = ('\0'..=char::MAX).collect();
        for kernel in Kernel::available() {
            let mut out = String::new();
            push_lowercase(kernel, &all, &mut out);
            assert!(str::from_utf8(out.as_bytes()).is_ok());
            assert!(out == by_definition(&all), "{}", kernel.name());
        }
    }

    proptest! {
        #[test]
        fn texts_stay_utf_8(texts in proptest::collection::vec("([A-Za-zÀ-ÿЀ-ѿ]|\\PC){0,80}", 0..4)) {
            for kernel in Kernel::available() {
                let mut out = String::new();
                for text in &texts {
                    push_lowercase(kernel, text, &mut out);
                }
                prop_assert!(str::from_utf8(out.as_bytes()).is_ok());
                prop_assert_eq!(&out, &by_definition(&texts.concat()));
            }
        }
    }
}
