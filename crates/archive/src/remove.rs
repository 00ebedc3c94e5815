//! Removing documents from an archive, a whole day or by id, in one atomic commit.
//!
//! Files with a removed document are rewritten without it. After the commit, no reader of the latest version sees the
//! removed documents; a later vacuum deletes their bytes.

use std::collections::{BTreeSet, HashSet};

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::datatypes::Int64Type;
use arrow::error::ArrowError;
use chrono::NaiveDate;
use deltalake_core::kernel::{Action, Transaction};
use deltalake_core::protocol::DeltaOperation;
use futures::StreamExt as _;
use serde_json::Value;
use storage::ErrorKind;

use crate::commit::COMMIT_ATTEMPTS;
use crate::data_files::{RowsToWrite, WrittenFile};
use crate::day_batch::{BatchName, DayBatch};
use crate::day_records::{self, CommittedDay};
use crate::error::{ArchiveError, Result};
use crate::id_set::IdSet;
use crate::operations::REPAIR;
use crate::rulings;
use crate::schema::DAY;
use crate::table::{Archive, DataFile};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    pub documents: u64,
    /// Distinct ids of the removed documents, if they were removed by id.
    pub ids: u64,
    /// The first of the ids that no document has, in order; ten at most.
    pub not_found: Vec<String>,
    /// Days of the removed documents.
    pub days: u64,
    /// Files removed from the table.
    pub files: u64,
    /// Files written for the remaining rows.
    pub written: u64,
    /// The version that the removal committed; `None` if there was nothing to remove.
    pub version: Option<u64>,
}

/// Data files that are written anew, with other rows.
pub(crate) struct Rewrite {
    /// Documents that the operation is about.
    pub(crate) documents: u64,
    pub(crate) operation: DeltaOperation,
    pub(crate) removed_files: Vec<DataFile>,
    /// Actions that add the files with the remaining rows.
    pub(crate) actions: Vec<Action>,
    pub(crate) transactions: Vec<Transaction>,
    pub(crate) written: Vec<WrittenFile>,
}

impl Archive {
    /// Removes all documents of a day, or of its batch of a name. Afterwards it can be committed again, as a new one.
    ///
    /// # Errors
    /// [`ArchiveError`]; the table is unchanged then.
    pub async fn remove_day(&mut self, day: NaiveDate, name: Option<BatchName>) -> Result<Removed> {
        self.preflight().await?;
        for _ in 0..COMMIT_ATTEMPTS {
            let mut removed_files = self.files()?;
            removed_files.retain(|file| {
                let is_of_batch = |batch: DayBatch| {
                    batch.day == day && name.is_none_or(|name| batch.name == name)
                };
                file.batch().is_some_and(is_of_batch)
            });
            if let Some(name) = name {
                self.refuse_mixed(DayBatch { day, name }).await?;
            }
            let mut transactions = Vec::new();
            for batch in self.batches_of(day, name, &removed_files).await? {
                if self.last_commit(batch).await?.is_some() {
                    let removed = Transaction::new(batch.to_string(), day_records::REMOVED);
                    transactions.push(removed);
                }
            }
            if removed_files.is_empty() && transactions.is_empty() {
                return Ok(Removed::default());
            }
            let mut removed = Removed {
                documents: removed_files.iter().filter_map(|file| file.rows).sum(),
                days: 1,
                files: removed_files.len() as u64,
                ..Removed::default()
            };
            let rewrite = Rewrite {
                documents: removed.documents,
                operation: DeltaOperation::Delete {
                    // Delta knows no batches.
                    predicate: name.is_none().then(|| format!("{DAY} = '{day}'")),
                },
                removed_files,
                actions: Vec::new(),
                transactions,
                written: Vec::new(),
            };
            removed.version = self.commit_rewrite(rewrite).await?;
            if removed.version.is_some() {
                return Ok(removed);
            }
        }
        Err(self.busy_error())
    }

    /// Removes all documents, of any day, with one of the `ids`.
    ///
    /// # Errors
    /// [`ArchiveError`]; the table is unchanged then.
    pub async fn remove_ids(&mut self, ids: &IdSet) -> Result<Removed> {
        self.preflight().await?;
        for _ in 0..COMMIT_ATTEMPTS {
            let mut written = Vec::new();
            let attempt = self.rewrite_without(ids, &mut written).await;
            let Some((mut removed, rewrite)) = self.made_or_removed(attempt, &written).await?
            else {
                return Ok(Removed {
                    not_found: ids.first_without(&HashSet::new()),
                    ..Removed::default()
                });
            };
            let rewrite = Rewrite { written, ..rewrite };
            removed.version = self.commit_rewrite(rewrite).await?;
            if removed.version.is_some() {
                return Ok(removed);
            }
        }
        Err(self.busy_error())
    }

    /// Rewrites the files that have documents with one of the `ids`, without these documents; `None` if no file has
    /// one. Adds the new files to `written`, even if an error follows.
    async fn rewrite_without(
        &self,
        ids: &IdSet,
        written: &mut Vec<WrittenFile>,
    ) -> Result<Option<(Removed, Rewrite)>> {
        // Each with its number of rows that have a fingerprint, and how many of these are removed. Other programs may write
        // rows without one.
        let mut affected: Vec<(DataFile, u64, u64)> = Vec::new();
        let mut found = HashSet::new();
        let mut all = std::pin::pin!(self.rows_of(self.files()?));
        while let Some((file, stored)) = all.next().await.transpose()? {
            let (mut rows, mut removed) = (0, 0);
            for batch in stored {
                let batch = batch?;
                rows += batch.num_rows() as u64 - batch.column(0).null_count() as u64;
                let present = arrow::compute::is_not_null(batch.column(0));
                let with = ids.row_mask(&batch, &mut found);
                let with = present.and_then(|present| arrow::compute::and(&present, &with));
                removed += with.map_err(arrow_error(&file))?.true_count() as u64;
            }
            if removed > 0 {
                affected.push((file, rows, removed));
            }
        }
        // Nor may rulings keep the ids.
        let rulings = self.write_rulings_without(ids).await?;
        if affected.is_empty() && rulings.is_none() {
            return Ok(None);
        }
        let now = chrono::Utc::now().timestamp_millis();
        let mut actions = Vec::new();
        let mut days = BTreeSet::new();
        let mut documents = 0;
        for (file, rows, removed) in &affected {
            documents += removed;
            days.insert(file.day);
            if rows == removed {
                continue;
            }
            let committed = CommittedDay::of_file(file);
            let stored = self.stored_rows(file).await?;
            let rest = stored.map(|batch| rows_without(&batch?, ids).map_err(arrow_error(file)));
            let mut rest: RowsToWrite<Rest<'_>> = match committed {
                Some(_) => RowsToWrite::new(Box::new(rest)),
                // Files of other programs may not be sorted.
                None => {
                    let sorted = sorted(rest.collect::<Result<_>>()?);
                    let sorted = sorted.map(|batch| batch.map_err(arrow_error(file)));
                    RowsToWrite::foreign(Box::new(sorted))
                }
            };
            let from = written.len();
            self.write_files(file.day, rows - removed, &mut rest, written)
                .await?;
            let (batch, added) = (file.batch(), written[from..].iter());
            actions.extend(added.map(|new| new.add_action(batch, committed.as_ref(), now, true)));
        }
        let removed = Removed {
            documents,
            ids: found.len() as u64,
            not_found: ids.first_without(&found),
            days: days.len() as u64,
            files: affected.len() as u64,
            written: written.len() as u64,
            version: None,
        };
        let rulings = rulings.map(|list| Transaction::new(rulings::TRANSACTION, list));
        let rewrite = Rewrite {
            documents,
            // No predicate: the log must not keep the removed ids.
            operation: DeltaOperation::Delete { predicate: None },
            removed_files: affected.into_iter().map(|(file, ..)| file).collect(),
            actions,
            transactions: rulings.into_iter().collect(),
            written: Vec::new(),
        };
        Ok(Some((removed, rewrite)))
    }

    /// The batches that were committed after a day, or after its batch of a name; and whether the archive has only the kept documents of
    /// one of them.
    pub fn later_batches(
        &self,
        day: NaiveDate,
        name: Option<BatchName>,
    ) -> Result<(BTreeSet<DayBatch>, bool)> {
        let files = self.files()?;
        let is_asked = |file: &&DataFile| {
            file.day == Some(day) && name.is_none_or(|name| file.batch_name == name)
        };
        let asked = files.iter().filter(is_asked);
        let first = asked.filter_map(|file| file.base_version).min();
        // A file that another program wrote again has no version: its day is compared.
        let has_asked = files.iter().any(|file| is_asked(&file));
        let is_later = |file: &&DataFile| {
            let versions = first.zip(file.base_version);
            let by_day = || has_asked && file.day > Some(day);
            !is_asked(file) && versions.map_or_else(by_day, |(first, version)| version > first)
        };
        let later = || files.iter().filter(is_later);
        Ok((
            later().filter_map(DataFile::batch).collect(),
            later().any(DataFile::has_only_kept),
        ))
    }

    /// Whether the archive has only the kept documents of some day.
    pub fn has_days_of_kept(&self) -> Result<bool> {
        Ok(self.files()?.iter().any(DataFile::has_only_kept))
    }

    /// Refuses to take away a batch, if another program wrote files of the day, and its rows cannot be told: those of a batch without a
    /// name in a day with several, and of one with a name whose own files do not have them all.
    pub(crate) async fn refuse_mixed(&self, batch: DayBatch) -> Result<()> {
        let files = self.files()?;
        let is_untagged =
            |file: &DataFile| file.day == Some(batch.day) && file.day_digest.is_none();
        if !files.iter().any(is_untagged) {
            return Ok(());
        }
        let is_mixed = if batch.name == BatchName::default() {
            self.has_other_batches(batch).await?
        } else {
            self.has_lost_files(batch, &files).await?
        };
        if is_mixed {
            Err(ArchiveError::ForeignTable {
                path: self.location().given().to_owned(),
                reason: format!(
                    "another program wrote files of day {}, and nothing says which rows are of batch {batch}; remove the whole day",
                    batch.day
                ),
            })
        } else {
            Ok(())
        }
    }

    /// Whether other batches of the day of `batch` are committed.
    pub(crate) async fn has_other_batches(&self, batch: DayBatch) -> Result<bool> {
        for other in self.recorded_batches().await? {
            let is_other = other.day == batch.day && other != batch;
            if is_other && self.last_commit(other).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a committed batch had more rows than its own `files` say.
    async fn has_lost_files(&self, batch: DayBatch, files: &[DataFile]) -> Result<bool> {
        let Some(version) = self.last_commit(batch).await? else {
            return Ok(false);
        };
        let record = self.read_record(batch, version).await?;
        let own = files.iter().filter(|file| file.batch() == Some(batch));
        let rows: Option<u64> = own.map(|file| file.rows).sum();
        Ok(record.is_none_or(|record| record.rows.is_none() || record.rows != rows))
    }

    /// The version of a batch's transaction; `None` if it was never committed, or removed since.
    async fn last_commit(&self, batch: DayBatch) -> Result<Option<i64>> {
        let version = self.transaction_version(batch).await?;
        Ok(version.filter(|version| *version != day_records::REMOVED))
    }

    /// The batches of a day, or the one of a name, that were ever committed.
    async fn batches_of(
        &self,
        day: NaiveDate,
        name: Option<BatchName>,
        files: &[DataFile],
    ) -> Result<BTreeSet<DayBatch>> {
        if let Some(name) = name {
            return Ok(BTreeSet::from([DayBatch { day, name }]));
        }
        let mut batches: BTreeSet<DayBatch> = files.iter().filter_map(DataFile::batch).collect();
        batches.insert(day.into());
        let recorded = self.recorded_batches().await?.into_iter();
        batches.extend(recorded.filter(|batch| batch.day == day));
        Ok(batches)
    }

    /// Commits rewritten files as the version after the one that the archive is open at, and returns it. Returns `None`, with the
    /// archive open at the latest version, if another commit came first: the caller then prepares them again.
    pub(crate) async fn commit_rewrite(&mut self, rewrite: Rewrite) -> Result<Option<u64>> {
        // An update changes decisions alone.
        let is_repair = matches!(rewrite.operation, DeltaOperation::Update { .. });
        let now = chrono::Utc::now().timestamp_millis();
        let removed = rewrite.removed_files.iter();
        let mut actions = rewrite.actions;
        actions.extend(removed.map(|file| file.remove_action(now, true)));
        let metadata = vec![
            ("documents".to_owned(), rewrite.documents.into()),
            (REPAIR.to_owned(), is_repair.into()),
        ];
        let (operation, transactions) = (rewrite.operation, rewrite.transactions);
        let committed = self.commit_changes(actions, operation, transactions, metadata);
        let committed = committed.await?;
        if committed.is_none() {
            self.remove_written(&rewrite.written).await;
        }
        Ok(committed)
    }

    /// Commits as [`Self::commit_next`]; after an error, finds in the log whether it committed nevertheless. Returns `None`, with the
    /// archive open at the latest version, if another commit came first.
    pub(crate) async fn commit_changes(
        &mut self,
        actions: Vec<Action>,
        operation: DeltaOperation,
        transactions: Vec<Transaction>,
        metadata: Vec<(String, Value)>,
    ) -> Result<Option<u64>> {
        let version = self.version();
        let mut expected = actions.clone();
        expected.extend(transactions.iter().cloned().map(Action::Txn));
        let committed = self.commit_next(actions, operation, transactions, metadata);
        let error = match committed.await {
            Ok(version) => return Ok(Some(version)),
            Err(error) => error,
        };
        // Only the log tells the outcome. If it cannot be read, the written files stay, because it may name them.
        self.reopen().await?;
        if self.version() <= version {
            return Err(error);
        }
        let found = self.log_actions(version + 1).await?.unwrap_or_default();
        match error.kind() {
            _ if changes(&found) == changes(&expected) => Ok(Some(version + 1)),
            ErrorKind::TryAgain => Ok(None),
            _ => Err(error),
        }
    }
}

/// The files that actions remove and add, and their transactions: kind, path or application id, and version.
fn changes(actions: &[Action]) -> HashSet<(&str, &str, i64)> {
    actions
        .iter()
        .filter_map(|action| match action {
            Action::Remove(remove) => Some(("remove", remove.path.as_str(), 0)),
            Action::Add(add) => Some(("add", add.path.as_str(), 0)),
            Action::Txn(txn) => Some(("transaction", txn.app_id.as_str(), txn.version)),
            _ => None,
        })
        .collect()
}

/// The rows of a file that stay.
type Rest<'a> = Box<dyn Iterator<Item = Result<RecordBatch>> + Send + 'a>;

fn arrow_error(file: &DataFile) -> impl FnOnce(ArrowError) -> ArchiveError {
    let object = file.path.clone();
    ArchiveError::arrow(object)
}

/// The rows of a record batch that have a fingerprint, and an id that is not in `ids`.
fn rows_without(batch: &RecordBatch, ids: &IdSet) -> Result<RecordBatch, ArrowError> {
    let with = ids.row_mask(batch, &mut HashSet::new());
    let present = arrow::compute::is_not_null(batch.column(0))?;
    let stay = arrow::compute::and(&present, &arrow::compute::not(&with)?)?;
    arrow::compute::filter_record_batch(batch, &stay)
}

/// Rows of a record batch of [`sorted`]: ids of 1 MiB, which other programs may have written, must fit one array.
const SORTED_ROWS: usize = 512;

/// The rows of all record batches, sorted by fingerprint, then id.
pub(crate) fn sorted(
    batches: Vec<RecordBatch>,
) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send {
    let fingerprint =
        |batch: &RecordBatch, row| batch.column(0).as_primitive::<Int64Type>().value(row);
    let number = |batch: &RecordBatch, row| {
        Some(batch.column(1).as_primitive_opt::<Int64Type>()?.value(row))
    };
    let mut order: Vec<(i64, (usize, usize))> = Vec::new();
    for (at, batch) in batches.iter().enumerate() {
        order.extend((0..batch.num_rows()).map(|row| (fingerprint(batch, row), (at, row))));
    }
    let by_id = |(at, row): (usize, usize), (other, of_other): (usize, usize)| {
        let (a, b) = (&batches[at], &batches[other]);
        match (number(a, row), number(b, of_other)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => {
                let [a_ids, b_ids] = [a, b].map(|batch| batch.column(1).as_string::<i32>());
                a_ids.value(row).cmp(b_ids.value(of_other))
            }
        }
    };
    order.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| by_id(a.1, b.1)));
    let mut from = 0;
    std::iter::from_fn(move || {
        let rows = order[from..].iter().take(SORTED_ROWS).map(|(_, row)| *row);
        let mut rows: Vec<(usize, usize)> = rows.collect();
        from += rows.len();
        // Only those that have one of the rows: there may be very many.
        let numbers: BTreeSet<usize> = rows.iter().map(|(at, _)| *at).collect();
        let numbers: Vec<usize> = numbers.into_iter().collect();
        for (at, _) in &mut rows {
            *at = numbers.partition_point(|number| number < at);
        }
        let some: Vec<_> = numbers.iter().map(|at| &batches[*at]).collect();
        (!rows.is_empty()).then(|| arrow::compute::interleave_record_batch(&some, &rows))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use simhash::SketchBits;

    use super::*;
    use crate::schema::IdType;

    #[test]
    fn rows_of_many_batches_are_sorted() {
        let schema = crate::schema::fingerprint_schema(IdType::String, SketchBits::None, false);
        let batch = |from: i64| {
            let numbers = (0..97).map(|row| (row * 7 + from) % 31);
            let ids = (0..97).map(|row| Some(format!("{}", (row * 13 + from) % 101)));
            let columns: Vec<ArrayRef> = vec![
                Arc::new(numbers.collect::<Int64Array>()),
                Arc::new(ids.collect::<StringArray>()),
            ];
            RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
        };
        let rows = |batch: &RecordBatch| -> Vec<(i64, String)> {
            let numbers = batch.column(0).as_primitive::<Int64Type>().values();
            let ids = batch.column(1).as_string::<i32>().iter().flatten();
            numbers
                .iter()
                .copied()
                .zip(ids.map(str::to_owned))
                .collect()
        };
        let batches: Vec<RecordBatch> = (0..20).map(batch).collect();
        let mut expected: Vec<_> = batches.iter().flat_map(rows).collect();
        expected.sort();
        let found: Vec<_> = sorted(batches).map(|batch| batch.unwrap()).collect();
        assert!(found.len() > 1);
        assert_eq!(found.iter().flat_map(rows).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn ids_are_parsed_by_type() {
        let parse = |id_type| IdSet::parse(["1", "x", "1"].into_iter(), id_type);
        assert_eq!(parse(IdType::String).unwrap().len(), 2);
        assert_eq!(parse(IdType::Bigint), Err("x"));
        let numbers = IdSet::parse(["7", "-1"].into_iter(), IdType::Bigint).unwrap();
        assert_eq!(numbers, IdSet::Bigints(HashSet::from([7, -1])));
    }
}
