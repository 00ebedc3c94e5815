//! Folding of a text before it is cut into features: Unicode NFKC and full case folding.

use std::borrow::Cow;

use icu_casemap::CaseMapper;
use icu_normalizer::ComposingNormalizerBorrowed;
use serde::{Deserialize, Serialize};

/// How a text is folded before tokenizing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalize {
    /// NFKC, full case folding, NFKC again (folding can undo composition).
    NfkcCasefold,
}

/// `text` in NFKC with full case folding, written into `buffer`, which is reused from text to text.
///
/// ASCII, on which both steps are plain lowercasing, takes a short way.
pub fn nfkc_casefold<'a>(text: &str, buffer: &'a mut String) -> &'a str {
    buffer.clear();
    if text.is_ascii() {
        buffer.push_str(text);
        buffer.make_ascii_lowercase();
        return buffer;
    }
    const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfkc();
    let composed = NFKC.normalize(text);
    let folded = CaseMapper::new().fold_string(&composed);
    match NFKC.normalize(&folded) {
        Cow::Borrowed(same) => buffer.push_str(same),
        Cow::Owned(text) => *buffer = text,
    }
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(text: &str) -> String {
        nfkc_casefold(text, &mut String::new()).to_owned()
    }

    #[test]
    fn folds_case_width_and_composition() {
        assert_eq!(fold("Straße GROẞ"), "strasse gross");
        assert_eq!(fold("ＡＢＣ１２３"), "abc123");
        assert_eq!(fold("e\u{301}"), fold("É"));
        assert_eq!(fold("ﬁne"), "fine");
        assert_eq!(fold("ｶﾞ"), "ガ");
    }

    #[test]
    fn the_ascii_way_equals_the_general_one() {
        let text = "Mixed CASE, 100% of it: it's e.g. a_b-c\t\n\0";
        let general = fold(&format!("{text}é"));
        assert_eq!(fold(text), general.strip_suffix('é').unwrap());
    }
}
