//! The new batch, ready to be probed: its fingerprints, the ids of its rows, and the tables of one part at a time.

use std::sync::Arc;

use archive::IdType;
use archive::fingerprints::{FingerprintFile, RowDigest};
use arrow::array::{Array as _, ArrayRef, AsArray as _, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use hamming::{Design, Distinct, Limits, Plan, Tables};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::error::{EngineError, Result};
use crate::probe::Probe;
use crate::resources::free;

/// The new batch in memory. Its bytes are accounted for as long as it lives.
#[derive(Debug)]
pub struct NewBatch {
    /// Its distinct fingerprints, and their rows.
    pub distinct: Arc<Distinct>,
    /// Ids in the order of rows, in arrays of [`Self::chunk`] rows each but for the last.
    ids: Vec<ArrayRef>,
    chunk: usize,
    built: Arc<RwLock<Option<Built>>>,
    memory: MemoryReservation,
}

/// The tables of one part.
#[derive(Debug)]
struct Built {
    part: u32,
    tables: Tables,
    _memory: MemoryReservation,
}

/// The tables of a part, which stay as long as this is held.
#[derive(Debug)]
pub struct PartTables(OwnedRwLockReadGuard<Option<Built>, Tables>);

impl std::ops::Deref for PartTables {
    type Target = Tables;

    fn deref(&self) -> &Tables {
        &self.0
    }
}

impl NewBatch {
    /// Reads the rows of `file` that have a fingerprint.
    ///
    /// # Errors
    /// [`EngineError`] when the file cannot be read, or memory does not allow it.
    pub fn load(file: &FingerprintFile, pool: &Arc<dyn MemoryPool>) -> Result<Self> {
        Self::load_with(file, pool, |_| {})
    }

    /// As [`Self::load`], for a file that another process wrote.
    ///
    /// # Errors
    /// As [`Self::load`], and when its rows have another digest than the file should.
    pub fn load_checked(file: &FingerprintFile, pool: &Arc<dyn MemoryPool>) -> Result<Self> {
        let mut digest = RowDigest::new(&file.spec);
        let batch = Self::load_with(file, pool, |rows| digest.update(rows))?;
        let found = digest.finish();
        if found != file.digest {
            return Err(EngineError::BadData {
                object: file.path.display().to_string(),
                reason: format!(
                    "its rows have digest {found}, those of the new day have {}",
                    file.digest
                ),
            });
        }
        Ok(batch)
    }

    fn load_with(
        file: &FingerprintFile,
        pool: &Arc<dyn MemoryPool>,
        mut each: impl FnMut(&RecordBatch),
    ) -> Result<Self> {
        let rows = (file.rows - file.without_fingerprint) as usize;
        if u32::try_from(rows).is_err() {
            return Err(EngineError::Usage(format!(
                "the new day has {rows} fingerprints, at most 2^32 - 1 can be handled at once"
            )));
        }
        let memory = MemoryConsumer::new("new batch").register(pool);
        let grow = |bytes: usize, what: &str| {
            memory
                .try_grow(bytes)
                .map_err(|_| EngineError::OutOfMemory {
                    what: format!(
                        "{what} of {rows} new documents take {bytes} bytes, {} are free",
                        free(pool)
                    ),
                })
        };
        // Twice while they are grouped: as read, and by value.
        grow(24 * rows, "the fingerprints")?;
        let mut fingerprints: Vec<u64> = Vec::with_capacity(rows);
        let mut ids = Vec::new();
        let mut chunk = 0;
        for batch in file.read()? {
            let batch = batch?;
            each(&batch);
            let values = batch.column(0).as_primitive::<Int64Type>();
            // Rows without a fingerprint stand at the end.
            let present = values.len() - values.null_count();
            if present == 0 {
                continue;
            }
            let values = &values.values()[..present];
            fingerprints.extend(values.iter().map(|value| value.cast_unsigned()));
            let part = batch.column(1).slice(0, present);
            grow(part.get_array_memory_size(), "the ids")?;
            chunk = chunk.max(part.len());
            ids.push(part);
        }
        let distinct = Arc::new(Distinct::new(&fingerprints));
        drop(fingerprints);
        memory.shrink(24 * rows);
        grow(distinct.bytes(), "the fingerprints")?;
        Ok(Self {
            distinct,
            ids,
            chunk: chunk.max(1),
            built: Arc::default(),
            memory,
        })
    }

    /// The cheapest plan for `queries` probed fingerprints, or that of the design called `design`, in so many bytes of
    /// memory.
    ///
    /// # Errors
    /// [`EngineError`] when the design does not fit the distance, or no tables fit the memory.
    pub fn plan(
        &self,
        max_distance: u32,
        design: Option<&str>,
        queries: u64,
        memory: usize,
    ) -> Result<Plan> {
        let limits = Limits { memory, queries };
        let values = self.distinct.values().len();
        Ok(match design {
            Some(name) => Plan::within(Design::named(name, max_distance)?, values, &limits)?,
            None => Plan::choose(values, max_distance, &limits)?,
        })
    }

    /// The tables of part `part`, built by the first that asks; those of another part make room for them, as soon as
    /// nobody holds them.
    ///
    /// # Errors
    /// [`EngineError`] when memory does not allow it.
    pub async fn tables(
        &self,
        probe: &Probe,
        part: u32,
        pool: &Arc<dyn MemoryPool>,
        threads: usize,
    ) -> Result<PartTables> {
        loop {
            let built = Arc::clone(&self.built).read_owned().await;
            let tables = OwnedRwLockReadGuard::try_map(built, |built| {
                built
                    .as_ref()
                    .filter(|built| built.part == part)
                    .map(|built| &built.tables)
            });
            match tables {
                Ok(tables) => return Ok(PartTables(tables)),
                // Given back before the other lock is asked for.
                Err(built) => drop(built),
            }
            let mut built = Arc::clone(&self.built).write_owned().await;
            if built.as_ref().is_some_and(|built| built.part == part) {
                continue;
            }
            *built = None;
            let design = Design::named(&probe.design, probe.max_distance)?;
            let values = self.distinct.values().len();
            let range = Plan::part(probe.parts as usize, part as usize, values);
            let plan = Plan::of(design, range.len(), 1);
            let memory = MemoryConsumer::new("tables").register(pool);
            memory
                .try_grow(plan.bytes)
                .map_err(|_| EngineError::OutOfMemory {
                    what: format!(
                        "the tables of {} fingerprints take {} bytes, {} are free",
                        range.len(),
                        plan.bytes,
                        free(pool)
                    ),
                })?;
            let (name, bytes) = (plan.design.name(), plan.bytes);
            tracing::info!(
                design = name,
                part,
                values = range.len(),
                bytes,
                "building tables"
            );
            let distinct = Arc::clone(&self.distinct);
            let tables = tokio::task::spawn_blocking(move || {
                Tables::build(distinct, range, plan.design, threads)
            })
            .await;
            let tables = tables.map_err(|error| {
                EngineError::Internal(format!("building the tables failed: {error}"))
            })?;
            *built = Some(Built {
                part,
                tables,
                _memory: memory,
            });
        }
    }

    /// Bytes of it that are accounted for, without tables.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.memory.size()
    }

    /// The ids of `rows`, in their order.
    ///
    /// # Errors
    /// When the result is too large for one array.
    pub fn ids(&self, rows: &[u32]) -> Result<ArrayRef, arrow::error::ArrowError> {
        let arrays: Vec<&dyn arrow::array::Array> = self.ids.iter().map(AsRef::as_ref).collect();
        let places: Vec<(usize, usize)> = rows
            .iter()
            .map(|&row| (row as usize / self.chunk, row as usize % self.chunk))
            .collect();
        arrow::compute::interleave(&arrays, &places)
    }

    /// Compares the ids of two rows: text by bytes, numbers by value.
    #[must_use]
    pub fn compare_ids(&self, a: u32, b: u32) -> std::cmp::Ordering {
        let place = |row: u32| {
            (
                &self.ids[row as usize / self.chunk],
                row as usize % self.chunk,
            )
        };
        let ((a, i), (b, j)) = (place(a), place(b));
        match (a.as_string_opt::<i32>(), b.as_string_opt::<i32>()) {
            (Some(a), Some(b)) => a.value(i).as_bytes().cmp(b.value(j).as_bytes()),
            _ => a
                .as_primitive::<Int64Type>()
                .value(i)
                .cmp(&b.as_primitive::<Int64Type>().value(j)),
        }
    }

    /// The type of its ids; none without rows.
    #[must_use]
    pub fn id_type(&self) -> Option<IdType> {
        let text = self.ids.first()?.as_string_opt::<i32>().is_some();
        Some(if text { IdType::String } else { IdType::Bigint })
    }
}

/// An id on its own: text by bytes, numbers by value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// Text.
    Text(Box<str>),
    /// A number.
    Number(i64),
}

impl Id {
    /// The id at `row` of an array of either type.
    #[must_use]
    pub fn of(ids: &ArrayRef, row: usize) -> Self {
        match ids.as_string_opt::<i32>() {
            Some(text) => Self::Text(text.value(row).into()),
            None => Self::Number(ids.as_primitive::<Int64Type>().value(row)),
        }
    }

    /// Bytes held beside the value itself.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Number(_) => 0,
        }
    }

    /// Ids, all of one type, as an array.
    #[must_use]
    pub fn array(ids: &[Self], text: bool) -> ArrayRef {
        let text_of = |id: &Self| match id {
            Self::Text(text) => Some(text.to_string()),
            Self::Number(_) => None,
        };
        let number_of = |id: &Self| match id {
            Self::Text(_) => None,
            Self::Number(number) => Some(*number),
        };
        if text {
            Arc::new(ids.iter().map(text_of).collect::<StringArray>())
        } else {
            Arc::new(ids.iter().map(number_of).collect::<Int64Array>())
        }
    }
}
