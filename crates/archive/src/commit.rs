//! Committing days: one log entry a day, exactly once.
//!
//! Each commit carries a Delta application transaction with the day as its application id: if two runs commit the same
//! day, one commits it, and the other finds it committed. A run compares a day with one version of the table, and commits
//! it as the next version, or as a later one if no rows were added or removed in between. So each day was compared with
//! all days that were committed before it.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::error::ArrowError;
use deltalake_core::kernel::transaction::{PROTOCOL, TableReference, TransactionError};
use deltalake_core::kernel::{Action, Transaction};
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use storage::{ErrorKind, require_conditional_create};

use crate::data_files::{RowsToWrite, WrittenFile};
use crate::day_batch::DayBatch;
use crate::day_records::{CommittedDay, Record};
use crate::decision_settings::DecisionSettings;
use crate::error::{ArchiveError, Result};
use crate::fingerprint_file::FingerprintFile;
use crate::rulings::{self, Ruling};
use crate::schema::{self, DAY};
use crate::table::{Archive, DataFile};
use crate::template_memory::{self, CommittedMemory};

/// Maximum attempts to commit, if another commit (such as another program's OPTIMIZE) comes first
/// each time.
pub(crate) const COMMIT_ATTEMPTS: usize = 20;

/// The outcome of committing a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Append {
    /// The day was committed as this version.
    Committed(u64),
    /// The day was already committed with the same rows; nothing was changed.
    AlreadyThere,
    /// Rows or rulings were added or removed after the version that the day was compared with; nothing was changed.
    Overtaken,
}

/// Whether a day that is in the archive may be replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Existing {
    /// No: a commit of other rows for the day is refused.
    #[default]
    Keep,
    /// Yes: the commit of the new rows also removes the day's old rows.
    Replace,
}

/// The decisions on the rows of a batch, and whether the archive gets only the kept rows.
#[derive(Debug, Clone)]
pub struct RowDecisions {
    /// For each row of the batch's file: whether it is kept.
    pub kept: BooleanBuffer,
    /// The settings of the decisions, and whether only the kept rows are appended.
    pub settings: DecisionSettings,
}

impl RowDecisions {
    /// The rows of a record batch that are appended, with the column `kept` if `has_kept`; `first` is the first row's number in
    /// the batch's file.
    fn apply(
        &self,
        rows: &RecordBatch,
        first: usize,
        has_kept: bool,
    ) -> Result<RecordBatch, ArrowError> {
        let kept = BooleanArray::from(self.kept.slice(first, rows.num_rows()));
        let rows = if has_kept {
            with_kept(rows, kept.clone())?
        } else {
            rows.clone()
        };
        if self.settings.only_kept {
            arrow::compute::filter_record_batch(&rows, &kept)
        } else {
            Ok(rows)
        }
    }

    /// How many of the first `rows` rows are appended.
    fn count(&self, rows: usize) -> usize {
        if self.settings.only_kept {
            self.kept.slice(0, rows).count_set_bits()
        } else {
            rows
        }
    }
}

pub(crate) fn with_kept(rows: &RecordBatch, kept: BooleanArray) -> Result<RecordBatch, ArrowError> {
    let mut columns = rows.columns().to_vec();
    columns.push(Arc::new(kept));
    RecordBatch::try_new(schema::with_kept(&rows.schema()), columns)
}

/// A day whose data files are written and verified, but not yet in the log.
#[derive(Debug)]
pub struct StagedDay {
    pub(crate) batch: DayBatch,
    /// Names the commit in tags and rulings.
    commit: String,
    digest: String,
    pub(crate) documents: u64,
    without_fingerprint: u64,
    /// Rows of its data files.
    pub(crate) rows: u64,
    decisions: Option<DecisionSettings>,
    templates: Option<CommittedMemory>,
    /// The list of rulings with those of the day; `None` if it brings none.
    pub(crate) rulings: Option<i64>,
    pub(crate) files: Vec<WrittenFile>,
}

fn new_commit() -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    id[..16].to_owned()
}

impl StagedDay {
    /// A copy of a day of another archive, without rows yet.
    pub(crate) fn of_copy(batch: DayBatch, committed: &CommittedDay) -> Self {
        Self {
            batch,
            commit: committed.commit.clone().unwrap_or_else(new_commit),
            digest: committed.digest.clone(),
            documents: committed.rows.unwrap_or(0),
            without_fingerprint: 0,
            rows: 0,
            decisions: committed.decisions.clone(),
            templates: None,
            rulings: None,
            files: Vec::new(),
        }
    }

    /// The same day, committed with what is remembered of templates.
    pub fn with_templates(self, templates: Option<CommittedMemory>) -> Self {
        Self { templates, ..self }
    }
}

impl Archive {
    /// Commits `file` as `day`, even if other days were committed since the archive was opened. Leaves out rows without
    /// a fingerprint.
    pub async fn append(
        &mut self,
        day: impl Into<DayBatch>,
        file: &FingerprintFile,
        existing: Existing,
    ) -> Result<Append> {
        let nothing = async |_: &Self| Ok(None);
        self.append_with(day, file, existing, nothing).await
    }

    /// As [`Self::append`], together with the memory of templates that `templates` makes. Each attempt calls it with the archive as it
    /// is then.
    ///
    /// # Errors
    /// As [`Self::append`], and those of `templates`.
    pub async fn append_with<E: From<ArchiveError>>(
        &mut self,
        day: impl Into<DayBatch>,
        file: &FingerprintFile,
        existing: Existing,
        mut templates: impl AsyncFnMut(&Self) -> std::result::Result<Option<CommittedMemory>, E>,
    ) -> std::result::Result<Append, E> {
        let day = day.into();
        self.check_compatible(file)?;
        let committed = self.is_committed(day, &file.day_digest, None, existing);
        if committed.await? {
            return Ok(Append::AlreadyThere);
        }
        self.preflight().await?;
        let mut staged = self.stage(day, file, None).await?;
        loop {
            staged = staged.with_templates(templates(self).await?);
            match self.commit(&staged, existing).await? {
                Append::Overtaken => {}
                done => return Ok(done),
            }
        }
    }

    /// The day, to be committed with these rulings.
    pub async fn with_rulings(
        &self,
        mut staged: StagedDay,
        rulings: &[Ruling],
    ) -> Result<StagedDay> {
        staged.rulings = match rulings {
            [] => None,
            _ => Some(self.write_rulings(&staged.commit, rulings).await?),
        };
        Ok(staged)
    }

    /// Tests that the archive can be committed to: that this program writes all features of the table, and that the store honours
    /// conditional creates, which make commits atomic. Must precede any commit.
    ///
    /// # Errors
    /// [`ArchiveError::Unwritable`]; [`Unconditional`](storage::StorageError::Unconditional) when the store does not honour them; or a
    /// store's error.
    pub async fn preflight(&self) -> Result<()> {
        match self.unwritable_features()? {
            Some(features) => Err(ArchiveError::Unwritable {
                path: self.location().given().to_owned(),
                features,
            }),
            None => Ok(require_conditional_create(self.location()).await?),
        }
    }

    /// The features of the table that this program does not write, if there are any.
    pub fn unwritable_features(&self) -> Result<Option<String>> {
        let failed = ArchiveError::delta(self.location().given());
        let state = self.table.snapshot().map_err(failed)?;
        Ok(match PROTOCOL.can_write_to(state as &dyn TableReference) {
            Ok(()) => None,
            Err(TransactionError::UnsupportedTableFeatures(features)) => {
                let mut names: Vec<String> = features.iter().map(ToString::to_string).collect();
                names.sort();
                Some(names.join(", "))
            }
            Err(error) => Some(error.to_string()),
        })
    }

    /// Writes `file` as data files of `day` and reads them back. Leaves out rows without a
    /// fingerprint. If the archive has the column `kept`, the column gets the `decisions`, or nulls
    /// if there are none.
    ///
    /// # Errors
    /// [`ArchiveError::SpecMismatch`] when the fingerprints are of another spec, [`ArchiveError::Digest`] when the store
    /// returns other bytes than were written. The table does not change.
    pub async fn stage(
        &self,
        day: impl Into<DayBatch>,
        file: &FingerprintFile,
        decisions: Option<&RowDecisions>,
    ) -> Result<StagedDay> {
        let batch = day.into();
        self.check_compatible(file)?;
        let present = file.rows - file.without_fingerprint;
        let count = match decisions {
            Some(decisions) if decisions.kept.len() as u64 == file.rows => {
                decisions.count(present as usize) as u64
            }
            Some(decisions) => {
                return Err(ArchiveError::bad_data(
                    file.path.display(),
                    format!("{} decisions for {} rows", decisions.kept.len(), file.rows),
                ));
            }
            None => present,
        };
        let mut staged = StagedDay {
            batch,
            commit: new_commit(),
            digest: file.day_digest.clone(),
            documents: file.rows,
            without_fingerprint: file.without_fingerprint,
            rows: count,
            decisions: decisions.map(|decisions| decisions.settings.clone()),
            templates: None,
            rulings: None,
            files: Vec::new(),
        };
        let object = file.path.display().to_string();
        let has_kept = self.has_kept();
        let mut first = 0;
        let rows = file.read()?.map(move |rows| {
            let rows = rows?;
            let at = first;
            first += rows.num_rows();
            let rows = match decisions {
                Some(decisions) => decisions.apply(&rows, at, has_kept),
                None if has_kept => with_kept(&rows, BooleanArray::new_null(rows.num_rows())),
                None => Ok(rows),
            };
            rows.map_err(ArchiveError::arrow(&object))
        });
        let mut rows = RowsToWrite::new(rows);
        let written = self.write_files(Some(batch.day), count, &mut rows, &mut staged.files);
        if let Err(error) = written.await {
            // On an unreachable store, each removal would wait for the whole deadline.
            if error.kind() != ErrorKind::Unreachable {
                self.discard(&staged).await;
            }
            return Err(error);
        }
        Ok(staged)
    }

    /// Commits a day that was compared with the version that the archive is open at. If other commits since then
    /// changed no rows and no rulings, commits the day after them; otherwise returns [`Append::Overtaken`], with the archive open at
    /// the latest version.
    ///
    /// # Errors
    /// [`ArchiveError::DayDiffers`] when the day is committed with other rows, [`ArchiveError::ForeignRows`] when another
    /// program wrote rows of the day. On an error the table does not change, with one exception: if the store does not
    /// answer whether it has the log entry, the day may be committed, and the data files stay.
    pub async fn commit(&mut self, staged: &StagedDay, existing: Existing) -> Result<Append> {
        for _ in 0..COMMIT_ATTEMPTS {
            let version = self.version();
            let is_there = |file: &DataFile| file.batch() == Some(staged.batch);
            if existing == Existing::Keep && self.files()?.iter().any(is_there) {
                self.discard(staged).await;
                return Err(ArchiveError::ForeignRows {
                    path: self.location().to_string(),
                    day: staged.batch.to_string(),
                });
            }
            self.require_staged_files(staged).await?;
            let error = match self.try_commit(staged, version, existing).await? {
                Ok(version) => return Ok(Append::Committed(version)),
                Err(error) => error,
            };
            // Only the log tells the outcome: the store's answer may be lost.
            self.reopen().await?;
            if self.next_entry_adds(version, &staged.files).await? {
                return Ok(Append::Committed(version + 1));
            }
            let (batch, decisions) = (staged.batch, staged.decisions.as_ref());
            let committed = self.is_committed(batch, &staged.digest, decisions, existing);
            match committed.await {
                Ok(false) => {}
                Ok(true) => {
                    self.discard(staged).await;
                    return Ok(Append::AlreadyThere);
                }
                Err(error) => {
                    // Another commit has the day, so no log entry can name these files any more.
                    if matches!(
                        error,
                        ArchiveError::DayDiffers { .. } | ArchiveError::DecisionsDiffer { .. }
                    ) {
                        self.discard(staged).await;
                    }
                    return Err(error);
                }
            }
            if error.kind() != ErrorKind::TryAgain || self.version() == version {
                return Err(error);
            }
            if self.has_changed_since(version).await? {
                return Ok(Append::Overtaken);
            }
            tracing::info!(
                version = self.version(),
                "other commits came first, but changed no rows: the day is committed after them"
            );
        }
        Err(self.busy_error())
    }

    /// Whether the log entry after `version` adds a file of `written`: the commit then succeeded, though its answer was
    /// lost.
    pub(crate) async fn next_entry_adds(
        &self,
        version: u64,
        written: &[WrittenFile],
    ) -> Result<bool> {
        if self.version() == version {
            return Ok(false);
        }
        let actions = self.log_actions(version + 1).await?.unwrap_or_default();
        Ok(actions.iter().any(|action| match action {
            Action::Add(add) => written.iter().any(|file| file.path == add.path),
            _ => false,
        }))
    }

    /// The error after [`COMMIT_ATTEMPTS`] attempts, if another commit came first each time.
    pub(crate) fn busy_error(&self) -> ArchiveError {
        ArchiveError::Busy {
            path: self.location().to_string(),
            attempts: COMMIT_ATTEMPTS,
        }
    }

    /// Fails if a data file of the staged day is gone: a vacuum may have removed it.
    async fn require_staged_files(&self, staged: &StagedDay) -> Result<()> {
        for file in &staged.files {
            let object = self.location().child(&file.path)?;
            if !object.exists().await? {
                return Err(ArchiveError::StagedFileMissing {
                    object: object.to_string(),
                });
            }
        }
        Ok(())
    }

    /// Removes the data files of a day that was not committed. Only warns if that fails: a leftover
    /// file harms no reader.
    ///
    /// Files that the log names stay: if another program has cleaned the log up meanwhile, no entry says that this commit
    /// came through.
    pub async fn discard(&self, staged: &StagedDay) {
        let Ok(live) = self.files() else { return };
        let is_named = |file: &&WrittenFile| live.iter().any(|other| other.path == file.path);
        let unnamed = staged.files.iter().filter(|file| !is_named(file));
        self.remove_written(unnamed).await;
    }

    /// Refuses fingerprints of another spec, and ids of another type.
    fn check_compatible(&self, file: &FingerprintFile) -> Result<()> {
        if file.spec != *self.spec() {
            return Err(ArchiveError::SpecMismatch {
                left: self.location().to_string(),
                right: file.path.display().to_string(),
                differences: self.spec().differences(&file.spec),
            });
        }
        if file.id_type != self.id_type() {
            return Err(ArchiveError::bad_data(
                file.path.display(),
                format!(
                    "its ids are {}, those of {} are {}",
                    file.id_type,
                    self.location(),
                    self.id_type()
                ),
            ));
        }
        Ok(())
    }

    /// Whether the day is committed with rows of this digest, and with these decisions.
    ///
    /// # Errors
    /// [`ArchiveError::DayDiffers`] and [`ArchiveError::DecisionsDiffer`] when it is committed with
    /// other rows or decisions, and `existing` is [`Existing::Keep`].
    pub async fn is_committed(
        &self,
        batch: DayBatch,
        digest: &str,
        decisions: Option<&DecisionSettings>,
        existing: Existing,
    ) -> Result<bool> {
        let committed = match self.committed(batch).await {
            Err(ArchiveError::ForeignRows { .. }) if existing == Existing::Replace => None,
            committed => committed?,
        };
        match committed {
            None => Ok(false),
            Some(committed) if committed.is_same(digest, decisions) => Ok(true),
            Some(_) if existing == Existing::Replace => Ok(false),
            Some(committed) => {
                let path = self.location().to_string();
                Err(committed.differs(path, batch, digest, decisions))
            }
        }
    }

    /// Tries once to commit a day that was compared with `base_version`. After an outer error,
    /// nothing was committed. The inner error is the commit's own, and leaves its outcome unknown.
    async fn try_commit(
        &mut self,
        staged: &StagedDay,
        base_version: u64,
        existing: Existing,
    ) -> Result<Result<u64>> {
        if existing == Existing::Replace {
            self.refuse_mixed(staged.batch).await?;
        }
        let mut replaced = self.files()?;
        replaced.retain(|file| file.batch() == Some(staged.batch));
        let entry = Entry::new(staged, base_version, &replaced);
        self.write_record(staged.batch, &entry.record).await?;
        let (actions, transactions) = (entry.actions, entry.transactions);
        let committed = self.commit_next(actions, entry.operation, transactions, entry.metadata);
        Ok(committed.await)
    }
}

/// What the log entry of a day has.
pub(crate) struct Entry {
    pub(crate) record: Record,
    pub(crate) actions: Vec<Action>,
    pub(crate) operation: DeltaOperation,
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) metadata: Vec<(String, serde_json::Value)>,
}

impl Entry {
    /// The entry of a day that was compared with `base_version`, and that replaces the files `replaced`.
    pub(crate) fn new(staged: &StagedDay, base_version: u64, replaced: &[DataFile]) -> Self {
        let (batch, day) = (staged.batch, staged.batch.day);
        let now = chrono::Utc::now().timestamp_millis();
        let committed = CommittedDay {
            digest: staged.digest.clone(),
            base_version,
            rows: Some(staged.rows),
            decisions: staged.decisions.clone(),
            templates: staged.templates.and_then(|templates| templates.before),
            commit: Some(staged.commit.clone()),
        };
        let record = Record::new(batch, &committed);
        let removed = replaced.iter().map(|file| file.remove_action(now, true));
        let added = staged.files.iter();
        let added = added.map(|file| file.add_action(Some(batch), Some(&committed), now, true));
        let actions = removed.chain(added).collect();
        let memory = staged.templates.map(|templates| templates.after);
        let of_templates = memory.map(|file| Transaction::new(template_memory::TRANSACTION, file));
        let list = staged.rulings;
        let of_rulings = list.map(|list| Transaction::new(rulings::TRANSACTION, list));
        let of_day = Transaction::new(batch.to_string(), record.transaction_version);
        let (mode, predicate) = if replaced.is_empty() {
            (SaveMode::Append, None)
        } else {
            (SaveMode::Overwrite, Some(format!("{DAY} = '{day}'")))
        };
        let operation = DeltaOperation::Write {
            mode,
            partition_by: Some(vec![DAY.to_owned()]),
            predicate,
        };
        let transactions = [Some(of_day), of_templates, of_rulings];
        let without = staged.without_fingerprint;
        Self {
            record,
            actions,
            operation,
            transactions: transactions.into_iter().flatten().collect(),
            metadata: vec![
                ("documents".to_owned(), staged.documents.into()),
                ("withoutFingerprint".to_owned(), without.into()),
            ],
        }
    }
}
