//! Work items: the fingerprints to probe.
//!
//! An item is either a row group of a file of the archive, or a range of the batch's own distinct fingerprints, which are
//! probed for pairs inside the batch.

use archive::{Snapshot, Tail};
use arrow::datatypes::Date32Type;
use serde::{Deserialize, Serialize};

/// The most distinct fingerprints of the batch in one item.
const MAX_WITHIN: usize = 1 << 18;
/// The fewest, unless there are fewer.
const MIN_WITHIN: usize = 1 << 12;
/// Ranges of the batch for each thread or part that shares them.
const RANGES_EACH: usize = 8;

/// A work item with its number in the run.
pub type Numbered = (u32, WorkItem);

/// Fingerprints that a partition probes in one go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkItem {
    /// A row group of a file of the archive.
    RowGroup {
        /// Path or URL of the file.
        file: String,
        /// Its size in bytes.
        size: u64,
        row_group: u32,
        rows: u64,
        /// Day of its rows, in days since 1970.
        day: Option<i32>,
        /// Part of the batch to probe with.
        part: u32,
        /// Encoded bytes of its fingerprints.
        bytes: u64,
        /// What the archive's log records about the file's tail.
        tail: Option<Tail>,
    },
    /// The distinct fingerprints `first..end` of the batch, compared with the batch.
    Within {
        first: u32,
        /// One past the last.
        end: u32,
        /// Part of the batch to probe with.
        part: u32,
    },
}

impl WorkItem {
    pub fn fingerprints(&self) -> u64 {
        match self {
            Self::RowGroup { rows, .. } => *rows,
            Self::Within { first, end, .. } => u64::from(end - first),
        }
    }

    /// The same item, to be probed with another part of the batch.
    pub fn with_part(&self, number: u32) -> Self {
        let mut item = self.clone();
        match &mut item {
            Self::RowGroup { part, .. } | Self::Within { part, .. } => *part = number,
        }
        item
    }

    /// Whether its bytes are in a store.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self, Self::RowGroup { file, .. } if file.contains("://"))
    }

    /// File and number of its row group; `None` for the batch's own fingerprints.
    pub(crate) fn row_group(&self) -> Option<(String, u32)> {
        match self {
            Self::RowGroup {
                file, row_group, ..
            } => Some((file.clone(), *row_group)),
            Self::Within { .. } => None,
        }
    }

    /// Bytes to fetch for it.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::RowGroup { bytes, .. } => *bytes,
            Self::Within { .. } => 0,
        }
    }
}

/// Every row group of `snapshot` and, before them, the batch's `within` distinct fingerprints, which `sharers` threads or parts
/// share.
pub fn of_run(snapshot: &Snapshot, within: usize, sharers: usize) -> Vec<WorkItem> {
    let row_groups = snapshot.files.iter().flat_map(|file| {
        let groups = file.reader.row_groups().enumerate();
        groups.map(move |(row_group, rows)| WorkItem::RowGroup {
            file: file.location.given().to_owned(),
            size: file.size,
            row_group: row_group as u32,
            rows,
            day: file.day.map(days_since_epoch),
            part: 0,
            bytes: file.reader.fingerprint_bytes(row_group),
            tail: file.tail,
        })
    });
    let step = (within / (RANGES_EACH * sharers.max(1))).clamp(MIN_WITHIN, MAX_WITHIN);
    let within = (0..within).step_by(step).map(|first| WorkItem::Within {
        first: first as u32,
        end: within.min(first + step) as u32,
        part: 0,
    });
    // The batch first: it is in memory, and is probed while the first row groups are fetched.
    within.chain(row_groups).collect()
}

/// The items, once for each of `parts` parts of the batch, in the order in which they are probed.
pub fn for_parts(items: &[WorkItem], parts: u32) -> Vec<WorkItem> {
    (0..parts)
        .flat_map(|part| items.iter().map(move |item| item.with_part(part)))
        .collect()
}

pub fn days_since_epoch(day: chrono::NaiveDate) -> i32 {
    Date32Type::from_naive_date(day)
}
