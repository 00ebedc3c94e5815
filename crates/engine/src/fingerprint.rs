//! Map 1: turns the documents of a batch into one sorted file of fingerprints.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::fingerprint_file::{FingerprintFile, FingerprintWriter};
use archive::schema::{FINGERPRINT, ID, SKETCH};
use archive::{Archive, ArchiveError, DayBatch, IdType};
use arrow::array::{Array as _, AsArray as _, BooleanArray};
use arrow::datatypes::{Field, FieldRef, Int64Type, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::dataframe::DataFrame;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::prelude::{Expr, SessionContext, ident};
use futures::StreamExt as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use simhash::Spec;
use simhash::reliable_length::reliable_length;

use crate::arrow_file::ArrowWriter;
use crate::batch::{FingerprintRows, select_columns};
use crate::decide::Keys;
use crate::error::{EngineError, Result};
use crate::fingerprint_sort;
use crate::id_count::IdCount;
use crate::memory::reserve;
use crate::progress::Progress;
use crate::recipe::Recipe;
use crate::text_counts::{TextCounters, TextCounts};
use crate::udf::{joined_keys, made_of_text, part};
use crate::verify::{BITMAP, bitmap_schema};
use documents::read_counts::{Note, Notes, ReadCounters, ReadCounts};
use documents::{Documents, POSITION, PREFERENCE, PREFERENCE_BEHIND, Rows, TEXT, decision_fields};
use streams::BatchSize;

/// A batch's file of fingerprints, with counts of its documents. Serialized without the paths of files and without bitmaps.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FingerprintedBatch {
    pub file: FingerprintFile,
    /// Counts of the texts; all 0 if the documents have ready fingerprints. In a text that is not UTF-8, replacement
    /// characters took the place of the invalid bytes.
    pub texts: TextCounts,
    /// What was counted while the files were read.
    pub read: ReadCounts,
    /// Documents that repeat the id of an earlier document of the batch.
    pub duplicate_ids: u64,
    /// The keys that order the documents for decisions, in the order of the file's rows; `None` if
    /// nothing is decided.
    pub keys: Option<Keys>,
    /// The file of the bitmaps of the texts, in the order of the file's rows; `None` if no texts are compared by them.
    #[serde(skip)]
    pub bitmaps: Option<PathBuf>,
}

/// Which columns the rows have besides fingerprints, ids and sketches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// None.
    Nothing,
    /// [`decision_fields`].
    Decisions,
    /// These, and the bitmaps of texts, by which fewer texts are verified.
    DecisionsAndBitmaps,
}

/// The fingerprints and ids of `documents`, which this process makes while it reads them.
///
/// # Errors
/// None in practice: documents are read only when the rows are.
pub fn local_rows(
    context: &SessionContext,
    documents: &Documents,
    recipe: &Recipe,
    id_type: IdType,
    beside: Beside,
    progress: &Progress,
) -> Result<UnsortedRows> {
    let total = documents.known_rows().unwrap_or(0);
    progress.documents_total.store(total, Ordering::Relaxed);
    let counters = MapCounters::default();
    let partitions = context.state().config().target_partitions();
    let rows = Rows::to_fingerprint(beside != Beside::Nothing);
    let read = Some(&counters.read);
    let table = documents.table(context, id_type, partitions, rows, read)?;
    let bitmaps = beside == Beside::DecisionsAndBitmaps;
    let rows = with_fingerprints(table, recipe, &counters.texts, bitmaps)
        .map_err(EngineError::query(documents.given()))?;
    Ok(UnsortedRows { rows, counters })
}

/// The schema of fingerprints that are not sorted yet, with the decision columns if `decision_columns`.
pub fn rows_schema(id_type: IdType, spec: &Spec, decision_columns: bool) -> SchemaRef {
    let rows = archive::schema::fingerprint_schema(id_type, spec.sketch, true);
    let mut fields: Vec<FieldRef> = rows.fields().iter().cloned().collect();
    if decision_columns {
        fields.extend(decision_fields().map(Arc::new));
    }
    Arc::new(Schema::new(fields))
}

/// Adds fingerprints, and sketches if the spec has them, to a table of documents. The result has the columns `fp`, `id`,
/// `sketch` (if the spec has sketches), [`decision_fields`] if the table has those, and the bitmaps of texts if `bitmaps`. Counts
/// texts in `counters`.
pub fn with_fingerprints(
    documents: DataFrame,
    recipe: &Recipe,
    counters: &Arc<TextCounters>,
    bitmaps: bool,
) -> datafusion::error::Result<DataFrame> {
    let has_sketches = !recipe.spec().sketch.is_none();
    let schema = documents.schema();
    let has = |name: &str| schema.has_column_with_unqualified_name(name);
    let decides = has(POSITION);
    // One pass over the tokens makes all parts.
    const MADE: &str = "made of the text";
    let of_text = |name| part(name).call(vec![ident(MADE)]).alias(name);
    let [fingerprint, sketch, by_length] = match recipe {
        Recipe::Ready(_) => {
            let none = Expr::Literal(ScalarValue::Binary(None), None);
            [ident(FINGERPRINT), ident(SKETCH), none.alias(PREFERENCE)]
        }
        Recipe::Texts(_) => [FINGERPRINT, SKETCH, PREFERENCE].map(of_text),
    };
    let mut columns = vec![fingerprint, ident(ID)];
    columns.extend(has_sketches.then_some(sketch));
    if decides {
        let column = |column: &Field| match column.name().as_str() {
            PREFERENCE if !has(PREFERENCE) => by_length.clone(),
            PREFERENCE if has(PREFERENCE_BEHIND) => {
                let (first, behind) = (ident(PREFERENCE), ident(PREFERENCE_BEHIND));
                let keys = vec![first, by_length.clone(), behind];
                joined_keys().call(keys).alias(PREFERENCE)
            }
            name => ident(name),
        };
        columns.extend(decision_fields().iter().map(column));
    }
    columns.extend(bitmaps.then(|| of_text(BITMAP)));
    let documents = match recipe {
        Recipe::Ready(_) => documents,
        Recipe::Texts(model) => {
            let made =
                made_of_text(model.clone(), Arc::clone(counters), bitmaps).call(vec![ident(TEXT)]);
            let names = schema.fields().iter().map(|field| field.name().as_str());
            let others = names.filter(|name| *name != TEXT).map(ident);
            let columns: Vec<Expr> = others.chain([made.alias(MADE)]).collect();
            documents.select(columns)?
        }
    };
    documents.select(columns)
}

/// Counts of the texts and of the records that map 1 reads. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct MapCounters {
    /// The texts that are fingerprinted.
    pub texts: Arc<TextCounters>,
    /// What is read of the files; of WARC files, of those and of parts that were read to their ends.
    pub read: Arc<ReadCounters>,
}

/// Fingerprints and ids in the order of the documents, made as they are read.
#[derive(Debug)]
pub struct UnsortedRows {
    pub(crate) rows: DataFrame,
    /// Complete when all rows are read.
    pub(crate) counters: MapCounters,
}

/// Sorts the rows and writes them to the file at `target`, or else to a file below `scratch` for this process alone. If they have
/// decision columns, writes these to another file below `scratch`. Errors name the documents `given`.
pub async fn write_sorted(
    context: &SessionContext,
    rows: UnsortedRows,
    given: &str,
    (id_type, spec): (IdType, &Spec),
    target: Option<&Path>,
    scratch: &Path,
) -> Result<FingerprintedBatch> {
    let mut writer = match target {
        Some(path) => FingerprintWriter::create(path, id_type, spec)?,
        None => {
            let path = scratch.join("fingerprints.parquet");
            FingerprintWriter::create_scratch(&path, id_type, spec)?
        }
    };
    let failed = || EngineError::query(given);
    let UnsortedRows { rows, counters } = rows;
    let partitions = rows.execute_stream_partitioned().await.map_err(failed())?;
    let schema = partitions.first().map(|partition| partition.schema());
    let schema = schema.ok_or_else(|| EngineError::Internal("no plan of the batch".into()))?;
    let coalesced = |partition| streams::coalesced(partition, BatchSize::default());
    let partitions = partitions.into_iter().map(coalesced).collect();
    let [has_decision_columns, has_bitmaps] =
        [POSITION, BITMAP].map(|name| schema.field_with_name(name).is_ok());
    let sorting = fingerprint_sort::sorted(context, schema, partitions);
    let mut rows = sorting.await.map_err(failed())?;
    let schema = writer.schema();
    let keys = || Keys::create(scratch.join("keys.arrow"));
    let mut keys = has_decision_columns.then(keys).transpose()?;
    let bitmaps = || ArrowWriter::create(scratch.join("bitmaps.arrow"), bitmap_schema());
    let mut bitmaps = has_bitmaps.then(bitmaps).transpose()?;
    let mut ids = IdCount::new(scratch);
    let arrow_error = ArchiveError::arrow(given);
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(failed())?;
        if let Some(keys) = &mut keys {
            keys.write(&batch)?;
            Keys::check(keys)?;
        }
        if let Some(bitmaps) = &mut bitmaps {
            bitmaps.write(&batch)?;
        }
        let batch = select_columns(&batch, &schema).map_err(&arrow_error)?;
        ids.add(FingerprintRows::read(&batch).map_err(&arrow_error)?.ids)?;
        writer.write(batch)?;
    }
    let file = writer.finish()?;
    let duplicate_ids = ids.duplicates(context)?;
    Ok(FingerprintedBatch {
        file,
        texts: counters.texts.counts(),
        read: counters.read.counts(),
        duplicate_ids,
        keys: keys.map(Keys::finish).transpose()?,
        bitmaps: bitmaps
            .map(ArrowWriter::finish)
            .transpose()?
            .map(|(path, _)| path),
    })
}

/// The documents of a batch that are too short to find nearly all of their near-duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ShortDocuments {
    /// From this number of features on, at least 95 % of texts are found again after one word was
    /// replaced; see [`reliable_length`].
    pub features: u32,
    /// Documents that have a text with fewer features.
    pub documents: u64,
}

impl FingerprintedBatch {
    /// Documents with bytes that are not UTF-8, or not of the charset that they have.
    pub fn invalid_utf8(&self) -> u64 {
        self.texts.invalid_utf8 + self.read.notes.number(Note::Malformed)
    }

    /// What is said of the documents and their files, and of those that were `skipped`.
    pub fn notes(&self, skipped: &Notes) -> Notes {
        let mut notes = skipped.clone();
        notes.add_all(&self.read.notes);
        notes
    }

    /// The documents that are too short for a run at `k`; `None` if they had no texts, or if no
    /// reliable length is known for their spec and `k`.
    pub fn short_documents(&self, recipe: &Recipe, k: u32) -> Option<ShortDocuments> {
        let Recipe::Texts(model) = recipe else {
            return None;
        };
        let features = reliable_length(model.spec(), k)?;
        Some(ShortDocuments {
            features,
            documents: self.texts.shorter.than(features)?,
        })
    }

    /// Writes the documents of this batch that `archive` still holds to a file below `scratch`. The
    /// batch was committed as `date`. Documents without a fingerprint, which no archive holds,
    /// remain too.
    pub async fn remaining_in(
        &self,
        archive: &Archive,
        committed: DayBatch,
        scratch: &Path,
        context: &SessionContext,
    ) -> Result<Self> {
        let expected = self.file.rows - self.file.without_fingerprint;
        let pool = &context.runtime_env().memory_pool;
        let memory = MemoryConsumer::new("remaining documents").register(pool);
        let bytes = usize::try_from(expected).unwrap_or(usize::MAX);
        reserve(&memory, bytes.saturating_mul(REMAINING_BYTES), || {
            format!("finding {expected} documents in the archive")
        })?;
        let mut remaining: HashMap<u128, u32> = HashMap::new();
        let mut unreadable = None;
        archive
            .read_batch(committed, |batch| match FingerprintRows::read(batch) {
                Ok(rows) => {
                    for row in rows.present_rows() {
                        *remaining.entry(document_key(rows, row)).or_default() += 1;
                    }
                }
                Err(error) => unreadable = Some(error),
            })
            .await?;
        if let Some(source) = unreadable {
            return Err(ArchiveError::arrow(archive.location())(source).into());
        }
        let path = scratch.join("left.parquet");
        let mut writer = FingerprintWriter::create(&path, self.file.id_type, &self.file.spec)?;
        let mut ids = IdCount::new(scratch);
        let mut masks = Vec::new();
        let arrow_error = ArchiveError::arrow(self.file.path.display());
        for batch in self.file.read()? {
            let batch = batch?;
            let rows = FingerprintRows::read(&batch).map_err(&arrow_error)?;
            let is_remaining = |row| {
                if rows.fingerprints.is_null(row) {
                    return Some(true);
                }
                // Of equal rows, as many remain as the archive holds.
                let count = remaining
                    .get_mut(&document_key(rows, row))
                    .filter(|count| **count > 0);
                Some(count.map(|count| *count -= 1).is_some())
            };
            let mask: BooleanArray = (0..batch.num_rows()).map(is_remaining).collect();
            let batch = arrow::compute::filter_record_batch(&batch, &mask).map_err(&arrow_error)?;
            ids.add(FingerprintRows::read(&batch).map_err(&arrow_error)?.ids)?;
            writer.write(batch)?;
            masks.push(mask);
        }
        let file = writer.finish()?;
        let filtered = |keys: &Keys| keys.filtered(scratch.join("left.arrow"), &masks);
        Ok(Self {
            keys: self.keys.as_ref().map(filtered).transpose()?,
            bitmaps: None,
            duplicate_ids: ids.duplicates(context)?,
            file,
            texts: self.texts,
            read: self.read.clone(),
        })
    }
}

/// Bytes of memory for each document that may remain: an entry of the map, and its share of free slots.
const REMAINING_BYTES: usize = 64;

/// A row's fingerprint and id as 128 bits of SHA-256: the chance that two of a billion rows share a key is 10⁻²¹.
fn document_key(rows: FingerprintRows<'_>, row: usize) -> u128 {
    let fingerprint = rows.fingerprints.value(row);
    let mut hash = Sha256::new_with_prefix(fingerprint.to_le_bytes());
    match rows.ids.as_string_opt::<i32>() {
        Some(text) => hash.update(text.value(row)),
        None => {
            let id = rows.ids.as_primitive::<Int64Type>().value(row);
            hash.update(id.to_le_bytes());
        }
    }
    let mut key = [0; 16];
    key.copy_from_slice(&hash.finalize()[..16]);
    u128::from_le_bytes(key)
}
