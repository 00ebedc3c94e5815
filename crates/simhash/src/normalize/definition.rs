//! The definition of folding, for characters that may combine with others and for tests.

use icu_casemap::CaseMapperBorrowed;
use icu_normalizer::ComposingNormalizerBorrowed;

pub(super) const NFKC: ComposingNormalizerBorrowed<'static> =
    ComposingNormalizerBorrowed::new_nfkc();
const CASES: CaseMapperBorrowed<'static> = CaseMapperBorrowed::new();

/// Folds a whole text by the definition of [`super::Normalize::NfkcCasefold`].
pub(super) fn fold_by_definition(text: &str) -> String {
    let composed = NFKC.normalize(text);
    let folded = CASES.fold_string(&composed);
    NFKC.normalize(&folded).into_owned()
}
