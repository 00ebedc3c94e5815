//! The similarity of two texts, exact or (by [`Measure::Sketch`]) estimated; it verifies the pairs
//! that the join finds by fingerprints.

use rapidfuzz::distance::levenshtein;

use crate::choice::{Choice, Name, by_name};
use crate::feature_hashes::{FeatureHasher, FeatureHashes};
use crate::fingerprinter::Fingerprinter;
use crate::isa::Kernel;
use crate::model::Model;
use crate::sketch::{self, SHINGLE};
use crate::tokenize::{Extract as _, Extractor, Tokenizer};

/// A measure of similarity, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measure {
    /// The number of shingles of three words that both texts have, over the number that either has (Broder 1997). A Han
    /// character is a word; a text of fewer than three words is one shingle. Under [`Tokenizer::Code`], words have the signs and
    /// operators before them.
    Jaccard,
    /// The cosine of the angle between the weighted features of the two texts.
    Cosine,
    /// `1 - d / n`, where d is the Levenshtein distance of the folded texts and n the length of the longer, in characters.
    Edit,
    /// The estimate of the Jaccard similarity from the sketches of the two texts; see
    /// [`crate::sketch`]. A shingle is three features here, not three words. Needs a spec with
    /// sketches.
    Sketch,
}

impl Choice for Measure {
    const PLURAL: &'static str = "measures";
    const NAMES: &'static [Name<Self>] = &[
        Name::new("jaccard", Self::Jaccard, "common shingles of three words"),
        Name::new("cosine", Self::Cosine, "weighted words"),
        Name::new("edit", Self::Edit, "characters; for short texts"),
        Name::new(
            "sketch",
            Self::Sketch,
            "an estimate of jaccard by the sketches that the archive keeps; reads no texts",
        ),
    ];
}

by_name!(Measure);

/// A text prepared for comparison by one measure.
#[derive(Debug, Clone, PartialEq)]
pub enum Prepared {
    /// For [`Measure::Jaccard`]: the hashes of the distinct shingles, ascending.
    Shingles(Vec<u64>),
    /// For [`Measure::Cosine`]: the hashes of the distinct features with their weights, in ascending order of the hashes.
    Weights(Vec<(u64, f64)>),
    /// For [`Measure::Edit`]: the characters of the folded text.
    Characters(Vec<char>),
    /// For [`Measure::Sketch`]: the sketch; empty for a text without a fingerprint, or without sketches in the spec.
    Sketch(Vec<u8>),
}

impl Prepared {
    /// The size in memory, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Shingles(shingles) => size_of_val(&**shingles),
            Self::Weights(weights) => size_of_val(&**weights),
            Self::Characters(characters) => size_of_val(&**characters),
            Self::Sketch(sketch) => sketch.len(),
        }
    }
}

/// Compares texts by one measure, with buffers that are reused from text to text. Each thread needs its own.
#[derive(Debug, Clone)]
pub struct Similarity {
    measure: Measure,
    fingerprinter: Fingerprinter,
    words: Extractor,
    /// Hashes a text's words.
    hasher: FeatureHasher,
    /// The hashes of its shingles.
    shingles: Vec<u64>,
    /// Room for [`sorted`].
    ends: Vec<u32>,
}

impl Similarity {
    /// Compares texts by `measure`; `model` says how they are folded and, for [`Measure::Cosine`], weighted.
    #[must_use]
    pub fn new(measure: Measure, model: Model) -> Self {
        let words = match model.spec().tokenizer {
            Tokenizer::Code => Tokenizer::Code,
            _ => Tokenizer::Words,
        };
        let kernel = Kernel::detect();
        Self {
            measure,
            words: Extractor::new(words, kernel, None, 0),
            hasher: FeatureHasher::new(0, kernel),
            fingerprinter: Fingerprinter::new(model),
            shingles: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// What is compared of a text by any measure: the text without markup, folded. Texts that are equal here have a similarity
    /// of 1.
    pub fn compared<'s>(&'s mut self, text: &str) -> &'s str {
        self.fingerprinter.fold(text).as_str()
    }

    /// Prepares a text for [`Self::between`].
    pub fn prepare(&mut self, text: &str) -> Prepared {
        if self.measure == Measure::Cosine {
            let features = self.fingerprinter.features(text);
            let mut weights: Vec<(u64, f64)> = features
                .iter()
                .map(|feature| (feature.hash, feature.weight as f64))
                .collect();
            weights.sort_by_key(|(hash, _)| *hash);
            return Prepared::Weights(weights);
        }
        if self.measure == Measure::Sketch {
            let mut sketch = Vec::new();
            self.fingerprinter.fingerprint_and_sketch(text, &mut sketch);
            return Prepared::Sketch(sketch);
        }
        let folded = self.fingerprinter.fold(text);
        if self.measure == Measure::Edit {
            return Prepared::Characters(folded.as_str().chars().collect());
        }
        let extract = |hashes: &mut FeatureHashes<'_>| self.words.extract(folded, hashes);
        self.hasher.hash(usize::MAX, extract, &mut |_| {});
        let hashes = self.hasher.kept();
        self.shingles.clear();
        match hashes.len() {
            0 => {}
            1..SHINGLE => self.shingles.push(sketch::shingle(hashes)),
            _ => {
                let words = hashes.array_windows::<SHINGLE>();
                self.shingles
                    .extend(words.map(|words| sketch::shingle(words)));
            }
        }
        let mut shingles = sorted(&self.shingles, &mut self.ends);
        shingles.dedup();
        shingles.shrink_to_fit();
        Prepared::Shingles(shingles)
    }

    /// The similarity of two prepared texts, from 0 to 1; 1 if both have nothing to compare, 0 if they were prepared for
    /// different measures. A similarity below `least` may be returned as 0, which is faster.
    #[must_use]
    pub fn between(a: &Prepared, b: &Prepared, least: f64) -> f64 {
        match (a, b) {
            (Prepared::Shingles(a), Prepared::Shingles(b)) => jaccard(a, b, least),
            (Prepared::Weights(a), Prepared::Weights(b)) => {
                let squared_norm = |weights: &[(u64, f64)]| {
                    let squares = weights.iter().map(|(_, weight)| weight * weight);
                    squares.sum::<f64>()
                };
                match squared_norm(a) * squared_norm(b) {
                    0.0 if a.is_empty() && b.is_empty() => 1.0,
                    0.0 => 0.0,
                    product => (dot(a, b) / product.sqrt()).min(1.0),
                }
            }
            (Prepared::Characters(a), Prepared::Characters(b)) => {
                // The lengths alone may rule out a similarity of `least`.
                let (shorter, longer) = (a.len().min(b.len()), a.len().max(b.len()));
                if (shorter as f64) < least * longer as f64 {
                    return 0.0;
                }
                // Most texts that are compared are alike: the hint makes it try few edits first, then more.
                let args = levenshtein::Args::default()
                    .score_cutoff(least.clamp(0.0, 1.0))
                    .score_hint(0.99);
                let found = levenshtein::normalized_similarity_with_args(
                    a.iter().copied(),
                    b.iter().copied(),
                    &args,
                );
                found.unwrap_or(0.0)
            }
            (Prepared::Sketch(a), Prepared::Sketch(b)) if a.len() == b.len() => match a.len() {
                0 => 1.0,
                _ => sketch::estimate(a, b),
            },
            _ => 0.0,
        }
    }
}

/// The hashes in ascending order. They are even, so that most of as many buckets as there are hashes get one or two.
fn sorted(hashes: &[u64], ends: &mut Vec<u32>) -> Vec<u64> {
    let Some(bits @ 5..=31) = hashes.len().checked_ilog2() else {
        let mut few = hashes.to_vec();
        few.sort_unstable();
        return few;
    };
    let bucket = |hash: u64| (hash >> (u64::BITS - bits)) as usize;
    ends.clear();
    ends.resize((1 << bits) + 1, 0);
    for &hash in hashes {
        ends[bucket(hash) + 1] += 1;
    }
    let mut end = 0;
    for count in &mut *ends {
        end += *count;
        *count = end;
    }
    let mut sorted = vec![0; hashes.len()];
    for &hash in hashes {
        let place = &mut ends[bucket(hash)];
        sorted[*place as usize] = hash;
        *place += 1;
    }
    let mut start = 0;
    for &end in &ends[..1 << bits] {
        sorted[start..end as usize].sort_unstable();
        start = end as usize;
    }
    sorted
}

/// The elements of a merge between two looks at whether it can still reach a similarity.
const STEPS: usize = 16;

/// The Jaccard similarity of two sets in ascending order; 1 if both are empty. A similarity below `least` may be returned as 0:
/// the elements are hashes, so that of unlike sets a few of the smallest tell.
#[must_use]
pub fn jaccard(a: &[u64], b: &[u64], least: f64) -> f64 {
    let similarity = |common: usize| match a.len() + b.len() - common {
        0 => 1.0,
        all => common as f64 / all as f64,
    };
    let (mut i, mut j, mut common) = (0, 0, 0);
    loop {
        let left = (a.len() - i).min(b.len() - j);
        if left == 0 {
            return similarity(common);
        }
        if similarity(common + left) < least {
            return 0.0;
        }
        // So few that neither set ends. Without branches, because it is unpredictable which element is smaller.
        for _ in 0..left.min(STEPS) {
            let (x, y) = (a[i], b[j]);
            i += usize::from(x <= y);
            j += usize::from(y <= x);
            common += usize::from(x == y);
        }
    }
}

/// The sum of the products of weights that have equal hashes; both lists are in ascending order of hashes.
fn dot(a: &[(u64, f64)], b: &[(u64, f64)]) -> f64 {
    let (mut i, mut j, mut sum) = (0, 0, 0.0);
    while let (Some((x, of_x)), Some((y, of_y))) = (a.get(i), b.get(j)) {
        if x == y {
            sum += of_x * of_y;
        }
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;
    use crate::spec::Spec;

    fn similarity(measure: Measure, a: &str, b: &str) -> f64 {
        let spec = Spec {
            weight: crate::Weight::Tf,
            sketch: crate::SketchBits::Bits256,
            ..Spec::default()
        };
        let model = Model::plain(spec).unwrap();
        let mut similarity = Similarity::new(measure, model);
        let (a, b) = (similarity.prepare(a), similarity.prepare(b));
        Similarity::between(&a, &b, 0.0)
    }

    #[test]
    fn measures_of_small_texts() {
        // Shingles: abc bcd cde against abc bcd cdx.
        assert_eq!(
            similarity(Measure::Jaccard, "a b c d e", "A, b, c, d, x"),
            0.5
        );
        assert_eq!(similarity(Measure::Jaccard, "近似重复", "近似重"), 0.5);
        assert_eq!(similarity(Measure::Jaccard, "a b", "a b"), 1.0);
        assert_eq!(similarity(Measure::Edit, "近似重复", "近似重x"), 0.75);
        assert_eq!(similarity(Measure::Cosine, "a a", "a b"), 2.0 / 8f64.sqrt());
        assert_eq!(
            similarity(Measure::Sketch, "a b c d e", "A, b, c, d, e"),
            1.0
        );
        let distant = similarity(Measure::Sketch, "a b c d e", "f g h i j");
        assert!(distant < 0.4, "{distant}");
        for measure in [Measure::Jaccard, Measure::Cosine, Measure::Edit] {
            assert_eq!(similarity(measure, "", ""), 1.0);
            let nothing = similarity(measure, "a b c", "");
            assert!(nothing == 0.0 && nothing.is_sign_positive(), "{nothing}");
        }
        let nothing = similarity(Measure::Cosine, "a b", "c d");
        assert!(nothing == 0.0 && nothing.is_sign_positive(), "{nothing}");
    }

    proptest! {
        #[test]
        fn hashes_are_sorted(seed: u64, count in 0_u64..300, even: bool) {
            // Hashes of a text that repeats itself, too, and such that fall into one bucket.
            let hash = |at: u64| (at % 200 + 1).wrapping_mul(seed | 1) >> if even { 0 } else { 40 };
            let hashes: Vec<u64> = (0..count).map(hash).collect();
            let mut expected = hashes.clone();
            expected.sort_unstable();
            prop_assert_eq!(sorted(&hashes, &mut vec![7]), expected);
        }
    }

    fn text() -> impl Strategy<Value = String> {
        proptest::collection::vec("[abc]", 0..30).prop_map(|words| words.join(" "))
    }

    proptest! {
        #[test]
        fn measures_equal_their_definitions(a in text(), b in text(), least in 0.0..1.0) {
            let words = |text: &str| -> Vec<String> { text.split(' ').filter(|w| !w.is_empty()).map(str::to_owned).collect() };
            let shingles = |text: &str| -> BTreeSet<Vec<String>> {
                let words = words(text);
                words.windows(3.min(words.len()).max(1)).map(<[String]>::to_vec).collect()
            };
            let (x, y) = (shingles(&a), shingles(&b));
            let union = x.union(&y).count();
            let jaccard = if union == 0 { 1.0 } else { x.intersection(&y).count() as f64 / union as f64 };
            prop_assert_eq!(similarity(Measure::Jaccard, &a, &b), jaccard);
            let sets: [Vec<u64>; 2] = [&x, &y].map(|set| {
                let mut hashes: Vec<u64> = set.iter().map(|shingle| crate::hash::murmur3_low64(shingle.join(" ").as_bytes(), 0)).collect();
                hashes.sort_unstable();
                hashes
            });
            let bounded = super::jaccard(&sets[0], &sets[1], least);
            prop_assert!(bounded == jaccard || bounded == 0.0 && jaccard < least, "{} {} {}", bounded, jaccard, least);

            let counts = |text: &str| words(text).into_iter().fold(BTreeMap::<String, f64>::new(), |mut counts, word| {
                *counts.entry(word).or_default() += 1.0;
                counts
            });
            let (x, y) = (counts(&a), counts(&b));
            let length = |counts: &BTreeMap<String, f64>| counts.values().map(|n| n * n).sum::<f64>().sqrt();
            let dot: f64 = x.iter().map(|(word, n)| n * y.get(word).unwrap_or(&0.0)).sum();
            let cosine = match (x.is_empty(), y.is_empty()) {
                (true, true) => 1.0,
                (false, false) => dot / (length(&x) * length(&y)),
                _ => 0.0,
            };
            prop_assert!((similarity(Measure::Cosine, &a, &b) - cosine).abs() < 1e-9);

            let (x, y): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            let mut row: Vec<usize> = (0..=y.len()).collect();
            for (i, p) in x.iter().enumerate() {
                let mut corner = std::mem::replace(&mut row[0], i + 1);
                for (j, q) in y.iter().enumerate() {
                    let up = row[j + 1];
                    row[j + 1] = (corner + usize::from(p != q)).min(up + 1).min(row[j] + 1);
                    corner = up;
                }
            }
            let longer = x.len().max(y.len()).max(1);
            let edit = 1.0 - row[y.len()] as f64 / longer as f64;
            prop_assert!((similarity(Measure::Edit, &a, &b) - edit).abs() < 1e-9);
        }
    }
}
