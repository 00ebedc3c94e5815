//! Document frequencies: the number of documents that contain each feature.
//!
//! Features are counted by their hashes. Each thread adds up counts in a small table; a stock DataFusion aggregate, which
//! spills to the disk, adds up the tables. So counts are exact whatever the memory, and two features with equal hashes are
//! one, as they are in a fingerprint. Only the most frequent features are kept; a second reading of the documents finds
//! their names.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use archive::IdType;
use arrow::array::{AsArray as _, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::common::runtime::SpawnedTask;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{SessionContext, ident};
use futures::StreamExt as _;
use simhash::{DocumentFrequencies, Fingerprinter, Model};

use crate::error::{EngineError, Result};
use crate::progress::Progress;
use documents::{Documents, Rows, TEXT};

/// The document frequencies of a set of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Learnt {
    /// The frequencies of the features that are kept.
    pub frequencies: DocumentFrequencies,
    /// Documents that were read. [`DocumentFrequencies::documents`] is at least
    /// [`DocumentFrequencies::LEAST_DOCUMENTS`].
    pub documents: u64,
    /// Distinct features in all documents.
    pub distinct: u64,
}

/// Counts the documents that contain each feature under `model`, and keeps the `terms` most frequent features; of equally
/// frequent ones, those with the smallest hashes.
pub async fn learn(
    context: &SessionContext,
    documents: &Documents,
    model: &Model,
    terms: usize,
    progress: &Progress,
) -> Result<Learnt> {
    if documents.has_fingerprints() {
        return Err(EngineError::Usage(format!(
            "{}: document frequencies are learnt from texts, and these are ready fingerprints; name the texts by --text-column",
            documents.given()
        )));
    }
    let total = documents.known_rows().unwrap_or(0);
    progress.documents_total.store(total, Ordering::Relaxed);
    let counted = count(context, documents, model, terms).await?;
    let read = progress.documents.load(Ordering::Relaxed);
    if read == 0 {
        return Err(EngineError::bad_data(
            documents.given(),
            "no documents to learn frequencies from",
        ));
    }
    // The documents are read a second time.
    progress.documents.store(0, Ordering::Relaxed);
    let names = name(context, documents, model, &counted.kept).await?;
    let features = names.into_iter().zip(counted.kept);
    let features = features.filter_map(|(name, (_, count))| Some((name?, count)));
    let mut features: Vec<(String, u64)> = features.collect();
    features.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let listed: u64 = features.iter().map(|(_, count)| count).sum();
    let others = counted.distinct - features.len() as u64;
    // Every feature that is not kept, and every unseen one, gets the mean of those not kept.
    let rest = (counted.total - listed).checked_div(others);
    let rest = rest.unwrap_or(1).max(1);
    Ok(Learnt {
        frequencies: DocumentFrequencies::of_sample(read, rest, features),
        documents: read,
        distinct: counted.distinct,
    })
}

/// Document frequencies by hash.
struct Counted {
    /// The hashes that are kept, with their counts.
    kept: Vec<(u64, u64)>,
    /// Distinct hashes.
    distinct: u64,
    /// The sum of all counts.
    total: u64,
}

/// Counts documents by the hash of each feature.
async fn count(
    context: &SessionContext,
    documents: &Documents,
    model: &Model,
    terms: usize,
) -> Result<Counted> {
    let failed = || EngineError::query(documents.given());
    let column = |name| Field::new(name, DataType::Int64, false);
    let schema = Arc::new(Schema::new(vec![column(HASH), column(COUNT)]));
    let partitions = texts(context, documents).await?.into_iter();
    let partitions = partitions.map(|texts| -> SendableRecordBatchStream {
        let counting = Counting {
            texts: Some(texts),
            fingerprinter: Fingerprinter::new(model.clone()),
            counts: HashTable::default(),
            schema: Arc::clone(&schema),
        };
        let batches = futures::stream::try_unfold(counting, |mut counting| async {
            let batch = counting.next().await?;
            Ok(batch.map(|batch| (batch, counting)))
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), batches))
    });
    let table = streams::table(context, Arc::clone(&schema), partitions.collect());
    let mut rows = table
        .and_then(|counts| {
            counts.aggregate(vec![ident(HASH)], vec![sum(ident(COUNT)).alias(COUNT)])
        })
        .map_err(failed())?
        .execute_stream()
        .await
        .map_err(failed())?;
    // The top of the heap is the least frequent feature kept.
    let mut kept: BinaryHeap<Reverse<(u64, Reverse<u64>)>> = BinaryHeap::new();
    let (mut distinct, mut total) = (0u64, 0u64);
    while let Some(batch) = rows.next().await {
        let batch = batch.map_err(failed())?;
        let (hashes, counts) = hashes_and_counts(&batch).map_err(failed())?;
        for (&hash, &count) in hashes.values().iter().zip(counts.values()) {
            let (hash, count) = (hash.cast_unsigned(), count.cast_unsigned());
            distinct += 1;
            total += count;
            let feature = Reverse((count, Reverse(hash)));
            if kept.len() < terms {
                kept.push(feature);
            } else if let Some(mut least) = kept.peek_mut()
                && feature < *least
            {
                *least = feature;
            }
        }
    }
    let kept = kept.into_iter();
    let kept = kept.map(|Reverse((count, Reverse(hash)))| (hash, count));
    Ok(Counted {
        kept: kept.collect(),
        distinct,
        total,
    })
}

/// The names of the features with the hashes in `kept`.
async fn name(
    context: &SessionContext,
    documents: &Documents,
    model: &Model,
    kept: &[(u64, u64)],
) -> Result<Vec<Option<String>>> {
    let failed = || EngineError::query(documents.given());
    let names: Arc<[OnceLock<String>]> = kept.iter().map(|_| OnceLock::new()).collect();
    let nameless = Arc::new(AtomicUsize::new(kept.len()));
    let places = kept.iter().enumerate();
    let places: HashTable<usize> = places.map(|(place, (hash, _))| (*hash, place)).collect();
    let places = Arc::new(places);
    let mut tasks = Vec::new();
    for mut texts in texts(context, documents).await? {
        let (names, nameless) = (Arc::clone(&names), Arc::clone(&nameless));
        let places = Arc::clone(&places);
        let mut fingerprinter = Fingerprinter::new(model.clone());
        tasks.push(SpawnedTask::spawn(async move {
            while nameless.load(Ordering::Relaxed) > 0
                && let Some(batch) = texts.next().await
            {
                for_each_text(&batch?, |text| {
                    fingerprinter.for_each_feature(text, |hash, feature| {
                        if let Some(&place) = places.get(&hash)
                            && names[place].get().is_none()
                            && names[place].set(feature.to_owned()).is_ok()
                        {
                            nameless.fetch_sub(1, Ordering::Relaxed);
                        }
                    });
                })?;
            }
            Ok::<_, DataFusionError>(())
        }));
    }
    for task in tasks {
        streams::ended(task).await.map_err(failed())?;
    }
    Ok(names.iter().map(|name| name.get().cloned()).collect())
}

/// The texts of documents, a stream for each partition.
async fn texts(
    context: &SessionContext,
    documents: &Documents,
) -> Result<Vec<SendableRecordBatchStream>> {
    let failed = || EngineError::query(documents.given());
    let partitions = context.state().config().target_partitions();
    let texts = documents
        .table(context, IdType::String, partitions, Rows::All, None)?
        .select(vec![ident(TEXT)])
        .map_err(failed())?;
    texts.execute_stream_partitioned().await.map_err(failed())
}

/// Calls `each` with every text of a record batch.
fn for_each_text(batch: &RecordBatch, mut each: impl FnMut(&str)) -> datafusion::error::Result<()> {
    let column = batch.column_by_name(TEXT);
    let Some(texts) = column.and_then(|column| column.as_binary_view_opt()) else {
        return datafusion::common::internal_err!("documents without a column of texts");
    };
    for text in texts.iter().flatten() {
        each(&String::from_utf8_lossy(text));
    }
    Ok(())
}

/// Column of hashes of features.
const HASH: &str = "hash";
/// Column of document counts.
const COUNT: &str = "count";

/// The columns of hashes and of counts.
fn hashes_and_counts(batch: &RecordBatch) -> datafusion::error::Result<(&Int64Array, &Int64Array)> {
    let column = |name| {
        let column = batch.column_by_name(name);
        column.and_then(|column| column.as_primitive_opt::<Int64Type>())
    };
    match (column(HASH), column(COUNT)) {
        (Some(hashes), Some(counts)) => Ok((hashes, counts)),
        _ => datafusion::common::internal_err!("counts without hashes or counts"),
    }
}

/// Distinct hashes at which the table is emitted: it then takes 4 MiB, which fit the CPU's
/// second-level cache.
const FULL: usize = 1 << 17;

/// Counts documents by the hash of each feature, in a small table that is emitted when it is full.
struct Counting {
    /// `None` at the end.
    texts: Option<SendableRecordBatchStream>,
    fingerprinter: Fingerprinter,
    counts: HashTable<i64>,
    schema: SchemaRef,
}

impl Counting {
    /// Counts until the table is full, and returns it; `None` at the end.
    async fn next(&mut self) -> datafusion::error::Result<Option<RecordBatch>> {
        while self.counts.len() < FULL
            && let Some(texts) = &mut self.texts
        {
            let Some(batch) = texts.next().await else {
                self.texts = None;
                break;
            };
            for_each_text(&batch?, |text| {
                for &hash in self.fingerprinter.distinct_hashes(text) {
                    *self.counts.entry(hash).or_default() += 1;
                }
            })?;
        }
        if self.counts.is_empty() {
            return Ok(None);
        }
        let counts = self.counts.drain();
        let counts = counts.map(|(hash, count)| (hash.cast_signed(), count));
        let (hashes, counts): (Vec<i64>, Vec<i64>) = counts.unzip();
        let columns = [hashes, counts].map(|column| Arc::new(Int64Array::from(column)) as _);
        let counted = RecordBatch::try_new(Arc::clone(&self.schema), columns.into())?;
        Ok(Some(counted))
    }
}

/// A map by hashes of features, which need no hashing.
type HashTable<V> = HashMap<u64, V, BuildHasherDefault<Unhashed>>;

/// Takes a hash as it is.
#[derive(Default)]
struct Unhashed(u64);

impl Hasher for Unhashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only hashes are keys");
    }
}
