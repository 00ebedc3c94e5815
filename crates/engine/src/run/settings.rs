//! The settings of a run.

use std::path::PathBuf;
use std::sync::Arc;

use archive::{BatchName, DayBatch, Existing, Pin};
use chrono::NaiveDate;
use storage::Location;

use super::{DaySource, RunLimits};
use crate::decide::{Decide, OnUpdate};
use crate::job::Job;
use crate::output::OutputTarget;
use crate::profile::CompareOptions;
use crate::recipe::SpecOptions;
use documents::Columns;

/// Which documents of a batch are appended to an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    All,
    /// The kept documents.
    Kept,
}

#[derive(Debug, Clone, Default)]
pub struct RunSettings {
    /// Files, directories or patterns of the batch.
    pub new: Vec<String>,
    /// Archives, plain Parquet files of fingerprints, or documents; none to compare the batch with itself only.
    pub base: Vec<String>,
    /// The output of pairs; `None` if only decisions are asked for.
    pub output: Option<OutputTarget>,
    /// What to decide about the documents; `None` for nothing, unless the batch is appended to an archive that has decisions.
    pub decide: Option<Decide>,
    /// Whether decisions drop empty documents.
    pub drop_empty: bool,
    /// Whether the batch is compared with all of the archive: no day is taken for the batch.
    pub compares_all: bool,
    /// Whether decisions about a batch against an archive say which documents are updates.
    pub finds_updates: bool,
    /// Which captures of a document count, if their contents differ.
    pub on_update: OnUpdate,
    /// What people say of documents.
    pub pins: Vec<Pin>,
    /// The file that they are from.
    pub pins_from: Option<String>,
    /// How many dropped documents an audit compares by their texts; `None` for no audit.
    pub audit: Option<usize>,
    /// How pairs are found and verified, as far as the options say it.
    pub compare: CompareOptions,
    /// Whether the batch is compared with itself too.
    pub within: bool,
    /// What the run refuses before it publishes anything.
    pub limits: RunLimits,
    /// What to append to the archive; `None` for nothing.
    pub append: Option<Appended>,
    /// What to do when the archive holds the day already, with other rows.
    pub existing: Existing,
    /// The most rows of a data file of the archive; `None` for the archive's default.
    pub rows_per_file: Option<u64>,
    /// Where the day comes from that the batch is appended as; `None` if it has none.
    pub day: Option<DaySource>,
    /// The name of the batch, if it is one of several of its day.
    pub batch_name: BatchName,
    /// Where to write the batch's fingerprints, if at all.
    pub fingerprints: Option<Location>,
    /// Column names of the batch, and of plain files of fingerprints.
    pub columns: Columns,
    /// Design of the tables; `None` for the cheapest.
    pub design: Option<String>,
    /// Whether documents with equal fingerprints, and equal sketches where these are compared, have one row each, with the first of
    /// them, and only the first has pairs with others.
    pub pairs_by_class: bool,
    /// The most pairs of one document of the batch; the nearest are written.
    pub max_hits: Option<u32>,
    /// The fields of the fingerprint spec that the options set.
    pub spec_options: SpecOptions,
    /// Directory that keeps finished fingerprints until the run succeeds, if any.
    pub resume: Option<PathBuf>,
    /// Directory for temporary files; it must exist.
    pub scratch: PathBuf,
    /// The job whose parts do the maps; `None` for this process.
    pub job: Option<Arc<Job>>,
}

impl RunSettings {
    /// What a commit of the batch as `day` brings.
    pub(crate) fn day_batch(&self, day: NaiveDate) -> DayBatch {
        let name = self.batch_name;
        DayBatch { day, name }
    }
}
