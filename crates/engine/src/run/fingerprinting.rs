//! Map 1 of a run: the batch's documents become a sorted file of fingerprints, here or in the parts of a job.

use std::path::Path;

use archive::Archive;
use storage::Draft;

use super::Run;
use super::inputs::Inputs;
use crate::error::{EngineError, Result};
use crate::fingerprint::{self, FingerprintedBatch, MapCounters, UnsortedRows, rows_schema};
use crate::job::{Job, Map};
use crate::progress::Stage;
use crate::recipe::Recipe;
use crate::resume::{ResumeDirectory, Work};
use crate::template::BatchTemplates;

/// The batch's file of fingerprints. It is the draft of an output if the settings ask for one.
pub(super) struct Fingerprints {
    pub(super) batch: FingerprintedBatch,
    pub(super) draft: Option<Draft>,
    /// What is left out of the texts; `None` for nothing.
    pub(super) templates: Option<BatchTemplates>,
    /// The directory with the fingerprints of chunks.
    pub(super) resume: Option<ResumeDirectory>,
}

impl Fingerprints {
    /// Fingerprints the documents of `inputs`. If a file turns out to be cut where it must not be, reads it again as a whole.
    pub(super) async fn make(run: Run<'_>, inputs: &mut Inputs) -> Result<Self> {
        let settings = run.settings;
        let draft = match &settings.fingerprints {
            Some(target) => Some(Draft::new(target, &settings.scratch)?),
            None => None,
        };
        if let Some(job) = run.job()
            && let Some((batch, wrong_cuts)) = job.settled().await?
        {
            let attempt = wrong_cuts.len();
            for (file, offset) in wrong_cuts {
                inputs.uncut(Some((&file, offset)));
            }
            let templates = inputs.leave_out_templates(run, attempt).await?;
            let fingerprints = Self {
                batch,
                draft,
                templates,
                resume: None,
            };
            fingerprints.replace_with(&fingerprints.batch.file.path)?;
            return Ok(fingerprints);
        }
        let mut wrong_cuts = Vec::new();
        loop {
            let made = Self::make_once(run, inputs, draft.as_ref(), wrong_cuts.len()).await;
            match made {
                Ok((batch, templates, resume)) => {
                    if let Some(job) = run.job() {
                        job.settle(&batch, wrong_cuts).await?;
                    }
                    return Ok(Self {
                        batch,
                        draft,
                        templates,
                        resume,
                    });
                }
                Err(error) => {
                    let wrong_cut = error.wrong_cut();
                    if !inputs.uncut(wrong_cut) {
                        return Err(error);
                    }
                    wrong_cuts.extend(wrong_cut.map(|(file, offset)| (file.to_owned(), offset)));
                }
            }
            run.resources.progress.reset_documents();
        }
    }

    /// Makes the file, for the `attempt`th time but for the first.
    async fn make_once(
        run: Run<'_>,
        inputs: &mut Inputs,
        draft: Option<&Draft>,
        attempt: usize,
    ) -> Result<(
        FingerprintedBatch,
        Option<BatchTemplates>,
        Option<ResumeDirectory>,
    )> {
        let templates = inputs.leave_out_templates(run, attempt).await?;
        run.enter(Stage::Fingerprint);
        let inputs = &*inputs;
        let (documents, recipe, id_type) = (&inputs.documents, &inputs.recipe, inputs.id_type);
        let (settings, context) = (run.settings, run.context);
        let progress = &run.resources.progress;
        let decision_columns = inputs.need_keys(settings);
        let mut resume = None;
        let rows = match (run.job(), recipe, &settings.resume) {
            // Ready fingerprints are read and sorted here: that is all there is to do.
            (Some(job), Recipe::Texts(_), _) => in_parts(run, job, inputs, attempt).await?,
            (None, _, Some(directory)) => {
                let directory = ResumeDirectory::open(directory, &settings.new)?;
                let work = Work {
                    context,
                    documents,
                    recipe,
                    id_type,
                    decision_columns,
                    progress,
                    templates: &templates
                        .as_ref()
                        .map_or(String::new(), BatchTemplates::left_out_digest),
                };
                resume.insert(directory).rows(work).await?
            }
            _ => {
                if inputs.verifier.is_some() || inputs.auditor.is_some() {
                    documents.hold_texts();
                }
                let beside = inputs.beside_fingerprints(settings);
                fingerprint::local_rows(context, documents, recipe, id_type, beside, progress)?
            }
        };
        let given = documents.given();
        let (form, scratch) = ((id_type, recipe.spec()), &settings.scratch);
        let target = draft.map(Draft::path);
        let written = fingerprint::write_sorted(context, rows, given, form, target, scratch);
        let mut batch = written.await?;
        documents.texts_are_read();
        if let Some(templates) = &templates {
            // Fingerprints depend on what was known of sources, documents do not.
            batch.file.day_digest.clone_from(&templates.digest);
        }
        match documents.known_rows() {
            Some(rows) if rows != batch.file.rows => Err(EngineError::TryAgain(format!(
                "{given}: {} documents were read of {rows} that were there when the run began; run it again",
                batch.file.rows
            ))),
            _ => Ok((batch, templates, resume)),
        }
    }

    /// Replaces the content of the draft, if there is one, with that of the file at `path`.
    pub(super) fn replace_with(&self, path: &Path) -> Result<()> {
        if let Some(draft) = &self.draft {
            draft.fill_from(path)?;
        }
        Ok(())
    }
}

/// The rows that the parts of a job fingerprint.
async fn in_parts(
    run: Run<'_>,
    job: &Job,
    inputs: &Inputs,
    attempt: usize,
) -> Result<UnsortedRows> {
    let spec = inputs.recipe.spec();
    let decision_columns = inputs.need_keys(run.settings);
    let name = match attempt {
        0 => "fingerprint".to_owned(),
        again => format!("fingerprint-{again}"),
    };
    let answers = job.answers(&name, async || {
        let archive = inputs.base.opened.archive().map(Archive::location);
        let options = &run.settings.spec_options;
        let model = job.model_plan(spec, archive, options).await?;
        let (documents, id_type) = (&inputs.documents, inputs.id_type);
        Map::plan_fingerprints(job, documents, id_type, model, decision_columns).await
    });
    let answers = answers.await?.ok_or(EngineError::Planned)?;
    let counters = MapCounters::default();
    answers.check_cuts()?;
    for receipt in answers.receipts() {
        counters.texts.add(&receipt.texts);
        counters.read.add(&receipt.read);
        run.resources.progress.add_counts(&receipt.counts);
    }
    let schema = rows_schema(inputs.id_type, spec, decision_columns);
    let rows = answers.table(run.context, &schema)?;
    Ok(UnsortedRows { rows, counters })
}
