//! Near-duplicates inside one source, or among the revisions of documents: the recall and the
//! precision of a method.

use super::distances::Distances;
use crate::peers::Found;
use crate::truth::{Pair, Truth};

/// Similarities from which on pairs are counted, ascending.
pub const LEVELS: [f64; 4] = [0.5, 0.7, 0.8, 0.95];
/// Index of .5 in [`LEVELS`].
pub const J50: usize = 0;
/// Index of .7 in [`LEVELS`].
pub const J70: usize = 1;
/// Index of .8 in [`LEVELS`].
pub const J80: usize = 2;
/// Index of .95 in [`LEVELS`].
pub const J95: usize = 3;

/// Documents of a corpus among which pairs are sought, and the near-duplicates among them.
pub struct Part {
    pub name: String,
    /// The numbers of the documents in the corpus, ascending.
    documents: Vec<u32>,
    /// For each document, the number of its family: the source, or the document of which it is a
    /// revision. Recall counts only pairs inside a family.
    families: Vec<u32>,
    /// The similarities of pairs, whose documents are numbered within the part.
    truth: Truth,
    /// For each level, the number of pairs inside a family with at least this similarity.
    pub relevant: [u64; LEVELS.len()],
}

impl Part {
    /// Compares all documents of the part. `texts` are those of the corpus.
    pub fn new(name: &str, documents: Vec<u32>, families: Vec<u32>, texts: &[String]) -> Self {
        let texts: Vec<&str> = documents
            .iter()
            .map(|&document| texts[document as usize].as_str())
            .collect();
        let mut part = Self {
            name: name.to_owned(),
            documents,
            families,
            truth: Truth::compute(&texts, LEVELS[J50]),
            relevant: [0; LEVELS.len()],
        };
        for (pair, similarity) in part.truth.pairs() {
            if same_family(&part.families, pair) {
                for (count, level) in part.relevant.iter_mut().zip(LEVELS) {
                    *count += u64::from(similarity >= level);
                }
            }
        }
        part
    }

    /// Returns the number of documents.
    pub fn size(&self) -> usize {
        self.documents.len()
    }

    /// Returns the distances of the pairs in this part. A pair that was found without a distance
    /// counts as distance 0.
    pub fn count(&self, found: &Found) -> Counts {
        match found {
            Found::Fingerprints(all) => {
                let mut counts = Counts::default();
                let fingerprint = |document: &u32| all[*document as usize];
                let fingerprints: Vec<Option<u64>> =
                    self.documents.iter().map(fingerprint).collect();
                for (pair, similarity) in self.truth.pairs() {
                    let [x, y] = [pair.0, pair.1].map(|document| fingerprints[document as usize]);
                    if let (Some(x), Some(y)) = (x, y) {
                        let same = same_family(&self.families, pair);
                        counts.add_near(similarity, (x ^ y).count_ones(), same);
                    }
                }
                let present: Vec<u64> = fingerprints.into_iter().flatten().collect();
                counts.found = Distances::within(&present);
                counts
            }
            Found::Pairs(pairs) => self.count_pairs(pairs.iter().map(|&pair| (pair, 0))),
        }
    }

    /// Returns the distances of those of `pairs` that are in this part; `pairs` has documents of the corpus, and their
    /// distances.
    pub fn count_pairs(&self, pairs: impl Iterator<Item = (Pair, u32)>) -> Counts {
        let mut counts = Counts::default();
        for ((a, b), distance) in pairs {
            let number = |document| self.documents.binary_search(&document);
            if let (Ok(a), Ok(b)) = (number(a), number(b)) {
                let pair = (a.min(b) as u32, a.max(b) as u32);
                counts.found.add(distance);
                let same = same_family(&self.families, pair);
                counts.add_near(self.truth.similarity(pair), distance, same);
            }
        }
        counts
    }
}

/// Whether both documents of a pair are of one family.
fn same_family(families: &[u32], (a, b): Pair) -> bool {
    families[a as usize] == families[b as usize]
}

/// The distances of the pairs in a part.
#[derive(Default)]
pub struct Counts {
    /// All pairs.
    pub found: Distances,
    /// For each level, the pairs with at least this similarity.
    pub near: [Distances; LEVELS.len()],
    /// For each level, the pairs inside a family with at least this similarity.
    pub recalled: [Distances; LEVELS.len()],
}

impl Counts {
    /// Adds a pair to each level that its similarity reaches.
    fn add_near(&mut self, similarity: f64, distance: u32, same_family: bool) {
        for (at, level) in LEVELS.into_iter().enumerate() {
            if similarity >= level {
                self.near[at].add(distance);
                if same_family {
                    self.recalled[at].add(distance);
                }
            }
        }
    }

    /// Of the pairs within `k` bits, returns the share with at least the level's similarity.
    pub fn precision(&self, level: usize, k: u32) -> f64 {
        self.near[level].at_most(k) as f64 / self.found.at_most(k) as f64
    }

    /// Of the pairs inside a family with at least the level's similarity, returns the share within
    /// `k` bits.
    pub fn recall(&self, part: &Part, level: usize, k: u32) -> f64 {
        self.recalled[level].at_most(k) as f64 / part.relevant[level] as f64
    }
}
