//! Counts what a report shows, in one pass over the rows of an output.

use std::collections::{BTreeMap, HashMap};

use engine::output::{OutputKind, ReadPair, ReadRow};

use super::samples::Samples;
use super::sources::{Loss, Sites, Sources};

/// Bins of similarities: each has a width of 1/20.
pub(super) const SIMILARITY_BINS: usize = 20;
/// Distances from 0 to the largest k.
pub(super) const DISTANCES: usize = 17;

/// The counts of an output of pairs or of decisions.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) kind: OutputKind,
    /// Rows of the output: pairs or, in decisions, documents.
    pub(super) rows: u64,
    /// Pairs; in decisions, duplicates with their kept documents.
    pub(super) pairs: u64,
    /// Pairs by distance.
    pub(super) by_distance: [u64; DISTANCES],
    /// Pairs by similarity; those of 1 are in the last bin.
    pub(super) by_similarity: [u64; SIMILARITY_BINS],
    /// Pairs whose similarity is not known.
    pub(super) unknown_similarity: u64,
    /// Pairs by the day of the other document, in days since 1970.
    pub(super) by_day: BTreeMap<i32, u64>,
    /// Pairs whose other document has no day.
    pub(super) without_day: u64,
    /// In decisions: kept documents by the size of their group.
    kept_sizes: HashMap<u64, u64>,
    /// In decisions: duplicates by the size of their group.
    duplicate_sizes: HashMap<u64, u64>,
    /// In pairs: documents that are the `new_id` of a pair, by their number of pairs.
    pub(super) degrees: HashMap<u64, u64>,
    pub(super) sources: Sources,
    pub(super) sites: Sites,
    /// The sources that lose most documents, if the rows have hosts or URLs.
    pub(super) losses: Vec<Loss>,
    pub(super) samples: Samples,
    current: CurrentDocument,
}

/// The pairs of the document that is being read; pairs are sorted by document.
#[derive(Debug, Default)]
struct CurrentDocument {
    id: String,
    pairs: u64,
}

impl Facts {
    /// All counts are zero. `threshold` is the similarity around which samples are chosen.
    pub(super) fn new(threshold: f64) -> Self {
        Self {
            kind: OutputKind::Pairs,
            rows: 0,
            pairs: 0,
            by_distance: [0; DISTANCES],
            by_similarity: [0; SIMILARITY_BINS],
            unknown_similarity: 0,
            by_day: BTreeMap::new(),
            without_day: 0,
            kept_sizes: HashMap::new(),
            duplicate_sizes: HashMap::new(),
            degrees: HashMap::new(),
            sources: Sources::default(),
            sites: Sites::default(),
            losses: Vec::new(),
            samples: Samples::new(threshold),
            current: CurrentDocument::default(),
        }
    }

    pub(super) fn add(&mut self, row: &ReadRow<'_>) {
        self.rows += 1;
        let size = row.group_size.map(|size| size.max(1).cast_unsigned());
        let sizes = match row.pair {
            Some(_) => &mut self.duplicate_sizes,
            None => &mut self.kept_sizes,
        };
        if let Some(size) = size {
            *sizes.entry(size).or_default() += 1;
        }
        self.samples.add(row);
        self.sites.add(row);
        if let Some(pair) = row.pair {
            self.add_pair(row.id, &pair);
        }
    }

    fn add_pair(&mut self, id: &str, pair: &ReadPair<'_>) {
        self.pairs += 1;
        let distance = usize::try_from(pair.distance).unwrap_or(0);
        self.by_distance[distance.min(DISTANCES - 1)] += 1;
        match pair.similarity {
            Some(similarity) => {
                let bin = (similarity * SIMILARITY_BINS as f64) as usize;
                self.by_similarity[bin.min(SIMILARITY_BINS - 1)] += 1;
            }
            None => self.unknown_similarity += 1,
        }
        match pair.base_day {
            Some(day) => *self.by_day.entry(day).or_default() += 1,
            None => self.without_day += 1,
        }
        self.sources.add(id, pair.base_id);
        if self.current.id != id {
            self.end_document();
            id.clone_into(&mut self.current.id);
        }
        self.current.pairs += 1;
    }

    /// Counts the document whose pairs were read last.
    fn end_document(&mut self) {
        if self.current.pairs > 0 {
            *self.degrees.entry(self.current.pairs).or_default() += 1;
        }
        self.current.pairs = 0;
    }

    /// Ends the pass over an output of this kind.
    pub(super) fn finish(&mut self, kind: OutputKind) {
        self.end_document();
        self.kind = kind;
    }

    /// In decisions: the number of kept documents.
    pub(super) fn kept(&self) -> u64 {
        self.rows - self.pairs
    }

    /// In decisions: the number of duplicates within the batch, from the group sizes of its kept
    /// documents.
    pub(super) fn duplicates_within(&self) -> u64 {
        let groups = self.kept_sizes.iter();
        groups
            .map(|(size, groups)| (size - 1) * groups)
            .sum::<u64>()
            .min(self.pairs)
    }

    /// Sizes, and how often each occurs. A size is, in decisions, the documents of a group; in
    /// pairs, the pairs of a document.
    pub(super) fn sizes(&self) -> BTreeMap<u64, u64> {
        if self.kind == OutputKind::Pairs {
            return self.degrees.clone().into_iter().collect();
        }
        let mut sizes: BTreeMap<u64, u64> = self.kept_sizes.clone().into_iter().collect();
        // The other duplicates belong to groups whose kept document is in the archive, so not among
        // the rows.
        for (size, duplicates) in &self.duplicate_sizes {
            let within = self
                .kept_sizes
                .get(size)
                .map_or(0, |groups| groups * (size - 1));
            let of_archive = duplicates.saturating_sub(within);
            if *size > 1 && of_archive > 0 {
                *sizes.entry(*size).or_default() += of_archive / (size - 1);
            }
        }
        sizes
    }
}
