//! What a batch is compared with: an archive, or files in its place; and what else `--base` names.

use archive::{Archive, ColumnNames, IdType, Snapshot};
use simhash::Spec;
use storage::{LOG_DIRECTORY, Location, Stores};

use crate::error::{EngineError, Result};
use crate::profile::{Against, CompareOptions, CompareSettings};
use crate::recipe::Recipe;
use documents::{Columns, Remembered};

/// The archive of a run, opened: a Delta table, or plain files in its place. The run chooses the
/// days to compare with later, when it has made the batch's fingerprints.
#[derive(Debug, Clone)]
pub enum OpenedArchive {
    /// An archive, at its latest version.
    Archive(Box<Archive>),
    /// Plain Parquet files of fingerprints.
    Plain(Snapshot),
}

impl OpenedArchive {
    /// Opens the archive at the path `given`, at its latest version unless one is given, or the plain files there. Without a path
    /// there are no files.
    pub async fn open(
        stores: &Stores,
        given: Option<&str>,
        columns: &Columns,
        version: Option<u64>,
    ) -> Result<Self> {
        let Some(given) = given else {
            return Ok(Self::Plain(Snapshot::none()));
        };
        let location = stores.locate(given)?;
        if is_archive(stores, given).await? {
            return Ok(Self::Archive(Box::new(
                Archive::open_at(&location, version).await?,
            )));
        }
        let is_missing = location.local().is_some_and(|path| !path.exists());
        if is_missing && !given.contains(['*', '?', '[']) {
            return Err(EngineError::Usage(format!(
                "--base {given}: no such file or directory; `dedup-job archive create {given}` makes an archive there"
            )));
        }
        let files = Snapshot::open_files(stores, given, &plain_columns(columns)).await?;
        if files.files.is_empty() {
            tracing::warn!(
                "--base {given}: there is no archive, and no file of fingerprints or documents; the batch is compared with itself only"
            );
        }
        Ok(Self::Plain(files))
    }

    /// The archive; `None` for plain files.
    pub fn archive(&self) -> Option<&Archive> {
        match self {
            Self::Archive(archive) => Some(archive),
            Self::Plain(_) => None,
        }
    }

    /// The spec of its fingerprints; `None` for plain files that do not declare it.
    pub fn spec(&self) -> Option<&Spec> {
        match self {
            Self::Archive(archive) => Some(archive.spec()),
            Self::Plain(files) => files.spec.as_ref(),
        }
    }

    /// The columns that the options name, and those that the archive remembers.
    pub(super) fn columns(&self, columns: &Columns) -> Columns {
        let remembered = self.archive().map(|archive| {
            let defaults = archive.run_defaults().clone();
            Remembered {
                id: defaults.id_column,
                text: defaults.text_column,
                source: defaults.source_column,
            }
        });
        Columns {
            remembered: remembered.unwrap_or_default(),
            ..columns.clone()
        }
    }

    /// How a run with these options finds and verifies pairs.
    pub fn compare(&self, options: &CompareOptions, recipe: &Recipe) -> Result<CompareSettings> {
        options.resolve(match (self, recipe) {
            (Self::Archive(archive), _) => Against::Archive(archive.run_defaults()),
            (Self::Plain(base), Recipe::Texts(_)) if base.files.is_empty() => Against::Texts,
            (Self::Plain(_), _) => Against::Fingerprints,
        })
    }

    /// The version of the archive; `None` for plain files.
    pub fn version(&self) -> Option<u64> {
        self.archive().map(Archive::version)
    }

    /// The files that all commands of a job must see: the plain files, or the log entry of the archive's version. An archive that
    /// was made anew or restored has another entry.
    pub(super) async fn pinned_files(&self) -> Result<Vec<Location>> {
        match self {
            Self::Archive(archive) => {
                let entry = format!("{LOG_DIRECTORY}/{:020}.json", archive.version());
                let entry = archive.location().child(&entry)?;
                // Other programs remove old entries.
                let has_entry = entry.exists().await?;
                Ok(has_entry.then_some(entry).into_iter().collect())
            }
            Self::Plain(files) => {
                let files = files.files.iter();
                Ok(files.map(|file| file.location.clone()).collect())
            }
        }
    }

    pub fn name(&self) -> String {
        match self {
            Self::Archive(archive) => archive.location().to_string(),
            Self::Plain(files) => files.name.clone(),
        }
    }

    /// The type of its ids; `None` when there are no files.
    pub fn id_type(&self) -> Option<IdType> {
        match self {
            Self::Archive(archive) => Some(archive.id_type()),
            Self::Plain(files) => files.id_type,
        }
    }
}

/// Whether there is an archive at a path.
pub(super) async fn is_archive(stores: &Stores, given: &str) -> Result<bool> {
    // The name of an archive may have the characters of patterns. A store may refuse to list what begins like a pattern.
    match Archive::is_at(&stores.locate(given)?).await {
        Err(_) if given.contains(['*', '?', '[']) => Ok(false),
        is_archive => Ok(is_archive?),
    }
}

/// Column names of plain files of fingerprints: those that the options name, or else the standard ones.
pub(super) fn plain_columns(columns: &Columns) -> ColumnNames {
    ColumnNames::given_or_standard(columns.fingerprint.as_deref(), columns.id.as_deref())
}
