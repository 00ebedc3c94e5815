//! Selects the rows of an archive that a run compares its batch with. A rerun of a committed day
//! selects the rows that came before that day.
//!
//! A data file of this program has a tag with the version that its day was compared with: these
//! versions order the days. Files of other programs have no such tag, so their order comes from the
//! log. Version V already had the rows of such a file if V lists the file, or if a later rewrite
//! made the file only from files that V lists, and added no rows.

use std::collections::HashMap;

use deltalake_core::DeltaTable;
use deltalake_core::kernel::Action;
use deltalake_core::logstore::get_actions;
use storage::ErrorKind;

use crate::commit::Existing;
use crate::day_batch::DayBatch;
use crate::day_records::CommittedDay;
use crate::decision_settings::DecisionSettings;
use crate::delta::catch_async_panic;
use crate::error::{ArchiveError, Result};
use crate::fingerprint_file::FingerprintFile;
use crate::operations::is_rewrite;
use crate::rulings;
use crate::table::{Archive, DataFile};

/// Which rows of an archive a run reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    All,
    /// All rows except those of a day that is to be replaced.
    Without(DayBatch),
    /// The rows that a committed day was compared with, except those removed or replaced since.
    Before {
        batch: DayBatch,
        /// The version of the table with which the day was compared.
        base_version: u64,
    },
}

/// When the rows of a file were added: before or after the commit of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Added {
    /// That version or earlier ones added all of them.
    Before,
    /// Later versions added all of them.
    After,
    /// Some were added before, the others after.
    Both,
}

impl Added {
    /// When the rows of two files together were added.
    fn merge(self, other: Self) -> Self {
        if self == other { self } else { Self::Both }
    }
}

impl Archive {
    /// The rows to compare the batch `file` with, and how its day was committed, if it was.
    ///
    /// If the day is committed already, the batch is compared with the rows that the archive had
    /// before that commit, except those removed since. Without a `batch`, the file's digest
    /// identifies the committed day. `commit` is `None` if the run will not commit the batch;
    /// otherwise it says whether the run replaces a committed day that has other rows or other
    /// `decisions`.
    ///
    /// # Errors
    /// [`ArchiveError::DayDiffers`] and [`ArchiveError::DecisionsDiffer`] when the day is committed with other rows or
    /// decisions, and must not be replaced.
    pub async fn scope_for(
        &self,
        batch: Option<DayBatch>,
        file: &FingerprintFile,
        commit: Option<Existing>,
        decisions: Option<&DecisionSettings>,
    ) -> Result<(Scope, Option<CommittedDay>)> {
        let committed = match batch {
            Some(batch) => match self.committed(batch).await {
                // The rows of others go, too.
                Err(ArchiveError::ForeignRows { .. }) if commit == Some(Existing::Replace) => None,
                committed => committed?.map(|committed| (batch, committed)),
            },
            // All days without rows have the same digest.
            None if file.rows == file.without_fingerprint => None,
            None => self.committed_as(&file.day_digest).await?,
        };
        let is_same = |committed: &CommittedDay| committed.is_same(&file.day_digest, decisions);
        match (committed, batch, commit) {
            (Some((batch, committed)), _, Some(Existing::Keep)) if !is_same(&committed) => {
                let path = self.location().to_string();
                Err(committed.differs(path, batch, &file.day_digest, decisions))
            }
            (Some((batch, committed)), _, Some(Existing::Replace)) if !is_same(&committed) => {
                self.refuse_mixed(batch).await?;
                Ok((Scope::Without(batch), None))
            }
            // Another batch of the day is no rerun of the first.
            (Some((_, committed)), Some(batch), None) if committed.digest != file.day_digest => {
                tracing::warn!(
                    "{}: day {batch} was committed with other documents: the batch is compared with all days, also with that one",
                    self.location()
                );
                Ok((Scope::All, None))
            }
            (Some((batch, committed)), ..) => {
                let base_version = committed.base_version;
                Ok((
                    Scope::Before {
                        batch,
                        base_version,
                    },
                    Some(committed),
                ))
            }
            (None, Some(batch), Some(Existing::Replace)) => {
                self.refuse_mixed(batch).await?;
                Ok((Scope::Without(batch), None))
            }
            (None, ..) => Ok((Scope::All, None)),
        }
    }

    pub(crate) async fn files_in(&self, scope: Scope) -> Result<Vec<DataFile>> {
        let mut files = self.files()?;
        match scope {
            Scope::All => {}
            Scope::Without(batch) => files.retain(|file| file.batch() != Some(batch)),
            Scope::Before {
                batch,
                base_version,
            } => {
                let has_foreign_files = files.iter().any(|file| file.base_version.is_none());
                let added = if has_foreign_files {
                    self.classify_files(batch, base_version).await?
                } else {
                    HashMap::new()
                };
                let mut before = Vec::new();
                // What another program wrote may have rows of the day's other batches.
                let is_alone = !has_foreign_files || !self.has_other_batches(batch).await?;
                for file in files {
                    // The files of a day that was removed and committed again, and then restored, may say that they are older.
                    let is_own = file.day_digest.is_some() || is_alone;
                    if file.batch() == Some(batch) && is_own {
                        continue;
                    }
                    let is_before = match file.base_version {
                        // A day that is part of `base_version` was compared with an earlier version.
                        Some(version) => version < base_version,
                        None => match added.get(&file.path) {
                            Some(Added::Before) => true,
                            Some(Added::After) => false,
                            Some(Added::Both) | None => {
                                return Err(ArchiveError::Rewritten {
                                    path: self.location().to_string(),
                                    day: batch.to_string(),
                                    file: file.path,
                                });
                            }
                        },
                    };
                    if is_before {
                        before.push(file);
                    }
                }
                files = before;
            }
        }
        Ok(files)
    }

    /// For every file of `base_version` and of later versions: when its rows were added. `batch` is for errors.
    async fn classify_files(
        &self,
        batch: DayBatch,
        base_version: u64,
    ) -> Result<HashMap<String, Added>> {
        let mut table = DeltaTable::new(self.table.log_store());
        let rewritten = |file: String| ArchiveError::Rewritten {
            path: self.location().to_string(),
            day: batch.to_string(),
            file,
        };
        let log_without = |version: u64| format!("the log, which no longer has version {version}");
        if let Err(error) = catch_async_panic(table.load_version(base_version)).await {
            let error = ArchiveError::delta(self.location().given())(error);
            tracing::debug!(%error, base_version, "an earlier version cannot be loaded");
            return Err(match error.kind() {
                ErrorKind::Data | ErrorKind::Configuration => rewritten(log_without(base_version)),
                // The store failed; the version may still be in the log.
                _ => error,
            });
        }
        let state = table.snapshot();
        let state = state.map_err(ArchiveError::delta(self.location().given()))?;
        let log = state.log_data();
        let before = log
            .iter()
            .map(|file| (file.path().into_owned(), Added::Before));
        let mut added: HashMap<String, Added> = before.collect();
        for version in base_version + 1..=self.version() {
            let actions = self.log_actions(version).await?;
            let actions = actions.ok_or_else(|| rewritten(log_without(version)))?;
            let by_entry = classify_added(&actions, base_version, &added);
            added.extend(by_entry);
        }
        Ok(added)
    }

    /// Whether rows or rulings were added or removed after `version`. Maintenance rewrites files without changing rows.
    pub(crate) async fn has_changed_since(&self, version: u64) -> Result<bool> {
        for version in version + 1..=self.version() {
            let changes = |action: &Action| match action {
                Action::Add(add) => add.data_change,
                Action::Remove(remove) => remove.data_change,
                // Rulings may name ids without rows; removing these ids changes rulings alone.
                Action::Txn(txn) => txn.app_id == rulings::TRANSACTION,
                _ => false,
            };
            match self.log_actions(version).await? {
                Some(actions) if !actions.iter().any(changes) => {}
                // An entry that was cleaned up may have changed rows.
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    /// The actions of one log entry; `None` when it was cleaned up.
    pub(crate) async fn log_actions(&self, version: u64) -> Result<Option<Vec<Action>>> {
        let failed = || ArchiveError::delta(self.location().given());
        let log = self.table.log_store();
        let entry = log.read_commit_entry(version).await.map_err(failed())?;
        entry
            .map(|bytes| get_actions(version, &bytes).map_err(failed()))
            .transpose()
    }
}

/// For every file that a log entry adds: when its rows were added. `known` has the files of earlier entries.
fn classify_added(
    actions: &[Action],
    base_version: u64,
    known: &HashMap<String, Added>,
) -> Vec<(String, Added)> {
    let is_rewrite = is_rewrite(actions);
    let day_in = |values: Option<&HashMap<String, Option<String>>>| {
        let day = values.and_then(|values| values.get(crate::schema::DAY));
        day.cloned().flatten()
    };
    // The entry removes files: for each day, when the rows of these files were added.
    let mut removed: HashMap<Option<String>, Added> = HashMap::new();
    for action in actions {
        if let Action::Remove(remove) = action
            && let Some(of_removed) = known.get(&remove.path)
        {
            removed
                .entry(day_in(remove.partition_values.as_ref()))
                .and_modify(|all| *all = all.merge(*of_removed))
                .or_insert(*of_removed);
        }
    }
    let added = actions.iter().filter_map(|action| {
        let Action::Add(add) = action else {
            return None;
        };
        let tags = add.tags.as_ref();
        let tag = tags.and_then(|tags| tags.get(crate::schema::BASE_VERSION_TAG)?.as_deref());
        let tagged = tag.and_then(|version| version.parse::<u64>().ok());
        let removed = removed.get(&day_in(Some(&add.partition_values)));
        let added = match (tagged, removed) {
            // Another program brought the file back (RESTORE), or added it again with other statistics.
            _ if known.contains_key(&add.path) => known[&add.path],
            (Some(version), _) if version < base_version => Added::Before,
            (Some(_), _) => Added::After,
            (None, Some(removed)) if is_rewrite || !add.data_change => *removed,
            // An UPDATE or a MERGE may write old rows and new ones.
            (None, Some(removed)) => removed.merge(Added::After),
            // A file whose commit the log does not have.
            (None, None) if !add.data_change => return None,
            (None, None) => Added::After,
        };
        Some((add.path.clone(), added))
    });
    added.collect()
}
