//! The nightly job: from documents to pairs, and the commit of the batch.
//!
//! The order matters: the pairs are complete on the disk before the batch is committed, and are published after the commit.
//! A run that fails anywhere leaves the archive and an earlier output as they were. A run that is killed between the commit
//! and the publication is completed by the next run: it finds the batch committed, computes the same pairs against the
//! archive as it was before the batch, and publishes them.
//!
//! A batch is committed only if the archive still has the days that it was compared with, and no others. If another day was
//! committed meanwhile, the batch is compared again, with that day too. So of two batches whose runs overlap, one is
//! compared with the other.

mod base;
mod commit;
mod compare;
mod day_source;
mod decided_by;
mod fingerprinting;
mod inputs;
mod limits;
mod opened;
mod settings;
mod summary;
mod view;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use datafusion::prelude::SessionContext;
use hamming::Kernel;

use crate::batch::Batch;
use crate::error::{EngineError, Result};
use crate::fingerprint::FingerprintedBatch;
use crate::job::{Job, Split};
use crate::profile::{Against, CompareSettings};
use crate::progress::Stage;
use crate::recipe::Recipe;
use crate::resources::Resources;
use crate::template::BatchTemplates;
use commit::{Appender, Attempt, Outcome};
use compare::{Compared, Comparison};
use documents::Documents;
use fingerprinting::Fingerprints;
use inputs::Inputs;
use summary::Clock;
use view::View;

pub use base::are_documents;
pub use commit::remember_columns;
pub use day_source::DaySource;
pub use decided_by::compared_by;
pub use inputs::open_batch;
pub use limits::{OnRepeats, RunLimits};
pub use opened::OpenedArchive;
pub use settings::{Appended, RunSettings};
pub use summary::{
    Audit, BaseSummary, Commit, DecisionSummary, Network, NewSummary, ProbeSeconds, Repeats,
    Seconds, Summary,
};

/// What the stages of a run share.
#[derive(Clone, Copy)]
struct Run<'a> {
    context: &'a SessionContext,
    resources: &'a Arc<Resources>,
    settings: &'a RunSettings,
}

impl<'a> Run<'a> {
    /// The job whose parts do the maps; `None` if this process does them.
    fn job(&self) -> Option<&'a Job> {
        let job = self.settings.job.as_deref();
        job.filter(|job| !job.is_left())
    }

    /// Whether this is a `split`, which does nothing behind the last map.
    fn is_splitting(&self) -> bool {
        self.job().is_some_and(|job| job.splits)
    }

    /// The rows of `batch` in this process, whichever copy of its file the parts of a job read.
    async fn load(&self, batch: &FingerprintedBatch) -> Result<Arc<Batch>> {
        let pool = Arc::clone(&self.context.runtime_env().memory_pool);
        self.resources.batch(&batch.file, &pool).await
    }

    fn enter(&self, stage: Stage) {
        self.resources.progress.enter(stage);
    }
}

/// Does the run of `settings.job` up to the first map that has no answers, and plans that as the job's next round.
pub async fn split(
    context: &SessionContext,
    resources: &Arc<Resources>,
    settings: &RunSettings,
) -> Result<Split> {
    let job = settings.job.as_ref();
    let job = job.ok_or_else(|| EngineError::Internal("a split without a job".into()))?;
    match run(context, resources, settings).await {
        Err(EngineError::Planned) => job.finish_split().await,
        Err(error) => Err(error),
        Ok(_) => Err(EngineError::Internal("a split ran to its end".into())),
    }
}

/// Finds the batch's pairs, writes them, and appends the batch if the settings ask for it.
///
/// # Errors
/// [`EngineError`](crate::EngineError). The archive and an earlier output are then as they were, except after
/// [`EngineError::Unpublished`](crate::EngineError::Unpublished).
pub async fn run(
    context: &SessionContext,
    resources: &Arc<Resources>,
    settings: &RunSettings,
) -> Result<Summary> {
    let run = Run {
        context,
        resources,
        settings,
    };
    let mut clock = Clock::start();
    let mut inputs = match (Inputs::open(run).await, run.job()) {
        (Err(error), Some(job)) => return Err(job.changed_input(error).await),
        (inputs, _) => inputs?,
    };
    clock.end(Stage::Open);
    let fingerprints = Fingerprints::make(run, &mut inputs).await?;
    inputs.fingerprint_base(run).await?;
    clock.end(Stage::Fingerprint);

    let mut compare_settings = inputs.compare;
    let (documents, base) = (inputs.documents, inputs.base);
    let given = documents.given();
    let batch = &fingerprints.batch;
    let (rows, without) = (batch.file.rows, batch.file.without_fingerprint);
    let (limits, appends) = (&settings.limits, settings.append.is_some());
    limits.check_batch(given, rows, appends)?;
    let notes = batch.notes(documents.skipped());
    limits.check_notes(given, &notes, rows, without)?;
    let (decide, day_decisions) = (inputs.decide.as_ref(), inputs.day_decisions.as_ref());
    let (mut opened, others) = (base.opened, base.others);
    let mut probed_before = None;
    let mut appender = Appender {
        version_before: opened.version(),
        uploaded: None,
        attempts: 0,
    };
    let (compared, outcome) = loop {
        run.enter(Stage::Open);
        let (day, decides) = (inputs.day, decide.is_some());
        let view = View::resolve(run, opened, batch, day, day_decisions, decides);
        let mut view = view.await?;
        let files = others.snapshots.iter().flat_map(|other| &other.files);
        view.snapshot.files.extend(files.cloned());
        if let Some(remaining) = &view.remaining {
            fingerprints.replace_with(&remaining.file.path)?;
        }
        let of_view = view.remaining.as_ref().unwrap_or(batch);
        let files = view.snapshot.files.iter();
        let files: Vec<String> = files.map(|file| file.location.to_string()).collect();
        let probed = Some((of_view.file.digest.clone(), files));
        if let Some(job) = run.job()
            && probed_before.is_some()
            && probed_before != probed
        {
            // The parts probed other files of the archive, or with another batch.
            job.leave();
        }
        probed_before = probed;
        if let (None, true, Some(archive), Some(version)) = (
            settings.day,
            view.already_committed,
            &view.archive,
            view.snapshot.version,
        ) {
            // A rerun, known by its documents, compares as the first run did.
            compare_settings = settings
                .compare
                .resolve(Against::Archive(archive.run_defaults_at(version)))?;
        }
        compare::lower_if_dear(run, of_view, &mut compare_settings).await?;
        clock.end(Stage::Open);
        let comparison = Comparison {
            run,
            settings: &compare_settings,
            batch: of_view,
            view: &view,
            verifier: inputs.verifier.as_ref(),
            auditor: inputs.auditor.as_ref(),
            documents: &documents,
            // A rerun that writes no decisions needs none: the archive keeps those of the first run.
            decide: decide.filter(|decide| decide.has_output() || !view.already_committed),
            kept_files: inputs.kept_files.as_ref(),
            others: &others,
            pins: &inputs.pins,
            id_type: inputs.id_type,
        };
        let mut compared = comparison.compare(&mut clock).await?;
        if run.is_splitting() {
            return Err(EngineError::Planned);
        }
        if let Some(decided) = &mut compared.decided {
            let summary = &mut decided.summary;
            summary.repeats = limits.check_decisions(given, summary)?;
        }
        let decided = compared.decided.as_ref();
        let attempt = appender.commit(run, &fingerprints, view, decided, day_decisions);
        match attempt.await? {
            Attempt::Done(outcome) => break (compared, outcome),
            Attempt::Overtaken(newer) => opened = newer,
        }
        clock.end(Stage::Commit);
        resources.progress.reset_probe();
    };

    let mut summary = summarize(
        run,
        &inputs.recipe,
        &compare_settings,
        &fingerprints,
        &compared,
        &outcome,
        &documents,
    );
    commit::publish(fingerprints.draft, compared, outcome.commit, outcome.date).await?;
    if let Some(resume) = fingerprints.resume {
        resume.remove();
    }
    clock.end(Stage::Commit);
    let traffic = resources.stores.traffic();
    summary.network = Network {
        requests: traffic.requests(),
        retries: traffic.retries(),
        bytes_sent: traffic.bytes_sent(),
        bytes_received: traffic.bytes_received(),
    };
    summary.seconds = clock.total();
    Ok(summary)
}

/// The summary of a run, without its network traffic and its seconds.
fn summarize(
    run: Run<'_>,
    recipe: &Recipe,
    compare: &CompareSettings,
    fingerprints: &Fingerprints,
    compared: &Compared,
    outcome: &Outcome,
    documents: &Documents,
) -> Summary {
    let batch = &fingerprints.batch;
    let templates = fingerprints.templates.as_ref();
    let (resources, settings) = (run.resources, run.settings);
    let (output, decided) = (compared.output.as_ref(), compared.decided.as_ref());
    let pairs = output.map(|_| settings.output.as_ref()).unwrap_or_default();
    let left_out = resources.progress.left_out.load(Ordering::Relaxed);
    Summary {
        new: NewSummary {
            documents: batch.file.rows,
            without_fingerprint: batch.file.without_fingerprint,
            duplicate_ids: batch.duplicate_ids,
            invalid_utf8: batch.invalid_utf8(),
            only_empty: !recipe.spec().short_texts.is_unmarked(),
            short: batch.short_documents(recipe, compare.max_distance),
            number_texts: batch.texts.numbers,
            long_texts: batch.texts.long,
            crawl_records: batch.read.crawl_records.clone(),
            columns: documents.columns_read(),
            notes: batch.notes(documents.skipped()),
            templates: templates.map(BatchTemplates::counts),
            distinct_fingerprints: compared.distinct as u64,
            digest: batch.file.day_digest.clone(),
        },
        base: compared.base.clone(),
        max_distance: compare.max_distance,
        design: compared.design.clone(),
        passes: compared.passes,
        kernel: Kernel::detect().name(),
        spec_digest: recipe.spec().digest(),
        verified: compared.verified,
        hits: output.map(|output| output.rows),
        hits_left_out: left_out + output.map_or(0, |output| output.left_out),
        output: pairs.map(ToString::to_string),
        output_bytes: output.map(|output| output.bytes),
        decisions: decided.map(|decided| decided.summary.clone()),
        commit: outcome.commit,
        day: outcome.date.map(|date| date.to_string()),
        removed: outcome.removed,
        archive_version_before: outcome.version_before,
        archive_version_after: outcome.version_after,
        comparisons: outcome.comparisons,
        network: Network::default(),
        seconds: Seconds::default(),
    }
}
