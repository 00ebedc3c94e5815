//! The request of a probe: plain values, which the plan of a job has, too.

use archive::{ColumnNames, FingerprintFile, RowColumns};
use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};
use simhash::SketchBits;
use simhash::sketch::{differing_bits, similarity_by_bits};

use crate::batch::TablePart;
use crate::class_pairs;
use crate::pairs::{self, Similarities};

/// The batch and the settings to probe with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Probe {
    pub batch: FingerprintFile,
    /// Fingerprints that differ in at most this many bits are a pair.
    pub max_distance: u32,
    pub design: String,
    /// Parts that the batch is cut into.
    pub parts: u32,
    /// The most pairs of a document of the batch with the archive, and as many within the batch;
    /// they are the nearest ones.
    pub max_hits: Option<u32>,
    /// Day of the batch, in days since 1970.
    pub day: Option<i32>,
    pub columns: ColumnNames,
    /// How pairs are compared by their sketches; `None` for not at all.
    pub sketches: Option<CompareSketches>,
    /// Whether the answer has pairs of documents or of classes.
    pub answer: Answer,
    /// Whether only the kept documents of the archive form pairs.
    pub kept_base: bool,
}

/// What the rows of a probe's answer are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    Pairs,
    /// Pairs of documents, but of a class only its first document with others, and each other document of the class with the first.
    PairsByClass,
    /// Pairs of classes of the batch, for decisions; `max_hits` does not apply.
    ClassPairs(Originals),
}

/// The documents of the archive in pairs with a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Originals {
    Nearest,
    /// All within k bits, because a verification of their texts may drop the nearest.
    All,
}

/// How pairs are compared by their sketches, which estimate the similarity of each pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CompareSketches {
    /// Pairs whose sketches differ in more bits are dropped.
    pub max_differing: u32,
    /// Whether the run verifies pairs by their sketches. Then a pair without them drops no document.
    pub verifies: bool,
}

/// What the sketches of a pair say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Compared {
    /// Sketches are not compared.
    NotAsked,
    /// They are too different: there is no pair.
    Dissimilar,
    /// A sketch is missing.
    Unknown,
    /// They estimate this similarity.
    Similar(f64),
}

impl CompareSketches {
    /// Compares two sketches of one size, if that is `asked` for.
    pub(crate) fn compare(asked: Option<Self>, a: Option<&[u8]>, b: Option<&[u8]>) -> Compared {
        let Some(asked) = asked else {
            return Compared::NotAsked;
        };
        let Some((a, b)) = a.zip(b) else {
            return Compared::Unknown;
        };
        match differing_bits(a, b) {
            differing if differing > asked.max_differing => Compared::Dissimilar,
            differing => Compared::Similar(similarity_by_bits(differing, 8 * a.len() as u32)),
        }
    }

    /// The comparison that drops pairs whose sketches, of this `size`, estimate a similarity below
    /// `least`, and verifies pairs so unless that is 0.
    pub fn at_least(least: f64, size: SketchBits) -> Self {
        let is_enough = |differing| similarity_by_bits(differing, size.bits()) >= least;
        let max_differing = (0..=size.bits()).rev().find(|&bits| is_enough(bits));
        Self {
            // Equal sketches estimate 1, and no text is less similar to itself.
            max_differing: max_differing.unwrap_or(0),
            verifies: least > 0.0,
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

    pub fn schema(&self) -> SchemaRef {
        if matches!(self.answer, Answer::ClassPairs(_)) {
            return class_pairs::schema(self.batch.id_type);
        }
        let similarities = match self.sketches {
            Some(_) => Similarities::Known,
            None => Similarities::Unknown,
        };
        pairs::schema(self.batch.id_type, similarities)
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
