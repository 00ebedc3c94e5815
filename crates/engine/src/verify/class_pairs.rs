//! Verification of pairs of classes, for decisions: compares the texts of the documents that stand for the classes.
//!
//! The probe compares fingerprints. This stage turns each pair of fingerprints into pairs of their
//! classes by text. They may be many, so it writes them to a file in the scratch directory; then it
//! reads their texts, and compares them.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::IdType;
use arrow::array::{
    Array as _, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    UInt32Array, new_null_array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use arrow::error::ArrowError;
use datafusion::common::runtime::SpawnedTask;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;

use super::bitmaps::SimilarPairs;
use super::compare::{Comparer, PairTexts};
use super::text_classes::TextClasses;
use super::texts::{Side, Texts};
use super::{Counts, Verifier, bad_pairs, within};
use crate::arrow_file::{self, ArrowWriter};
use crate::class_pairs::{self, CLASS, OTHER_CLASS, column, missing};
use crate::error::{EngineError, Result};
use crate::pairs::{BASE_DAY, BASE_ID, DISTANCE};
use documents::{DocumentId, RowSet};
use streams::ended;

/// The most pairs that are written, read and compared at once.
const PAIRS: usize = 8192;
/// Pairs are written, too, as soon as their archive ids have this many bytes.
const ID_BYTES: usize = 1 << 20;

/// Pairs of classes whose texts are not compared yet.
pub(crate) struct UnverifiedPairs {
    classes: Arc<TextClasses>,
    schema: SchemaRef,
    writer: ArrowWriter,
    path: PathBuf,
}

/// Column: the position of the document that stands for the class.
const POSITION: &str = "position";
/// Column: the position of the document that stands for the other class; null if there is none.
const OTHER_POSITION: &str = "other_position";

/// The schema of the file: pairs of classes, and the positions of documents.
fn file_schema(id_type: IdType) -> SchemaRef {
    let positions = [
        Field::new(POSITION, DataType::Int64, false),
        Field::new(OTHER_POSITION, DataType::Int64, true),
    ];
    let pairs = class_pairs::schema(id_type);
    let fields = pairs.fields().iter().cloned();
    let fields: Vec<_> = fields.chain(positions.map(Arc::new)).collect();
    Arc::new(Schema::new(fields))
}

/// Pairs that wait to be written.
#[derive(Default)]
struct Block {
    classes: Vec<u32>,
    others: Vec<Option<u32>>,
    /// The rows of the probe's answer that they come from.
    from: Vec<u32>,
    id_bytes: usize,
}

impl UnverifiedPairs {
    /// Starts without pairs. Files go below `scratch`.
    pub(crate) fn create(
        classes: Arc<TextClasses>,
        id_type: IdType,
        scratch: &Path,
    ) -> Result<Self> {
        let path = scratch.join("class-pairs.arrow");
        let schema = file_schema(id_type);
        Ok(Self {
            classes,
            writer: ArrowWriter::create(path.clone(), Arc::clone(&schema))?,
            schema,
            path,
        })
    }

    /// Adds the pairs of fingerprints that the probe found, and the pairs of different texts with equal fingerprints.
    /// Returns their file, and their number.
    pub(crate) async fn collect(self, found: SendableRecordBatchStream) -> Result<(PathBuf, u64)> {
        // It may write for long; the caller's task must be able to stop the run meanwhile.
        ended(SpawnedTask::spawn(self.collect_here(found))).await
    }

    async fn collect_here(
        mut self,
        mut found: SendableRecordBatchStream,
    ) -> Result<(PathBuf, u64)> {
        while let Some(batch) = found.next().await {
            self.add(&batch.map_err(EngineError::query("finding pairs to verify"))?)?;
        }
        let classes = Arc::clone(&self.classes);
        let mut block = Block::default();
        for entry in 0..classes.fingerprints {
            let of_entry = classes.classes.of_fingerprint(entry);
            for class in of_entry.clone().skip(1) {
                // There may be very many: let signals be heard.
                tokio::task::yield_now().await;
                for other in of_entry.start..class {
                    self.push(&mut block, None, class, Some(other), 0)?;
                }
            }
        }
        self.write(&mut block, None)?;
        self.writer.finish()
    }

    /// Adds the pairs of a record batch of the probe, as pairs of classes.
    fn add(&mut self, found: &RecordBatch) -> Result<()> {
        let entries = column::<UInt32Type>(found, CLASS)?;
        let others = column::<UInt32Type>(found, OTHER_CLASS)?;
        let ids = found.column_by_name(BASE_ID).ok_or_else(missing)?;
        let classes = Arc::clone(&self.classes);
        let mut block = Block::default();
        for row in 0..found.num_rows() {
            let own = classes.classes.of_fingerprint(entries.value(row));
            if others.is_valid(row) {
                for class in own {
                    for other in classes.classes.of_fingerprint(others.value(row)) {
                        self.push(&mut block, Some((found, row)), class, Some(other), 0)?;
                    }
                }
                continue;
            }
            let bytes = DocumentId::read(ids, row).bytes();
            for class in own {
                self.push(&mut block, Some((found, row)), class, None, bytes)?;
            }
        }
        self.write(&mut block, Some(found))
    }

    /// Adds a pair to `block`; writes the block when it is full. The pair comes from a row of the probe's answer, or from equal
    /// fingerprints.
    fn push(
        &mut self,
        block: &mut Block,
        from: Option<(&RecordBatch, usize)>,
        class: u32,
        other: Option<u32>,
        id_bytes: usize,
    ) -> Result<()> {
        block.classes.push(class);
        block.others.push(other);
        block.from.push(from.map_or(0, |(_, row)| row as u32));
        block.id_bytes += id_bytes;
        if block.classes.len() == PAIRS || block.id_bytes >= ID_BYTES {
            self.write(block, from.map(|(found, _)| found))?;
        }
        Ok(())
    }

    /// Writes the pairs of a block, which come from `found`, or from equal fingerprints.
    fn write(&mut self, block: &mut Block, found: Option<&RecordBatch>) -> Result<()> {
        let block = std::mem::take(block);
        let rows = block.classes.len();
        if rows == 0 {
            return Ok(());
        }
        let from = UInt32Array::from(block.from);
        let column = |name: &str| -> Result<ArrayRef, ArrowError> {
            let data_type = self.schema.field_with_name(name)?.data_type();
            match found {
                Some(found) => {
                    let missing =
                        || ArrowError::SchemaError(format!("pairs of classes have no {name:?}"));
                    let column = found.column_by_name(name).ok_or_else(missing)?;
                    arrow::compute::take(column, &from, None)
                }
                None if name == DISTANCE => Ok(Arc::new(Int32Array::from(vec![0; rows]))),
                None => Ok(new_null_array(data_type, rows)),
            }
        };
        let [ids, days, distances] = [BASE_ID, BASE_DAY, DISTANCE].map(column);
        let batch = (|| {
            let position = |class: u32| self.classes.position(class);
            let positions = block.classes.iter().map(|class| position(*class));
            let positions = Int64Array::from_iter_values(positions);
            let of_others = block.others.iter().map(|other| other.map(position));
            let of_others: Int64Array = of_others.collect();
            let columns: Vec<ArrayRef> = vec![
                Arc::new(UInt32Array::from(block.classes)),
                Arc::new(UInt32Array::from(block.others)),
                ids?,
                days?,
                distances?,
                Arc::new(Float64Array::new_null(rows)),
                Arc::new(positions),
                Arc::new(of_others),
            ];
            RecordBatch::try_new(Arc::clone(&self.schema), columns)
        })();
        let batch = batch.map_err(|error| EngineError::arrow(&self.path, error))?;
        self.writer.write(&batch)
    }
}

/// Compares the texts of the pairs in rows `range` of the file at `path`, or of those that may be `similar`; the stream has those
/// that are similar enough, as pairs of classes. The counts are complete when it has ended.
pub(crate) async fn verify_class_pairs(
    context: &SessionContext,
    path: &Path,
    range: Range<u64>,
    verifier: &Verifier,
    id_type: IdType,
    scratch: &Path,
    similar: Option<SimilarPairs>,
) -> Result<(SendableRecordBatchStream, Arc<Counts>)> {
    let similar = similar.map(Arc::new);
    let pairs_to_compare = || {
        let (similar, mut first) = (similar.clone(), 0);
        let to_compare = move |rows: Result<RecordBatch>| {
            let rows = rows?;
            let Some(similar) = &similar else {
                return Ok(rows);
            };
            let mask = BooleanArray::from(similar.pairs.slice(first, rows.num_rows()));
            first += rows.num_rows();
            arrow::compute::filter_record_batch(&rows, &mask).map_err(bad_pairs)
        };
        Ok::<_, EngineError>(within(arrow_file::read(path)?, range.clone()).map(to_compare))
    };
    let mut texts = Texts::create(scratch, &context.runtime_env().memory_pool)?;
    let (mut wanted, mut compared) = (RowSet::default(), 0);
    for rows in pairs_to_compare()? {
        let rows = rows?;
        compared += rows.num_rows() as u64;
        let pairs = Rows::read(&rows)?;
        for row in 0..rows.num_rows() {
            wanted.add(pairs.positions.value(row));
            if pairs.other_positions.is_valid(row) {
                wanted.add(pairs.other_positions.value(row))
            } else {
                texts.want(Side::Archive, DocumentId::read(pairs.base_ids, row))?
            }
        }
    }
    texts.copy_both(context, verifier, id_type, wanted).await?;
    let comparer = Comparer::new(texts, verifier, context)?;
    let schema = class_pairs::schema(id_type);
    let unlike = range.end - range.start - compared;
    comparer.counts.dropped.fetch_add(unlike, Ordering::Relaxed);
    let reader = pairs_to_compare()?;
    let verified = comparer.verified(reader, schema, compared, |comparer, rows, schema| {
        let pairs = Rows::read(rows)?;
        comparer.verify(rows, schema, |row| pairs.texts(row, &comparer.texts))
    });
    Ok(verified)
}

struct Rows<'a> {
    positions: &'a Int64Array,
    other_positions: &'a Int64Array,
    base_ids: &'a ArrayRef,
    distances: &'a Int32Array,
}

impl<'a> Rows<'a> {
    fn read(batch: &'a RecordBatch) -> Result<Self> {
        Ok(Self {
            positions: column(batch, POSITION)?,
            other_positions: column(batch, OTHER_POSITION)?,
            base_ids: batch.column_by_name(BASE_ID).ok_or_else(missing)?,
            distances: column(batch, DISTANCE)?,
        })
    }

    fn texts<'t>(&self, row: usize, texts: &'t Texts) -> PairTexts<'t> {
        let at = |position| texts.place_at(position);
        let is_archived = !self.other_positions.is_valid(row);
        let others = if is_archived {
            texts.places(Side::Archive, &DocumentId::read(self.base_ids, row))
        } else {
            at(self.other_positions.value(row))
        };
        PairTexts {
            new: at(self.positions.value(row)),
            others: others.into(),
            is_archived,
            distance: self.distances.value(row),
        }
    }
}
