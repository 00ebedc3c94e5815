//! Folds letters with diacritics to their bases.

use icu_normalizer::DecomposingNormalizerBorrowed;

use crate::choice::{Choice, Name, by_name};

const NFD: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizerBorrowed::new_nfd();

/// Whether letters that differ in their diacritics are alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fold {
    /// They differ.
    #[default]
    None,
    /// They are alike: the accents of Latin, Greek and Cyrillic letters, the points of Hebrew and the vowel signs of Arabic are left
    /// out, and letters with a stroke become those without: é and e, й and и, ø and o. Signs that spell other scripts stay: those
    /// of Devanagari, Thai and kana.
    Marks,
}

impl Choice for Fold {
    const PLURAL: &'static str = "foldings of letters";
    const NAMES: &'static [Name<Self>] = &[
        Name::new("none", Self::None, "diacritics count"),
        Name::new(
            "marks",
            Self::Marks,
            "letters with and without diacritics are alike: accents, strokes, the points of Hebrew and Arabic",
        ),
    ];
}

by_name!(Fold);

/// Leaves the marks out of a normalized `text`.
pub(super) fn without_marks(text: &mut String, scratch: &mut String) {
    let Some(first) = text.find(|c| base(c) != Base::Itself) else {
        return;
    };
    scratch.clear();
    let mut decomposed = String::new();
    for c in text[first..].chars() {
        match base(c) {
            Base::Itself => scratch.push(c),
            Base::Nothing => {}
            Base::Letters(letters) => scratch.push_str(letters),
            Base::Decomposed => {
                decomposed.clear();
                decomposed.push(c);
                let decomposed = NFD.normalize(&decomposed);
                for c in decomposed.chars() {
                    match base(c) {
                        Base::Nothing => {}
                        Base::Letters(letters) => scratch.push_str(letters),
                        Base::Itself | Base::Decomposed => scratch.push(c),
                    }
                }
            }
        }
    }
    text.truncate(first);
    text.push_str(scratch);
}

/// What stands for a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    Itself,
    /// It is a mark.
    Nothing,
    /// Letters without their stroke.
    Letters(&'static str),
    /// What it decomposes to, without marks.
    Decomposed,
}

fn base(c: char) -> Base {
    match c {
        '\0'..='\u{bf}' => Base::Itself,
        'ø' => Base::Letters("o"),
        'Ø' => Base::Letters("O"),
        'ł' => Base::Letters("l"),
        'Ł' => Base::Letters("L"),
        'đ' => Base::Letters("d"),
        'Đ' => Base::Letters("D"),
        'ħ' => Base::Letters("h"),
        'Ħ' => Base::Letters("H"),
        'ŧ' => Base::Letters("t"),
        'Ŧ' => Base::Letters("T"),
        'ı' => Base::Letters("i"),
        '\u{300}'..='\u{36f}'
        | '\u{483}'..='\u{487}'
        | '\u{591}'..='\u{5bd}'
        | '\u{5bf}'
        | '\u{5c1}'..='\u{5c2}'
        | '\u{5c4}'..='\u{5c5}'
        | '\u{5c7}'
        | '\u{610}'..='\u{61a}'
        | '\u{64b}'..='\u{65f}'
        | '\u{670}'
        | '\u{6d6}'..='\u{6dc}'
        | '\u{6df}'..='\u{6e4}'
        | '\u{6e7}'..='\u{6e8}'
        | '\u{6ea}'..='\u{6ed}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20f0}'
        | '\u{fe20}'..='\u{fe2f}' => Base::Nothing,
        // Latin, Greek and Cyrillic; Hebrew and Arabic.
        '\u{c0}'..='\u{52f}'
        | '\u{5d0}'..='\u{6ff}'
        | '\u{1e00}'..='\u{1fff}'
        | '\u{fb1d}'..='\u{fb4e}' => Base::Decomposed,
        _ => Base::Itself,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::isa::Kernel;
    use crate::normalize::{Folder, Normalize};
    use crate::text::Folded;

    fn fold(normalize: Normalize, text: &str) -> String {
        let mut folded = Folded::default();
        Folder::new(normalize, Fold::Marks, Kernel::detect()).fold(text, &mut folded);
        folded.as_str().to_owned()
    }

    #[test]
    fn letters_lose_their_marks() {
        for (marked, bare) in [
            ("Crème brûlée à l’été", "creme brulee a l'ete"),
            ("Ångström, naïve, Dvořák", "angstrom, naive, dvorak"),
            ("Łódź, Øresund, Đurđević", "lodz, oresund, durdevic"),
            ("Tiếng Việt", "tieng viet"),
            ("Ёлка и йод", "елка и иод"),
            ("Ελλάδα, ᾠδή", "ελλαδα, ωιδη"),
            ("שָׁלוֹם", "שלום"),
            ("مُحَمَّد أحمد", "محمد احمد"),
        ] {
            assert_eq!(fold(Normalize::NfkcCasefold, marked), bare);
        }
        // What spells other scripts stays.
        for text in ["हिन्दी", "ภาษาไทย", "がぎぐ", "한국어"] {
            assert_eq!(fold(Normalize::NfkcCasefold, text), text);
        }
        assert_eq!(fold(Normalize::Nfkc, "É e\u{301}"), "E e");
        assert_eq!(fold(Normalize::AsIs, "É e\u{301}"), "E e");
    }

    proptest! {
        #[test]
        fn marks_in_any_form_are_left_out(text in "([a-zA-Zéèâñçøüж]|[\\u{300}-\\u{310}]|\\PC){0,40}") {
            let once = fold(Normalize::NfkcCasefold, &text);
            prop_assert!(once.chars().all(|c| base(c) != Base::Nothing), "{once:?}");
            let decomposed = NFD.normalize(&text);
            prop_assert_eq!(fold(Normalize::NfkcCasefold, &decomposed), once);
        }
    }
}
