//! The archive as a Delta Lake table: opens it at a version and commits the next one.

mod create;
mod data_file;
mod info;
mod log_entries;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties, TableReference};
use deltalake_core::kernel::{Action, Transaction};
use deltalake_core::protocol::DeltaOperation;
use deltalake_core::{DeltaTable, DeltaTableError};
use object_store::ObjectStore;
use serde_json::Value;
use simhash::{Model, Spec};
use storage::{ErrorKind, Location, StorageError};

use crate::delta::{catch_async_panic, log_store};
use crate::error::{ArchiveError, Result};
use crate::foreign;
use crate::parquet_properties::ROW_GROUP_ROWS;
use crate::remembered_log::LogBy;
use crate::run_defaults::{self, Recorded};
use crate::schema::{self, IdType, SPEC_KEY};
use crate::spec_files;

pub use data_file::{DataFile, Verified};
pub use info::{DayInfo, Info};

/// The default maximum rows of a data file; a day with more rows has several files.
pub const FILE_ROWS: u64 = 16 * ROW_GROUP_ROWS as u64;

/// An archive at one version.
#[derive(Debug, Clone)]
pub struct Archive {
    location: Location,
    pub(crate) table: DeltaTable,
    spec: Spec,
    id_type: IdType,
    has_kept: bool,
    /// All settings of runs that it recorded, the oldest first.
    pub(crate) recorded: Vec<Recorded>,
    /// The maximum rows of each data file that it writes.
    pub(crate) file_rows: u64,
}

/// Loads a table at `version`, or at its latest.
async fn load(location: &Location, version: Option<u64>, by: LogBy) -> Result<DeltaTable> {
    let given = location.given();
    let mut table = DeltaTable::new(log_store(location, by)?);
    let loading = async {
        match version {
            Some(version) => table.load_version(version).await,
            None => table.load().await,
        }
    };
    match catch_async_panic(loading).await {
        Ok(()) => Ok(table),
        Err(DeltaTableError::NotATable(_)) => Err(ArchiveError::NotAnArchive {
            path: given.to_owned(),
        }),
        Err(error) => Err(ArchiveError::delta(given)(error)),
    }
}

impl Archive {
    /// Opens the archive at its latest version.
    pub async fn open(location: &Location) -> Result<Self> {
        Self::open_at(location, None).await
    }

    /// Opens the archive at `version`; at its latest version if that is `None`.
    ///
    /// # Errors
    /// As [`Self::open`], and when the log does not have the version any more.
    pub async fn open_at(location: &Location, version: Option<u64>) -> Result<Self> {
        let given = location.given();
        if location.local().is_some_and(|local| !local.exists()) {
            return Err(StorageError::NotFound {
                path: given.to_owned(),
            }
            .into());
        }
        if !log_entries::has_any(location).await? {
            return Err(ArchiveError::NotAnArchive {
                path: given.to_owned(),
            });
        }
        let mut table = load(location, version, LogBy::Checkpoint).await;
        if matches!(&table, Err(error) if error.kind() != ErrorKind::Unreachable)
            && let Some(checkpoint) = log_entries::dispensable_checkpoint(location).await?
        {
            let by_entries = load(location, version, LogBy::Entries).await;
            if by_entries.is_ok() {
                tracing::warn!(
                    "{checkpoint} is missing or damaged: the log is read by its entries"
                );
                table = by_entries;
            }
        }
        let table = match table {
            // The library does not say which entry is damaged, and finds no table if the first is missing.
            Err(error) if matches!(error.kind(), ErrorKind::Data | ErrorKind::Configuration) => {
                return Err(log_entries::damage(location).await.unwrap_or(error));
            }
            table => table?,
        };
        if version.is_none() && log_entries::has_entry_behind(location, &table).await? {
            let latest = load(location, None, LogBy::Checkpoint).await?;
            // Another program has committed meanwhile, or a list of the log leaves its end out.
            if latest.version() <= table.version() {
                let missing = table.version().map_or(0, |version| version + 1);
                return Err(log_entries::short_list(
                    location,
                    log_entries::entry_name(missing),
                ));
            }
            return Box::pin(Self::open_at(location, None)).await;
        }
        foreign::refuse_unreadable(&table, given)?;
        let state = table.snapshot().map_err(ArchiveError::delta(given))?;
        let properties = state.metadata().configuration();
        let spec = properties.get(SPEC_KEY);
        let spec = spec.ok_or_else(|| ArchiveError::ForeignTable {
            path: given.to_owned(),
            reason: format!("it has no {SPEC_KEY}"),
        })?;
        let spec = Spec::from_json(spec).map_err(|source| ArchiveError::Spec {
            path: given.to_owned(),
            source,
        })?;
        let recorded = run_defaults::read(given, |key| properties.get(key))?;
        let (id_type, has_kept) = foreign::require_archive_schema(&table, &spec, given)?;
        Ok(Self {
            location: location.clone(),
            table,
            spec,
            id_type,
            has_kept,
            recorded,
            file_rows: FILE_ROWS,
        })
    }

    /// Opens the archive again, in place, at its latest version.
    pub async fn reopen(&mut self) -> Result<()> {
        let latest = Self::open(&self.location).await?;
        *self = latest.with_file_rows(self.file_rows);
        Ok(())
    }

    /// Whether there is a Delta table at `location`: a log with an entry.
    pub async fn is_at(location: &Location) -> Result<bool> {
        Ok(location.is_table().await?)
    }

    /// Sets the maximum rows of each data file that the archive writes; 0 counts as 1.
    pub fn with_file_rows(mut self, rows: u64) -> Self {
        self.file_rows = rows.max(1);
        self
    }

    /// The archive's location.
    pub fn location(&self) -> &Location {
        &self.location
    }

    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The spec with the files that it names, read from the archive's directory.
    pub async fn model(&self) -> Result<Model> {
        spec_files::load(&self.location, &self.spec).await
    }

    /// The id of the Delta table: it stays when the archive is moved.
    pub fn table_id(&self) -> &str {
        let state = self.table.snapshot().ok();
        state.map_or("", |state| state.metadata().id())
    }

    pub fn id_type(&self) -> IdType {
        self.id_type
    }

    /// Whether it has the column [`KEPT`](schema::KEPT): which of its documents were kept.
    pub fn has_kept(&self) -> bool {
        self.has_kept
    }

    /// Schema of the rows of its data files. With `nullable`, fingerprints may be null, as in files
    /// that other programs wrote.
    pub(crate) fn rows_schema(&self, nullable: bool) -> SchemaRef {
        let rows = schema::fingerprint_schema(self.id_type, self.spec.sketch, nullable);
        if self.has_kept {
            schema::with_kept(&rows)
        } else {
            rows
        }
    }

    /// The version at which the table is open.
    pub fn version(&self) -> u64 {
        self.table.version().unwrap_or(0)
    }

    /// Its store, with the archive's directory as the root.
    pub(crate) fn object_store(&self) -> Arc<dyn ObjectStore> {
        self.table.log_store().object_store(None)
    }

    /// Commits `actions` and `transactions` as the version after the one that the archive is open at, with `metadata` in the log
    /// entry. An error does not tell the outcome, because the store's answer may be lost: the caller must read the log.
    pub(crate) async fn commit_next(
        &mut self,
        actions: Vec<Action>,
        operation: DeltaOperation,
        transactions: Vec<Transaction>,
        metadata: Vec<(String, Value)>,
    ) -> Result<u64> {
        // A retry by the Delta library could commit a day after days that its batch was not compared with, or rewrite a
        // file that another commit has rewritten.
        let properties = CommitProperties::default()
            .with_application_transactions(transactions)
            .with_metadata(metadata)
            .with_max_retries(0)
            .with_cleanup_expired_logs(Some(false));
        let failed = || ArchiveError::delta(self.location.given());
        let state = self.table.snapshot().map_err(failed())?;
        let committed = CommitBuilder::from(properties)
            .with_actions(actions)
            .build(
                Some(state as &dyn TableReference),
                self.table.log_store(),
                operation,
            )
            .await
            .map_err(failed())?;
        let version = committed.version();
        self.table.state = Some(committed.snapshot());
        Ok(version)
    }
}
