//! Map 1: a day's documents to its fingerprints, as one sorted file.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive::fingerprints::{FingerprintFile, FingerprintWriter};
use archive::schema::{FINGERPRINT, ID};
use archive::{ArchiveError, IdType};
use arrow::array::{AsArray as _, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::dataframe::DataFrame;
use datafusion::prelude::{SessionContext, ident};
use futures::StreamExt as _;
use simhash::Spec;

use crate::cluster::Fingerprinted;
use crate::documents::{Documents, TEXT};
use crate::error::{EngineError, Result};
use crate::progress::Progress;
use crate::recipe::Recipe;
use crate::stream;
use crate::udf::Simhash;

/// Rows that are sorted at once, before they are merged.
const SORTED_ROWS: usize = 1 << 15;

/// A day's fingerprints, and what was seen on the way.
#[derive(Debug, Clone)]
pub struct Day {
    /// The file, with row counts and digest.
    pub file: FingerprintFile,
    /// Texts that are not UTF-8; what is not was read as replacement characters.
    pub invalid_utf8: u64,
    /// Documents whose id another document of the day has too, the first of each id not counted.
    pub duplicate_ids: u64,
}

/// The rows of `documents`, with fingerprints by `recipe`: `fp` and `id`.
///
/// # Errors
/// None in practice; documents are read when the rows are.
pub fn rows(
    context: &SessionContext,
    documents: &Documents,
    recipe: &Recipe,
    id_type: IdType,
    progress: &Progress,
) -> Result<Rows> {
    let total = documents.known_rows().unwrap_or(0);
    progress.documents_total.store(total, Ordering::Relaxed);
    let invalid_utf8 = Arc::new(AtomicU64::new(0));
    let partitions = context.state().config().target_partitions();
    let table = documents.table(context, id_type, partitions)?;
    let rows = with_fingerprints(table, recipe, &invalid_utf8)
        .map_err(EngineError::query(documents.given()))?;
    Ok(Rows { rows, invalid_utf8 })
}

/// A table of documents as `fp` and `id`; texts that are not UTF-8 are counted in `invalid_utf8`.
///
/// # Errors
/// When the table has other columns.
pub fn with_fingerprints(
    documents: DataFrame,
    recipe: &Recipe,
    invalid_utf8: &Arc<AtomicU64>,
) -> datafusion::error::Result<DataFrame> {
    let fingerprint = match recipe {
        Recipe::Ready(_) => ident(FINGERPRINT),
        Recipe::Texts(model) => Simhash::udf(model.clone(), Arc::clone(invalid_utf8))
            .call(vec![ident(TEXT)])
            .alias(FINGERPRINT),
    };
    documents.select(vec![fingerprint, ident(ID)])
}

/// The rows that a cluster fingerprinted.
///
/// # Errors
/// None in practice.
pub fn of_cluster(context: &SessionContext, rows: Fingerprinted) -> Result<Rows> {
    let invalid_utf8 = rows.invalid_utf8;
    let schema = rows.rows.schema();
    let rows = stream::table(context, schema, vec![rows.rows])
        .map_err(EngineError::query("planning the day"))?;
    Ok(Rows { rows, invalid_utf8 })
}

/// A day's documents on their way to their fingerprints.
#[derive(Debug)]
pub struct Rows {
    rows: DataFrame,
    invalid_utf8: Arc<AtomicU64>,
}

/// Writes the rows of the documents in `given`, sorted, into the file at `path`.
///
/// # Errors
/// [`EngineError`] naming the input file when a document cannot be read, or ids are null.
pub async fn write(
    rows: Rows,
    given: &str,
    spec: &Spec,
    id_type: IdType,
    path: &Path,
) -> Result<Day> {
    let failed = || EngineError::query(given);
    let Rows { rows, invalid_utf8 } = rows;
    let (state, plan) = rows.into_parts();
    let context = SessionContext::new_with_state(state.clone());
    let parts = DataFrame::new(state, plan)
        .execute_stream_partitioned()
        .await
        .map_err(failed())?;
    let schema = parts.first().map(|part| part.schema());
    let schema = schema.ok_or_else(|| EngineError::Internal("no plan of the day".into()))?;
    let coalesced = |part| stream::coalesced(part, SORTED_ROWS);
    let parts = parts.into_iter().map(coalesced).collect();
    let sorted = stream::table(&context, schema, parts)
        .and_then(|rows| {
            rows.sort(vec![
                ident(FINGERPRINT).sort(true, false),
                ident(ID).sort(true, false),
            ])
        })
        .map_err(failed())?;
    // Merged while what came before is written.
    let mut rows = stream::begun(sorted.execute_stream().await.map_err(failed())?);
    let schema = archive::schema::fingerprints(id_type, true);
    let mut writer = FingerprintWriter::create(path, id_type, spec)?;
    let mut ids = IdCount::default();
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(failed())?;
        ids.add(&batch);
        let arrow_error = |source| ArchiveError::Arrow {
            object: given.to_owned(),
            source,
        };
        let batch =
            RecordBatch::try_new(schema.clone(), batch.columns().to_vec()).map_err(arrow_error)?;
        writer.write(batch)?;
    }
    let file = writer.finish()?;
    let duplicate_ids = ids.duplicates(&file)?;
    Ok(Day {
        file,
        invalid_utf8: invalid_utf8.load(Ordering::Relaxed),
        duplicate_ids,
    })
}

/// Counts ids that occur more than once: eight bytes an id, and a second look only at those that may.
#[derive(Debug, Default)]
struct IdCount {
    hashes: Vec<u64>,
}

impl IdCount {
    fn add(&mut self, batch: &RecordBatch) {
        each_id(batch, |id| {
            self.hashes.push(simhash::hash::murmur3_low64(id, 0))
        });
    }

    fn duplicates(mut self, file: &FingerprintFile) -> Result<u64> {
        #[expect(
            clippy::unnecessary_sort_by,
            reason = "by a closure of its own the sort is compiled here, optimised; the other is a dependency's, which is not"
        )]
        self.hashes.sort_unstable_by(|a, b| a.cmp(b));
        let suspects: HashSet<u64> = self
            .hashes
            .windows(2)
            .filter(|pair| pair[0] == pair[1])
            .map(|pair| pair[0])
            .collect();
        drop(self.hashes);
        if suspects.is_empty() {
            return Ok(0);
        }
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        let mut duplicates = 0;
        for batch in file.read()? {
            each_id(&batch?, |id| {
                if suspects.contains(&simhash::hash::murmur3_low64(id, 0))
                    && !seen.insert(id.to_vec())
                {
                    duplicates += 1;
                }
            });
        }
        Ok(duplicates)
    }
}

/// The ids of a batch as bytes.
fn each_id(batch: &RecordBatch, mut each: impl FnMut(&[u8])) {
    let ids = batch.column(1);
    if let Some(text) = ids.as_string_opt::<i32>() {
        text.iter().flatten().for_each(|id| each(id.as_bytes()));
    } else if let Some(numbers) = ids.as_primitive_opt::<Int64Type>() {
        numbers
            .values()
            .iter()
            .for_each(|id| each(&id.to_le_bytes()));
    }
}
