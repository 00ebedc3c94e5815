//! `map`: does parts of a round.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::reader::StreamReader;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionContext;
use futures::future::ready;
use futures::{FutureExt as _, StreamExt as _};
use simhash::{Model, Similarity};
use storage::StorageError;

use super::answer::{Answer, AnswerWriter, NoAnswer, Receipt};
use super::beside::{Beside, PartDone};
use super::map_documents::{self, ModelPlan};
use super::plan::PlannedMap;
use super::{Item, Job, Map, map_probe};
use crate::error::{EngineError, Result};
use crate::fingerprint::{MapCounters, rows_schema, with_fingerprints};
use crate::probe::Probe;
use crate::progress::{Progress, Stage};
use crate::recipe::Recipe;
use crate::resources::Resources;
use crate::template::{pages_schema, with_pages};
use crate::work_items::WorkItem;
use documents::{RowSet, Rows};

/// Parts ahead whose answers are looked for, or have been.
const LOOKED_FOR: usize = 16;
/// After so long, an answer that was not there is looked for again: another process may have done the part.
const RECENT: Duration = Duration::from_secs(10);

/// What the parts that a process does have in common.
#[derive(Default)]
struct Prepared {
    /// The digest of the map whose model, probe and rows these are.
    map: String,
    model: Option<Model>,
    probe: Option<Probe>,
    rows: Option<Arc<RowSet>>,
}

/// The rows of a part, and what was counted while they were made.
struct Found {
    schema: SchemaRef,
    rows: SendableRecordBatchStream,
    counters: MapCounters,
    /// Rows that there must be.
    expected: Option<u64>,
    /// Work items that must be answered.
    items: usize,
    verified: Option<Arc<crate::verify::Counts>>,
}

/// One of the parts that a process does.
#[derive(Clone, Copy)]
struct Chosen<'a> {
    part: u32,
    map: &'a PlannedMap,
    /// Its number in the map.
    number: usize,
}

/// A part as the process leaves it.
enum Ended {
    /// It was done before.
    WasDone(PartDone),
    /// Its answer is in the file at `path`, and replaces a damaged one if `replace`.
    Written {
        done: PartDone,
        path: PathBuf,
        replace: bool,
    },
}

/// Does these parts of the round with this `number`, one after the other; those that are done already are left as they are. While
/// one is done, the answers of earlier parts are sent, and those that later ones may have are looked for.
///
/// # Errors
/// [`EngineError::Usage`] when the round has no such part; another one when a part cannot be done. Parts that were done before
/// are answered.
pub async fn do_parts(
    context: &SessionContext,
    job: &Job,
    number: u32,
    parts: &[u32],
    each: impl FnMut(&PartDone),
) -> Result<()> {
    let round = job.planned_round(number);
    let round = round.ok_or_else(|| job.no_round(number))?;
    let chosen = parts.iter().map(|&part| {
        let map = round.map_of_part(part);
        map.map(|(map, number)| Chosen { part, map, number })
            .ok_or_else(|| {
                EngineError::Usage(format!(
                    "--part {part}: round {number} of {} has parts 0 to {}",
                    job.name(),
                    round.parts().saturating_sub(1)
                ))
            })
    });
    let chosen: Vec<Chosen<'_>> = chosen.collect::<Result<_>>()?;
    let resources = &Resources::from_session(context)?;
    let look = |Chosen {
                    part,
                    map,
                    number: of_map,
                }| async move {
        let answer = job.answer(number, part, map, of_map).await;
        // The part waits for its first row group, and may have no other one.
        if let (Map::Probe(probe), Some(Item::Probe(item))) = (&map.map, map.parts[of_map].first())
        {
            match &answer {
                Err(NoAnswer::Missing | NoAnswer::Damaged) => {
                    resources.fetch_ahead(item, &probe.probe.columns);
                }
                _ => resources.forget_ahead(item),
            }
        }
        (answer, Instant::now())
    };
    let send = |done: PartDone, path: PathBuf, replace| async move {
        let location = job.answer_location(number, done.part)?;
        job.put_answer(&location, &path, replace).await?;
        let _ = std::fs::remove_file(&path);
        Ok(done)
    };
    let mut beside = Beside::new(each);
    let mut prepared = Prepared::default();
    let mut later = chosen.iter();
    for (at, part) in chosen.iter().enumerate() {
        while beside.looks.len() + beside.found.len() < LOOKED_FOR
            && let Some(later) = later.next()
        {
            beside.looks.push_back(look(*later).boxed());
        }
        let (mut answer, looked_for) = beside.next_answer().await?;
        if looked_for.elapsed() > RECENT
            && matches!(answer, Err(NoAnswer::Missing | NoAnswer::Damaged))
        {
            (answer, _) = beside.during(look(*part)).await;
        }
        if beside.error.is_some() {
            break;
        }
        let ended = end(context, job, &chosen[at..], answer, &mut prepared);
        match beside.during(ended).await {
            Ok(Ended::WasDone(done)) => beside.send(0, ready(Ok(done)).boxed()).await,
            Ok(Ended::Written {
                done,
                path,
                replace,
            }) => {
                let bytes = path.metadata().map_or(0, |file| file.len());
                beside.send(bytes, send(done, path, replace).boxed()).await;
            }
            // Those before it are sent.
            Err(error) => {
                beside.error.get_or_insert(error);
                break;
            }
        }
    }
    beside.finish().await
}

/// Does the first of the parts that are left, unless it has an `answer`.
async fn end(
    context: &SessionContext,
    job: &Job,
    left: &[Chosen<'_>],
    answer: std::result::Result<Answer, NoAnswer>,
    prepared: &mut Prepared,
) -> Result<Ended> {
    let Chosen { part, map, .. } = left[0];
    let replace = match answer {
        Ok(answer) => {
            return Ok(Ended::WasDone(PartDone {
                part,
                rows: answer.receipt.rows,
                seconds: answer.receipt.seconds,
                was_done: true,
            }));
        }
        Err(NoAnswer::Missing) => false,
        Err(NoAnswer::Damaged) => true,
        Err(NoAnswer::Failed(error)) => return Err(error),
    };
    if prepared.map != map.digest {
        *prepared = Prepared {
            map: map.digest.clone(),
            ..Prepared::default()
        };
    }
    // The tables are planned for all parts of the map that this process does.
    let all: Vec<&Item> = left
        .iter()
        .filter(|other| other.map.digest == map.digest)
        .flat_map(|other| &other.map.parts[other.number])
        .collect();
    let begin = Instant::now();
    let path = job.scratch.join(format!("part-{part}"));
    let receipt = self::answer(context, job, left[0], &all, prepared, &path, begin)
        .await
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&path);
        })?;
    let done = PartDone {
        part,
        rows: receipt.rows,
        seconds: begin.elapsed().as_secs_f64(),
        was_done: false,
    };
    Ok(Ended::Written {
        done,
        path,
        replace,
    })
}

/// Writes the answer of a part to the file at `path`; returns its receipt.
async fn answer(
    context: &SessionContext,
    job: &Job,
    Chosen { map, number, .. }: Chosen<'_>,
    all: &[&Item],
    prepared: &mut Prepared,
    path: &std::path::Path,
    begin: Instant,
) -> Result<Receipt> {
    let items = &map.parts[number];
    let resources = Resources::from_session(context)?;
    let progress = &resources.progress;
    let before = progress.counts();
    let mut receipt = Receipt {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        job: job.record.id.clone(),
        map: map.digest.clone(),
        part: number,
        ..Receipt::default()
    };
    let without_rows = |mut receipt: Receipt| {
        receipt.seconds = begin.elapsed().as_secs_f64();
        AnswerWriter::create(path, &Arc::new(Schema::empty()))?.finish(receipt)
    };
    if let Map::Copy { source, kept } = &map.map {
        progress.enter(Stage::Commit);
        let kept = prepared.rows(job, kept).await?;
        receipt.copies = job.copy(source, context, &kept, items).await?;
        return without_rows(receipt);
    }
    let written = async {
        let found = find(context, job, map, items, all, prepared).await?;
        write(found, path, job, progress).await
    };
    let (writer, found) = match written.await {
        Ok(written) => written,
        Err(error) => {
            let Some((file, offset)) = error.wrong_cut() else {
                return Err(error);
            };
            tracing::warn!("{error}; `dedup-job split` plans the documents again");
            receipt.wrong_cut = Some((file.to_owned(), offset));
            return without_rows(receipt);
        }
    };
    receipt.counts = progress.counts().since(&before);
    receipt.texts = found.counters.texts.counts();
    receipt.read = found.counters.read.counts();
    if let Some(counts) = &found.verified {
        (receipt.dropped, receipt.without_text) = counts.get();
    }
    receipt.seconds = begin.elapsed().as_secs_f64();
    writer.finish(receipt)
}

/// Writes the rows of a part; their receipt is missing.
async fn write(
    mut found: Found,
    path: &std::path::Path,
    job: &Job,
    progress: &Progress,
) -> Result<(AnswerWriter, Found)> {
    let mut writer = AnswerWriter::create(path, &found.schema)?;
    let mut rows = 0;
    while let Some(batch) = found.rows.next().await {
        let batch = batch.map_err(EngineError::query(job.name()))?;
        rows += batch.num_rows() as u64;
        writer.write(&batch)?;
    }
    progress.check_answered(found.items)?;
    match found.expected {
        Some(expected) if expected != rows => Err(EngineError::TryAgain(format!(
            "{}: {rows} documents were read of {expected} that were there when the job was split",
            job.name()
        ))),
        _ => Ok((writer, found)),
    }
}

/// The rows of a part.
async fn find(
    context: &SessionContext,
    job: &Job,
    map: &PlannedMap,
    items: &[Item],
    all: &[&Item],
    prepared: &mut Prepared,
) -> Result<Found> {
    let resources = Resources::from_session(context)?;
    let progress = &resources.progress;
    let query = || EngineError::query(job.name());
    let counters = MapCounters::default();
    let splits = map_documents::splits(items);
    let files = || splits.iter().map(|split| split.file);
    let mut expected = None;
    let mut verified = None;
    let mut answered = 0;
    progress.take_answered();
    let (schema, rows) = match &map.map {
        Map::Pages { source, markup } => {
            progress.enter(Stage::Templates);
            let documents = source.open(job, context, files()).await?;
            let rows = Rows::WithDecisionColumns;
            let table = documents.table(context, source.id_type, rows, &splits, None)?;
            let table = with_pages(table, *markup).map_err(query())?;
            (pages_schema(), table.execute_stream().await)
        }
        Map::Fingerprint {
            source,
            model: plan,
            decision_columns,
        } => {
            progress.enter(Stage::Fingerprint);
            expected = splits.iter().map(|split| split.rows).sum();
            let total = all.iter().filter_map(|item| match item {
                Item::Documents(split) => split.rows,
                _ => None,
            });
            let done = progress.documents.load(Ordering::Relaxed);
            progress
                .documents_total
                .store(done + total.sum::<u64>(), Ordering::Relaxed);
            let model = prepared.model(job, plan).await?;
            let documents = source.open(job, context, files()).await?;
            let rows = Rows::to_fingerprint(*decision_columns);
            let read = Some(&counters.read);
            let table = documents.table(context, source.id_type, rows, &splits, read)?;
            let recipe = Recipe::Texts(source.model(model));
            let table =
                with_fingerprints(table, &recipe, &counters.texts, false).map_err(query())?;
            let schema = rows_schema(source.id_type, &plan.spec, *decision_columns);
            (schema, table.execute_stream().await)
        }
        Map::Probe(probe) => {
            progress.enter(Stage::Probe);
            let work = |item: &Item| match item {
                Item::Probe(work) => Some(work.clone()),
                _ => None,
            };
            let items: Vec<WorkItem> = items.iter().filter_map(work).collect();
            let all = all.iter().filter_map(|item| work(item));
            let queries: u64 = all.map(|item| item.fingerprints()).sum();
            let request = match &prepared.probe {
                Some(request) => request.clone(),
                None => {
                    let done = progress.probed.load(Ordering::Relaxed);
                    progress
                        .probe_total
                        .store(done + queries, Ordering::Relaxed);
                    let request = probe.request(job, context, queries).await?;
                    prepared.probe.insert(request).clone()
                }
            };
            answered = items.len() * request.parts.max(1) as usize;
            (
                request.schema(),
                map_probe::pairs(&request, context, &items)?
                    .execute_stream()
                    .await,
            )
        }
        Map::Digest {
            source,
            model,
            measure,
            wanted,
        } => {
            progress.enter(Stage::Verify);
            let model = source.model(prepared.model(job, model).await?);
            let rows = Rows::At(prepared.rows(job, wanted).await?);
            let documents = source.open(job, context, files()).await?;
            let table = documents.table(context, source.id_type, rows, &splits, None)?;
            let texts = table.execute_stream().await;
            let mut similarity = Similarity::new(*measure, model);
            let schema = map_documents::digest_schema();
            let of_rows = Arc::clone(&schema);
            let rows = texts.map(|texts| -> SendableRecordBatchStream {
                let digests =
                    texts.map(move |batch| Ok(map_documents::digests(&batch?, &mut similarity)?));
                Box::pin(RecordBatchStreamAdapter::new(of_rows, digests))
            });
            (schema, rows)
        }
        Map::Verify(verify) => {
            progress.enter(Stage::Verify);
            let model = prepared.model(job, &verify.model).await?;
            let (rows, counts) = verify.rows(job, context, items, model).await?;
            verified = Some(counts);
            (rows.schema(), Ok(rows))
        }
        Map::Carried { source, schema } => {
            progress.enter(Stage::Commit);
            let schema = read_schema(&job.fetch(schema).await?)?;
            let documents = source.open(job, context, files()).await?;
            let fields = schema.fields()[1..]
                .iter()
                .map(|field| field.as_ref().clone());
            let table = documents.carried_table(context, &splits, fields.collect())?;
            (schema, table.execute_stream().await)
        }
        Map::Copy { .. } => return Err(EngineError::Internal("copies have no rows".into())),
    };
    Ok(Found {
        rows: rows.map_err(query())?,
        schema,
        counters,
        expected,
        items: answered,
        verified,
    })
}

fn read_schema(path: &std::path::Path) -> Result<SchemaRef> {
    let file = std::fs::File::open(path).map_err(StorageError::io(path.display()))?;
    let reader = StreamReader::try_new(std::io::BufReader::new(file), None);
    let reader = reader.map_err(|error| EngineError::arrow(path, error))?;
    Ok(reader.schema())
}

impl Prepared {
    async fn model(&mut self, job: &Job, plan: &ModelPlan) -> Result<Model> {
        if let Some(model) = &self.model {
            return Ok(model.clone());
        }
        let model = plan.load(job).await?;
        Ok(self.model.insert(model).clone())
    }

    async fn rows(&mut self, job: &Job, shared: &super::SharedFile) -> Result<Arc<RowSet>> {
        if let Some(rows) = &self.rows {
            return Ok(Arc::clone(rows));
        }
        let path = job.fetch(shared).await?;
        let bytes = std::fs::read(&path).map_err(|source| job.io(source))?;
        let rows = RowSet::from_bytes(&bytes)
            .ok_or_else(|| EngineError::bad_data(job.name(), "a set of rows is damaged"))?;
        Ok(Arc::clone(self.rows.insert(Arc::new(rows))))
    }
}
