//! The probe as an operator: work items in, hits out.
//!
//! [`ProbeNode`] is its place in a logical plan, [`ProbeExec`] does the work, [`ProbePlanner`] makes the one of the
//! other. It is unary, over a table of work items, because a scheduler of distributed plans can split a table
//! that it knows but not a leaf that it does not. The batch is named in it, never contained.

mod ahead;
mod emit;
mod exec;
mod hits;
mod lookup;
mod matches;
mod nearest;
mod node;

use std::path::PathBuf;
use std::sync::Arc;

use archive::fingerprints::FingerprintFile;
use archive::{BaseColumns, IdType};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use simhash::Spec;

pub use exec::{ProbeExec, TOGETHER};
pub use node::{ProbeNode, ProbePlanner};

/// What to probe with.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Probe {
    /// The new batch.
    pub batch: BatchName,
    /// Pairs up to this distance are hits.
    pub max_distance: u32,
    /// Design of the tables.
    pub design: String,
    /// Parts that the batch is cut into.
    pub parts: u32,
    /// Hits of a new document with documents of the history, or of its own day, at most: the nearest ones.
    pub max_hits: Option<u32>,
    /// Day of the batch, in days since 1970.
    pub day: Option<i32>,
    /// Columns of the history.
    pub columns: BaseColumns,
}

/// The new batch by name: where its fingerprints are, and what they must be.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BatchName {
    /// Path or URL of the file.
    pub location: String,
    /// Digest of its rows.
    pub digest: String,
    /// Its bytes.
    pub bytes: u64,
    /// Its rows.
    pub rows: u64,
    /// Those without a fingerprint.
    pub without_fingerprint: u64,
    /// Whether its ids, and those of the hits, are numbers.
    pub bigint_ids: bool,
    /// The spec of its fingerprints.
    pub spec: Spec,
}

impl BatchName {
    /// The type of the ids.
    #[must_use]
    pub fn id_type(&self) -> IdType {
        if self.bigint_ids {
            IdType::Bigint
        } else {
            IdType::String
        }
    }

    /// The name of `file`, which is at `location`.
    #[must_use]
    pub fn of(file: &FingerprintFile, location: String) -> Self {
        Self {
            location,
            digest: file.digest.clone(),
            bytes: file.bytes,
            rows: file.rows,
            without_fingerprint: file.without_fingerprint,
            bigint_ids: file.id_type == IdType::Bigint,
            spec: file.spec.clone(),
        }
    }

    /// The file that is named, at `path`.
    #[must_use]
    pub fn file(&self, path: PathBuf) -> FingerprintFile {
        FingerprintFile {
            path,
            bytes: self.bytes,
            rows: self.rows,
            without_fingerprint: self.without_fingerprint,
            digest: self.digest.clone(),
            id_type: self.id_type(),
            spec: self.spec.clone(),
        }
    }
}

/// Columns of the hits.
pub mod columns {
    /// Id of the new document.
    pub const NEW_ID: &str = "new_id";
    /// Id of the document that it is near to.
    pub const BASE_ID: &str = "base_id";
    /// Bits in which their fingerprints differ.
    pub const DISTANCE: &str = "distance";
    /// The day that the other document came in.
    pub const BASE_DAY: &str = "base_day";
}

/// Schema of the hits, as probed and as written.
#[must_use]
pub fn hits_schema(id_type: IdType) -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(columns::NEW_ID, id_type.data_type(), false),
        Field::new(columns::BASE_ID, id_type.data_type(), false),
        Field::new(columns::DISTANCE, DataType::Int32, false),
        Field::new(columns::BASE_DAY, DataType::Date32, true),
    ]))
}
