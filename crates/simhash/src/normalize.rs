//! Folds a text before it is cut into features: Unicode NFKC and full case folding. [`Markup`] removes markup before that.

mod fold_table;
mod html;
mod markup;

use icu_casemap::CaseMapperBorrowed;
use icu_normalizer::ComposingNormalizerBorrowed;

use fold_table::Class;
pub use markup::Markup;

use crate::choice::{Choice, Name, by_name};
use crate::text::Folded;
use crate::tokenize::cjk::is_common_han;

/// How a text is folded before tokenizing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Normalize {
    /// NFKC, full case folding, and NFKC again, because case folding can undo composition.
    NfkcCasefold,
    /// NFKC without case folding.
    Nfkc,
    /// No folding.
    AsIs,
}

impl Choice for Normalize {
    const PLURAL: &'static str = "foldings";
    const NAMES: &'static [Name<Self>] = &[
        Name::new(
            "nfkc-casefold",
            Self::NfkcCasefold,
            "Unicode NFKC, ignoring case",
        ),
        Name::new("nfkc", Self::Nfkc, "Unicode NFKC: case counts"),
        Name::new("as-is", Self::AsIs, "no folding"),
    ];
}

by_name!(Normalize);

impl Normalize {
    /// Replaces the contents of `folded` by the folded `text`.
    pub fn fold(self, text: &str, folded: &mut Folded) {
        folded.fill(|out| match self {
            Self::NfkcCasefold => nfkc_casefold(text, out),
            Self::Nfkc => NFKC.normalize_to(text, out).unwrap_or_default(),
            Self::AsIs => out.push_str(text),
        });
    }
}

const NFKC: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfkc();
const CASES: CaseMapperBorrowed<'static> = CaseMapperBorrowed::new();

/// Folds a whole text by the definition of [`Normalize::NfkcCasefold`].
fn fold_by_definition(text: &str) -> String {
    let composed = NFKC.normalize(text);
    let folded = CASES.fold_string(&composed);
    NFKC.normalize(&folded).into_owned()
}

/// Appends `text` in NFKC with full case folding.
///
/// Most characters never combine with the character before them: ASCII is folded in bulk, other
/// such characters one by one by a table ([`fold_table`]). Characters that may combine are folded by
/// definition, together with the character before them.
fn nfkc_casefold(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + crate::text::PADDING);
    // The text before `copied` is written. From there to `at`, folding only makes ASCII lowercase.
    let (mut copied, mut at) = (0, 0);
    // Where the last character before `copied` begins in `text`, and where its folding begins in `out`.
    let mut last = (0, out.len());
    let copy = |range: std::ops::Range<usize>, out: &mut String| {
        let begin = out.len();
        out.push_str(&text[range]);
        out[begin..].make_ascii_lowercase();
    };
    loop {
        at += ascii_len(&bytes[at..]);
        // Folding leaves Han unchanged.
        while is_common_han(bytes, at) {
            at += 3;
        }
        match bytes.get(at) {
            None => break,
            Some(byte) if byte.is_ascii() => continue,
            _ => {}
        }
        let Some(c) = text[at..].chars().next() else {
            break;
        };
        match fold_table::class(c) {
            Class::Same => at += c.len_utf8(),
            Class::Becomes(folded) => {
                copy(copied..at, out);
                last = (at, out.len());
                out.push_str(folded);
                at += c.len_utf8();
                copied = at;
            }
            Class::Joins => {
                if let Some((before, _)) = text[copied..at].char_indices().next_back() {
                    copy(copied..copied + before, out);
                    last = (copied + before, out.len());
                }
                let joining = |c: &char| !c.is_ascii() && fold_table::class(*c) == Class::Joins;
                let run = text[at..].chars().take_while(joining);
                at += run.map(char::len_utf8).sum::<usize>();
                out.truncate(last.1);
                out.push_str(&fold_by_definition(&text[last.0..at]));
                // The next character does not combine, so nothing before `at` is folded again.
                last = (at, out.len());
                copied = at;
            }
        }
    }
    copy(copied..at, out);
}

/// The number of ASCII bytes at the start of `bytes`.
fn ascii_len(bytes: &[u8]) -> usize {
    let (words, _) = bytes.as_chunks::<32>();
    let whole = match bytes.first() {
        Some(first) if first.is_ascii() => {
            words.iter().take_while(|word| word.is_ascii()).count() * 32
        }
        _ => return 0,
    };
    let rest = bytes[whole..].iter().take_while(|byte| byte.is_ascii());
    whole + rest.count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fold(text: &str) -> String {
        let mut folded = Folded::default();
        Normalize::NfkcCasefold.fold(text, &mut folded);
        folded.as_str().to_owned()
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
    fn other_foldings() {
        let mut folded = Folded::default();
        Normalize::Nfkc.fold("Ｅ\u{301}t", &mut folded);
        assert_eq!(folded.as_str(), "Ét");
        Normalize::AsIs.fold("Ｅ\u{301}t", &mut folded);
        assert_eq!(folded.as_str(), "Ｅ\u{301}t");
    }

    /// Texts with many characters that combine with their neighbours.
    fn text() -> impl Strategy<Value = String> {
        let pieces = prop_oneof![
            Just("e".to_owned()),
            Just("É".to_owned()),
            Just("İ".to_owned()),
            Just(" ".to_owned()),
            Just("\u{301}".to_owned()),
            Just("\u{345}".to_owned()),
            Just("\u{3b1}".to_owned()),
            Just("\u{323}\u{307}".to_owned()),
            Just("\u{1100}\u{1161}\u{11a8}".to_owned()),
            Just("한가\u{11a8}".to_owned()),
            Just("ｶﾞ・カ\u{3099}".to_owned()),
            Just("\u{9c7}\u{9be}".to_owned()),
            Just("ﷺ㍿".to_owned()),
            Just("，。近似".to_owned()),
            "\\PC{0,4}",
            any::<char>().prop_map(String::from),
        ];
        proptest::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn folding_piece_by_piece_equals_the_definition(text in text()) {
            prop_assert_eq!(fold(&text), fold_by_definition(&text));
        }
    }
}
