//! The captures of a document: the rows of an archive with its id, on all days.

use std::collections::HashSet;

use arrow::array::{Array as _, AsArray as _};
use arrow::datatypes::{Date32Type, Int64Type};
use chrono::NaiveDate;
use futures::StreamExt as _;

use crate::day_batch::BatchName;
use crate::error::Result;
use crate::id_set::IdSet;
use crate::schema;
use crate::table::Archive;

/// The state of a document on one day.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Capture {
    /// Its day; `None` for a row that another program wrote without one.
    pub day: Option<NaiveDate>,
    /// The version that its commit was compared with: commits of a day have this order.
    pub base_version: Option<u64>,
    /// The name of its batch; empty for the batch without one.
    pub batch: BatchName,
    pub fingerprint: u64,
    pub sketch: Option<Vec<u8>>,
    /// Whether it was kept; `None` if nothing was decided about it.
    pub kept: Option<bool>,
    /// Whether a newer one counts instead.
    pub superseded: bool,
}

impl Archive {
    /// The captures of the document with the one id of `id`, by their days and commits. Reads all data files.
    ///
    /// # Errors
    /// [`ArchiveError`](crate::ArchiveError) when a file is missing or damaged.
    pub async fn captures(&self, id: &IdSet) -> Result<Vec<Capture>> {
        let mut captures = Vec::new();
        let rulings = self.rulings().await?;
        let name = id.first();
        let mut all = std::pin::pin!(self.rows_of(self.files()?));
        while let Some((file, rows)) = all.next().await.transpose()? {
            for batch in rows {
                let batch = batch?;
                let found = id.row_mask(&batch, &mut HashSet::new());
                if found.true_count() == 0 {
                    continue;
                }
                let fingerprints = batch.column(0).as_primitive::<Int64Type>();
                for row in (0..batch.num_rows()).filter(|&row| found.value(row)) {
                    if fingerprints.is_null(row) {
                        continue;
                    }
                    let kept = schema::kept_at(&batch, row);
                    let day = file.day.map(Date32Type::from_naive_date);
                    let fingerprint = fingerprints.value(row).cast_unsigned();
                    captures.push(Capture {
                        superseded: kept != Some(false)
                            && rulings
                                .is_superseded(&name, day, |superseded| superseded == fingerprint),
                        day: file.day,
                        base_version: file.base_version,
                        batch: file.batch_name,
                        fingerprint,
                        sketch: schema::sketch_at(&batch, row).map(<[u8]>::to_vec),
                        kept,
                    });
                }
            }
        }
        captures.sort();
        Ok(captures)
    }
}
