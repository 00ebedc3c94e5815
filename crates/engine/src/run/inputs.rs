//! What a run reads, opened: the archive, the batch's documents, and the texts that verification needs.

use archive::{Archive, ArchiveError, ColumnNames, IdType, Snapshot};
use datafusion::prelude::SessionContext;
use simhash::{Measure, Model, Spec};
use storage::Stores;

use super::Run;
use crate::documents::{Columns, Documents};
use crate::error::{EngineError, Result};
use crate::progress::Stage;
use crate::recipe::{Recipe, SpecOptions};
use crate::verify::Verifier;

/// The archive or the plain files of `--base`, opened. The days to compare with are chosen after the batch's fingerprints
/// are made.
#[derive(Debug, Clone)]
pub enum Opened {
    /// An archive, at its latest version.
    Archive(Box<Archive>),
    /// Plain Parquet files of fingerprints.
    Plain(Snapshot),
}

impl Opened {
    /// Opens the archive at the path `given`, or the plain files there.
    ///
    /// # Errors
    /// [`EngineError`] when it cannot be read.
    pub async fn open(stores: &Stores, given: &str, columns: &Columns) -> Result<Self> {
        let is_pattern = given.contains(['*', '?', '[']);
        if !is_pattern {
            let location = stores.locate(given)?;
            if Archive::is_at(&location).await? {
                return Ok(Self::Archive(Box::new(Archive::open(&location).await?)));
            }
        }
        Ok(Self::Plain(
            Snapshot::open_files(stores, given, &plain_columns(columns)).await?,
        ))
    }

    /// The spec of its fingerprints; `None` for plain files that do not declare it.
    #[must_use]
    pub fn spec(&self) -> Option<&Spec> {
        match self {
            Self::Archive(archive) => Some(archive.spec()),
            Self::Plain(base) => base.spec.as_ref(),
        }
    }

    /// The version of the archive; `None` for plain files.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        match self {
            Self::Archive(archive) => Some(archive.version()),
            Self::Plain(_) => None,
        }
    }

    /// Its name in errors.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Archive(archive) => archive.location().to_string(),
            Self::Plain(base) => base.name.clone(),
        }
    }

    /// The type of its ids; `None` when there are no files.
    #[must_use]
    pub fn id_type(&self) -> Option<IdType> {
        match self {
            Self::Archive(archive) => Some(archive.id_type()),
            Self::Plain(base) => base.id_type,
        }
    }
}

/// Opens a batch's documents, and decides on the recipe of their fingerprints and the type of their ids, by `base` if there
/// is one.
///
/// # Errors
/// [`EngineError`] when a document cannot be read, or specs differ.
pub async fn open_batch(
    context: &SessionContext,
    new: &[String],
    columns: &Columns,
    base: Option<&Opened>,
    wanted: &SpecOptions,
) -> Result<(Documents, Recipe, IdType)> {
    let documents = Documents::open(context, new, columns).await?;
    let own = documents.spec()?;
    let name = base.map(Opened::name).unwrap_or_default();
    let ready = documents.has_fingerprints();
    let recipe = match (base.and_then(Opened::spec), own) {
        (Some(spec), Some((file, own))) if *spec != own => {
            return Err(ArchiveError::SpecMismatch {
                left: name,
                right: file,
                differences: spec.differences(&own),
            }
            .into());
        }
        (Some(spec), _) if ready => {
            wanted.check(&name, spec)?;
            Recipe::Ready(spec.clone())
        }
        (Some(spec), _) => match base {
            Some(Opened::Archive(archive)) => {
                Recipe::Texts(wanted.model_from_archive(archive).await?)
            }
            _ => Recipe::Texts(wanted.model_like(&name, spec)?),
        },
        (None, Some((file, own))) => {
            wanted.check(&file, &own)?;
            Recipe::Ready(own)
        }
        (None, None) if ready => Recipe::Ready(wanted.model()?.spec().clone()),
        (None, None) => {
            if base.is_some_and(|base| base.id_type().is_some()) {
                tracing::warn!(
                    "the files of --base do not say under which spec their fingerprints were made; the spec that --json shows is assumed"
                );
            }
            Recipe::Texts(wanted.model()?)
        }
    };
    let id_type = base
        .and_then(Opened::id_type)
        .or(documents.id_type())
        .unwrap_or(IdType::String);
    Ok((documents, recipe, id_type))
}

/// Column names of plain files of fingerprints: those asked for, or else the standard ones.
pub(super) fn plain_columns(columns: &Columns) -> ColumnNames {
    ColumnNames::given_or_standard(columns.fingerprint.as_deref(), columns.id.as_deref())
}

/// The inputs of a run.
pub(super) struct Inputs<'a> {
    pub(super) opened: Opened,
    pub(super) documents: Documents,
    pub(super) recipe: Recipe,
    pub(super) id_type: IdType,
    pub(super) verifier: Option<Verifier<'a>>,
}

impl<'a> Inputs<'a> {
    /// Opens everything that the settings name, and checks that it goes together.
    pub(super) async fn open(run: Run<'a>) -> Result<Self> {
        let Run {
            context, settings, ..
        } = run;
        run.enter(Stage::Open);
        let columns = &settings.columns;
        let opened = Opened::open(&run.resources.stores, &settings.base, columns).await?;
        if settings.append {
            let Opened::Archive(archive) = &opened else {
                return Err(EngineError::Usage(format!(
                    "--append needs an archive, and {} is plain files; make one with `dedup-job archive create`",
                    settings.base
                )));
            };
            archive.preflight().await?;
        }
        let new = &settings.new;
        let (documents, recipe, id_type) =
            open_batch(context, new, columns, Some(&opened), &settings.wanted).await?;
        let verifier = match &settings.verify {
            Some(verify) => {
                let model = verification_model(run, &opened, &recipe).await?;
                Some(Verifier::open(context, verify, model, new, columns).await?)
            }
            None => None,
        };
        Ok(Self {
            opened,
            documents,
            recipe,
            id_type,
            verifier,
        })
    }
}

/// The model that normalizes the texts and, for the cosine, weighs their features.
async fn verification_model(run: Run<'_>, opened: &Opened, recipe: &Recipe) -> Result<Model> {
    let settings = run.settings;
    let measure = settings.verify.as_ref().map(|verify| verify.measure);
    match (recipe, opened) {
        (Recipe::Texts(model), _) => Ok(model.clone()),
        // Only the cosine weighs.
        (Recipe::Ready(spec), _) if measure != Some(Measure::Cosine) => {
            let unweighted = Spec {
                idf: None,
                stop_words: None,
                ..spec.clone()
            };
            Model::plain(unweighted).map_err(|error| EngineError::Internal(error.to_string()))
        }
        (Recipe::Ready(_), Opened::Archive(archive)) => Ok(archive.model().await?),
        (Recipe::Ready(spec), Opened::Plain(base)) => settings.wanted.model_like(&base.name, spec),
    }
}
