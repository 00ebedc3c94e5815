//! The definition of folding, for characters that may combine with others and for tests.

use icu_casemap::CaseMapperBorrowed;
use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::props::DefaultIgnorableCodePoint;
use icu_properties::{CodePointSetData, CodePointSetDataBorrowed};

pub(super) const NFKC: ComposingNormalizerBorrowed<'static> =
    ComposingNormalizerBorrowed::new_nfkc();
const CASES: CaseMapperBorrowed<'static> = CaseMapperBorrowed::new();
const INVISIBLE: CodePointSetDataBorrowed<'static> =
    CodePointSetData::new::<DefaultIgnorableCodePoint>();

/// Folds a whole text by the definition of [`super::Normalize::NfkcCasefold`].
pub(super) fn fold_by_definition(text: &str) -> String {
    let visible: String = text.chars().filter_map(as_read).collect();
    let composed = NFKC.normalize(&visible);
    let folded = CASES.fold_string(&composed);
    // Compatibility and case mappings make ignored characters and apostrophes, as of a letter with a tatweel below its mark.
    let composed = NFKC.normalize(&folded);
    let visible: String = composed.chars().filter_map(as_read).collect();
    NFKC.normalize(&visible).into_owned()
}

/// The character that stands for `c`, as people read it; `None` for one that they do not see, or that only stretches a word.
fn as_read(c: char) -> Option<char> {
    match c {
        // Tatweel.
        '\u{640}' => None,
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2bb}' | '\u{2bc}' => Some('\''),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some('-'),
        c if c.is_ascii() || !INVISIBLE.contains(c) => Some(c),
        _ => None,
    }
}
