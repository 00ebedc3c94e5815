//! Bitmaps of the batch's texts, by which most pairs of unlike texts are dropped before the texts are read; see
//! [`simhash::bitmap`].

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, BinaryArray, BooleanBufferBuilder};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::prelude::SessionContext;
use rayon::iter::{IndexedParallelIterator as _, IntoParallelIterator as _, ParallelIterator as _};
use simhash::bitmap;

use super::text_classes::TextClasses;
use crate::arrow_file;
use crate::class_pairs::{CLASS, OTHER_CLASS, column};
use crate::error::{EngineError, Result};
use crate::memory::reserve;
use streams::thread_pool;

/// Column of the bitmaps.
pub(crate) const BITMAP: &str = "bitmap";
/// The fewest pairs that a thread compares before another takes the next.
const PAIRS_AT_ONCE: usize = 256;

/// The schema of a file of bitmaps, in the order of the batch's file.
pub(crate) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(
        BITMAP,
        DataType::Binary,
        true,
    )]))
}

/// Which pairs of a file of class pairs may be similar enough, as far as bitmaps tell.
pub(crate) struct SimilarPairs {
    pub(super) pairs: BooleanBuffer,
    _memory: MemoryReservation,
}

/// Which of the `count` pairs in the file at `pairs` may have a similarity of at least `least`, by the file `bitmaps`; `None` if
/// these find no memory.
pub(crate) fn similar_pairs(
    context: &SessionContext,
    bitmaps: &Path,
    (pairs, count): (&Path, u64),
    classes: &TextClasses,
    least: f64,
) -> Result<Option<SimilarPairs>> {
    let register = |name| MemoryConsumer::new(name).register(&context.runtime_env().memory_pool);
    let [all, of_pairs] = ["bitmaps of texts", "similar pairs"].map(register);
    let reserved = reserve(&of_pairs, count as usize / 8, || "similar pairs".into());
    let read = reserved.and_then(|()| Rows::read(bitmaps, &all));
    let rows = match read {
        Err(EngineError::OutOfMemory { .. }) => return Ok(None),
        read => read?,
    };
    let threads = thread_pool(context)?;
    let mut similar = BooleanBufferBuilder::new(count as usize);
    for batch in arrow_file::read(pairs)? {
        let batch = batch?;
        let own = column::<UInt32Type>(&batch, CLASS)?;
        let others = column::<UInt32Type>(&batch, OTHER_CLASS)?;
        let of_class = |class| rows.bitmap(classes.classes.row(class));
        let may_reach = |pair: usize| {
            let other = others.is_valid(pair).then(|| of_class(others.value(pair)));
            bitmap::may_reach(of_class(own.value(pair)), other.unwrap_or(&[]), least)
        };
        let found: Vec<bool> = threads.install(|| {
            let pairs = (0..batch.num_rows()).into_par_iter();
            pairs.with_min_len(PAIRS_AT_ONCE).map(may_reach).collect()
        });
        similar.append_slice(&found);
    }
    Ok(Some(SimilarPairs {
        pairs: similar.finish(),
        _memory: of_pairs,
    }))
}

/// The bitmaps of all rows.
struct Rows {
    chunks: Vec<BinaryArray>,
    /// The first row of each chunk.
    starts: Vec<usize>,
}

impl Rows {
    fn read(bitmaps: &Path, memory: &MemoryReservation) -> Result<Self> {
        let (mut chunks, mut starts, mut start) = (Vec::new(), Vec::new(), 0);
        for batch in arrow_file::read(bitmaps)? {
            let batch = batch?;
            let column: &ArrayRef = batch.column(0);
            reserve(memory, column.get_array_memory_size(), || {
                "the bitmaps of texts".into()
            })?;
            chunks.push(column.as_binary().clone());
            starts.push(start);
            start += batch.num_rows();
        }
        Ok(Self { chunks, starts })
    }

    fn bitmap(&self, row: u32) -> &[u8] {
        let row = row as usize;
        let chunk = self.starts.partition_point(|start| *start <= row) - 1;
        self.chunks[chunk].value(row - self.starts[chunk])
    }
}
