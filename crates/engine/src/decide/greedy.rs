//! The greedy choice: the first document of each neighbourhood is kept.

/// Marks a kept document in place of a distance.
const KEPT: u8 = u8::MAX;
/// Marks a duplicate of a document of the archive in place of a distance.
const OF_ARCHIVE: u8 = u8::MAX - 1;
/// Stands for the distance of a document that is not kept, and is a duplicate of none.
const BARRED: u8 = u8::MAX - 2;

/// A pair of documents, or of classes, which are numbered in the order in which they are decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OrderedPair {
    /// The one that is decided later.
    pub later: u32,
    /// The one that is decided earlier.
    pub earlier: u32,
    /// Bits in which their fingerprints differ.
    pub distance: u8,
    /// Their similarity, if it is known.
    pub similarity: Option<f64>,
}

/// What is decided about a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    Kept,
    /// It is a duplicate of a document of the archive.
    OfArchive,
    /// It must not be kept, and is a duplicate of none.
    Barred,
    /// It is a duplicate of a kept document.
    Of {
        kept: u32,
        /// Bits in which their fingerprints differ.
        distance: u8,
        /// Their similarity, if it is known.
        similarity: Option<f64>,
    },
}

/// Decides documents one after the other: a document is kept unless it has a pair with a kept
/// document before it.
///
/// The kept documents are a maximal independent set of the graph of pairs: no two of them are a
/// pair, and each other document has a pair with one of them or with a document of the archive. The
/// decisions take 5 bytes for each document, or 13 if pairs have similarities, however many pairs
/// there are.
#[derive(Debug)]
pub struct Greedy {
    /// For a duplicate, the distance to its kept document; for the others, [`KEPT`] or
    /// [`OF_ARCHIVE`].
    distances: Vec<u8>,
    /// For a duplicate, its kept document; for a kept document, the size of its group.
    others_or_sizes: Vec<u32>,
    /// For a duplicate, the similarity to its kept document, NaN if it is not known. Empty if pairs
    /// have no similarities.
    similarities: Vec<f64>,
    /// The later document of the pair that was added last.
    last: u32,
}

impl Greedy {
    /// Starts with all of `count` documents kept. `similarities` says whether pairs have
    /// similarities.
    pub fn new(count: usize, similarities: bool) -> Self {
        Self {
            distances: vec![KEPT; count],
            others_or_sizes: vec![0; count],
            similarities: vec![f64::NAN; if similarities { count } else { 0 }],
            last: 0,
        }
    }

    /// Marks a document as a duplicate of a document of the archive. Call it for all of these
    /// before the first pair is added.
    pub fn add_duplicate_of_archive(&mut self, document: u32) {
        self.distances[document as usize] = OF_ARCHIVE;
    }

    /// Says that a document is not kept. It can still be a duplicate of others; call it before any pair is added.
    pub fn bar(&mut self, document: u32) {
        self.distances[document as usize] = BARRED;
    }

    /// Adds a pair. Pairs must come in ascending order of their later document.
    pub fn add(&mut self, pair: OrderedPair) {
        debug_assert!(
            pair.earlier < pair.later && self.last <= pair.later,
            "the order of pairs"
        );
        self.last = pair.later;
        // All pairs of the earlier document with others before it were added: it is decided.
        if self.distances[pair.earlier as usize] != KEPT {
            return;
        }
        let later = pair.later as usize;
        let is_nearer = match self.distances[later] {
            KEPT | BARRED => true,
            OF_ARCHIVE => false,
            distance => {
                let similarity = |value: Option<f64>| value.unwrap_or(f64::NEG_INFINITY);
                let found = self.similarity(later);
                // The nearest, then the most similar, then the first.
                (pair.distance, -similarity(pair.similarity), pair.earlier)
                    < (distance, -similarity(found), self.others_or_sizes[later])
            }
        };
        if is_nearer {
            self.others_or_sizes[later] = pair.earlier;
            self.distances[later] = pair.distance;
            if let Some(similarity) = self.similarities.get_mut(later) {
                *similarity = pair.similarity.unwrap_or(f64::NAN);
            }
        }
    }

    /// The decision on a document. Call it after all pairs were added.
    pub fn decision(&self, document: u32) -> Decision {
        let at = document as usize;
        match self.distances[at] {
            KEPT => Decision::Kept,
            OF_ARCHIVE => Decision::OfArchive,
            BARRED => Decision::Barred,
            distance => Decision::Of {
                kept: self.others_or_sizes[at],
                distance,
                similarity: self.similarity(at),
            },
        }
    }

    fn similarity(&self, at: usize) -> Option<f64> {
        let similarity = self.similarities.get(at).copied();
        similarity.filter(|value| !value.is_nan())
    }

    /// Counts a document to the group of a kept one. Call it after all pairs were added.
    pub fn count_in_group(&mut self, kept: u32) {
        debug_assert_eq!(
            self.distances[kept as usize], KEPT,
            "a group without a kept document"
        );
        self.others_or_sizes[kept as usize] += 1;
    }

    /// The documents that were counted to the group of a kept document.
    pub fn group_size(&self, kept: u32) -> u32 {
        self.others_or_sizes[kept as usize]
    }

    pub fn largest_group(&self) -> u32 {
        let groups = self.distances.iter().zip(&self.others_or_sizes);
        let sizes = groups.filter(|(distance, _)| **distance == KEPT);
        sizes.map(|(_, size)| *size).max().unwrap_or(0)
    }

    /// Heap bytes of the decisions on `count` documents.
    pub fn bytes_for(count: usize, similarities: bool) -> usize {
        count * if similarities { 13 } else { 5 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use testkit::oracle::kept_in_turn;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]
        #[test]
        fn decisions_are_those_of_the_definition(
            count in 1_u32..40,
            pairs in proptest::collection::vec((0_u32..40, 0_u32..40, 0_u8..4, 0_u8..3), 0..160),
            of_archive in proptest::collection::btree_set(0_u32..40, 0..5),
            similarities: bool,
        ) {
            // The values of each pair; a similarity of 0 is not known.
            let mut of_pair: BTreeMap<(u32, u32), (u8, Option<f64>)> = BTreeMap::new();
            for (a, b, distance, similarity) in pairs {
                let (earlier, later) = (a.min(b), a.max(b));
                if earlier < later && later < count {
                    let similarity = Some(f64::from(similarity)).filter(|s| similarities && *s > 0.0);
                    of_pair.insert((later, earlier), (distance, similarity));
                }
            }
            let of_archive: Vec<u32> = of_archive.into_iter().filter(|at| *at < count).collect();
            let mut greedy = Greedy::new(count as usize, similarities);
            for document in &of_archive {
                greedy.add_duplicate_of_archive(*document);
            }
            for (&(later, earlier), &(distance, similarity)) in &of_pair {
                let pair = OrderedPair { later, earlier, distance, similarity };
                greedy.add(pair);
                // A repeated pair changes nothing.
                greedy.add(pair);
            }
            // The documents of the archive come first in the order, and all of them are kept.
            let archived = of_archive.len();
            let kept = kept_in_turn(archived + count as usize, |a, b| {
                let documents = [a, b].map(|at| at.checked_sub(archived).map(|at| at as u32));
                match documents {
                    [None, Some(document)] => of_archive[a] == document,
                    [Some(earlier), Some(later)] => of_pair.contains_key(&(later, earlier)),
                    _ => false,
                }
            });
            let is_kept = |document: u32| kept[archived + document as usize];
            for document in 0..count {
                let nearest = of_pair.range((document, 0)..(document, count));
                let nearest = nearest.filter(|((_, earlier), _)| is_kept(*earlier));
                let nearest = nearest.min_by(|(a, x), (b, y)| {
                    let similarity = |value: Option<f64>| value.unwrap_or(f64::NEG_INFINITY);
                    x.0.cmp(&y.0)
                        .then(similarity(y.1).total_cmp(&similarity(x.1)))
                        .then(a.1.cmp(&b.1))
                });
                let expected = match nearest {
                    _ if of_archive.contains(&document) => Decision::OfArchive,
                    Some((&(_, kept), &(distance, similarity))) => Decision::Of {
                        kept,
                        distance,
                        similarity,
                    },
                    None => Decision::Kept,
                };
                prop_assert_eq!(greedy.decision(document), expected);
                prop_assert_eq!(expected == Decision::Kept, is_kept(document));
            }
        }
    }
}
