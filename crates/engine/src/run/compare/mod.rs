//! The comparison of a run: build the tables, probe the archive and the batch; then reduce and verify, or decide.

mod audit;
mod cheap_distance;
mod deciding;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::{Archive, ColumnNames, DirectBuffers, FingerprintFile, IdType, Pin};
use datafusion::dataframe::DataFrame;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::TryStreamExt as _;
use hamming::{Limits, Plan};

use super::Run;
use super::base::Others;
use super::opened::plain_columns;
use super::summary::{BaseSummary, Clock, ProbeSeconds};
use super::view::View;
use crate::decide::Decide;
use crate::error::{EngineError, Result};
use crate::fingerprint::FingerprintedBatch;
use crate::job::{Answers, Job, ModelPlan, ProbeMap, VerifyMap};
use crate::output::{self, DraftOutput, OutputTarget};
use crate::pairs::{self, Similarities};
use crate::probe::{Answer, CompareSketches, Probe};
use crate::profile::CompareSettings;
use crate::progress::Stage;
use crate::reduce::reduce;
use crate::session;
use crate::verify::{self, Counts, Origin, TextClasses, Verified, Verifier};
use crate::work_items;
use documents::{Documents, KeptFiles};
use streams::limit_bytes;

pub(super) use cheap_distance::lower_if_dear;
pub(super) use deciding::DraftDecisions;

/// More pairs than this for each document get a warning.
const MANY_PAIRS: u64 = 100;

/// The result of a comparison.
pub(super) struct Compared {
    /// The pairs, not yet published; `None` if they were not asked for.
    pub(super) output: Option<DraftOutput>,
    /// The decisions; `None` if they were not asked for.
    pub(super) decided: Option<DraftDecisions>,
    pub(super) design: String,
    /// How often the archive was read.
    pub(super) passes: u32,
    /// Distinct fingerprints of the batch.
    pub(super) distinct: usize,
    pub(super) verified: Option<Verified>,
    pub(super) base: BaseSummary,
}

/// The batch, and the view of the archive to compare it with.
pub(super) struct Comparison<'a> {
    pub(super) run: Run<'a>,
    pub(super) settings: &'a CompareSettings,
    pub(super) verifier: Option<&'a Verifier>,
    pub(super) auditor: Option<&'a Verifier>,
    pub(super) documents: &'a Documents,
    pub(super) decide: Option<&'a Decide>,
    pub(super) kept_files: Option<&'a KeptFiles>,
    pub(super) id_type: IdType,
    pub(super) batch: &'a FingerprintedBatch,
    pub(super) view: &'a View,
    pub(super) others: &'a Others,
    pub(super) pins: &'a [Pin],
}

impl Comparison<'_> {
    /// Builds the tables; then probes and decides, or probes, reduces and verifies, or both. Adds the time of each stage to
    /// `clock`.
    pub(super) async fn compare(&self, clock: &mut Clock) -> Result<Compared> {
        let (plan, probe, distinct) = self.build().await?;
        let (design, passes) = (probe.design.clone(), probe.parts);
        clock.end(Stage::Build);
        if let Some(job) = self.run.job() {
            self.ask_for_probes(job, &probe, plan.as_ref(), distinct)
                .await?;
        }
        let (progress, settings) = (&self.run.resources.progress, self.run.settings);
        let mut verified = None;
        // A `split` has nothing to do with decisions that no further map needs.
        let needed = !self.run.is_splitting() || self.verifier.is_some() || self.needs_documents();
        let decide = self.decide.filter(|_| needed);
        let decided = match decide {
            Some(decide) => match self.decide(probe.clone(), distinct, decide, clock).await {
                // Pairs may have maps to plan, too.
                Err(EngineError::Planned) if self.run.is_splitting() => None,
                decided => {
                    let (decided, of_decisions) = decided?;
                    verified = of_decisions;
                    Some(decided)
                }
            },
            None => None,
        };
        // A `split` has nothing to do with pairs that are not verified by texts.
        let output = settings.output.as_ref();
        let output = output.filter(|_| !self.run.is_splitting() || self.verifier.is_some());
        let output = match output {
            Some(target) => {
                if decided.is_some() {
                    progress.reset_probe();
                }
                let (output, of_pairs) = self.find_pairs(probe, distinct, target, clock).await?;
                verified = of_pairs;
                Some(output)
            }
            None => None,
        };
        let snapshot = &self.view.snapshot;
        Ok(Compared {
            output,
            decided,
            design,
            passes,
            distinct,
            verified,
            base: BaseSummary {
                version: snapshot.version,
                files: snapshot.files.len() as u64,
                fingerprints: snapshot.rows(),
                bytes_read: progress.bytes_read.load(Ordering::Relaxed),
            },
        })
    }

    /// Asks the job for the answers of all probes at once, so that one round has them all.
    async fn ask_for_probes(
        &self,
        job: &Job,
        probe: &Probe,
        plan: Option<&Plan>,
        distinct: usize,
    ) -> Result<()> {
        let of_classes = self.decide.map(|_| self.class_probe(probe.clone()));
        let of_pairs = self.run.settings.output.as_ref();
        let of_pairs = of_pairs.map(|_| self.pair_probe(probe.clone()));
        let mut planned = false;
        for probe in of_classes.into_iter().chain(of_pairs) {
            let answers = self.ask_for_probe(job, probe, plan, distinct).await?;
            planned |= answers.is_none();
        }
        if planned {
            Err(EngineError::Planned)
        } else {
            Ok(())
        }
    }

    /// The answers of a probe; `None` if this `split` plans it by `plan`.
    async fn ask_for_probe(
        &self,
        job: &Job,
        probe: Probe,
        plan: Option<&Plan>,
        distinct: usize,
    ) -> Result<Option<Answers>> {
        let name = match probe.answer {
            Answer::Pairs | Answer::PairsByClass => "probe-pairs",
            Answer::ClassPairs(_) => "probe-classes",
        };
        let settings = self.run.settings;
        let within = if settings.within { distinct } else { 0 };
        job.answers(name, async || {
            let items = work_items::of_run(&self.view.snapshot, within, job.readers());
            let seconds = |fingerprints| {
                plan.map_or(0.0, |plan| plan.seconds(fingerprints) - plan.build_seconds)
            };
            let design = settings.design.clone();
            let sorted_run = self.view.snapshot.sorted_run();
            ProbeMap::plan(job, probe, distinct, design, sorted_run, items, seconds).await
        })
        .await
    }

    /// The request of the probe for pairs of documents.
    fn pair_probe(&self, probe: Probe) -> Probe {
        Probe {
            // A verification drops pairs, so the nearest are chosen after it.
            max_hits: probe.max_hits.filter(|_| self.settings.verify.is_none()),
            ..probe
        }
    }

    /// Probes, reduces and verifies the pairs, and writes them as a draft of `target`.
    async fn find_pairs(
        &self,
        probe: Probe,
        distinct: usize,
        target: &OutputTarget,
        clock: &mut Clock,
    ) -> Result<(DraftOutput, Option<Verified>)> {
        let settings = self.run.settings;
        let unverified = self.verifier.map(|_| self.unverified_target());
        let unverified = unverified.transpose()?;
        // The verification drops pairs, so the nearest are chosen after it.
        let max_hits = settings.max_hits.filter(|_| unverified.is_none());
        let probe = self.pair_probe(probe);
        let _of_texts = match self.verifier {
            Some(verifier) if settings.pairs_by_class => Some(self.class_by_texts(verifier).await?),
            _ => None,
        };
        let unverified_target = unverified.as_ref().unwrap_or(target);
        let mut output = self
            .probe(probe, distinct, unverified_target, max_hits)
            .await?;
        clock.end(Stage::Probe);
        clock.seconds.of_probe = self.probe_seconds(output.seconds);

        let mut verified = self.verified_by_sketch();
        if let Some(verifier) = self.verifier {
            let checked = output.rows;
            let counts;
            (output, counts) = self.verify(&output, verifier, target).await?;
            verified = Some(verifier.verified(&counts, checked));
            clock.end(Stage::Verify);
        }
        Ok((output, verified))
    }

    /// Tells the documents of the batch with equal fingerprints apart by their texts; returns their classes, which must live until
    /// the probe has ended.
    async fn class_by_texts(&self, verifier: &Verifier) -> Result<TextClasses> {
        let keys = self.batch.keys.as_ref();
        let keys = keys.ok_or_else(|| EngineError::Internal("the batch has no keys".into()))?;
        let batch = self.run.load(self.batch).await?;
        let (context, own) = (self.run.context, Arc::clone(&batch));
        let read = TextClasses::read(context, verifier, own, keys, self.id_type, None).await?;
        batch.set_pair_classes(Arc::clone(&read.classes));
        Ok(read)
    }

    /// Plans the tables, and builds them unless the parts of a job do. Behind their round nobody needs the batch for that. Returns the
    /// plan, or `None` if an earlier `split` made it; the request to probe the tables; and the distinct fingerprints of the batch.
    async fn build(&self) -> Result<(Option<Plan>, Probe, usize)> {
        let (context, settings) = (self.run.context, self.run.settings);
        self.run.enter(Stage::Build);
        let file = &self.batch.file;
        if let Some((probe, distinct)) = self.run.job().and_then(Job::planned_probe) {
            let probe = self.probe_request(file.clone(), probe.design.clone(), probe.parts);
            return Ok((None, probe, distinct));
        }
        let pool = Arc::clone(&context.runtime_env().memory_pool);
        let batch = self.run.load(self.batch).await?;
        let distinct = batch.distinct.values().len();
        let queries = self.view.snapshot.rows() + if settings.within { file.rows } else { 0 };
        let threads = context.state().config().target_partitions();
        let design = settings.design.as_deref();
        let k = self.settings.max_distance;
        let others = pool.reserved().saturating_add(self.decision_bytes());
        let free = match self.run.job() {
            // Each part plans the tables for its own memory.
            Some(_) => usize::MAX,
            None => limit_bytes(&pool).saturating_sub(others),
        };
        let limits = Limits {
            memory: free,
            queries,
            sorted_run: self.view.snapshot.sorted_run(),
            threads,
            ..Limits::default()
        };
        let plan = batch.plan(k, design, limits);
        let plan = plan.map_err(|error| EngineError::plan(error, others))?;
        let parts = plan.parts as u32;
        let probe = self.probe_request(file.clone(), plan.design.name(), parts);
        if self.run.job().is_none() {
            // Build the tables now, to measure the time separately; the tasks then find them built.
            drop(batch.tables(probe.tables(0), &pool, threads).await?);
        }
        if parts > 1 && self.run.job().is_none() {
            tracing::warn!(
                "the tables do not fit the memory limit at once: the archive is read {parts} times"
            );
        }
        Ok((Some(plan), probe, distinct))
    }

    /// The request to probe tables of this design, the batch in this number of parts.
    fn probe_request(&self, batch: FingerprintFile, design: String, parts: u32) -> Probe {
        let settings = self.run.settings;
        Probe {
            batch,
            max_distance: self.settings.max_distance,
            design,
            parts,
            max_hits: settings.max_hits,
            day: self.view.date.map(work_items::days_since_epoch),
            columns: match self.view.snapshot.version {
                // An archive's columns have fixed names.
                Some(_) => ColumnNames::given_or_standard(None, None),
                None => plain_columns(&settings.columns),
            },
            sketches: self.compare_sketches(),
            answer: if settings.pairs_by_class {
                Answer::PairsByClass
            } else {
                Answer::Pairs
            },
            kept_base: false,
        }
    }

    /// How pairs are compared by their sketches; `None` if the spec has no sketches, or if the run
    /// compares texts.
    fn compare_sketches(&self) -> Option<CompareSketches> {
        let size = self.batch.file.spec.sketch;
        let least = match &self.settings.verify {
            None => 0.0,
            Some(verify) if verify.is_by_sketch() => verify.min_similarity,
            Some(_) => return None,
        };
        (!size.is_none()).then(|| CompareSketches::at_least(least, size))
    }

    /// Probes the archive and, if the settings ask for it, the batch itself; reduces the pairs and writes them as a draft of
    /// `target`.
    async fn probe(
        &self,
        probe: Probe,
        distinct: usize,
        target: &OutputTarget,
        max_hits: Option<u32>,
    ) -> Result<DraftOutput> {
        let schema = probe.schema();
        let (found, expected) = self.begin_probe(probe, distinct).await?;
        let planning = || EngineError::query("planning the probe");
        let pairs = reduce(found).map_err(planning())?;
        let pairs = session::within_free_memory(pairs);
        let stream = pairs.execute_stream().await.map_err(planning())?;
        let stream = self.writing(self.with_warning(stream), 0);
        let scratch = &self.run.settings.scratch;
        let output = output::write_draft(stream, &schema, target, scratch, max_hits).await?;
        self.run.resources.progress.check_answered(expected)?;
        Ok(output)
    }

    /// Plans the probe of all work items in this process, or takes the answers of a job's parts; returns its rows, and the number
    /// of the items that this process must answer.
    async fn begin_probe(&self, probe: Probe, distinct: usize) -> Result<(DataFrame, usize)> {
        let (context, resources) = (self.run.context, self.run.resources);
        let (snapshot, settings) = (&self.view.snapshot, self.run.settings);
        self.run.enter(Stage::Probe);
        let progress = &resources.progress;
        progress.take_answered();
        if let Some(job) = self.run.job() {
            let schema = probe.schema();
            let answers = self.ask_for_probe(job, probe, None, distinct).await?;
            let answers = answers.ok_or(EngineError::Planned)?;
            for receipt in answers.receipts() {
                progress.add_counts(&receipt.counts);
            }
            progress.note_probe_done();
            return Ok((answers.table(context, &schema)?, 0));
        }
        let passes = u64::from(probe.parts);
        let within = if settings.within { distinct } else { 0 };
        let (rows, of_batch) = (snapshot.rows() * passes, within as u64 * passes);
        progress.probe_total.store(rows, Ordering::Relaxed);
        progress.within_total.store(of_batch, Ordering::Relaxed);
        let bytes = snapshot.local_fingerprint_bytes();
        let exceeds_cache = resources.cache.is_some_and(|cache| bytes > cache);
        let direct = exceeds_cache.then(DirectBuffers::default);
        if direct.is_some() {
            tracing::info!(
                bytes,
                "the archive is larger than the page cache, and is read past it"
            );
        }
        for file in &snapshot.files {
            let mut reader = file.reader.clone();
            if let Some(buffers) = &direct {
                reader.read_directly(buffers);
            }
            resources.keep_reader(reader, file.location.given());
        }
        let partitions = context.state().config().target_partitions();
        let items = work_items::of_run(snapshot, within, partitions);
        let items = work_items::for_parts(&items, probe.parts);
        let expected = items.len();
        let pairs = probe.table(context, items);
        let pairs = pairs.map_err(EngineError::query("planning the probe"))?;
        Ok((pairs, expected))
    }

    /// The seconds of the stages inside the probe, of which the last `write` seconds were spent on writing the output.
    fn probe_seconds(&self, write: f64) -> ProbeSeconds {
        let progress = &self.run.resources.progress;
        let stages = &progress.stages;
        ProbeSeconds {
            read: stages.read.seconds(),
            decode: stages.decode.seconds(),
            partition: stages.partition.seconds(),
            filter: stages.filter.seconds(),
            verify: stages.compare.seconds(),
            ids: stages.ids.seconds(),
            reduce: (progress.seconds_since_probe() - write).max(0.0),
            write,
        }
    }

    /// What a verification by sketches did; `None` if the settings ask for none. Call it after the
    /// probe has ended.
    fn verified_by_sketch(&self) -> Option<Verified> {
        let verify = self.settings.verify.as_ref();
        let verify = verify.filter(|verify| verify.is_by_sketch())?;
        let progress = &self.run.resources.progress;
        let [pairs, dropped, without_sketch] = [
            &progress.pairs,
            &progress.dissimilar,
            &progress.without_sketch,
        ]
        .map(|counter| counter.load(Ordering::Relaxed));
        Some(Verified {
            measure: verify.measure,
            min_similarity: verify.min_similarity,
            checked: pairs + dropped,
            dropped,
            without_text: without_sketch,
        })
    }

    /// A file in the scratch directory for the pairs that are to be verified.
    fn unverified_target(&self) -> Result<OutputTarget> {
        let path = self.run.settings.scratch.join("hits.parquet");
        let location = self.run.resources.stores.locate(&path.to_string_lossy())?;
        OutputTarget::file(location)
    }

    /// The answers of the parts that verify `pairs`, a file and the number of its rows: pairs of documents with an `origin`, or pairs
    /// of classes.
    async fn verified_in_parts(
        &self,
        job: &Job,
        name: &str,
        verifier: &Verifier,
        pairs: (&Path, u64),
        origin: Option<Origin>,
    ) -> Result<Answers> {
        let answers = job.answers(name, async || {
            let model = self.model_plan(job, verifier).await?;
            VerifyMap::plan(job, verifier, model, pairs, self.id_type, origin).await
        });
        answers.await?.ok_or(EngineError::Planned)
    }

    /// The model of a verification, for parts.
    async fn model_plan(&self, job: &Job, verifier: &Verifier) -> Result<ModelPlan> {
        let archive = self.view.archive.as_ref().map(Archive::location);
        let (spec, options) = (verifier.model.spec(), &self.run.settings.spec_options);
        job.model_plan(spec, archive, options).await
    }

    /// Counts the `rows` of an output in the progress as they are written; `total` is their number, or 0 if it is not known.
    fn writing(&self, rows: SendableRecordBatchStream, total: u64) -> SendableRecordBatchStream {
        let resources = Arc::clone(self.run.resources);
        let (schema, mut is_begun) = (rows.schema(), false);
        let counted = rows.inspect_ok(move |batch| {
            let progress = &resources.progress;
            if !std::mem::replace(&mut is_begun, true) {
                progress.begin(Stage::Write, total);
            }
            let rows = batch.num_rows() as u64;
            progress.steps.fetch_add(rows, Ordering::Relaxed);
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, counted))
    }

    /// Warns before the first of the `pairs` if there are very many for each document.
    fn with_warning(&self, pairs: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let resources = Arc::clone(self.run.resources);
        let documents = self.batch.file.rows;
        let (schema, mut is_said) = (pairs.schema(), self.run.settings.pairs_by_class);
        let watched = pairs.inspect_ok(move |_| {
            let found = resources.progress.pairs.load(Ordering::Relaxed);
            let is_many = found > MANY_PAIRS.saturating_mul(documents);
            if is_many && !std::mem::replace(&mut is_said, true) {
                tracing::warn!(
                    "{found} pairs of {documents} documents: many documents are alike; --pairs classes writes one row for each document of those with equal fingerprints"
                );
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, watched))
    }

    fn origin(&self) -> Origin {
        Origin {
            id_type: self.id_type,
            day: self.view.date.map(work_items::days_since_epoch),
            within: self.run.settings.within,
            // A document elsewhere may have the day of the batch, or none as the batch.
            archive: self.view.archive.is_some()
                && self.others.snapshots.is_empty()
                && !self.view.has_own_day(),
        }
    }

    /// Verifies the pairs in `unverified`, and writes those that pass as a draft of the output.
    async fn verify(
        &self,
        unverified: &DraftOutput,
        verifier: &Verifier,
        target: &OutputTarget,
    ) -> Result<(DraftOutput, Arc<Counts>)> {
        let (context, settings) = (self.run.context, self.run.settings);
        self.run.enter(Stage::Verify);
        let origin = self.origin();
        let (scratch, path) = (&settings.scratch, unverified.draft.path());
        let schema = pairs::schema(self.id_type, Similarities::Known);
        let (verified, counts) = match self.run.job() {
            None => {
                verify::verify(context, path, 0..unverified.rows, verifier, origin, scratch).await?
            }
            Some(job) => {
                let pairs = (path, unverified.rows);
                let answers = self
                    .verified_in_parts(job, "verify-pairs", verifier, pairs, Some(origin))
                    .await?;
                // A `split` has nothing to do with verified pairs.
                if job.splits {
                    return Err(EngineError::Planned);
                }
                (answers.rows(&schema), verify::Counts::of(&answers))
            }
        };
        let max_hits = settings.max_hits;
        let output = output::write_draft(verified, &schema, target, scratch, max_hits).await?;
        Ok((output, counts))
    }
}
