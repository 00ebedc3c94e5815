//! The comparison of a run: build the tables, probe the archive and the batch, reduce, verify.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::{ColumnNames, IdType};
use datafusion::dataframe::DataFrame;
use hamming::{Plan, PlanError};
use storage::ErrorKind;

use super::Run;
use super::inputs::plain_columns;
use super::summary::{BaseSummary, Clock, ProbeSeconds};
use super::view::View;
use crate::batch::BatchName;
use crate::error::{EngineError, Result};
use crate::fingerprint::FingerprintedBatch;
use crate::memory::free_bytes;
use crate::output::{self, DraftOutput, OutputTarget};
use crate::pairs;
use crate::probe::{Probe, ProbeNode};
use crate::progress::Stage;
use crate::reduce::reduce;
use crate::stream;
use crate::verify::{self, Counts, Origin, Verified, Verifier};
use crate::work::{self, WorkItem};

/// The result of a comparison.
pub(super) struct Compared {
    /// The pairs, not yet published.
    pub(super) output: DraftOutput,
    pub(super) plan: Plan,
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
    pub(super) verifier: Option<&'a Verifier<'a>>,
    pub(super) id_type: IdType,
    pub(super) batch: &'a FingerprintedBatch,
    pub(super) view: &'a View,
}

/// The plan of the tables, and the request to probe them.
struct Planned {
    plan: Plan,
    probe: Probe,
    /// Distinct fingerprints of the batch.
    distinct: usize,
}

impl Comparison<'_> {
    /// Builds the tables, probes, reduces and verifies; adds the time of each stage to `clock`.
    pub(super) async fn compare(&self, clock: &mut Clock) -> Result<Compared> {
        let Planned {
            plan,
            mut probe,
            distinct,
        } = self.build().await?;
        let passes = probe.parts;
        clock.end(Stage::Build);

        let settings = self.run.settings;
        let verifier = self.verifier.zip(settings.verify.as_ref());
        let unverified = match verifier {
            Some(_) => Some(self.unverified_target()?),
            None => None,
        };
        if unverified.is_some() {
            // The verification drops pairs, so the nearest are chosen after it.
            probe.max_hits = None;
        }
        let target = unverified.as_ref().unwrap_or(&settings.output);
        let mut output = self.probe(probe, distinct, target).await?;
        clock.end(Stage::Probe);
        clock.seconds.of_probe = self.probe_seconds(&output);

        let mut verified = None;
        if let Some((verifier, verify)) = verifier {
            let checked = output.rows;
            let counts;
            (output, counts) = self.verify(&output, verifier).await?;
            verified = Some(counts.verified(verify, checked));
            clock.end(Stage::Verify);
        }
        let snapshot = &self.view.snapshot;
        let bytes_read = &self.run.resources.progress.bytes_read;
        Ok(Compared {
            output,
            plan,
            passes,
            distinct,
            verified,
            base: BaseSummary {
                version: snapshot.version,
                files: snapshot.files.len() as u64,
                fingerprints: snapshot.rows(),
                bytes_read: bytes_read.load(Ordering::Relaxed),
            },
        })
    }

    /// Plans the tables, and builds them here unless a cluster probes.
    async fn build(&self) -> Result<Planned> {
        let Run {
            context,
            resources,
            settings,
        } = self.run;
        self.run.enter(Stage::Build);
        let file = &self.batch.file;
        let pool = Arc::clone(&context.runtime_env().memory_pool);
        let name = BatchName::new(file, file.path.to_string_lossy().into_owned());
        let batch = resources.batch(&name, &pool).await?;
        let distinct = batch.distinct.values().len();
        let queries = self.view.snapshot.rows() + if settings.within { file.rows } else { 0 };
        let design = settings.design.as_deref();
        let k = settings.max_distance;
        let planned = match &settings.cluster {
            None => {
                let plan = batch.plan(k, design, queries, free_bytes(&pool))?;
                let probe = self.probe_request(name, &plan);
                let threads = context.state().config().target_partitions();
                // Build the tables now, to measure the time separately; the tasks then find them built.
                drop(batch.tables(probe.tables(0), &pool, threads).await?);
                Planned {
                    plan,
                    probe,
                    distinct,
                }
            }
            Some(cluster) => {
                // Each executor builds all tables, and probes its share of the archive.
                let capacity = cluster.capacity().await?;
                let memory = capacity.memory.saturating_sub(batch.bytes());
                let share = queries.div_ceil(capacity.executors.max(1) as u64);
                let plan = batch
                    .plan(k, design, share, memory)
                    .map_err(executors_out_of_memory)?;
                let probe = self.probe_request(cluster.share(file).await?, &plan);
                // The batch was loaded for the plan alone.
                resources.release_batches();
                Planned {
                    plan,
                    probe,
                    distinct,
                }
            }
        };
        let passes = planned.probe.parts;
        if passes > 1 {
            tracing::warn!(
                "the tables do not fit the memory limit at once: the archive is read {passes} times"
            );
        }
        Ok(planned)
    }

    /// The request to probe the tables of `plan`.
    fn probe_request(&self, batch: BatchName, plan: &Plan) -> Probe {
        let settings = self.run.settings;
        Probe {
            batch,
            max_distance: settings.max_distance,
            design: plan.design.name(),
            parts: plan.parts as u32,
            max_hits: settings.max_hits,
            day: self.view.date.map(work::days_since_epoch),
            columns: match self.view.snapshot.version {
                // An archive's columns have fixed names.
                Some(_) => ColumnNames::given_or_standard(None, None),
                None => plain_columns(&settings.columns),
            },
        }
    }

    /// Probes the archive and, if the settings ask for it, the batch itself; reduces the pairs and writes them as a draft of
    /// `target`.
    async fn probe(
        &self,
        probe: Probe,
        distinct: usize,
        target: &OutputTarget,
    ) -> Result<DraftOutput> {
        let Run {
            resources,
            settings,
            ..
        } = self.run;
        let snapshot = &self.view.snapshot;
        let passes = u64::from(probe.parts);
        self.run.enter(Stage::Probe);
        let progress = &resources.progress;
        let within = if settings.within { distinct as u64 } else { 0 };
        let totals = [
            (&progress.probe_total, snapshot.rows()),
            (&progress.within_total, within),
        ];
        for (total, rows) in totals {
            total.store(rows * passes, Ordering::Relaxed);
        }
        progress.take_answered();
        for file in &snapshot.files {
            resources.keep_reader(file.reader.clone(), file.location.given());
        }
        let items = work::items(snapshot, settings.within, distinct, probe.parts);
        let (max_hits, expected) = (probe.max_hits, items.len());
        let pairs = self.pairs(items, probe).await?;
        let stream = pairs.execute_stream().await;
        let stream = stream.map_err(EngineError::query("planning the probe"))?;
        let schema = pairs::schema(self.id_type);
        let scratch = &settings.scratch;
        let output = output::write_draft(stream, &schema, target, scratch, max_hits).await?;
        // A missing answer must not pass unnoticed, whatever its cause.
        let answered = progress.take_answered().len();
        if answered != expected {
            return Err(EngineError::Internal(format!(
                "{answered} of {expected} work items were answered"
            )));
        }
        Ok(output)
    }

    /// The query plan that gives the reduced pairs of `items`, probed here or on the cluster.
    async fn pairs(&self, items: Vec<WorkItem>, probe: Probe) -> Result<DataFrame> {
        let context = self.run.context;
        let partitions = context.state().config().target_partitions();
        let pairs = match &self.run.settings.cluster {
            None => work::table(items, partitions)
                .and_then(|table| context.read_table(Arc::new(table)))
                .and_then(|items| ProbeNode::over(items, probe)),
            Some(cluster) => {
                let pairs = cluster.probe(work::numbered(items), probe).await?;
                stream::table(context, pairs.schema(), vec![pairs])
            }
        };
        let planning = EngineError::query("planning the probe");
        pairs.and_then(reduce).map_err(planning)
    }

    /// The seconds of the stages inside the probe. Call it when `output` is written.
    fn probe_seconds(&self, output: &DraftOutput) -> ProbeSeconds {
        let progress = &self.run.resources.progress;
        let reduce = (progress.seconds_since_probe() - output.seconds).max(0.0);
        ProbeSeconds::new(&progress.stages, reduce, output.seconds)
    }

    /// A file in the scratch directory for the pairs that are to be verified.
    fn unverified_target(&self) -> Result<OutputTarget> {
        let path = self.run.settings.scratch.join("hits.parquet");
        let location = self.run.resources.stores.locate(&path.to_string_lossy())?;
        OutputTarget::file(location)
    }

    /// Verifies the pairs in `unverified`, and writes those that pass as a draft of the output.
    async fn verify(
        &self,
        unverified: &DraftOutput,
        verifier: &Verifier<'_>,
    ) -> Result<(DraftOutput, Arc<Counts>)> {
        let Run {
            context, settings, ..
        } = self.run;
        self.run.enter(Stage::Verify);
        let origin = Origin {
            id_type: self.id_type,
            day: self.view.date.map(work::days_since_epoch),
            within: settings.within,
            archive: self.view.archive.is_some(),
        };
        let scratch = &settings.scratch;
        let (verified, counts) =
            verify::verify(context, unverified, verifier, origin, scratch).await?;
        let schema = pairs::verified_schema(self.id_type);
        let (target, max_hits) = (&settings.output, settings.max_hits);
        let output = output::write_draft(verified, &schema, target, scratch, max_hits).await?;
        Ok((output, counts))
    }
}

/// Maps [`PlanError::OutOfMemory`] to an error that names the executors' `--memory-limit`.
fn executors_out_of_memory(error: EngineError) -> EngineError {
    match error {
        EngineError::Plan(error @ PlanError::OutOfMemory { .. }) => EngineError::Cluster {
            kind: ErrorKind::TryAgain,
            message: format!(
                "the executors have too little memory: {error}; start them with a larger --memory-limit"
            ),
        },
        error => error,
    }
}
