//! The request of a probe: plain values that a process sends to executors.

use archive::{ColumnNames, RowColumns};
use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};
use simhash::SketchBits;
use simhash::sketch::{differing_bits, similarity_by_bits};

use crate::batch::{BatchName, TablePart};
use crate::class_pairs;
use crate::pairs::{self, Similarities};

/// The batch and the settings to probe with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Probe {
    /// The batch.
    pub batch: BatchName,
    /// Fingerprints that differ in at most this many bits are a pair.
    pub max_distance: u32,
    /// Design of the tables.
    pub design: String,
    /// Parts that the batch is cut into.
    pub parts: u32,
    /// The most pairs of a document of the batch: so many nearest documents of the archive, and so many of the batch itself.
    pub max_hits: Option<u32>,
    /// Day of the batch, in days since 1970.
    pub day: Option<i32>,
    /// Column names of the archive's files.
    pub columns: ColumnNames,
    /// How pairs are compared by their sketches; `None` for not at all.
    pub sketches: Option<CompareSketches>,
    /// What the rows of the answer are.
    pub answer: Answer,
    /// Whether only the kept documents of the archive form pairs.
    pub kept_base: bool,
}

/// What a probe answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// Pairs of documents.
    Pairs,
    /// Pairs of classes of the batch, for decisions; `max_hits` does not apply.
    ClassPairs,
}

/// How pairs are compared by their sketches: each gets the similarity that these estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CompareSketches {
    /// Pairs whose sketches differ in more bits are dropped.
    pub max_differing: u32,
}

/// What the sketches of a pair say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Compared {
    /// Sketches are not compared.
    NotAsked,
    /// They are too different: there is no pair.
    Dissimilar,
    /// One is not known.
    Unknown,
    /// They estimate this similarity.
    Similar(f64),
}

impl CompareSketches {
    /// Compares two sketches of one size.
    pub(super) fn compare(self, a: Option<&[u8]>, b: Option<&[u8]>) -> Compared {
        let Some((a, b)) = a.zip(b) else {
            return Compared::Unknown;
        };
        match differing_bits(a, b) {
            differing if differing > self.max_differing => Compared::Dissimilar,
            differing => Compared::Similar(similarity_by_bits(differing, 8 * a.len() as u32)),
        }
    }

    /// Drops the pairs whose sketches, of this size, estimate a similarity below `least`.
    #[must_use]
    pub fn at_least(least: f64, size: SketchBits) -> Self {
        let is_enough = |differing| similarity_by_bits(differing, size.bits()) >= least;
        let max_differing = (0..=size.bits()).rev().find(|&bits| is_enough(bits));
        Self {
            // Equal sketches estimate 1, and no text is less similar to itself.
            max_differing: max_differing.unwrap_or(0),
        }
    }
}

impl Probe {
    /// The columns that are read of each matching row of the archive, besides its id.
    pub(super) fn row_columns(&self) -> RowColumns {
        RowColumns {
            sketch: match self.sketches {
                Some(_) => self.batch.spec.sketch,
                None => SketchBits::None,
            },
            kept: self.kept_base,
        }
    }

    /// Schema of its rows.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        if self.answer == Answer::ClassPairs {
            return class_pairs::schema(self.batch.id_type());
        }
        let similarities = match self.sketches {
            Some(_) => Similarities::Known,
            None => Similarities::Unknown,
        };
        pairs::schema(self.batch.id_type(), similarities)
    }

    /// The tables of one part of the batch.
    pub(crate) fn tables(&self, part: u32) -> TablePart<'_> {
        TablePart {
            design: &self.design,
            max_distance: self.max_distance,
            parts: self.parts,
            part,
        }
    }
}
