//! Folds texts, with a buffer that is reused from text to text.

use super::Normalize;
use super::definition::{NFKC, fold_by_definition};
use super::fold_table::{self, Class};
use super::marks::{Fold, without_marks};
use crate::isa::{Isa, Kernel, Work, push_lowercase};
use crate::plain::{Firsts, Window};
use crate::text::Folded;

/// Folds texts.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    normalize: Normalize,
    marks: Fold,
    kernel: Kernel,
    /// For each 64 bytes of the text, a bit at the first byte of each character that is not simple.
    others: Vec<u64>,
    /// The text with its simple letters lowercase, in as many bytes.
    lower: String,
}

impl Folder {
    pub(crate) fn new(normalize: Normalize, marks: Fold, kernel: Kernel) -> Self {
        Self {
            normalize,
            marks,
            kernel,
            others: Vec::new(),
            lower: String::new(),
        }
    }

    /// Replaces the contents of `folded` by the folded `text`.
    pub(crate) fn fold(&mut self, text: &str, folded: &mut Folded) {
        folded.fill(|out| {
            match self.normalize {
                Normalize::NfkcCasefold => self.nfkc_casefold(text, out),
                Normalize::Nfkc => NFKC.normalize_to(text, out).unwrap_or_default(),
                Normalize::AsIs => out.push_str(text),
            }
            if self.marks == Fold::Marks {
                without_marks(out, &mut self.lower);
            }
        });
    }

    /// Appends `text` in NFKC with full case folding.
    ///
    /// Most characters are simple: they never combine with the character before them, and folding
    /// only makes them lowercase ([`push_lowercase`]). Other characters that never combine are
    /// folded one by one, by a table ([`fold_table`]). Characters that may combine are folded by
    /// definition, together with the character before them.
    fn nfkc_casefold(&mut self, text: &str, out: &mut String) {
        self.others.clear();
        self.kernel.run(FindOthers {
            bytes: text.as_bytes(),
            others: &mut self.others,
        });
        out.reserve(text.len() + crate::text::PADDING);
        if self.others.iter().all(|&others| others == 0) {
            return push_lowercase(self.kernel, text, out);
        }
        self.lower.clear();
        push_lowercase(self.kernel, text, &mut self.lower);
        // The text before `copied` is written.
        let mut copied = 0;
        // Where the last character before `copied` begins in `text`, and where its folding begins in `out`. After
        // characters that combine, both are ends: what follows does not combine with them.
        let mut last = (0, out.len());
        for (index, &others) in self.others.iter().enumerate() {
            let mut others = others;
            while others != 0 {
                let at = 64 * index + others.trailing_zeros() as usize;
                others &= others - 1;
                if at < copied {
                    continue;
                }
                let Some(c) = text[at..].chars().next() else {
                    break;
                };
                match fold_table::class(c) {
                    Class::Same => {}
                    Class::Becomes(folded) => {
                        out.push_str(&self.lower[copied..at]);
                        last = (at, out.len());
                        out.push_str(folded);
                        copied = at + c.len_utf8();
                    }
                    Class::Joins => {
                        if let Some((offset, _)) = text[copied..at].char_indices().next_back() {
                            out.push_str(&self.lower[copied..copied + offset]);
                            last = (copied + offset, out.len());
                        }
                        let joining =
                            |c: &char| !c.is_ascii() && fold_table::class(*c) == Class::Joins;
                        let run = text[at..].chars().take_while(joining);
                        let end = at + run.map(char::len_utf8).sum::<usize>();
                        out.truncate(last.1);
                        out.push_str(&fold_by_definition(&text[last.0..end]));
                        last = (end, out.len());
                        copied = end;
                    }
                }
            }
        }
        out.push_str(&self.lower[copied..]);
    }
}

/// Finds the characters that are not simple: neither ASCII nor one of the plain characters that folding at most makes
/// lowercase.
struct FindOthers<'a> {
    bytes: &'a [u8],
    others: &'a mut Vec<u64>,
}

impl Work for FindOthers<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const LANES: usize>(self, isa: impl Isa) {
        let mut last = [0; size_of::<Window>()];
        for at in (0..self.bytes.len()).step_by(64) {
            let rest = &self.bytes[at..];
            let window = rest.first_chunk().unwrap_or_else(|| {
                last[rest.len()..].fill(0);
                last[..rest.len()].copy_from_slice(rest);
                &last
            });
            let Some(bytes) = window.first_chunk::<64>() else {
                unreachable!()
            };
            let not_ascii = isa.mask(bytes, |byte| byte >= 0x80);
            if not_ascii == 0 {
                self.others.push(0);
                continue;
            }
            let firsts = Firsts::find(isa, window, not_ascii);
            let simple = firsts.simple_letters
                | firsts.short_marks
                | firsts.dots
                | firsts.marks & !firsts.typographic
                | firsts.cjk;
            self.others
                .push(isa.mask(bytes, |byte| byte >= 0xc0) & !simple);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The folded text; asserts that every kernel folds the same.
    fn fold(text: &str) -> String {
        let all: Vec<_> = Kernel::available()
            .into_iter()
            .map(|kernel| {
                let mut folded = Folded::default();
                Folder::new(Normalize::NfkcCasefold, Fold::None, kernel).fold(text, &mut folded);
                folded.as_str().to_owned()
            })
            .collect();
        assert!(all.iter().all(|other| *other == all[0]));
        all[0].clone()
    }

    #[test]
    fn every_character_folds_as_the_definition_says() {
        for c in '\0'..=char::MAX {
            // At the boundary of two masks, and after a letter with which it may combine.
            let text = format!("{}e{c}{c}A", "-".repeat(61));
            assert_eq!(fold(&text), fold_by_definition(&text), "{c:?}");
        }
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
    fn folds_what_people_do_not_see() {
        // Soft hyphens, zero-width characters, direction marks, a byte order mark.
        assert_eq!(
            fold("\u{feff}near\u{ad}ly e\u{200b}qu\u{2060}al \u{200f}a\u{202c}"),
            "nearly equal a"
        );
        assert_eq!(fold("e\u{200d}\u{301}"), "é");
        assert_eq!(fold("it’s ŉ O‘Neil"), "it's 'n o'neil");
        assert_eq!(fold("a–b — c−d \u{2011}"), "a-b - c-d -");
        assert_eq!(fold("العـــربية"), "العربية");
        assert_eq!(fold("e\u{302}\u{323}"), fold("e\u{323}\u{302}"));
        assert_eq!(fold("ẞ İ ﬀ Σς"), "ss i\u{307} ff σσ");
    }

    #[test]
    fn other_foldings() {
        let mut folded = Folded::default();
        Normalize::Nfkc.fold(Fold::None, "Ｅ\u{301}t", &mut folded);
        assert_eq!(folded.as_str(), "Ét");
        Normalize::AsIs.fold(Fold::None, "Ｅ\u{301}t", &mut folded);
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
            Just("\u{ad}\u{200b}".to_owned()),
            Just("\u{1100}\u{200d}\u{1161}\u{ffa0}".to_owned()),
            Just("ـ\u{fe71}".to_owned()),
            Just("’—".to_owned()),
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
            prop_assert_eq!(fold(&fold(&text)), fold(&text));
        }
    }
}
