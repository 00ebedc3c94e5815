//! Deleting files that no recent version needs: leftovers of killed processes, and files that were merged or removed.
//!
//! It deletes a file only if the log records its removal, or if the file's name has the pattern of this program. Any
//! other file in an archive's directory may belong to somebody else.

use std::collections::{HashMap, HashSet};
use std::path::{Path as FsPath, PathBuf};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use deltalake_core::kernel::Action;
use deltalake_core::table::config::TablePropertiesExt as _;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore as _, ObjectStoreExt as _};
use storage::{StorageError, UNFINISHED_MARK, is_tested_name};

use crate::data_files::is_data_file;
use crate::day_batch::DayBatch;
use crate::day_records;
use crate::delta::catch_async_panic;
use crate::error::{ArchiveError, Result};
use crate::table::{Archive, DataFile};
use crate::{rulings, spec_files, template_memory};

/// Minimum age of deleted files while another process may be writing: the log does not yet name
/// that process's files.
const MIN_AGE: Duration = Duration::from_secs(24 * 3600);

/// A directory in the root of a volume, which often only its owner may read.
pub(crate) const LOST_AND_FOUND: &str = "lost+found";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vacuum {
    /// Keeps the files of all versions that are younger than this.
    pub older_than: Duration,
    /// Only lists the files.
    pub dry_run: bool,
    /// The caller says that no other process writes to the archive, which allows an `older_than` of less than 24 hours.
    pub nothing_runs: bool,
}

impl Archive {
    /// Deletes the files that no version of the last `older_than` needs. The log remembers removals for a week
    /// (`delta.deletedFileRetentionDuration`). Returns their paths below the archive's directory, sorted.
    ///
    /// # Errors
    /// [`ArchiveError::TooYoung`] when files that another process writes could be deleted, or a store's error.
    pub async fn vacuum(&mut self, vacuum: Vacuum) -> Result<Vec<String>> {
        if !vacuum.dry_run {
            if vacuum.older_than < MIN_AGE && !vacuum.nothing_runs {
                return Err(ArchiveError::TooYoung {
                    path: self.location().to_string(),
                });
            }
            // If log entries can be overwritten, the log does not say what is needed.
            self.preflight().await?;
        }
        let mut files = self.unneeded(vacuum.older_than).await?;
        if !vacuum.dry_run && !files.is_empty() {
            // No file is deleted on the word of one list.
            self.reopen().await?;
            let needed: HashSet<String> = self.files()?.into_iter().map(|file| file.path).collect();
            files.retain(|file| !needed.contains(file));
        }
        let store = self.object_store();
        for file in files.iter().filter(|_| !vacuum.dry_run) {
            let failed = || StorageError::store(self.location().child_name(file));
            // The path is as the store listed it: nothing is encoded again.
            let path = Path::parse(file).map_err(|error| failed()(error.into()))?;
            match store.delete(&path).await {
                // Another vacuum deleted it.
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(failed()(error).into()),
            }
        }
        if let Some(local) = self.location().local() {
            // The store does not list unfinished files.
            for unfinished in unfinished_files(local, local, vacuum.older_than)? {
                let removed = if vacuum.dry_run {
                    Ok(())
                } else {
                    std::fs::remove_file(&unfinished)
                };
                match removed {
                    // Its writer renamed it, or another vacuum deleted it.
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                    removed => removed.map_err(StorageError::io(unfinished.display()))?,
                }
                let below = unfinished.strip_prefix(local).unwrap_or(&unfinished);
                files.push(below.display().to_string());
            }
        }
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// The files that no version of the last `older_than` needs, sorted.
    async fn unneeded(&self, older_than: Duration) -> Result<Vec<String>> {
        let given = self.location().given();
        let failed = || ArchiveError::delta(given);
        let age = chrono::Duration::from_std(older_than).ok();
        let cutoff = age.and_then(|age| Utc::now().checked_sub_signed(age));
        // The cutoff lies before the calendar begins: no file is that old.
        let Some(cutoff) = cutoff else {
            return Ok(Vec::new());
        };
        let files = self.files()?;
        let days: HashSet<DayBatch> = files.iter().filter_map(DataFile::batch).collect();
        let live: HashSet<String> = files.into_iter().map(|file| file.path).collect();
        let state = self.table.snapshot().map_err(failed())?;
        let log = self.table.log_store();
        let tombstones = state
            .all_tombstones(log.as_ref())
            .map_ok(|file| (file.path().into_owned(), file.deletion_timestamp()));
        let tombstones: Vec<(String, Option<i64>)> = catch_async_panic(tombstones.try_collect())
            .await
            .map_err(failed())?;
        let (mut expired, mut retained) = (HashSet::new(), HashSet::new());
        for (path, removed) in tombstones {
            match removed.and_then(DateTime::from_timestamp_millis) {
                Some(removed) if removed > cutoff => retained.insert(path),
                // A removal without a time counts as old.
                _ => expired.insert(path),
            };
        }
        // Of what was removed longer ago, a checkpoint may know nothing any more.
        let remembered = state.table_config().deleted_file_retention_duration();
        let forgotten = if older_than > remembered {
            Some(self.removals_since(cutoff).await?)
        } else {
            None
        };
        let knows_all = !matches!(&forgotten, Some((_, false)));
        retained.extend(forgotten.into_iter().flat_map(|(paths, _)| paths));
        let (mut old_rulings, mut kept_lists) = (Vec::new(), Vec::new());
        let mut old_lists: Vec<(DateTime<Utc>, i64)> = Vec::new();
        let mut not_listed = live.clone();
        let mut listed = self.all_files().await?;
        let mut unneeded = Vec::new();
        let mut memories: Vec<(i64, String)> = Vec::new();
        let mut written: Vec<(DateTime<Utc>, DayBatch, i64)> = Vec::new();
        let mut young: Vec<(DayBatch, i64)> = Vec::new();
        let mut records: HashMap<DayBatch, Vec<(i64, bool)>> = HashMap::new();
        while let Some(object) = listed.next().await {
            let object = object.map_err(StorageError::store(given))?;
            let path = object.location.to_string();
            not_listed.remove(&path);
            let is_old = object.last_modified <= cutoff;
            if let Some((day, version)) = day_records::parse_record_path(&path) {
                records.entry(day).or_default().push((version, is_old));
                written.push((object.last_modified, day, version));
                if !is_old {
                    young.push((day, version));
                }
            } else if let Some(version) = template_memory::FILES.parse_path(&path) {
                if is_old {
                    memories.push((version, path));
                }
            } else if rulings::is_path(&path) {
                if let Some(list) = rulings::LISTS.parse_path(&path) {
                    if is_old {
                        old_lists.push((object.last_modified, list));
                    } else {
                        kept_lists.push(list);
                    }
                }
                if is_old {
                    old_rulings.push(path);
                }
            } else if spec_files::is_of_other_spec(&path, self.spec()) || is_tested_name(&path) {
                if is_old {
                    unneeded.push(path);
                }
            } else if live.contains(&path) || retained.contains(&path) {
            } else if expired.contains(&path) || (is_old && knows_all && is_data_file(&path)) {
                unneeded.push(path);
            }
        }
        self.require_complete_list(not_listed).await?;
        if !old_rulings.is_empty() {
            // If a list was written lately, running jobs may read the one before it. A run that was killed may have left another.
            let current = self.app_transaction(rulings::TRANSACTION).await?;
            let current = current.map(|list| rulings::LISTS.path(list));
            if current.is_some_and(|list| !old_rulings.contains(&list)) {
                old_lists.sort_unstable();
                kept_lists.extend(old_lists.iter().rev().take(2).map(|(_, list)| *list));
            }
            let needed = self.ruling_paths(&kept_lists).await?;
            old_rulings.retain(|path| !needed.contains(path));
            unneeded.extend(old_rulings);
        }
        if !memories.is_empty() {
            // Days that were committed lately can be run again, and so can the last one.
            written.sort_unstable();
            for (_, day, version) in written.into_iter().rev() {
                // A run that was killed leaves a record that nothing points to.
                if self.transaction_version(day).await? == Some(version) {
                    young.push((day, version));
                    break;
                }
            }
            let mut needed: HashSet<i64> = self.template_memory().await?.into_iter().collect();
            for (day, version) in young {
                let record = self.read_record(day, version).await?;
                needed.extend(record.and_then(|record| record.templates));
            }
            memories.retain(|(version, _)| !needed.contains(version));
            unneeded.extend(memories.into_iter().map(|(_, path)| path));
        }
        for (day, versions) in records {
            if !versions.iter().any(|(_, is_old)| *is_old) {
                continue;
            }
            // The one record of a day that has files is the one that the log points to. To ask the log reads much of it.
            if versions.len() == 1 && days.contains(&day) {
                continue;
            }
            let current = self.transaction_version(day).await?;
            let old = versions.into_iter().filter(|(_, is_old)| *is_old);
            let others = old.filter(|(version, _)| Some(*version) != current);
            unneeded.extend(others.map(|(version, _)| day_records::record_path(day, version)));
        }
        unneeded.sort();
        Ok(unneeded)
    }

    /// The files that entries of the log removed after `cutoff`, and whether the log has all entries since then.
    async fn removals_since(&self, cutoff: DateTime<Utc>) -> Result<(Vec<String>, bool)> {
        let mut removed = Vec::new();
        for version in (0..=self.version()).rev() {
            let Some(actions) = self.log_actions(version).await? else {
                tracing::warn!(
                    "{}: the log has no entry of version {version} any more, so it does not say which files were removed since {cutoff}: files that it does not know stay",
                    self.location()
                );
                return Ok((removed, false));
            };
            let cutoff = cutoff.timestamp_millis();
            let mut is_before = false;
            for action in actions {
                match action {
                    Action::Remove(file)
                        if file.deletion_timestamp.is_none_or(|time| time > cutoff) =>
                    {
                        removed.push(file.path);
                    }
                    Action::CommitInfo(info) => {
                        is_before = info.timestamp.is_some_and(|time| time <= cutoff);
                    }
                    _ => {}
                }
            }
            if is_before {
                break;
            }
        }
        Ok((removed, true))
    }

    /// Refuses a list of the archive's directory that leaves out a data file that is there.
    async fn require_complete_list(&self, not_listed: HashSet<String>) -> Result<()> {
        for path in not_listed {
            if self.location().child(&path)?.exists().await? {
                return Err(StorageError::ShortList {
                    path: self.location().to_string(),
                    missing: path,
                }
                .into());
            }
        }
        Ok(())
    }

    /// All files below the archive's directory, except those in [`LOST_AND_FOUND`].
    async fn all_files(&self) -> Result<BoxStream<'static, object_store::Result<ObjectMeta>>> {
        let store = self.object_store();
        if self.location().local().is_none() {
            return Ok(store.list(None));
        }
        let top = store.list_with_delimiter(None).await;
        let top = top.map_err(StorageError::store(self.location()))?;
        let below = top.common_prefixes.into_iter();
        let below = below.filter(|prefix| prefix.as_ref() != LOST_AND_FOUND);
        let below = futures::stream::iter(below).flat_map(move |prefix| store.list(Some(&prefix)));
        let files = futures::stream::iter(top.objects.into_iter().map(Ok));
        Ok(files.chain(below).boxed())
    }
}

/// Local files, at least `older_than` old, that a killed process did not finish writing.
fn unfinished_files(
    root: &FsPath,
    directory: &FsPath,
    older_than: Duration,
) -> Result<Vec<PathBuf>> {
    let failed = StorageError::io(directory.display());
    let mut found = Vec::new();
    let entries = match std::fs::read_dir(directory) {
        // Another vacuum deleted it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        entries => entries.map_err(&failed)?,
    };
    for entry in entries {
        let entry = entry.map_err(&failed)?;
        let path = entry.path();
        // `metadata` of an entry does not follow symlinks.
        let metadata = match entry.metadata() {
            // Its writer has just renamed it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            metadata => metadata.map_err(&failed)?,
        };
        if metadata.is_dir() {
            if directory == root && entry.file_name() == LOST_AND_FOUND {
                continue;
            }
            found.extend(unfinished_files(root, &path, older_than)?);
            continue;
        }
        let below = path.strip_prefix(root).unwrap_or(&path).to_string_lossy();
        let is_unfinished = below
            .rsplit_once(UNFINISHED_MARK)
            .is_some_and(|(target, number)| {
                let is_own = is_data_file(target)
                    || target.starts_with("_delta_log/")
                    || target.starts_with("_dedup-job/");
                let mut digits = number.bytes();
                is_own && !number.is_empty() && digits.all(|digit| digit.is_ascii_digit())
            });
        let modified = metadata.modified().map_err(&failed)?;
        let age = SystemTime::now()
            .duration_since(modified)
            .unwrap_or_default();
        if is_unfinished && age >= older_than {
            found.push(path);
        }
    }
    Ok(found)
}
