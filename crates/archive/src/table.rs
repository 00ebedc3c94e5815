//! The archive as a Delta Lake table: one atomic commit a day.
//!
//! Delta's application transaction, with the day as application id, makes a day exactly-once: of two runs that
//! commit the same day one wins, and the other finds the day there. Days do not conflict with each other.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::Int64Type;
use chrono::NaiveDate;
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties, TableReference};
use deltalake_core::kernel::{Action, Add, DataType, StructField, Transaction};
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::{DeltaTable, DeltaTableBuilder, DeltaTableError};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use parquet::arrow::AsyncArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use sha2::{Digest as _, Sha256};
use simhash::{Model, Spec};
use url::Url;

use crate::error::{ArchiveError, Result};
use crate::fingerprints::{self, FingerprintFile};
use crate::location::Location;
use crate::model::{self, Kept};
use crate::schema::{
    self, BASE_VERSION_TAG, DAY, DAY_DIGEST_TAG, FINGERPRINT, ID, IdType, SHA256_TAG, SPEC_KEY,
};
use crate::upload::{Upload, hex};

/// Rows of a data file; a day of more has several.
const FILE_ROWS: u64 = 16 * fingerprints::ROW_GROUP_ROWS as u64;

/// An archive at one version.
#[derive(Debug, Clone)]
pub struct Archive {
    location: Location,
    table: DeltaTable,
    spec: Spec,
    id_type: IdType,
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
    day_digest: Option<String>,
    base_version: Option<u64>,
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
        let local = location.local();
        if local.join("_delta_log").is_dir() {
            return Err(ArchiveError::Exists {
                path: given.to_owned(),
            });
        }
        let io = |source| ArchiveError::Io {
            path: given.to_owned(),
            source,
        };
        std::fs::create_dir_all(local).map_err(io)?;
        model::keep(location, spec, kept).await?;
        let store = DeltaTableBuilder::from_url(table_url(location)?)
            .and_then(|builder| builder.build_storage())
            .map_err(ArchiveError::delta(given))?;
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
        Self::load(location, None).await
    }

    /// Opens the archive as it was at `version`.
    ///
    /// # Errors
    /// As [`Self::open`], and when the log no longer reaches back so far.
    pub async fn open_at(location: &Location, version: u64) -> Result<Self> {
        Self::load(location, Some(version)).await
    }

    /// Whether there is a Delta table at `location`.
    #[must_use]
    pub fn is_at(location: &Location) -> bool {
        location.local().join("_delta_log").is_dir()
    }

    async fn load(location: &Location, version: Option<u64>) -> Result<Self> {
        let given = location.given();
        if !location.local().exists() {
            return Err(ArchiveError::NotFound {
                path: given.to_owned(),
            });
        }
        if !Self::is_at(location) {
            return Err(ArchiveError::NotAnArchive {
                path: given.to_owned(),
            });
        }
        let mut builder = DeltaTableBuilder::from_url(table_url(location)?)
            .map_err(ArchiveError::delta(given))?;
        if let Some(version) = version {
            builder = builder.with_version(version);
        }
        let table = builder.load().await.map_err(|error| match error {
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
        })
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

    /// Commits `file` as `day`: data files first, then one log entry. Rows without a fingerprint are left out.
    ///
    /// # Errors
    /// [`ArchiveError::DayDiffers`] when the day is there with other rows, [`ArchiveError::SpecMismatch`] when
    /// the fingerprints are of another spec; then, and on any other error, the table is as it was.
    pub async fn append(&mut self, day: NaiveDate, file: &FingerprintFile) -> Result<Append> {
        self.check(file)?;
        let base_version = self.version();
        if self.is_committed(day, file).await? {
            return Ok(Append::AlreadyThere);
        }
        let store = self.table.log_store().object_store(None);
        let mut written = Vec::new();
        if let Err(error) = self.write_files(&store, day, file, &mut written).await {
            remove(&store, &written).await;
            return Err(error);
        }
        match self.commit(day, file, base_version, &written).await {
            Ok(version) => Ok(Append::Committed(version)),
            Err(error) => self.settle(day, file, &store, &written, error).await,
        }
    }

    /// What became of a commit that ended with `error`. The outcome is in the log, whatever the response was; as
    /// long as it cannot be read, the data files stay, because it may name them.
    async fn settle(
        &mut self,
        day: NaiveDate,
        file: &FingerprintFile,
        store: &Arc<dyn ObjectStore>,
        written: &[WrittenFile],
        error: DeltaTableError,
    ) -> Result<Append> {
        *self = Self::open(&self.location).await?;
        let ours = |data: &DataFile| written.iter().any(|file| file.path.as_ref() == data.path);
        if self.files()?.iter().any(ours) {
            return Ok(Append::Committed(self.version()));
        }
        remove(store, written).await;
        if self.is_committed(day, file).await? {
            return Ok(Append::AlreadyThere);
        }
        Err(ArchiveError::delta(self.location.given())(error))
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

    /// Whether the day is there with the same rows.
    async fn is_committed(&self, day: NaiveDate, file: &FingerprintFile) -> Result<bool> {
        match self.committed(day).await? {
            None => Ok(false),
            Some(committed) if committed.digest == file.digest => Ok(true),
            Some(committed) => Err(ArchiveError::DayDiffers {
                path: self.location.to_string(),
                day: day.to_string(),
                committed: committed.digest,
                new: file.digest.clone(),
            }),
        }
    }

    async fn write_files(
        &self,
        store: &Arc<dyn ObjectStore>,
        day: NaiveDate,
        file: &FingerprintFile,
        written: &mut Vec<WrittenFile>,
    ) -> Result<()> {
        let mut rows = file.read()?;
        let mut rest = file.rows - file.without_fingerprint;
        // A day without rows is a file without rows: it carries the day's digest.
        loop {
            let count = rest.min(FILE_ROWS);
            let path = format!(
                "{DAY}={day}/part-{:05}-{}.parquet",
                written.len(),
                uuid::Uuid::new_v4()
            );
            let path = Path::parse(&path).map_err(|error| ArchiveError::BadPath {
                path,
                reason: error.to_string(),
            })?;
            written.push(self.write_file(store, path, count, &mut rows).await?);
            rest -= count;
            if rest == 0 {
                return Ok(());
            }
        }
    }

    /// Writes the next `count` rows as one data file.
    async fn write_file(
        &self,
        store: &Arc<dyn ObjectStore>,
        path: Path,
        count: u64,
        rows: &mut impl Iterator<Item = Result<RecordBatch>>,
    ) -> Result<WrittenFile> {
        let object = format!("{}/{path}", self.location);
        let failed = |error| ArchiveError::parquet(object.clone())(error);
        let schema = schema::fingerprints(self.id_type, false);
        let options = ArrowWriterOptions::new()
            .with_properties(fingerprints::properties(&self.spec, self.id_type))
            .with_skip_arrow_metadata(true);
        let (upload, uploaded) = Upload::new(Arc::clone(store), path.clone());
        let mut writer = AsyncArrowWriter::try_new_with_options(upload, schema.clone(), options)
            .map_err(failed)?;
        let mut bounds: Option<(i64, i64)> = None;
        let mut sums = fingerprints::RowGroupSums::default();
        let mut rest = count as usize;
        let arrow_error = |source| ArchiveError::Arrow {
            object: object.clone(),
            source,
        };
        // Batches divide the rows of a file evenly, so no batch spans two files.
        let mut coalescer = BatchCoalescer::new(schema.clone(), fingerprints::ROW_GROUP_ROWS / 32);
        while rest > 0 {
            let Some(batch) = rows.next().transpose()? else {
                return Err(ArchiveError::BadData {
                    object,
                    reason: format!("{rest} rows are missing"),
                });
            };
            // Rows without a fingerprint stand at the end.
            let present = (batch.num_rows() - batch.column(0).null_count()).min(rest);
            let batch = batch.slice(0, present);
            rest -= present;
            let columns = batch.columns().to_vec();
            let batch = RecordBatch::try_new(schema.clone(), columns).map_err(arrow_error)?;
            bounds = widen(bounds, &batch);
            sums.update(batch.column(0).as_primitive::<Int64Type>().values());
            coalescer.push_batch(batch).map_err(arrow_error)?;
            if rest == 0 {
                coalescer.finish_buffered_batch().map_err(arrow_error)?;
            }
            while let Some(batch) = coalescer.next_completed_batch() {
                writer.write(&batch).await.map_err(failed)?;
            }
        }
        writer.append_key_value_metadata(sums.to_metadata());
        writer.close().await.map_err(failed)?;
        let uploaded = uploaded.lock().await;
        Ok(WrittenFile {
            path,
            size: uploaded.size,
            sha256: uploaded.sha256(),
            rows: count,
            bounds,
        })
    }

    async fn commit(
        &mut self,
        day: NaiveDate,
        file: &FingerprintFile,
        base_version: u64,
        written: &[WrittenFile],
    ) -> Result<u64, DeltaTableError> {
        let now = chrono::Utc::now().timestamp_millis();
        let actions = written
            .iter()
            .map(|data| {
                Action::Add(Add {
                    path: data.path.to_string(),
                    partition_values: HashMap::from([(DAY.to_owned(), Some(day.to_string()))]),
                    size: data.size.cast_signed(),
                    modification_time: now,
                    data_change: true,
                    stats: Some(data.stats()),
                    tags: Some(HashMap::from([
                        (SHA256_TAG.to_owned(), Some(data.sha256.clone())),
                        (DAY_DIGEST_TAG.to_owned(), Some(file.digest.clone())),
                        (BASE_VERSION_TAG.to_owned(), Some(base_version.to_string())),
                    ])),
                    ..Default::default()
                })
            })
            .collect();
        let properties = CommitProperties::default()
            .with_application_transaction(Transaction::new(day.to_string(), 1))
            .with_metadata([
                ("documents".to_owned(), file.rows.into()),
                (
                    "withoutFingerprint".to_owned(),
                    file.without_fingerprint.into(),
                ),
            ])
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
        use futures::TryStreamExt as _;
        let store = self.table.log_store().object_store(None);
        let mut checked = 0;
        for file in self.files()? {
            let object = format!("{}/{}", self.location, file.path);
            let Some(expected) = file.sha256 else {
                continue;
            };
            let path = Path::parse(&file.path).map_err(|error| ArchiveError::BadPath {
                path: object.clone(),
                reason: error.to_string(),
            })?;
            let got = store.get(&path).await.map_err(|error| match error {
                object_store::Error::NotFound { .. } => ArchiveError::BadData {
                    object: object.clone(),
                    reason: "the archive's log names this file, but it is missing".into(),
                },
                error => ArchiveError::store(object.clone())(error),
            })?;
            let mut stream = got.into_stream();
            let mut digest = Sha256::new();
            while let Some(bytes) = stream
                .try_next()
                .await
                .map_err(ArchiveError::store(object.clone()))?
            {
                digest.update(&bytes);
            }
            let found = hex(&digest.finalize());
            if found != expected {
                return Err(ArchiveError::Digest {
                    object,
                    expected,
                    found,
                });
            }
            checked += 1;
        }
        Ok(checked)
    }
}

/// Removes data files that no log names, as far as possible: one that stays harms no reader.
async fn remove(store: &Arc<dyn ObjectStore>, written: &[WrittenFile]) {
    for data in written {
        if let Err(error) = store.delete(&data.path).await {
            tracing::warn!(path = %data.path, %error, "an unreferenced data file stays");
        }
    }
}

/// A data file that is complete, but not yet in the log.
struct WrittenFile {
    path: Path,
    size: u64,
    sha256: String,
    rows: u64,
    bounds: Option<(i64, i64)>,
}

impl WrittenFile {
    /// Delta's statistics: row count and the range of fingerprints.
    fn stats(&self) -> String {
        let mut stats = serde_json::json!({
            "numRecords": self.rows,
            "nullCount": { FINGERPRINT: 0, ID: 0 },
        });
        if let Some((least, most)) = self.bounds {
            stats["minValues"] = serde_json::json!({ FINGERPRINT: least });
            stats["maxValues"] = serde_json::json!({ FINGERPRINT: most });
        }
        stats.to_string()
    }
}

/// The range of fingerprints, with those of a sorted batch added.
fn widen(bounds: Option<(i64, i64)>, batch: &RecordBatch) -> Option<(i64, i64)> {
    use arrow::array::AsArray as _;
    let values = batch
        .column(0)
        .as_primitive::<arrow::datatypes::Int64Type>()
        .values();
    match (bounds, values.first(), values.last()) {
        (Some((least, _)), _, Some(&last)) => Some((least, last)),
        (None, Some(&first), Some(&last)) => Some((first, last)),
        (bounds, ..) => bounds,
    }
}

fn table_url(location: &Location) -> Result<Url> {
    let given = location.given();
    // The Delta library reads such names back decoded, and finds nothing.
    if location.local().to_string_lossy().contains(['%', '\\']) {
        return Err(ArchiveError::BadPath {
            path: given.to_owned(),
            reason: "an archive's path must not contain % or \\".into(),
        });
    }
    Url::from_directory_path(location.local()).map_err(|()| ArchiveError::BadPath {
        path: given.to_owned(),
        reason: "not an absolute path".into(),
    })
}
