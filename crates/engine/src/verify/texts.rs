//! The texts of the documents that are in a hit, in a file of the scratch directory.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use archive::IdType;
use arrow::array::{Array as _, AsArray as _};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;

use crate::batch::Id;
use crate::documents::Documents;
use crate::error::{EngineError, Result};

/// Whose document it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Side {
    /// The new day's.
    New,
    /// The history's.
    Base,
}

/// Where a text is in the file: its first byte, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    start: u64,
    len: u64,
    /// Tells empty texts apart.
    number: u64,
}

/// Texts by side and id.
#[derive(Debug)]
pub(super) struct Texts {
    wanted: [HashMap<Id, Vec<Place>>; 2],
    writer: BufWriter<File>,
    path: PathBuf,
    end: u64,
    number: u64,
    memory: MemoryReservation,
}

/// What an entry takes besides the id's own bytes: the id, its places, and the free room of a table.
const ENTRY: usize = 192;

impl Texts {
    pub(super) fn create(scratch: &Path, pool: &Arc<dyn MemoryPool>) -> Result<Self> {
        let path = scratch.join("texts");
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .map_err(|source| EngineError::Io {
                path: path.display().to_string(),
                source,
            })?;
        Ok(Self {
            wanted: Default::default(),
            writer: BufWriter::new(file),
            path,
            end: 0,
            number: 0,
            memory: MemoryConsumer::new("ids of hits").register(pool),
        })
    }

    /// Asks for the text of a document.
    pub(super) fn want(&mut self, side: Side, id: Id) -> Result<()> {
        let wanted = &mut self.wanted[side as usize];
        if !wanted.contains_key(&id) {
            self.memory
                .try_grow(ENTRY + id.bytes())
                .map_err(|_| EngineError::OutOfMemory {
                    what: format!("the ids of hits to be verified, {} so far", wanted.len()),
                })?;
            wanted.insert(id, Vec::new());
        }
        Ok(())
    }

    /// Looks up all that was asked for on a side.
    pub(super) async fn find(
        &mut self,
        context: &SessionContext,
        side: Side,
        documents: &Documents,
        id_type: IdType,
    ) -> Result<()> {
        let ids: HashSet<Id> = self.wanted[side as usize].keys().cloned().collect();
        let failed = || EngineError::query(documents.given());
        let partitions = context.state().config().target_partitions();
        let mut rows = documents
            .table_of(context, id_type, partitions, Some(Arc::new(ids)))?
            .execute_stream()
            .await
            .map_err(failed())?;
        let wanted = &mut self.wanted[side as usize];
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(failed())?;
            let texts = batch.column(1).as_binary_view();
            for row in (0..batch.num_rows()).filter(|&row| texts.is_valid(row)) {
                let Some(places) = wanted.get_mut(&Id::of(batch.column(0), row)) else {
                    continue;
                };
                let text = texts.value(row);
                self.writer
                    .write_all(text)
                    .map_err(|source| EngineError::Io {
                        path: self.path.display().to_string(),
                        source,
                    })?;
                let len = text.len() as u64;
                if !places.is_empty() {
                    self.memory.try_grow(size_of::<Place>()).map_err(|_| {
                        EngineError::OutOfMemory {
                            what: "the texts of documents with the same id".into(),
                        }
                    })?;
                }
                places.push(Place {
                    start: self.end,
                    len,
                    number: self.number,
                });
                self.number += 1;
                self.end += len;
            }
        }
        self.writer.flush().map_err(|source| EngineError::Io {
            path: self.path.display().to_string(),
            source,
        })
    }

    /// Where the texts of an id are.
    pub(super) fn places(&self, side: Side, id: &Id) -> &[Place] {
        self.wanted[side as usize]
            .get(id)
            .map_or(&[], Vec::as_slice)
    }

    pub(super) fn read(&self, place: Place) -> Result<Vec<u8>> {
        let mut text = vec![0; place.len as usize];
        let file = self.writer.get_ref();
        file.read_exact_at(&mut text, place.start)
            .map_err(|source| EngineError::Io {
                path: self.path.display().to_string(),
                source,
            })?;
        Ok(text)
    }
}
