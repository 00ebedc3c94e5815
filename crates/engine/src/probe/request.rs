//! The request of a probe: plain values that a process sends to executors.

use archive::ColumnNames;
use serde::{Deserialize, Serialize};

use crate::batch::{BatchName, TablePart};

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
}

impl Probe {
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
