//! Texts with too few features to be compared by them.

use crate::choice::{Choice, Name, by_name};
use crate::hash::murmur3_low64;

/// What becomes of a text with fewer distinct features than [`crate::Spec::min_features`]. By its features, it would be a
/// near-duplicate of texts with which it has nothing in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ShortTexts {
    /// It has no fingerprint.
    #[default]
    Unmarked,
    /// Its fingerprint, and its sketch, are made of a hash of the whole text: only equal texts have near ones. White space counts
    /// as one space, and at the ends not at all. A text of white space alone has no fingerprint.
    Whole,
}

impl Choice for ShortTexts {
    const PLURAL: &'static str = "treatments of short texts";
    const NAMES: &'static [Name<Self>] = &[
        Name::new(
            "none",
            Self::Unmarked,
            "they have no fingerprint, and are in no pair",
        ),
        Name::new("whole", Self::Whole, "only equal texts are near-duplicates"),
    ];
}

by_name!(ShortTexts);

impl ShortTexts {
    /// Whether it is the default.
    #[must_use]
    pub fn is_unmarked(&self) -> bool {
        *self == Self::Unmarked
    }

    /// The fingerprint of a folded text with too few features.
    pub(crate) fn fingerprint(self, folded: &str, seed: u32) -> Option<u64> {
        let words: Vec<&str> = folded.split_whitespace().collect();
        let has_hash = self == Self::Whole && !words.is_empty();
        has_hash.then(|| murmur3_low64(words.join(" ").as_bytes(), seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fingerprinter, Model, SketchBits, Spec};

    #[test]
    fn short_texts_are_near_only_if_they_are_equal() {
        let spec = Spec {
            short_texts: ShortTexts::Whole,
            sketch: SketchBits::Bits64,
            ..Spec::default()
        };
        let mut fingerprinter = Fingerprinter::new(Model::plain(spec).unwrap());
        let mut both = |text: &str| {
            let mut sketch = Vec::new();
            let fingerprint = fingerprinter.fingerprint_and_sketch(text, &mut sketch)?;
            Some((fingerprint, sketch))
        };
        let groups: [&[&str]; 6] = [
            &["404 Not Found", "404 not\n found ", "404 NOT\u{ad} FOUND"],
            &["404 Not Found!"],
            &["spam spam spam"],
            &["spam spam"],
            &["😀"],
            &["😀😀", " 😀😀\u{feff}"],
        ];
        let mut all: Vec<(u64, Vec<u8>)> = Vec::new();
        for group in groups {
            let first = both(group[0]).unwrap();
            for (fingerprint, sketch) in &all {
                assert!((fingerprint ^ first.0).count_ones() > 8, "{group:?}");
                assert!(crate::sketch::estimate(sketch, &first.1) < 0.7, "{group:?}");
            }
            assert!(group.iter().all(|text| both(text) == Some(first.clone())));
            all.push(first);
        }
        assert_eq!([both(""), both(" \n\u{feff}")], [None, None]);
        // A text with enough features has the fingerprint of every spec.
        let long = "a text of some different words";
        let mut plain = Fingerprinter::new(Model::plain(Spec::default()).unwrap());
        assert_eq!(both(long).map(|(bits, _)| bits), plain.fingerprint(long));
        assert_eq!(plain.fingerprint("404 Not Found"), None);
    }
}
