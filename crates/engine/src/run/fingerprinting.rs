//! Map 1 of a run: the batch's documents become a sorted file of fingerprints, here or on the cluster.

use std::path::Path;

use archive::FingerprintWriter;
use storage::{Draft, ErrorKind};

use super::Run;
use super::inputs::{Inputs, OpenedArchive};
use crate::cluster::{FingerprintRequest, FingerprintedRows};
use crate::error::{EngineError, Result};
use crate::fingerprint::{self, FingerprintedBatch};
use crate::progress::Stage;
use crate::recipe::Recipe;
use crate::resume::{ResumeDirectory, Work};

/// The batch's file of fingerprints. It is the draft of an output if the settings ask for one.
pub(super) struct Fingerprints {
    pub(super) batch: FingerprintedBatch,
    pub(super) draft: Option<Draft>,
    /// The directory with the fingerprints of chunks.
    pub(super) resume: Option<ResumeDirectory>,
}

impl Fingerprints {
    /// Fingerprints the documents of `inputs`.
    pub(super) async fn make(run: Run<'_>, inputs: &Inputs<'_>) -> Result<Self> {
        run.enter(Stage::Fingerprint);
        let Inputs {
            documents,
            recipe,
            id_type,
            ..
        } = inputs;
        let settings = run.settings;
        let draft = match &settings.fingerprints {
            Some(target) => Some(Draft::new(target, &settings.scratch)?),
            None => None,
        };
        let (spec, id_type) = (recipe.spec(), *id_type);
        let writer = match &draft {
            Some(draft) => FingerprintWriter::create(draft.path(), id_type, spec)?,
            None => {
                let path = settings.scratch.join("fingerprints.parquet");
                FingerprintWriter::create_scratch(&path, id_type, spec)?
            }
        };
        let context = run.context;
        let progress = &run.resources.progress;
        let decision_columns = inputs.decide.is_some();
        let resume = match &settings.resume {
            Some(directory) => Some(ResumeDirectory::open(directory, &settings.new)?),
            None => None,
        };
        let rows = match (&resume, fingerprint_on_cluster(run, inputs).await?) {
            (_, Some(rows)) => fingerprint::cluster_rows(context, rows)?,
            (Some(resume), None) => {
                let work = Work {
                    context,
                    documents,
                    columns: documents.columns(),
                    recipe,
                    id_type,
                    decision_columns,
                    progress,
                };
                resume.rows(work).await?
            }
            (None, None) => fingerprint::local_rows(
                context,
                documents,
                recipe,
                id_type,
                decision_columns,
                progress,
            )?,
        };
        let given = documents.given();
        let batch = fingerprint::write_sorted(rows, given, writer, &settings.scratch).await?;
        match documents.known_rows() {
            Some(rows) if rows != batch.file.rows => Err(EngineError::Cluster {
                kind: ErrorKind::TryAgain,
                message: format!(
                    "{given}: {} documents were read of {rows} that were there when the run began; run it again",
                    batch.file.rows
                ),
            }),
            _ => Ok(Self {
                batch,
                draft,
                resume,
            }),
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

/// The rows that the cluster fingerprints; `None` without a cluster or without texts, or when the
/// cluster cannot reach the documents. It is also `None` without an id column, because only this
/// process knows the ids by file and row.
async fn fingerprint_on_cluster(
    run: Run<'_>,
    inputs: &Inputs<'_>,
) -> Result<Option<FingerprintedRows>> {
    let settings = run.settings;
    if !inputs.documents.have_ids() {
        return Ok(None);
    }
    let (Some(cluster), Recipe::Texts(model)) = (&settings.cluster, &inputs.recipe) else {
        return Ok(None);
    };
    let request = FingerprintRequest {
        documents: &inputs.documents,
        columns: inputs.documents.columns(),
        id_type: inputs.id_type,
        spec: model.spec(),
        archive: match &inputs.opened {
            OpenedArchive::Archive(archive) => Some(archive),
            OpenedArchive::Plain(_) => None,
        },
        spec_options: &settings.spec_options,
        decision_columns: inputs.decide.is_some(),
    };
    cluster.fingerprint(request).await
}
