//! Ids of hits: read for several row groups at the same time, because each takes a store's answer or two.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use archive::{FingerprintReader, IdPages, IdType};
use arrow::array::ArrayRef;
use datafusion::error::Result;
use hamming::Match;
use tokio::sync::OnceCell;

use super::hits::RowMatch;
use crate::error::EngineError;
use crate::resources::Resources;

/// Matches with rows of the history, whose ids are known.
pub(crate) struct Found {
    /// By row, ascending.
    pub(crate) matches: Vec<RowMatch>,
    /// The id of each row.
    pub(crate) ids: ArrayRef,
    /// Day of the rows, in days since 1970.
    pub(crate) day: Option<i32>,
}

/// Where the pages of ids are of the file that was read last; loaded by the first who asks.
type LastPages = Mutex<Option<(String, Arc<OnceCell<IdPages>>)>>;

/// Reads ids for one partition.
#[derive(Clone)]
pub(crate) struct Lookup {
    resources: Arc<Resources>,
    /// The type that ids get; those of the day and of plain files can differ.
    id_type: Option<IdType>,
    pages: Arc<LastPages>,
}

impl Lookup {
    pub(crate) fn new(resources: Arc<Resources>, id_type: Option<IdType>) -> Self {
        Self {
            resources,
            id_type,
            pages: Arc::default(),
        }
    }

    /// Reads the ids for `matches` by row of the row group, ascending.
    pub(crate) async fn of(
        &self,
        reader: &FingerprintReader,
        row_group: usize,
        day: Option<i32>,
        matches: &[Match],
    ) -> Result<Found> {
        // Each row once, though it may match several fingerprints.
        let mut rows: Vec<u32> = Vec::new();
        let mut found: Vec<RowMatch> = Vec::with_capacity(matches.len());
        for hit in matches {
            if rows.last() != Some(&hit.query) {
                rows.push(hit.query);
            }
            found.push(RowMatch {
                entry: hit.entry,
                distance: hit.distance,
                row: rows.len() as u32 - 1,
            });
        }
        let begin = Instant::now();
        let cell = self.cell(reader.name());
        let pages = cell
            .get_or_try_init(|| reader.id_pages())
            .await
            .map_err(EngineError::from)?;
        let ids = reader.ids(pages, row_group, &rows).await;
        let ids = ids.map_err(EngineError::from)?;
        let ids = match self.id_type {
            Some(id_type) => archive::reader::to_id_type(&ids, id_type)?,
            None => ids,
        };
        self.resources.progress.stages.ids.add(begin.elapsed());
        Ok(Found {
            matches: found,
            ids,
            day,
        })
    }

    fn cell(&self, name: &str) -> Arc<OnceCell<IdPages>> {
        let mut last = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((of, cell)) if of == name => Arc::clone(cell),
            _ => {
                let cell = Arc::default();
                *last = Some((name.to_owned(), Arc::clone(&cell)));
                cell
            }
        }
    }
}
