//! What each character is folded to, where that does not depend on its neighbours, found out page by page.

use std::sync::OnceLock;

use icu_normalizer::properties::CanonicalCombiningClassMap;

use super::by_definition;

/// What is known of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// It stays as it is, and joins nothing before it.
    Same,
    /// It becomes these, and joins nothing before it.
    Becomes(&'static str),
    /// It may join what is before it, or is not known.
    Joins,
}

/// The class of a character that is not ASCII.
#[inline]
pub(super) fn class(c: char) -> Class {
    static PAGES: [OnceLock<Box<[Class; 256]>>; 256] = [const { OnceLock::new() }; 256];
    // Han and Hangul, by far the most of those that stay.
    if matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}') {
        return Class::Same;
    }
    match PAGES.get(c as usize >> 8) {
        Some(page) => page.get_or_init(|| self::page(c as u32 >> 8))[c as usize & 0xff],
        None => Class::Joins,
    }
}

fn page(page: u32) -> Box<[Class; 256]> {
    let classes: Vec<Class> = (0..256)
        .map(|at| char::from_u32(page << 8 | at).map_or(Class::Joins, find))
        .collect();
    classes.try_into().unwrap_or_else(|_| unreachable!())
}

/// The class of a character, from the properties of Unicode.
fn find(c: char) -> Class {
    let mut buffer = [0; 4];
    let same = &*c.encode_utf8(&mut buffer);
    let folded = by_definition(same);
    let composed = super::NFKC.normalize(same);
    let first = |text: &str| text.chars().next().is_none_or(joins);
    if joins(c) || first(&composed) || first(&folded) {
        Class::Joins
    } else if folded == same {
        Class::Same
    } else {
        Class::Becomes(folded.leak())
    }
}

/// Whether a character can be composed with one before it, or can change places with it.
fn joins(c: char) -> bool {
    CanonicalCombiningClassMap::new().get_u8(c) != 0 || is_second(c)
}

/// Whether a character, not of a combining class, is the second of a canonical composition.
fn is_second(c: char) -> bool {
    matches!(c,
        '\u{9be}' | '\u{9d7}' | '\u{b3e}' | '\u{b56}' | '\u{b57}' | '\u{bbe}' | '\u{bd7}' | '\u{cc2}' | '\u{cd5}'
        | '\u{cd6}' | '\u{d3e}' | '\u{d57}' | '\u{dcf}' | '\u{ddf}' | '\u{102e}' | '\u{1161}'..='\u{1175}'
        | '\u{11a8}'..='\u{11c2}' | '\u{1b35}')
}

#[cfg(test)]
mod tests {
    use icu_normalizer::properties::{CanonicalComposition, CanonicalDecomposition, Decomposed};

    use super::*;

    #[test]
    fn all_seconds_are_known() {
        let decomposition = CanonicalDecomposition::new();
        let composition = CanonicalComposition::new();
        let classes = CanonicalCombiningClassMap::new();
        for c in (0..0x1_0000).filter_map(char::from_u32) {
            if let Decomposed::Expansion(first, second) = decomposition.decompose(c)
                && composition.compose(first, second).is_some()
                && (second as u32) < 0x1_0000
                && classes.get_u8(second) == 0
            {
                assert!(is_second(second), "{second:?}, of {c:?}");
            }
        }
    }

    #[test]
    fn han_and_hangul_stay() {
        for c in ('\u{80}'..'\u{10000}').filter(|c| class(*c) == Class::Same) {
            assert_eq!(find(c), Class::Same, "{c:?}");
        }
    }
}
