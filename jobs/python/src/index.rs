//! [`Index`]: online lookups in an index of an archive.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use archive::{DocumentId, IdType};
use arrow::array::{
    ArrayRef, AsArray as _, Date32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use engine::pairs::{DISTANCE, SIMILARITY};
use engine::work_items::days_since_epoch;
use lookup::{Answer, Answerer, Hit, IndexFiles, LookupOptions, Query};
use pyo3::prelude::*;

use crate::error::Failed;
use crate::export::Array;
use crate::interrupt::{for_each, thread_count, wait_for};
use crate::lock::lock;
use crate::progress::Progress;
use crate::stores::stores;
use crate::table::Table;
use crate::texts::{Texts, for_each_text};

/// Queries that one call of the library answers.
const PIECE: usize = 256;
/// Bytes of ids in a record batch, at most: 32-bit offsets cannot address more than 2 GiB of strings.
const ID_BYTES: usize = 1 << 30;

/// An open index. Lookups see the version that was the latest when it was opened or refreshed.
#[pyclass(frozen, module = "dedup_job._native")]
pub(crate) struct Index {
    files: IndexFiles,
    opened: Mutex<Opened>,
}

/// A version of an index, and the model of its spec: an index that was made again may have another.
#[derive(Clone)]
struct Opened {
    index: lookup::Index,
    model: lookup::TextModel,
}

/// How queries are answered.
#[derive(FromPyObject)]
struct Options {
    #[pyo3(item)]
    k: Option<i64>,
    #[pyo3(item)]
    limit: Option<i64>,
    #[pyo3(item)]
    min_similarity: Option<f64>,
    /// URL or source of the texts.
    #[pyo3(item)]
    source: Option<String>,
    #[pyo3(item)]
    threads: Option<usize>,
    /// See [`Progress`].
    #[pyo3(item)]
    progress: Option<Py<PyAny>>,
}

#[pymethods]
impl Index {
    /// Open the latest version of an index. The segments of an index in an object store are copied to cache. storage has the
    /// options of object stores, as text.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        path: String,
        cache: PathBuf,
        scratch: PathBuf,
        storage: HashMap<String, String>,
    ) -> PyResult<Self> {
        let stores = stores(&storage)?;
        wait_for(py, async || {
            let files = IndexFiles::new(&stores.locate(&path)?, &cache, &scratch)?;
            let index = lookup::Index::open(&files).await?;
            let model = index.model().await?;
            Ok(Self {
                files,
                opened: Mutex::new(Opened { index, model }),
            })
        })
    }

    /// Open a newer version if there is one. Return whether there was.
    fn refresh(&self, py: Python<'_>) -> PyResult<bool> {
        let before = self.current().index;
        let newer = wait_for(py, async || {
            let Some(index) = before.newer(&self.files).await? else {
                return Ok(None);
            };
            let model = index.model().await?;
            Ok(Some(Opened { index, model }))
        })?;
        let found = newer.is_some();
        if let Some(newer) = newer {
            let mut opened = lock(&self.opened);
            // Another thread may have opened a newer one meanwhile.
            if opened.index.version() == before.version() {
                *opened = newer;
            }
        }
        Ok(found)
    }

    /// What the index holds, as JSON.
    fn info(&self) -> String {
        serde_json::json!(self.current().index.info()).to_string()
    }

    /// The spec of its fingerprints, as canonical JSON.
    #[getter]
    fn spec(&self) -> String {
        self.current().model.spec().to_json()
    }

    /// Look up fingerprints; those that are null have no answers.
    fn lookup_fingerprints(
        &self,
        py: Python<'_>,
        fingerprints: &Bound<'_, Array>,
        options: Options,
    ) -> PyResult<Table> {
        let values = fingerprints.get().array.as_primitive_opt::<UInt64Type>();
        let values =
            values.ok_or_else(|| Failed::usage("fingerprints are 64-bit unsigned integers"))?;
        let pieces: Vec<UInt64Array> = (0..values.len())
            .step_by(PIECE)
            .map(|start| values.slice(start, PIECE.min(values.len() - start)))
            .collect();
        self.answer(py, values.len(), pieces, options, |values, queries| {
            queries.extend(values.iter().map(|fingerprint| Query {
                fingerprint,
                ..Query::default()
            }));
        })
    }

    /// Look up texts; those without a fingerprint have no answers.
    fn lookup_texts(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        column: Option<String>,
        options: Options,
    ) -> PyResult<Table> {
        let source = Query::source_of(options.source.as_deref(), None, None);
        let texts = Texts::from_python(texts, column.as_deref())?;
        let pieces: Vec<ArrayRef> = texts.pieces(PIECE).collect();
        self.answer(py, texts.rows(), pieces, options, |texts, queries| {
            for_each_text(texts, |text| {
                queries.push(Query {
                    text: text.map(str::to_owned),
                    source: source.clone(),
                    ..Query::default()
                });
            });
        })
    }
}

impl Index {
    /// The version that lookups see now.
    fn current(&self) -> Opened {
        lock(&self.opened).clone()
    }

    /// Answers the queries, `rows` in all, that `make` makes of each piece.
    fn answer<Piece: Send>(
        &self,
        py: Python<'_>,
        rows: usize,
        pieces: Vec<Piece>,
        options: Options,
        make: impl Fn(&Piece, &mut Vec<Query>) + Sync,
    ) -> PyResult<Table> {
        let Opened { index, model } = self.current();
        let k = in_range("k", options.k, 0..=i64::from(lookup::MAX_DISTANCE))?;
        let limit = in_range("limit", options.limit, 1..=i64::from(u32::MAX))?;
        let (k, min_similarity) = index
            .nearness(k, options.min_similarity)
            .map_err(Failed::from)?;
        let wanted = LookupOptions {
            k,
            limit: limit.map_or(usize::MAX, |limit| limit as usize),
            min_similarity,
            id_bytes: usize::MAX,
        };
        let answered: Mutex<Vec<(usize, Vec<Answer>)>> = Mutex::default();
        let start = || (Answerer::new(&index, &model), Vec::new());
        let threads = thread_count(options.threads);
        let progress = Progress::new(options.progress, "looking up", rows);
        for_each(
            py,
            &progress,
            pieces.into_iter().enumerate(),
            true,
            threads,
            start,
            |(answerer, queries), (number, piece), _| {
                queries.clear();
                make(&piece, queries);
                let answers = answerer.answer(queries, wanted)?;
                lock(&answered).push((number, answers));
                progress.advance(queries.len());
                Ok(())
            },
        )?;
        progress.report(py)?;
        let mut answered = answered
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        answered.sort_unstable_by_key(|(number, _)| *number);
        let id_type = index.id_type();
        Ok(py.detach(|| hits(id_type, &answered))?)
    }
}

/// An argument that must be in `range`.
fn in_range(
    name: &str,
    value: Option<i64>,
    range: RangeInclusive<i64>,
) -> Result<Option<u32>, Failed> {
    let (least, most) = (range.start(), range.end());
    match value {
        Some(value) if !range.contains(&value) => Err(Failed::usage(format!(
            "{name} is {value}; it must be from {least} to {most}"
        ))),
        value => Ok(value.and_then(|value| u32::try_from(value).ok())),
    }
}

/// The hits of all answers, in the order of the queries.
fn hits(id_type: IdType, answered: &[(usize, Vec<Answer>)]) -> Result<Table, Failed> {
    let answers = answered.iter().flat_map(|(_, answers)| answers);
    let hits: Vec<(usize, &Hit)> = answers
        .enumerate()
        .flat_map(|(query, answer)| answer.hits.iter().map(move |hit| (query, hit)))
        .collect();
    let schema = Arc::new(Schema::new(vec![
        Field::new("query", DataType::Int64, false),
        Field::new("id", id_type.data_type(), true),
        Field::new(DISTANCE, DataType::Int32, false),
        Field::new("day", DataType::Date32, true),
        Field::new("fp", DataType::UInt64, false),
        Field::new(SIMILARITY, DataType::Float64, true),
    ]));
    let batches = runs(&hits).into_iter();
    let batches = batches.map(|hits| record_batch(id_type, &schema, hits));
    let batches = batches.collect::<Result<Vec<RecordBatch>, Failed>>()?;
    Ok(Table::new(schema, batches))
}

/// Cuts hits, each with its query, into runs whose ids take at most [`ID_BYTES`]; there is at least one run.
fn runs<'a, 'hit>(hits: &'a [(usize, &'hit Hit)]) -> Vec<&'a [(usize, &'hit Hit)]> {
    let mut runs = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, (_, hit)) in hits.iter().enumerate() {
        let more = hit.id.bytes();
        if bytes + more > ID_BYTES && at > start {
            runs.push(&hits[start..at]);
            (start, bytes) = (at, 0);
        }
        bytes += more;
    }
    runs.push(&hits[start..]);
    runs
}

/// A record batch of hits, each with its query.
fn record_batch(
    id_type: IdType,
    schema: &SchemaRef,
    hits: &[(usize, &Hit)],
) -> Result<RecordBatch, Failed> {
    let ids = hits.iter().map(|(_, hit)| &hit.id);
    let ids = DocumentId::array(ids, id_type == IdType::String);
    let queries = hits.iter().map(|(query, _)| *query as i64);
    let distances = hits.iter().map(|(_, hit)| hit.distance.cast_signed());
    let days = hits.iter().map(|(_, hit)| hit.day.map(days_since_epoch));
    let fingerprints = hits.iter().map(|(_, hit)| hit.fingerprint);
    let similarities = hits.iter().map(|(_, hit)| hit.similarity);
    let columns: [ArrayRef; 6] = [
        Arc::new(Int64Array::from_iter_values(queries)),
        ids,
        Arc::new(Int32Array::from_iter_values(distances)),
        Arc::new(Date32Array::from_iter(days)),
        Arc::new(UInt64Array::from_iter_values(fingerprints)),
        Arc::new(Float64Array::from_iter(similarities)),
    ];
    Ok(RecordBatch::try_new(Arc::clone(schema), columns.into())?)
}
