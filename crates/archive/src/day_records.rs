//! The records of how days were committed, kept where other programs do not rewrite them.
//!
//! A Delta application transaction marks a committed day; its application id is the day. The
//! transaction's version, which Delta leaves to the program, points to a record beside the table,
//! `_dedup-job/days/DAY-VERSION.json`. The version is the first 64 bits of the record's SHA-256
//! without the sign bit, so that readers detect a damaged or replaced record. The tags of the day's
//! data files say the same and cost no request, but other programs drop them when they rewrite
//! files.
//!
//! Transaction version 0 marks a removed day.

use std::collections::{BTreeSet, HashMap};

use arrow::array::RecordBatch;
use bytes::Bytes;
use deltalake_core::kernel::Action;
use futures::{StreamExt as _, TryStreamExt as _};
use serde::{Deserialize, Serialize};
use storage::StorageError;

use crate::beside::version_of;
use crate::day_batch::DayBatch;
use crate::decision_settings::{DecisionSettings, describe};
use crate::delta::catch_async_panic;
use crate::error::{ArchiveError, Result};
use crate::operations::{is_rewrite, operation_name};
use crate::schema::DAY;
use crate::table::{Archive, DataFile};

/// The directory of records, below the archive's.
pub(crate) const DIRECTORY: &str = "_dedup-job/days";

/// Maximum number of records read at a time.
const CONCURRENT_RECORDS: usize = 32;

/// Transaction version of a day that was removed.
pub(crate) const REMOVED: i64 = 0;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommittedDay {
    /// Digest of its rows.
    pub digest: String,
    /// The table version that the day was compared with.
    pub base_version: u64,
    /// Its rows in the archive; `None` if only the tags of its files say how it was committed.
    pub rows: Option<u64>,
    /// How its documents were decided; `None` if they were not. `digest` covers all documents of
    /// the batch that have a fingerprint, even those that were not appended.
    #[serde(default)]
    pub decisions: Option<DecisionSettings>,
    /// The memory of templates that its fingerprints were made with; `None` if there was none.
    #[serde(default)]
    pub templates: Option<i64>,
    /// What names the commit in rulings.
    #[serde(default)]
    pub commit: Option<String>,
}

impl CommittedDay {
    /// How the day of a data file was committed, by the file's tags; `None` if another program wrote it.
    pub(crate) fn of_file(file: &DataFile) -> Option<Self> {
        Some(Self {
            digest: file.day_digest.clone()?,
            base_version: file.base_version?,
            rows: None,
            decisions: file.decisions.clone(),
            templates: None,
            commit: file.commit.clone(),
        })
    }

    /// Whether this day was committed with a batch of this digest and these decisions. A batch
    /// without decisions also equals a day with decisions if the day has all documents.
    pub(crate) fn is_same(&self, digest: &str, decisions: Option<&DecisionSettings>) -> bool {
        let same_decisions = match (&self.decisions, decisions) {
            (Some(committed), None) => !committed.only_kept,
            (committed, decisions) => committed.as_ref() == decisions,
        };
        self.digest == digest && same_decisions
    }

    /// The error for a batch that differs from the `day` that the archive at `path` already has.
    pub(crate) fn differs(
        self,
        path: String,
        batch: DayBatch,
        digest: &str,
        decisions: Option<&DecisionSettings>,
    ) -> ArchiveError {
        let day = batch.to_string();
        if self.digest == digest {
            return ArchiveError::DecisionsDiffer {
                path,
                day,
                committed: describe(self.decisions.as_ref()),
                new: describe(decisions),
            };
        }
        ArchiveError::DayDiffers {
            path,
            day,
            committed: self.digest,
            new: digest.to_owned(),
        }
    }
}

/// The record of a day, and the transaction version that points to it.
pub(crate) struct Record {
    pub(crate) transaction_version: i64,
    bytes: Bytes,
}

impl Record {
    pub(crate) fn new(batch: DayBatch, committed: &CommittedDay) -> Self {
        let text = serde_json::json!({
            "day": batch.to_string(),
            "digest": committed.digest,
            "base_version": committed.base_version,
            "rows": committed.rows,
            "decisions": committed.decisions,
            "templates": committed.templates,
            // Also gives each record a path of its own: a vacuum may be deleting a record that is otherwise equal.
            "commit": committed.commit.clone().unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
        });
        let bytes = Bytes::from(format!("{text}\n"));
        Self {
            transaction_version: transaction_version_of(&bytes),
            bytes,
        }
    }
}

fn transaction_version_of(record: &[u8]) -> i64 {
    version_of(record).max(REMOVED + 1)
}

/// The path of a record below the archive's directory.
pub(crate) fn record_path(batch: DayBatch, transaction_version: i64) -> String {
    let name = batch.file_name();
    format!("{DIRECTORY}/{name}-{transaction_version:016x}.json")
}

pub(crate) fn parse_record_path(path: &str) -> Option<(DayBatch, i64)> {
    let name = path.strip_prefix(DIRECTORY)?.strip_prefix('/')?;
    let (batch, version) = name.strip_suffix(".json")?.rsplit_once('-')?;
    let version = i64::from_str_radix(version, 16).ok()?;
    let batch = DayBatch::from_file_name(batch)?;
    (record_path(batch, version) == path).then_some((batch, version))
}

impl Archive {
    /// How a day, or a batch of one, was committed, if it was.
    ///
    /// # Errors
    /// [`ArchiveError`] when the log cannot be read, neither a record nor a tag of the commit is left, the record of an archive that
    /// remembers templates is missing, or the day's files contradict its transaction.
    pub async fn committed(&self, batch: impl Into<DayBatch>) -> Result<Option<CommittedDay>> {
        let batch = batch.into();
        let given = self.location().given();
        let files = self.files()?;
        let of_day: Vec<&DataFile> = files.iter().filter(|file| file.may_have(batch)).collect();
        let by_tags = of_day.iter().find_map(|file| CommittedDay::of_file(file));
        let foreign = |reason: &str| {
            Err(ArchiveError::ForeignTable {
                path: given.to_owned(),
                reason: format!("day {batch} {reason}"),
            })
        };
        let committed = match (self.transaction_version(batch).await?, by_tags) {
            // A copy of the table may have lost the transaction.
            (None, by_tags) => return Ok(by_tags),
            (Some(REMOVED), None) => return Ok(None),
            (Some(REMOVED), Some(_)) => {
                return foreign(
                    "was removed, and another program brought its files back (RESTORE); remove it again",
                );
            }
            (Some(version), by_tags) => match (self.read_record(batch, version).await?, by_tags) {
                (Some(record), Some(by_tags))
                    if (&record.digest, &record.decisions, &record.commit)
                        != (&by_tags.digest, &by_tags.decisions, &by_tags.commit) =>
                {
                    return foreign(
                        "has files of another commit, which another program brought back (RESTORE); remove it, and commit it again",
                    );
                }
                (Some(record), _) => record,
                // Tags do not say which templates were known.
                (None, Some(by_tags)) => match self.template_memory().await? {
                    Some(_) => {
                        let object = self.location().child_name(&record_path(batch, version));
                        return Err(ArchiveError::NoTemplateMemory { object });
                    }
                    None => by_tags,
                },
                (None, None) => {
                    return foreign(
                        "is committed, but its record below _dedup-job/ is missing, and nothing else says with which rows it was committed",
                    );
                }
            },
        };
        if of_day.is_empty()
            && committed.rows != Some(0)
            && self.was_restored_since(committed.base_version).await?
        {
            return foreign(
                "is committed, but another program took its files away (RESTORE), or the log no longer says where they went; remove the day, and commit it again",
            );
        }
        if self.is_overwritten(batch, &committed, &of_day).await? {
            return Err(ArchiveError::ForeignRows {
                path: given.to_owned(),
                day: batch.to_string(),
            });
        }
        Ok(Some(committed))
    }

    /// Whether another program restored an earlier version of the table after `version`, or may have, because an entry of the log was
    /// cleaned up.
    async fn was_restored_since(&self, version: u64) -> Result<bool> {
        for version in version + 1..=self.version() {
            match self.log_actions(version).await? {
                Some(actions) if operation_name(&actions) != Some("RESTORE") => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Whether the files of a committed day have rows of other programs alone: these overwrote the day. A program that rewrites rows
    /// (OPTIMIZE, DELETE) or brings files back (RESTORE) leaves the day's own.
    async fn is_overwritten(
        &self,
        batch: DayBatch,
        committed: &CommittedDay,
        files: &[&DataFile],
    ) -> Result<bool> {
        let is_own = |file: &&DataFile| file.day_digest.as_ref() == Some(&committed.digest);
        if files.is_empty() || files.iter().any(is_own) {
            return Ok(false);
        }
        let (name, day) = (batch.to_string(), batch.day.to_string());
        // For each file of the day since its commit: whether it has rows of the commit.
        let mut own: HashMap<String, bool> = HashMap::new();
        for version in committed.base_version + 1..=self.version() {
            let Some(actions) = self.log_actions(version).await? else {
                // What was cleaned up may have brought other rows.
                return Ok(true);
            };
            let commits =
                |action: &Action| matches!(action, Action::Txn(txn) if txn.app_id == name);
            let is_commit = actions.iter().any(commits);
            let is_rewrite = is_rewrite(&actions);
            let removes_own = actions.iter().any(|action| {
                matches!(action, Action::Remove(file) if own.get(&file.path) == Some(&true))
            });
            for action in &actions {
                if let Action::Add(file) = action
                    && file.partition_values.get(DAY).cloned().flatten().as_deref() == Some(&day)
                {
                    let rewrites_own = removes_own && (is_rewrite || !file.data_change);
                    own.entry(file.path.clone())
                        .or_insert(is_commit || rewrites_own);
                }
            }
        }
        Ok(!files.iter().any(|file| own.get(&file.path) == Some(&true)))
    }

    /// The day, or the batch of one, that was committed with rows of this digest. If several were, the one compared with
    /// the earliest version.
    pub async fn committed_as(&self, digest: &str) -> Result<Option<(DayBatch, CommittedDay)>> {
        let files = self.files()?;
        let batches = files.iter().filter_map(DataFile::batch);
        let mut batches: BTreeSet<DayBatch> = batches.collect();
        // A day whose documents were all removed has a record and no files.
        batches.extend(self.recorded_batches().await?);
        let mut found: Option<(DayBatch, CommittedDay)> = None;
        for batch in batches {
            let mut tagged = files.iter().filter(|file| file.batch() == Some(batch));
            let tag = tagged.find_map(|file| file.day_digest.as_deref());
            if tag.is_some_and(|tag| tag != digest) {
                continue;
            }
            let committed = match self.committed(batch).await {
                // The log no longer tells this day's committed rows; another day may have the
                // digest.
                Err(
                    error @ (ArchiveError::ForeignTable { .. } | ArchiveError::ForeignRows { .. }),
                ) if tag.is_none() => {
                    tracing::warn!("{error}");
                    continue;
                }
                committed => committed?,
            };
            let committed = committed.filter(|committed| committed.digest == digest);
            let Some(committed) = committed else { continue };
            let is_first = found
                .as_ref()
                .is_none_or(|(_, first)| committed.base_version < first.base_version);
            if is_first {
                found = Some((batch, committed));
            }
        }
        Ok(found)
    }

    pub(crate) async fn recorded_batches(&self) -> Result<BTreeSet<DayBatch>> {
        let records = self.listed_records().await?;
        Ok(records.into_iter().map(|(batch, _)| batch).collect())
    }

    /// The records that there are, also those that no transaction points to.
    async fn listed_records(&self) -> Result<Vec<(DayBatch, i64)>> {
        let listed = self.location().child(DIRECTORY)?.list().await?;
        let names = listed
            .iter()
            .filter_map(|object| object.location.filename());
        let records = names.filter_map(|name| parse_record_path(&format!("{DIRECTORY}/{name}")));
        Ok(records.collect())
    }

    /// Reads the record of each batch that has files of its commit.
    ///
    /// # Errors
    /// [`ArchiveError::BadData`] for the first that is missing or damaged.
    pub(crate) async fn verify_records(&self) -> Result<()> {
        let mut listed: HashMap<DayBatch, Vec<i64>> = HashMap::new();
        for (batch, version) in self.listed_records().await? {
            listed.entry(batch).or_default().push(version);
        }
        let files = self.files()?;
        let digests: HashMap<DayBatch, String> = files
            .iter()
            .filter_map(|file| Some((file.batch()?, file.day_digest.clone()?)))
            .collect();
        let checks = digests.into_iter().map(async |(batch, digest)| {
            let listed = listed.get(&batch).map(Vec::as_slice);
            // If there is one record, it is the one that the log points to. To ask the log reads much of it.
            if let Some([version]) = listed
                && let Some(record) = self.read_record(batch, *version).await?
                && record.digest == digest
            {
                return Ok(());
            }
            match self.transaction_version(batch).await? {
                Some(version) if version != REMOVED => {
                    let object = self.location().child_name(&record_path(batch, version));
                    let record = self.read_record(batch, version).await?;
                    record
                        .map(drop)
                        .ok_or_else(|| ArchiveError::missing(&object))
                }
                _ => Ok(()),
            }
        });
        let checks = futures::stream::iter(checks).buffer_unordered(CONCURRENT_RECORDS);
        checks.try_collect().await
    }

    /// Whether the archive still has exactly the rows that the day's commit wrote: all of its files carry the commit's
    /// `digest`, and together they hold `committed_rows` rows.
    pub fn is_whole(&self, batch: DayBatch, digest: &str, committed_rows: u64) -> Result<bool> {
        let files = self.files()?;
        let mut of_day = files.iter().filter(|file| file.may_have(batch));
        let is_own = of_day
            .clone()
            .all(|file| file.day_digest.as_deref() == Some(digest));
        let rows: Option<u64> = of_day.try_fold(0, |sum: u64, file| sum.checked_add(file.rows?));
        Ok(is_own && rows == Some(committed_rows))
    }

    /// Calls `each` with the current rows of a batch, in record batches, in no particular order.
    pub async fn read_batch(
        &self,
        batch: DayBatch,
        mut each: impl FnMut(&RecordBatch),
    ) -> Result<()> {
        let files = self.files()?;
        for file in files.iter().filter(|file| file.may_have(batch)) {
            for batch in self.stored_rows(file).await? {
                each(&batch?);
            }
        }
        Ok(())
    }

    pub(crate) async fn transaction_version(&self, batch: DayBatch) -> Result<Option<i64>> {
        self.app_transaction(&batch.to_string()).await
    }

    /// The version of the transaction of an application id, if there is one.
    pub(crate) async fn app_transaction(&self, app_id: &str) -> Result<Option<i64>> {
        let failed = || ArchiveError::delta(self.location().given());
        let state = self.table.snapshot().map_err(failed())?;
        let log = self.table.log_store();
        let reading = state.transaction_version(log.as_ref(), app_id);
        catch_async_panic(reading).await.map_err(failed())
    }

    /// The record that the transaction of a batch points to, if it has one.
    pub(crate) async fn last_record(&self, batch: DayBatch) -> Result<Option<CommittedDay>> {
        match self.transaction_version(batch).await? {
            Some(version) => self.read_record(batch, version).await,
            None => Ok(None),
        }
    }

    /// Reads the record that a day's transaction points to; `None` when it is missing, as in a copy of the table alone.
    pub(crate) async fn read_record(
        &self,
        batch: DayBatch,
        transaction_version: i64,
    ) -> Result<Option<CommittedDay>> {
        let location = self
            .location()
            .child(&record_path(batch, transaction_version))?;
        let bytes = match location.read().await {
            // A store that has it may deny it once.
            Err(StorageError::NotFound { .. }) => location.read().await,
            bytes => bytes,
        };
        let bytes = match bytes {
            Err(StorageError::NotFound { .. }) => return Ok(None),
            bytes => bytes?,
        };
        let bad_data = |reason: String| ArchiveError::bad_data(&location, reason);
        if transaction_version_of(&bytes) != transaction_version {
            return Err(bad_data(
                "damaged: it is not the record that the log points to".into(),
            ));
        }
        let record = serde_json::from_slice(&bytes);
        record
            .map(Some)
            .map_err(|error| bad_data(error.to_string()))
    }

    /// Writes a record. Callers write it before the log entry that points to it; a vacuum deletes
    /// records without an entry.
    pub(crate) async fn write_record(&self, batch: DayBatch, record: &Record) -> Result<()> {
        let location = self
            .location()
            .child(&record_path(batch, record.transaction_version))?;
        Ok(location.write_checked(record.bytes.clone()).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_path_names_its_content() {
        let day = DayBatch::from_file_name("2026-01-03.a").unwrap();
        let committed = CommittedDay {
            digest: "ab".into(),
            base_version: 7,
            rows: Some(9),
            decisions: Some("kept k=3".to_owned().try_into().unwrap()),
            templates: Some(7),
            commit: Some("c".into()),
        };
        let record = Record::new(day, &committed);
        assert!(record.transaction_version > REMOVED);
        assert_eq!(
            transaction_version_of(&record.bytes),
            record.transaction_version
        );
        let read: CommittedDay = serde_json::from_slice(&record.bytes).unwrap();
        assert_eq!(read, committed);
        let path = record_path(day, record.transaction_version);
        assert_eq!(
            parse_record_path(&path),
            Some((day, record.transaction_version))
        );
        for other in [
            "_dedup-job/days/x.json",
            "_dedup-job/conditional-create",
            "days/2026-01-03-0.json",
            "_dedup-job/days/2026-01-03-00ff.json",
        ] {
            assert_eq!(parse_record_path(other), None, "{other}");
        }
    }
}
