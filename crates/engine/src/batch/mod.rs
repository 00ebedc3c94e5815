//! The batch in memory: its distinct fingerprints, the ids and sketches of its rows, and its tables.

mod classes;
mod id_column;
mod rows;
mod tables;

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

use archive::fingerprint_file::FingerprintFile;
use archive::{ArchiveError, IdType};
use arrow::array::{Array, ArrayRef, AsArray as _, BinaryArray};
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use hamming::{Distinct, EntriesByRow, HugeArray};

pub use classes::Classes;
pub(crate) use id_column::IdColumn;
pub(crate) use rows::{FingerprintRows, select_columns};
pub use tables::{PartTables, TablePart};

use crate::error::{EngineError, Result};
use crate::memory::reserve;
use streams::{free_bytes, locked};

/// A batch in memory. Its bytes are reserved as long as it lives.
#[derive(Debug)]
pub struct Batch {
    /// Its distinct fingerprints, and the rows of each.
    pub distinct: Arc<Distinct>,
    /// The ids of all rows, in chunks of `chunk_rows` rows; the last chunk may have fewer. Rows
    /// without a fingerprint come last.
    ids: Vec<ArrayRef>,
    /// The sketches of the rows that have a fingerprint, in the same chunks; empty if the spec has none.
    sketches: Vec<BinaryArray>,
    chunk_rows: usize,
    /// The number of rows that have a fingerprint.
    pub rows: usize,
    /// The classes, once they are asked for.
    classes: Mutex<Option<Arc<Classes>>>,
    /// The classes of pairs, if texts tell them apart.
    pair_classes: OnceLock<Arc<Classes>>,
    /// The tables of one part, once they are built.
    built: tables::Slot,
    memory: MemoryReservation,
}

#[derive(Debug)]
pub(crate) struct FingerprintsByRow {
    distinct: Arc<Distinct>,
    entries: EntriesByRow,
}

impl FingerprintsByRow {
    /// The fingerprint of a row; `None` if it has none.
    pub(crate) fn of_row(&self, row: u32) -> Option<u64> {
        let entry = self.entries.entry(row)?;
        self.distinct.values().get(entry as usize).copied()
    }
}

impl Batch {
    /// Reads the rows of `file` that have a fingerprint.
    pub fn load(file: &FingerprintFile, pool: &Arc<dyn MemoryPool>) -> Result<Self> {
        let rows = (file.rows - file.without_fingerprint) as usize;
        if u32::try_from(rows).is_err() {
            return Err(EngineError::Usage(format!(
                "the batch has {rows} fingerprints; at most 2^32 - 1 can be compared at once"
            )));
        }
        let memory = MemoryConsumer::new("batch").register(pool);
        let grow = |bytes: usize, what: &str| {
            reserve(&memory, bytes, || {
                let free = free_bytes(pool);
                format!(
                    "{what} of the batch's {rows} documents take {bytes} bytes, {free} are free"
                )
            })
        };
        // `Distinct::new` holds each fingerprint twice, by row and by value: 24 bytes a row.
        grow(24 * rows, "the fingerprints")?;
        let mut fingerprints = HugeArray::zeroed(rows);
        let mut found = 0;
        let (mut ids, mut sketches) = (Vec::new(), Vec::new());
        let mut chunk_rows = 0;
        for record_batch in file.read()? {
            let record_batch = record_batch?;
            let columns = FingerprintRows::read(&record_batch);
            let columns = columns.map_err(ArchiveError::arrow(file.path.display()))?;
            let chunk = Arc::clone(columns.ids);
            grow(chunk.get_array_memory_size(), "the ids")?;
            chunk_rows = chunk_rows.max(chunk.len());
            ids.push(chunk);
            // Rows without a fingerprint come last in the file.
            let values = columns.fingerprints;
            let present = values.len() - values.null_count();
            if present == 0 {
                continue;
            }
            let values = &values.values()[..present];
            let place = fingerprints.get_mut(found..found + present);
            let place = place.ok_or_else(|| {
                let reason = format!("it has more than {rows} fingerprints");
                EngineError::bad_data(file.path.display(), reason)
            })?;
            for (place, value) in place.iter_mut().zip(values) {
                *place = value.cast_unsigned();
            }
            found += present;
            if let Some(column) = columns.sketches {
                let chunk = column.slice(0, present);
                grow(chunk.get_array_memory_size(), "the sketches")?;
                sketches.push(chunk);
            }
        }
        let distinct = Arc::new(Distinct::new(&fingerprints[..found]));
        drop(fingerprints);
        memory.shrink(24 * rows);
        grow(distinct.bytes(), "the fingerprints")?;
        Ok(Self {
            distinct,
            ids,
            sketches,
            chunk_rows: chunk_rows.max(1),
            rows: found,
            classes: Mutex::default(),
            pair_classes: OnceLock::new(),
            built: Arc::default(),
            memory,
        })
    }

    /// Bytes reserved for the fingerprints, ids and sketches, without the tables.
    pub fn bytes(&self) -> usize {
        self.memory.size()
    }

    pub(crate) fn id_column(&self) -> IdColumn<'_> {
        IdColumn::new(&self.ids, self.chunk_rows)
    }

    /// The ids of `rows`, in this order.
    ///
    /// # Errors
    /// When the result is too large for one array.
    pub fn ids(&self, rows: &[u32]) -> Result<ArrayRef, ArrowError> {
        let arrays: Vec<&dyn Array> = self.ids.iter().map(AsRef::as_ref).collect();
        let places: Vec<(usize, usize)> = rows.iter().map(|row| self.place(*row)).collect();
        arrow::compute::interleave(&arrays, &places)
    }

    /// The number of the chunk with a row, and the index of the row there.
    fn place(&self, row: u32) -> (usize, usize) {
        let row = row as usize;
        (row / self.chunk_rows, row % self.chunk_rows)
    }

    /// The classes of its documents, by fingerprint alone or, if `by_sketch`, by fingerprint and
    /// sketch. The first call makes them, so a run must always ask for the same kind.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`] when the pool has too few bytes.
    pub fn classes(&self, by_sketch: bool) -> Result<Arc<Classes>> {
        let mut classes = locked(&self.classes);
        if let Some(classes) = &*classes {
            return Ok(Arc::clone(classes));
        }
        let grow = |bytes: usize| {
            reserve(&self.memory, bytes, || {
                format!("the classes of the batch take {bytes} bytes")
            })
        };
        let made = if by_sketch {
            grow(Classes::by_content_bytes(self.rows))?;
            Classes::by_content(self, |row| self.sketch(row))
        } else {
            let made = Classes::by_fingerprint(self);
            grow(made.bytes())?;
            made
        };
        Ok(Arc::clone(classes.insert(Arc::new(made))))
    }

    /// The classes that one document each stands for in pairs: those that [`Self::set_pair_classes`] set, or else those of
    /// [`Self::classes`].
    pub(crate) fn pair_classes(&self, by_sketch: bool) -> Result<Arc<Classes>> {
        let known = self.pair_classes.get().map(Arc::clone);
        known.map_or_else(|| self.classes(by_sketch), Ok)
    }

    /// Sets the classes of pairs, where texts tell documents apart.
    pub(crate) fn set_pair_classes(&self, classes: Arc<Classes>) {
        // A run that compares the batch again has the same.
        let _ = self.pair_classes.set(classes);
    }

    pub(crate) fn fingerprints_by_row(&self) -> FingerprintsByRow {
        FingerprintsByRow {
            distinct: Arc::clone(&self.distinct),
            entries: self.distinct.entries_by_row(),
        }
    }

    /// The sketch of a row; `None` if the spec or the row has none.
    pub fn sketch(&self, row: u32) -> Option<&[u8]> {
        let (chunk, row) = self.place(row);
        let chunk = self.sketches.get(chunk)?;
        chunk.is_valid(row).then(|| chunk.value(row))
    }

    /// Compares the ids of two rows: text by bytes, integers by value.
    pub fn compare_ids(&self, a: u32, b: u32) -> Ordering {
        let ((a, i), (b, j)) = (self.place(a), self.place(b));
        let (a, b) = (&self.ids[a], &self.ids[b]);
        match (a.as_string_opt::<i32>(), b.as_string_opt::<i32>()) {
            (Some(a), Some(b)) => a.value(i).as_bytes().cmp(b.value(j).as_bytes()),
            _ => a
                .as_primitive::<Int64Type>()
                .value(i)
                .cmp(&b.as_primitive::<Int64Type>().value(j)),
        }
    }

    /// Frees the tables, unless tasks use them. Whoever asks for them again builds them.
    pub(crate) fn release_tables(&self) {
        if let Ok(mut built) = self.built.try_write() {
            *built = None;
        }
    }

    /// The type of its ids; `None` without rows.
    pub fn id_type(&self) -> Option<IdType> {
        let text = self.ids.first()?.as_string_opt::<i32>().is_some();
        Some(if text { IdType::String } else { IdType::Bigint })
    }
}
