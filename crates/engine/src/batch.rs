//! The new batch, ready to be probed: its tables, and the ids of its rows.

use archive::fingerprints::FingerprintFile;
use arrow::array::{Array as _, ArrayRef, AsArray as _};
use arrow::datatypes::Int64Type;
use datafusion::execution::memory_pool::MemoryReservation;
use hamming::{Design, Distinct, Limits, Plan, Tables};

use crate::error::{EngineError, Result};

/// The new batch in memory. Its bytes are accounted for as long as it lives.
#[derive(Debug)]
pub struct NewBatch {
    /// The permuted tables.
    pub tables: Tables,
    /// Ids in the order of rows, in arrays of [`Self::chunk`] rows each but for the last.
    ids: Vec<ArrayRef>,
    chunk: usize,
    _memory: MemoryReservation,
}

/// What decides the tables of a batch.
#[derive(Debug, Clone)]
pub struct TableOptions {
    /// Pairs up to this distance are found.
    pub max_distance: u32,
    /// The design by name; chosen by cost where there is none.
    pub design: Option<String>,
    /// How many fingerprints will be probed.
    pub queries: u64,
}

impl NewBatch {
    /// Reads the rows of `file` that have a fingerprint and builds their tables.
    ///
    /// # Errors
    /// [`EngineError`] when the file cannot be read, or memory does not allow it.
    pub fn load(
        file: &FingerprintFile,
        options: &TableOptions,
        memory: MemoryReservation,
        free: usize,
    ) -> Result<Self> {
        let rows = (file.rows - file.without_fingerprint) as usize;
        if u32::try_from(rows).is_err() {
            return Err(EngineError::Usage(format!(
                "the new day has {rows} fingerprints, at most 2^32 - 1 can be handled at once"
            )));
        }
        let grow = |bytes: usize, what: &str| {
            memory
                .try_grow(bytes)
                .map_err(|_| EngineError::OutOfMemory {
                    what: format!(
                        "{what} of {rows} new documents take {bytes} bytes, {free} are free"
                    ),
                })
        };
        grow(16 * rows, "the fingerprints")?;
        let mut fingerprints: Vec<u64> = Vec::with_capacity(rows);
        let mut ids = Vec::new();
        let mut chunk = 0;
        for batch in file.read()? {
            let batch = batch?;
            let values = batch.column(0).as_primitive::<Int64Type>();
            // Rows without a fingerprint stand at the end.
            let present = values.len() - values.null_count();
            if present == 0 {
                continue;
            }
            fingerprints.extend(
                values.values()[..present]
                    .iter()
                    .map(|value| value.cast_unsigned()),
            );
            let part = batch.column(1).slice(0, present);
            grow(part.get_array_memory_size(), "the ids")?;
            chunk = chunk.max(part.len());
            ids.push(part);
        }
        let batch = Distinct::new(&fingerprints);
        drop(fingerprints);
        let distinct = batch.values().len();
        let plan = match &options.design {
            Some(name) => Plan::of(Design::named(name, options.max_distance)?, distinct),
            None => {
                let limits = Limits {
                    memory: free.saturating_sub(memory.size()),
                    queries: options.queries,
                };
                Plan::choose(distinct, options.max_distance, &limits)?
            }
        };
        grow(plan.bytes, "the tables")?;
        tracing::info!(
            design = plan.design.name(),
            distinct,
            bytes = plan.bytes,
            "building tables"
        );
        let tables = Tables::build(batch, plan.design);
        Ok(Self {
            tables,
            ids,
            chunk: chunk.max(1),
            _memory: memory,
        })
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
}
