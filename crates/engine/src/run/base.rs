//! What `--base` names besides one archive: more archives, files of fingerprints, and files of documents. The first archive is the
//! one whose settings count.

use archive::{ArchiveError, IdType, Scope, Snapshot};
use datafusion::prelude::SessionContext;
use simhash::Spec;
use storage::StorageError;

use super::Run;
use super::opened::{OpenedArchive, is_archive, plain_columns};
use crate::error::{EngineError, Result};
use crate::fingerprint::{self, Beside};
use crate::progress::Stage;
use crate::recipe::Recipe;
use crate::resources::Resources;
use documents::{Columns, Documents, DocumentsError, Prefer, extensions};

/// The archive of a run, and what else its batch is compared with.
pub(super) struct Base {
    /// The first archive; or else the first files of fingerprints, or none.
    pub(super) opened: OpenedArchive,
    /// What else has fingerprints.
    pub(super) others: Others,
    pub(super) documents: Option<Documents>,
    pub(super) paths: Vec<String>,
}

/// Fingerprints besides those of the archive of a run.
#[derive(Default)]
pub(super) struct Others {
    pub(super) snapshots: Vec<Snapshot>,
    /// Whether an archive among them says which of its documents are kept.
    pub(super) have_kept: bool,
}

impl Base {
    /// Opens everything at the paths `given`; an archive at the `version` that a job was split at.
    pub(super) async fn open(
        run: Run<'_>,
        given: &[String],
        columns: &Columns,
        version: Option<u64>,
    ) -> Result<Self> {
        let (context, stores) = (run.context, &run.resources.stores);
        let mut base = Self {
            opened: OpenedArchive::Plain(Snapshot::none()),
            others: Others::default(),
            documents: None,
            paths: Vec::new(),
        };
        let (mut archives, mut files) = (Vec::new(), Vec::new());
        for path in given {
            if is_archive(stores, path).await? {
                archives.push(path);
            } else if have_documents(context, path, columns).await? {
                base.paths.push(path.clone());
            } else {
                files.push(path);
            }
        }
        let is_one = given.len() < 2 && base.paths.is_empty();
        if run.job().is_some() && !is_one {
            return Err(EngineError::Usage(
                "the parts of a job compare with one archive, or with files of fingerprints: make those of documents by `dedup-job fingerprint`, and one archive of several by `dedup-job archive append`".into(),
            ));
        }
        let mut first = None;
        let mut declared: Option<(String, Spec)> = None;
        for path in archives.into_iter().chain(files) {
            // The columns of files beside an archive have its names.
            let columns = match first {
                Some(OpenedArchive::Archive(_)) => &Columns::default(),
                _ => columns,
            };
            let opened = OpenedArchive::open(stores, Some(path), columns, version).await?;
            match (&declared, opened.spec()) {
                (Some((left, spec)), Some(other)) if spec != other => {
                    return Err(ArchiveError::SpecMismatch {
                        left: left.clone(),
                        right: opened.name(),
                        differences: spec.differences(other),
                    }
                    .into());
                }
                (None, Some(spec)) => declared = Some((opened.name(), spec.clone())),
                _ => {}
            }
            match &first {
                None => first = Some(opened),
                Some(first) => base.others.add(first, opened).await?,
            }
        }
        if let (Some(OpenedArchive::Plain(files)), Some((_, spec))) = (&mut first, declared) {
            // Files that do not declare their spec are taken for what the others declare.
            files.spec.get_or_insert(spec);
        }
        base.opened = first.unwrap_or(base.opened);
        if !base.paths.is_empty() {
            let columns = Columns {
                row_ids: true,
                fingerprint: None,
                texts_only: true,
                with_sources: true,
                prefer: Prefer::default(),
                carried: Vec::new(),
                ..base.opened.columns(columns)
            };
            let without_source = &Columns {
                source: None,
                ..columns.clone()
            };
            let opened = match Documents::open(context, &base.paths, &columns).await {
                // The base may lack the column that says the sources of the batch.
                Err(DocumentsError::BadData { .. }) if columns.source.is_some() => {
                    Documents::open(context, &base.paths, without_source).await
                }
                opened => opened,
            };
            base.documents = Some(opened?);
        }
        Ok(base)
    }

    /// Whether it is nothing but documents.
    pub(super) fn is_documents(&self) -> bool {
        let has_files = match &self.opened {
            OpenedArchive::Archive(_) => true,
            OpenedArchive::Plain(files) => !files.files.is_empty(),
        };
        self.documents.is_some() && !has_files
    }

    /// The type of ids that the documents need, too, if the batch's is `id_type`.
    pub(super) fn id_type(&self, id_type: IdType) -> IdType {
        let own = self.documents.as_ref().and_then(Documents::id_type);
        match (self.opened.id_type(), own) {
            (None, Some(own)) if own != id_type => IdType::String,
            _ => id_type,
        }
    }
}

impl Others {
    /// Adds the fingerprints of `opened`, whose ids must be of the type of those of `first`.
    async fn add(&mut self, first: &OpenedArchive, opened: OpenedArchive) -> Result<()> {
        if let (Some(left), Some(right)) = (first.id_type(), opened.id_type())
            && left != right
        {
            let reason = format!("its ids are {right}, those of {} are {left}", first.name());
            return Err(EngineError::bad_data(opened.name(), reason));
        }
        self.snapshots.push(match opened {
            OpenedArchive::Plain(files) => files,
            OpenedArchive::Archive(archive) => {
                self.have_kept |= archive.has_kept();
                Snapshot::open_archive(&archive, Scope::All).await?
            }
        });
        Ok(())
    }

    /// Fingerprints `documents` by `recipe`, and adds the fingerprints.
    pub(super) async fn fingerprint(
        &mut self,
        run: Run<'_>,
        mut documents: Documents,
        recipe: &Recipe,
        id_type: IdType,
    ) -> Result<()> {
        run.enter(Stage::Fingerprint);
        let (context, resources) = (run.context, run.resources);
        let scratch = run.settings.scratch.join("base");
        std::fs::create_dir_all(&scratch).map_err(StorageError::io(scratch.display()))?;
        let readers = context.state().config().target_partitions();
        documents.cut(context, readers).await?;
        let batch = loop {
            resources.progress.reset_documents();
            let progress = &resources.progress;
            let beside = Beside::Nothing;
            let rows =
                fingerprint::local_rows(context, &documents, recipe, id_type, beside, progress)?;
            let (given, form) = (documents.given(), (id_type, recipe.spec()));
            match fingerprint::write_sorted(context, rows, given, form, None, &scratch).await {
                Ok(batch) => break batch,
                Err(error) if documents.uncut(error.wrong_cut()) => {}
                Err(error) => return Err(error),
            }
        };
        resources.progress.reset_documents();
        for (note, noted) in batch.notes(documents.skipped()).iter() {
            tracing::warn!(
                "--base {}: {} {note}, the first in {}",
                documents.given(),
                noted.number,
                noted.first
            );
        }
        let columns = plain_columns(&Columns::default());
        let path = batch.file.path.to_string_lossy();
        let snapshot = Snapshot::open_files(&resources.stores, &path, &columns).await?;
        self.snapshots.push(snapshot);
        Ok(())
    }
}

/// Whether the files at a path are documents to fingerprint, and neither an archive nor files of fingerprints.
pub async fn are_documents(
    context: &SessionContext,
    given: &str,
    columns: &Columns,
) -> Result<bool> {
    let stores = &Resources::from_session(context)?.stores;
    Ok(!is_archive(stores, given).await? && have_documents(context, given, columns).await?)
}

/// As [`are_documents`], at a path without an archive.
async fn have_documents(context: &SessionContext, given: &str, columns: &Columns) -> Result<bool> {
    let stores = &Resources::from_session(context)?.stores;
    let extensions = extensions();
    let location = stores.locate(given)?;
    // A missing file is an error of its own.
    if location.local().is_some_and(|path| !path.exists()) && !given.contains(['*', '?', '[']) {
        return Ok(false);
    }
    let (files, _) = archive::input_files(stores, given, &extensions).await?;
    let is_parquet = |file: &&storage::Location| file.file_name().ends_with(".parquet");
    let Some(file) = files.iter().find(is_parquet) else {
        return Ok(!files.is_empty());
    };
    for name in plain_columns(columns).fingerprint {
        let columns = Columns {
            fingerprint: Some(name),
            row_ids: true,
            ..Columns::default()
        };
        let file = vec![file.clone()];
        match Documents::open_files(context, given.to_owned(), file, &columns).await {
            Ok(_) => return Ok(false),
            // It has no such column.
            Err(DocumentsError::BadData { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}
