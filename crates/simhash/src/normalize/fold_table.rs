//! How each character below U+10000 folds: a table of 256 pages of 256 code points. A page is
//! filled on first use.

use std::sync::OnceLock;

use icu_normalizer::properties::CanonicalCombiningClassMap;

use super::definition::{NFKC, fold_by_definition};

/// How a character folds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// It is unchanged, and never combines with the character before it.
    Same,
    /// It becomes these characters, and never combines with the character before it.
    Becomes(&'static str),
    /// It may combine with the character before it, or is U+10000 or above, which the table leaves out.
    Joins,
}

/// The class of a character that is not ASCII.
#[inline]
pub(super) fn class(c: char) -> Class {
    static PAGES: [OnceLock<Box<[Class; 256]>>; 256] = [const { OnceLock::new() }; 256];
    // Han and Hangul need no table: folding leaves them unchanged.
    if matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}') {
        return Class::Same;
    }
    match PAGES.get(c as usize >> 8) {
        Some(page) => page.get_or_init(|| classify_page(c as u32 >> 8))[c as usize & 0xff],
        None => Class::Joins,
    }
}

/// The classes of the 256 characters of a page.
fn classify_page(page: u32) -> Box<[Class; 256]> {
    let classes: Vec<Class> = (0..256)
        .map(|at| char::from_u32(page << 8 | at).map_or(Class::Joins, classify))
        .collect();
    classes.try_into().unwrap_or_else(|_| unreachable!())
}

/// The class of a character, computed from its Unicode properties.
fn classify(c: char) -> Class {
    let mut buffer = [0; 4];
    let same = &*c.encode_utf8(&mut buffer);
    let folded = fold_by_definition(same);
    let composed = NFKC.normalize(same);
    let begins_joining = |text: &str| text.chars().next().is_none_or(joins);
    if joins(c) || begins_joining(&composed) || begins_joining(&folded) {
        Class::Joins
    } else if folded == same {
        Class::Same
    } else {
        Class::Becomes(folded.leak())
    }
}

/// Whether normalization can compose a character with the one before it, or swap the two.
fn joins(c: char) -> bool {
    CanonicalCombiningClassMap::new().get_u8(c) != 0 || composes_with_previous(c)
}

/// Whether a character, though of combining class 0, can compose with the one before it.
fn composes_with_previous(c: char) -> bool {
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
    fn every_character_that_composes_is_listed() {
        let decomposition = CanonicalDecomposition::new();
        let composition = CanonicalComposition::new();
        let classes = CanonicalCombiningClassMap::new();
        for c in (0..0x1_0000).filter_map(char::from_u32) {
            if let Decomposed::Expansion(first, second) = decomposition.decompose(c)
                && composition.compose(first, second).is_some()
                && (second as u32) < 0x1_0000
                && classes.get_u8(second) == 0
            {
                assert!(composes_with_previous(second), "{second:?}, of {c:?}");
            }
        }
    }

    #[test]
    fn unchanged_characters_are_classified_so() {
        for c in ('\u{80}'..'\u{10000}').filter(|c| class(*c) == Class::Same) {
            assert_eq!(classify(c), Class::Same, "{c:?}");
        }
    }
}
