//! The texts of documents in a pair: prepared for comparisons, or copied to a file in the scratch directory.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use archive::IdType;
use arrow::array::Array as _;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;
use storage::StorageError;

use super::Verifier;
use super::prepared::{PreparedTexts, TextWorkers, as_text};
use super::texts_at::texts_at;
use crate::error::{EngineError, Result};
use crate::memory::reserve;
use documents::{DocumentId, Documents, RowSet, Rows, TextRows};
use twox_hash::XxHash3_64;

/// Where a document of a pair is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Batch,
    Archive,
}

/// A text, and its place in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// [`NOT_STORED`] for a text that is prepared, and not in the file.
    start: u64,
    len: u64,
    /// Serial number of the text, from 0 on: empty texts have the same start.
    pub(super) number: usize,
    /// Hash of the text.
    hash: u64,
    /// Whether several documents with the id have this text.
    pub(super) is_repeated: bool,
}

/// The place of a text that is not in the file.
const NOT_STORED: u64 = u64::MAX;

/// Texts by side and id, each text of an id once; or, of the batch, by position.
#[derive(Debug)]
pub(super) struct Texts {
    wanted: [HashMap<DocumentId, Vec<Place>>; 2],
    at: HashMap<i64, Place>,
    /// Where texts are, by their hash and length, so that documents with equal texts share the bytes.
    stored: HashMap<(u64, u64), u64>,
    /// A random seed of the hashes: nobody can prepare texts that have the same.
    seed: u64,
    pub(super) prepared: PreparedTexts,
    writer: BufWriter<File>,
    path: PathBuf,
    end: u64,
    pub(super) count: usize,
    memory: MemoryReservation,
}

/// Bytes of a map entry, without the heap bytes of a text id: the id, its first place, and the
/// entry's share of free slots.
const ENTRY_BYTES: usize = 192;

/// Bytes of a map entry for a position.
const AT_BYTES: usize = 128;
/// Bytes of an entry of the texts that are in the file.
const STORED_BYTES: usize = 48;
/// Bytes of a copied id in a set, without its text.
const COPY_BYTES: usize = 48;

impl Place {
    /// Whether the texts have the same hash and length.
    pub(super) fn may_equal(self, other: Self) -> bool {
        (self.hash, self.len) == (other.hash, other.len)
    }
}

impl Texts {
    pub(super) fn create(scratch: &Path, pool: &Arc<dyn MemoryPool>) -> Result<Self> {
        let path = scratch.join("texts");
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .map_err(StorageError::io(path.display()))?;
        Ok(Self {
            wanted: Default::default(),
            at: HashMap::new(),
            stored: HashMap::new(),
            seed: RandomState::new().hash_one(()),
            prepared: PreparedTexts::new(pool),
            writer: BufWriter::new(file),
            path,
            end: 0,
            count: 0,
            memory: MemoryConsumer::new("ids of pairs").register(pool),
        })
    }

    /// Asks for the texts of the documents with this id.
    pub(super) fn want(&mut self, side: Side, id: DocumentId) -> Result<()> {
        let wanted = &mut self.wanted[side as usize];
        if !wanted.contains_key(&id) {
            reserve(&self.memory, ENTRY_BYTES + id.bytes(), || {
                format!("the ids of pairs to be verified, {} so far", wanted.len())
            })?;
            wanted.insert(id, Vec::new());
        }
        Ok(())
    }

    /// Reads `documents`, and copies the texts that were asked for on `side` to the file.
    pub(super) async fn copy_wanted(
        &mut self,
        context: &SessionContext,
        side: Side,
        documents: &Documents,
        id_type: IdType,
    ) -> Result<()> {
        let wanted = self.wanted[side as usize].keys();
        // The reader gets a copy of the ids.
        let copied = self.memory.new_empty();
        let bytes = wanted.clone().map(|id| COPY_BYTES + id.bytes()).sum();
        reserve(&copied, bytes, || {
            format!("looking up the texts of {} ids", wanted.len())
        })?;
        let rows = Rows::Wanted(Arc::new(wanted.cloned().collect()));
        let partitions = context.state().config().target_partitions();
        let table = documents.table(context, id_type, partitions, rows, None)?;
        let failed = || EngineError::query(documents.given());
        let mut rows = table.execute_stream().await.map_err(failed())?;
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(failed())?;
            let TextRows { ids, texts } = TextRows::read(&batch)?;
            for row in (0..batch.num_rows()).filter(|&row| texts.is_valid(row)) {
                self.add(side, &DocumentId::read(ids, row), texts.value(row))?;
            }
        }
        self.flush()
    }

    /// Prepares the texts of the batch's documents at `positions`, or copies them to the file. [`Self::place_at`] finds
    /// them. Then copies those of the archive that were asked for, if they are at hand.
    pub(super) async fn copy_both(
        &mut self,
        context: &SessionContext,
        verifier: &Verifier,
        id_type: IdType,
        positions: RowSet,
    ) -> Result<()> {
        let count = positions.count();
        reserve(&self.memory, count * AT_BYTES, || {
            format!("the places of {count} texts")
        })?;
        let found = texts_at(context, &verifier.batch, id_type, positions).await?;
        // With texts of the archive, fingerprints tell which are meant, and they are made of texts.
        let prepares = verifier.archive.is_none();
        if prepares {
            self.prepared
                .make_room(count, &context.runtime_env().memory_pool);
        }
        let has_room = Arc::new(AtomicBool::new(prepares));
        let workers = TextWorkers::new(verifier, context)?;
        let asked = Arc::clone(&has_room);
        let mut batches = workers.work(found, move |worker, text| {
            let prepare = || Arc::new(worker.prepare(&as_text(text)));
            asked.load(Ordering::Relaxed).then(prepare)
        });
        while let Some(batch) = batches.next().await {
            let (batch, prepared) = batch?;
            let mut prepared = prepared.into_iter();
            for (position, text) in batch.iter()? {
                let is_prepared = prepared
                    .next()
                    .flatten()
                    .is_some_and(|text| self.prepared.keep(self.count, &text));
                if !is_prepared {
                    has_room.store(false, Ordering::Relaxed);
                }
                let place = self.store(self.hash(text), text, is_prepared)?;
                self.at.insert(position, place);
            }
        }
        self.flush()?;
        if let Some(archive) = &verifier.archive {
            self.copy_wanted(context, Side::Archive, archive, id_type)
                .await?;
        }
        Ok(())
    }

    fn hash(&self, text: &[u8]) -> u64 {
        XxHash3_64::oneshot_with_seed(self.seed, text)
    }

    /// Adds a text of the document `id` to the file, if it was asked for and is not there.
    fn add(&mut self, side: Side, id: &DocumentId, text: &[u8]) -> Result<()> {
        let hash = self.hash(text);
        let Some(places) = self.wanted[side as usize].get_mut(id) else {
            return Ok(());
        };
        // Documents that share an id mostly share the text. Store it once: every stored text is compared.
        let is_same = |place: &&mut Place| (place.hash, place.len) == (hash, text.len() as u64);
        for place in places.iter_mut().filter(is_same) {
            let stored = self.writer.flush();
            let stored = stored.and_then(|()| read(self.writer.get_ref(), place.start, place.len));
            let stored = stored.map_err(|error| StorageError::io(self.path.display())(error))?;
            if stored == text {
                place.is_repeated = true;
                return Ok(());
            }
        }
        if places.is_empty() {
            // Few ids have several texts.
            places.reserve_exact(1);
        } else {
            reserve(&self.memory, size_of::<Place>(), || {
                "the texts of documents with the same id".into()
            })?;
        }
        let place = self.store(hash, text, false)?;
        if let Some(places) = self.wanted[side as usize].get_mut(id) {
            places.push(place);
        }
        Ok(())
    }

    /// Gives a text a number, and writes it to the file unless it is prepared or there already.
    fn store(&mut self, hash: u64, text: &[u8], is_prepared: bool) -> Result<Place> {
        let len = text.len() as u64;
        let start = match self.stored.get(&(hash, len)) {
            _ if is_prepared => Some(NOT_STORED),
            Some(start) => {
                let stored = self.writer.flush();
                let stored = stored.and_then(|()| read(self.writer.get_ref(), *start, len));
                (stored.map_err(|source| self.failed(source))? == text).then_some(*start)
            }
            None => None,
        };
        let start = match start {
            Some(start) => start,
            None => {
                let start = self.end;
                let written = self.writer.write_all(text);
                written.map_err(|source| self.failed(source))?;
                self.end += len;
                // Without memory, equal texts are compared byte by byte.
                if self.memory.try_grow(STORED_BYTES).is_ok() {
                    self.stored.insert((hash, len), start);
                }
                start
            }
        };
        self.count += 1;
        Ok(Place {
            start,
            len,
            number: self.count - 1,
            hash,
            is_repeated: false,
        })
    }

    fn failed(&self, source: std::io::Error) -> EngineError {
        StorageError::io(self.path.display())(source).into()
    }

    fn flush(&mut self) -> Result<()> {
        let flushed = self.writer.flush();
        flushed.map_err(|source| self.failed(source))
    }

    /// The place of the text of the batch's document at a position; none if it has no text.
    pub(super) fn place_at(&self, position: i64) -> &[Place] {
        self.at.get(&position).map_or(&[], std::slice::from_ref)
    }

    /// The places of an id's texts.
    pub(super) fn places(&self, side: Side, id: &DocumentId) -> &[Place] {
        self.wanted[side as usize]
            .get(id)
            .map_or(&[], Vec::as_slice)
    }

    /// Whether two texts are the same bytes in the file.
    pub(super) fn are_equal(&self, a: Place, b: Place) -> Result<bool> {
        let are_stored = a.start != NOT_STORED && b.start != NOT_STORED;
        let is_same = || a.start == b.start;
        Ok(are_stored && a.may_equal(b) && (is_same() || self.read(a)? == self.read(b)?))
    }

    pub(super) fn read(&self, place: Place) -> Result<Vec<u8>> {
        let text = read(self.writer.get_ref(), place.start, place.len);
        text.map_err(|source| self.failed(source))
    }
}

/// The `len` bytes of the file from `start` on.
fn read(file: &File, start: u64, len: u64) -> std::io::Result<Vec<u8>> {
    let mut text = vec![0; len as usize];
    file.read_exact_at(&mut text, start)?;
    Ok(text)
}
