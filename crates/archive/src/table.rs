//! The archive as a Delta Lake table: one atomic commit a day.
//!
//! Delta's application transaction, with the day as application id, makes a day exactly-once: of two runs that
//! commit the same day one wins, and the other finds the day there. A day is committed right behind the version that it
//! was compared with, or behind one that has no other days; so of any two days one was compared with the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::NaiveDate;
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties, TableReference};
use deltalake_core::kernel::{Action, DataType, StructField, Transaction};
use deltalake_core::logstore::{LogStoreRef, StorageConfig, default_logstore};
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::{DeltaTable, DeltaTableError};
use futures::StreamExt as _;
use object_store::ObjectStore;
use object_store::prefix::PrefixStore;
use simhash::{Model, Spec};
use url::Url;

use crate::data_files::{DayTags, Rows, WrittenFile};
use crate::error::{ArchiveError, ErrorKind, Result};
use crate::fingerprints::{self, FingerprintFile};
use crate::location::Location;
use crate::model::{self, Kept};
use crate::schema::{
    BASE_VERSION_TAG, DAY, DAY_DIGEST_TAG, FINGERPRINT, ID, IdType, SHA256_TAG, SPEC_KEY,
};
use crate::store::preflight;

/// How often a commit is tried behind versions that hold no other days.
const COMMITS: usize = 20;

/// Rows of a data file, unless told otherwise; a day of more has several.
pub const FILE_ROWS: u64 = 16 * fingerprints::ROW_GROUP_ROWS as u64;

/// An archive at one version.
#[derive(Debug, Clone)]
pub struct Archive {
    location: Location,
    table: DeltaTable,
    spec: Spec,
    id_type: IdType,
    file_rows: u64,
}

/// A data file as the log has it.
#[derive(Debug, Clone)]
pub struct DataFile {
    /// Path below the archive's directory.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Rows, where the log says.
    pub rows: Option<u64>,
    /// The day of its rows.
    pub day: Option<NaiveDate>,
    /// SHA-256 of its bytes.
    pub sha256: Option<String>,
    pub(crate) day_digest: Option<String>,
    pub(crate) base_version: Option<u64>,
}

impl DataFile {
    /// Whether the digest that was found is what the log says, where it says.
    pub(crate) fn check(&self, object: &str, found: &str) -> Result<()> {
        match &self.sha256 {
            Some(expected) if expected != found => Err(ArchiveError::Digest {
                object: object.to_owned(),
                expected: expected.clone(),
                found: found.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// How a committed day was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedDay {
    /// Digest of its rows.
    pub digest: String,
    /// The table's version that it was compared with.
    pub base_version: u64,
}

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Append {
    /// The day was committed as this version.
    Committed(u64),
    /// The same day with the same rows was there already; nothing was changed.
    AlreadyThere,
    /// Other days were committed since the version that this one was compared with; nothing was changed.
    Overtaken,
}

/// A day whose data files are there and verified, but which no log entry names yet.
#[derive(Debug)]
pub struct StagedDay {
    day: NaiveDate,
    digest: String,
    documents: u64,
    without_fingerprint: u64,
    files: Vec<WrittenFile>,
}

/// What an archive holds.
#[derive(Debug, Clone)]
pub struct Info {
    /// Version of the table.
    pub version: u64,
    /// Type of the ids.
    pub id_type: IdType,
    /// Spec of the fingerprints.
    pub spec: Spec,
    /// Rows, files and bytes of each day.
    pub days: std::collections::BTreeMap<NaiveDate, DayInfo>,
}

/// What an archive holds of one day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DayInfo {
    /// Fingerprints.
    pub rows: u64,
    /// Data files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Archive {
    /// Makes an empty archive, with the tables that its spec names. The directory may exist, but must hold no table.
    ///
    /// # Errors
    /// [`ArchiveError::Exists`] when there is a table, or a store's error.
    pub async fn create(
        location: &Location,
        id_type: IdType,
        spec: &Spec,
        kept: &Kept,
    ) -> Result<Self> {
        let given = location.given();
        if Self::is_at(location).await? {
            return Err(ArchiveError::Exists {
                path: given.to_owned(),
            });
        }
        if let Some(local) = location.local() {
            std::fs::create_dir_all(local).map_err(|source| ArchiveError::Io {
                path: given.to_owned(),
                source,
            })?;
        }
        preflight(location).await?;
        model::keep(location, spec, kept).await?;
        let store = log_store(location)?;
        let id = match id_type {
            IdType::String => DataType::STRING,
            IdType::Bigint => DataType::LONG,
        };
        CreateBuilder::new()
            .with_log_store(store)
            .with_table_name("fingerprints")
            .with_comment("64-bit simhash fingerprints of documents, by day")
            .with_columns([
                StructField::not_null(FINGERPRINT, DataType::LONG),
                StructField::not_null(ID, id),
                StructField::nullable(DAY, DataType::DATE),
            ])
            .with_partition_columns([DAY])
            // Else a key that Delta does not define is refused.
            .with_raise_if_key_not_exists(false)
            .with_configuration([(SPEC_KEY, Some(spec.to_json()))])
            .with_save_mode(SaveMode::ErrorIfExists)
            // A retry would overwrite the metadata of a table that another process made in between.
            .with_commit_properties(CommitProperties::default().with_max_retries(0))
            .await
            .map_err(ArchiveError::delta(given))?;
        Self::open(location).await
    }

    /// Opens the archive at its latest version.
    ///
    /// # Errors
    /// [`ArchiveError`] when there is none, or it is not one of this program's.
    pub async fn open(location: &Location) -> Result<Self> {
        let given = location.given();
        if location.local().is_some_and(|local| !local.exists()) {
            return Err(ArchiveError::NotFound {
                path: given.to_owned(),
            });
        }
        if !Self::is_at(location).await? {
            return Err(ArchiveError::NotAnArchive {
                path: given.to_owned(),
            });
        }
        let mut table = DeltaTable::new(log_store(location)?);
        table.load().await.map_err(|error| match error {
            DeltaTableError::NotATable(_) => ArchiveError::NotAnArchive {
                path: given.to_owned(),
            },
            error => ArchiveError::delta(given)(error),
        })?;
        let foreign = |reason: String| ArchiveError::ForeignTable {
            path: given.to_owned(),
            reason,
        };
        let state = table.snapshot().map_err(ArchiveError::delta(given))?;
        let spec = state
            .metadata()
            .configuration()
            .get(SPEC_KEY)
            .ok_or_else(|| foreign(format!("it has no {SPEC_KEY}")))?;
        let spec = Spec::from_json(spec).map_err(|source| ArchiveError::Spec {
            path: given.to_owned(),
            source,
        })?;
        let schema = state.schema();
        let id_type = match schema.field(ID).map(StructField::data_type) {
            Some(&DataType::STRING) => IdType::String,
            Some(&DataType::LONG) => IdType::Bigint,
            other => return Err(foreign(format!("its column {ID} is {other:?}"))),
        };
        Ok(Self {
            location: location.clone(),
            table,
            spec,
            id_type,
            file_rows: FILE_ROWS,
        })
    }

    /// Goes on to the latest version.
    pub(crate) async fn reopen(&mut self) -> Result<()> {
        let now = Self::open(&self.location).await?;
        *self = now.with_file_rows(self.file_rows);
        Ok(())
    }

    /// Whether there is a Delta table at `location`.
    ///
    /// # Errors
    /// [`ArchiveError`] when the store does not say.
    pub async fn is_at(location: &Location) -> Result<bool> {
        if let Some(local) = location.local() {
            return Ok(local.join("_delta_log").is_dir());
        }
        let log = location.child("_delta_log")?;
        let mut entries = location.store().list(Some(log.path()));
        let first = entries.next().await.transpose();
        let first = first.map_err(|error| ArchiveError::stored(location, error))?;
        Ok(first.is_some())
    }

    /// The same, with at most so many rows in each data file that it writes; a row group's at least.
    #[must_use]
    pub fn with_file_rows(mut self, rows: u64) -> Self {
        self.file_rows = rows.max(1);
        self
    }

    /// Where it is.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The spec of its fingerprints.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The spec with the tables that it names, which are kept with the archive.
    ///
    /// # Errors
    /// [`ArchiveError`] when they are missing or damaged.
    pub async fn model(&self) -> Result<Model> {
        model::load(&self.location, &self.spec).await
    }

    /// The type of its ids.
    #[must_use]
    pub fn id_type(&self) -> IdType {
        self.id_type
    }

    /// The version that it was opened at.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.table.version().unwrap_or(0)
    }

    /// Its data files.
    ///
    /// # Errors
    /// [`ArchiveError::Delta`] when the log cannot be read.
    pub fn files(&self) -> Result<Vec<DataFile>> {
        let state = self
            .table
            .snapshot()
            .map_err(ArchiveError::delta(self.location.given()))?;
        let log = state.log_data();
        let files = log.iter().map(|file| {
            // The only accessor of tags there is.
            #[allow(deprecated)]
            let tags = file.add_action().tags.unwrap_or_default();
            let tag = |name: &str| tags.get(name).cloned().flatten();
            DataFile {
                path: file.path().into_owned(),
                size: file.size().max(0).cast_unsigned(),
                rows: file.num_records().map(|rows| rows as u64),
                day: file
                    .partition_values_map()
                    .get(DAY)
                    .and_then(|day| day.as_ref()?.parse().ok()),
                sha256: tag(SHA256_TAG),
                day_digest: tag(DAY_DIGEST_TAG),
                base_version: tag(BASE_VERSION_TAG).and_then(|version| version.parse().ok()),
            }
        });
        Ok(files.collect())
    }

    /// How `day` was committed, if it was.
    ///
    /// # Errors
    /// [`ArchiveError`] when the log cannot be read, or lost the day's tags.
    pub async fn committed(&self, day: NaiveDate) -> Result<Option<CommittedDay>> {
        let given = self.location.given();
        let state = self.table.snapshot().map_err(ArchiveError::delta(given))?;
        let transaction = state
            .transaction_version(self.table.log_store().as_ref(), day.to_string())
            .await
            .map_err(ArchiveError::delta(given))?;
        if transaction.is_none() {
            return Ok(None);
        }
        let file = self.files()?.into_iter().find(|file| file.day == Some(day));
        file.and_then(|file| {
            Some(CommittedDay {
                digest: file.day_digest?,
                base_version: file.base_version?,
            })
        })
        .map(Some)
        .ok_or_else(|| ArchiveError::ForeignTable {
            path: given.to_owned(),
            reason: format!("day {day} is committed, but no file carries its digest"),
        })
    }

    /// Commits `file` as `day`, whatever other days were committed since the archive was opened. Rows without a
    /// fingerprint are left out.
    ///
    /// # Errors
    /// As [`Self::stage`] and [`Self::commit`].
    pub async fn append(&mut self, day: NaiveDate, file: &FingerprintFile) -> Result<Append> {
        self.check(file)?;
        if self.same_day(day, &file.digest).await? {
            return Ok(Append::AlreadyThere);
        }
        self.preflight().await?;
        let staged = self.stage(day, file).await?;
        loop {
            match self.commit(&staged).await? {
                Append::Overtaken => {}
                done => return Ok(done),
            }
        }
    }

    /// Proves that the archive's store honours conditional creates, which commits are made by. Due before any commit.
    ///
    /// # Errors
    /// [`ArchiveError::Unconditional`] when it does not, or a store's error.
    pub async fn preflight(&self) -> Result<()> {
        preflight(&self.location).await
    }

    /// Writes `file` as the data files of `day`, and reads them back. Rows without a fingerprint are left out.
    ///
    /// # Errors
    /// [`ArchiveError::SpecMismatch`] when the fingerprints are of another spec, [`ArchiveError::Digest`] when what was
    /// stored is not what was written. The table is as it was.
    pub async fn stage(&self, day: NaiveDate, file: &FingerprintFile) -> Result<StagedDay> {
        self.check(file)?;
        let mut staged = StagedDay {
            day,
            digest: file.digest.clone(),
            documents: file.rows,
            without_fingerprint: file.without_fingerprint,
            files: Vec::new(),
        };
        let rest = file.rows - file.without_fingerprint;
        let mut rows = Rows::new(file.read()?);
        let written = self.write_files(day, rest, &mut rows, &mut staged.files);
        if let Err(error) = written.await {
            // A store that cannot be reached would be waited for once more for each file.
            if error.kind() != ErrorKind::Unreachable {
                self.discard(&staged).await;
            }
            return Err(error);
        }
        Ok(staged)
    }

    /// Commits a day with one log entry, behind the version that the archive is open at, which is that the day was
    /// compared with. If other days came first, the archive is open at the latest version after it.
    ///
    /// # Errors
    /// [`ArchiveError::DayDiffers`] when the day is there with other rows. On any error the table is as it was, unless
    /// the store does not say what became of the log entry: then the data files stay, because it may name them.
    pub async fn commit(&mut self, staged: &StagedDay) -> Result<Append> {
        for _ in 0..COMMITS {
            let version = self.version();
            let before = self.days()?;
            self.is_staged(staged).await?;
            let error = match self.try_commit(staged, version).await {
                Ok(version) => return Ok(Append::Committed(version)),
                Err(error) => error,
            };
            // The outcome is in the log, whatever the answer was.
            self.reopen().await?;
            let ours = |data: &DataFile| {
                let mut files = staged.files.iter();
                files.any(|file| file.path == data.path)
            };
            if self.files()?.iter().any(ours) {
                return Ok(Append::Committed(self.version()));
            }
            match self.same_day(staged.day, &staged.digest).await {
                Ok(false) => {}
                Ok(true) => {
                    self.discard(staged).await;
                    return Ok(Append::AlreadyThere);
                }
                Err(error) => {
                    // Only where it is certain that no entry of this run can come any more.
                    if matches!(error, ArchiveError::DayDiffers { .. }) {
                        self.discard(staged).await;
                    }
                    return Err(error);
                }
            }
            let error = ArchiveError::delta(self.location.given())(error);
            if error.kind() != ErrorKind::TryAgain || self.version() == version {
                return Err(error);
            }
            if !self.days()?.is_subset(&before) {
                return Ok(Append::Overtaken);
            }
            tracing::info!(
                version = self.version(),
                "the archive was maintained meanwhile; committing behind that"
            );
        }
        Err(ArchiveError::Busy {
            path: self.location.to_string(),
            attempts: COMMITS,
        })
    }

    /// Whether the data files are still there: a vacuum may have come in between.
    async fn is_staged(&self, staged: &StagedDay) -> Result<()> {
        for file in &staged.files {
            let object = self.location.child(&file.path)?;
            if !object.exists().await? {
                return Err(ArchiveError::Unstaged {
                    object: object.to_string(),
                });
            }
        }
        Ok(())
    }

    /// The days that have files.
    fn days(&self) -> Result<BTreeSet<NaiveDate>> {
        let files = self.files()?;
        Ok(files.iter().filter_map(|file| file.day).collect())
    }

    /// Removes the data files of a day that was not committed, as far as possible: one that stays harms no reader.
    pub async fn discard(&self, staged: &StagedDay) {
        self.remove(&staged.files).await;
    }

    /// The store, rooted in the archive's directory.
    pub(crate) fn object_store(&self) -> Arc<dyn ObjectStore> {
        self.table.log_store().object_store(None)
    }

    pub(crate) fn table(&self) -> &DeltaTable {
        &self.table
    }

    pub(crate) fn file_rows(&self) -> u64 {
        self.file_rows
    }

    fn check(&self, file: &FingerprintFile) -> Result<()> {
        if file.spec != self.spec {
            return Err(ArchiveError::SpecMismatch {
                left: self.location.to_string(),
                right: file.path.display().to_string(),
                differences: self.spec.differences(&file.spec),
            });
        }
        if file.id_type != self.id_type {
            return Err(ArchiveError::BadData {
                object: file.path.display().to_string(),
                reason: format!(
                    "its ids are {}, those of {} are {}",
                    file.id_type, self.location, self.id_type
                ),
            });
        }
        Ok(())
    }

    /// Whether the day is there with the rows of that digest.
    async fn same_day(&self, day: NaiveDate, digest: &str) -> Result<bool> {
        match self.committed(day).await? {
            None => Ok(false),
            Some(committed) if committed.digest == digest => Ok(true),
            Some(committed) => Err(ArchiveError::DayDiffers {
                path: self.location.to_string(),
                day: day.to_string(),
                committed: committed.digest,
                new: digest.to_owned(),
            }),
        }
    }

    async fn try_commit(
        &mut self,
        staged: &StagedDay,
        base_version: u64,
    ) -> Result<u64, DeltaTableError> {
        let day = staged.day;
        let now = chrono::Utc::now().timestamp_millis();
        let tags = DayTags {
            digest: staged.digest.clone(),
            base_version,
        };
        let actions = staged
            .files
            .iter()
            .map(|data| Action::Add(data.add(day, &tags, now, true)))
            .collect();
        let properties = CommitProperties::default()
            .with_application_transaction(Transaction::new(day.to_string(), 1))
            .with_metadata([
                ("documents".to_owned(), staged.documents.into()),
                (
                    "withoutFingerprint".to_owned(),
                    staged.without_fingerprint.into(),
                ),
            ])
            // A commit behind other days than were compared with would miss pairs.
            .with_max_retries(0)
            .with_cleanup_expired_logs(Some(false));
        let operation = DeltaOperation::Write {
            mode: SaveMode::Append,
            partition_by: Some(vec![DAY.to_owned()]),
            predicate: None,
        };
        let state = self.table.snapshot()?;
        let committed = CommitBuilder::from(properties)
            .with_actions(actions)
            .build(
                Some(state as &dyn TableReference),
                self.table.log_store(),
                operation,
            )
            .await?;
        let version = committed.version();
        self.table.state = Some(committed.snapshot());
        Ok(version)
    }

    /// What it holds.
    ///
    /// # Errors
    /// [`ArchiveError::Delta`] when the log cannot be read.
    pub fn info(&self) -> Result<Info> {
        let mut info = Info {
            version: self.version(),
            id_type: self.id_type,
            spec: self.spec.clone(),
            days: Default::default(),
        };
        for file in self.files()? {
            let day = info.days.entry(file.day.unwrap_or_default()).or_default();
            day.rows += file.rows.unwrap_or(0);
            day.files += 1;
            day.bytes += file.size;
        }
        Ok(info)
    }

    /// Reads every data file and compares its SHA-256 with the log's. Returns how many were checked.
    ///
    /// # Errors
    /// [`ArchiveError::Digest`] for the first that differs, [`ArchiveError::BadData`] for one that is missing.
    pub async fn verify(&self) -> Result<u64> {
        let mut checked = 0;
        for file in self.files()? {
            if file.sha256.is_none() {
                continue;
            }
            let object = self.location.child(&file.path)?;
            let digest = object.digest().await;
            let (_, found) = digest.map_err(|error| error.or_missing(object.given()))?;
            file.check(object.given(), &found)?;
            checked += 1;
        }
        Ok(checked)
    }
}

/// Where the log is read and written: in the archive's own store, by conditional creates.
fn log_store(location: &Location) -> Result<LogStoreRef> {
    let url = table_url(location)?;
    let root = Arc::clone(location.store());
    let prefixed: Arc<dyn ObjectStore> = match location.path().as_ref().is_empty() {
        true => Arc::clone(&root),
        false => Arc::new(PrefixStore::new(Arc::clone(&root), location.path().clone())),
    };
    Ok(default_logstore(
        prefixed,
        root,
        &url,
        &StorageConfig::default(),
    ))
}

fn table_url(location: &Location) -> Result<Url> {
    let bad = |reason: &str| ArchiveError::BadPath {
        path: location.given().to_owned(),
        reason: reason.into(),
    };
    // The Delta library reads such names back decoded, and finds nothing.
    if location.path().as_ref().contains(['%', '\\']) {
        return Err(bad("an archive's path must not contain % or \\"));
    }
    match location.local() {
        Some(local) => Url::from_directory_path(local).map_err(|()| bad("not an absolute path")),
        None => {
            let mut url = location.url();
            url.set_path(&format!("{}/", url.path().trim_end_matches('/')));
            Ok(url)
        }
    }
}
