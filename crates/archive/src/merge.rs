//! Merging archives: the days of one are copied into another, with their decisions.

use std::collections::{BTreeMap, HashMap, HashSet};

use arrow::array::{Array as _, BooleanArray, RecordBatch};
use chrono::NaiveDate;
use storage::ErrorKind;

use crate::bulk::Bulk;
use crate::commit::{Existing, StagedDay, with_kept};
use crate::data_files::RowsToWrite;
use crate::day_batch::DayBatch;
use crate::day_records::CommittedDay;
use crate::error::{ArchiveError, Result};
use crate::remove::sorted;
use crate::table::{Archive, DataFile};
use crate::template_memory::{self, CommittedMemory};

/// The days of another archive that are to be copied, checked.
pub struct Merge {
    days: Vec<MergedDay>,
    /// Days that are there already, with the same rows.
    there: u64,
}

/// The rows of a data file, sorted by fingerprint.
type Rows<'a> = Box<dyn Iterator<Item = Result<RecordBatch>> + Send + 'a>;

struct MergedDay {
    day: DayBatch,
    committed: CommittedDay,
    files: Vec<DataFile>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merged {
    /// Days that were committed.
    pub days: u64,
    /// Days that were there already, with the same rows.
    pub there: u64,
    /// Rows of the days that were committed.
    pub rows: u64,
    /// The version that the last day was committed as; `None` if no day was.
    pub version: Option<u64>,
}

impl Merge {
    /// A day that both plans copy, with other rows or decisions.
    pub fn conflict(&self, other: &Self) -> Option<DayBatch> {
        let theirs = other.days.iter();
        let theirs = theirs.map(|merged| (merged.day, &merged.committed));
        let theirs: HashMap<DayBatch, &CommittedDay> = theirs.collect();
        let mut days = self.days.iter();
        let differs = |merged: &&MergedDay| {
            let (own, theirs) = (&merged.committed, theirs.get(&merged.day));
            theirs
                .is_some_and(|other| other.digest != own.digest || other.decisions != own.decisions)
        };
        days.find(differs).map(|merged| merged.day)
    }
}

impl Archive {
    /// Finds the days of `other` that are to be copied: all, or only `day`. Nothing is changed.
    ///
    /// # Errors
    /// [`ArchiveError`] when the archives have different fingerprints or ids, `other` has decisions and this archive none, rows of
    /// `other` have no day, or a day is in both, with different rows.
    pub async fn plan_merge(&self, other: &Self, day: Option<NaiveDate>) -> Result<Merge> {
        let (path, from) = (self.location().to_string(), other.location().to_string());
        if self.spec() != other.spec() {
            return Err(ArchiveError::SpecMismatch {
                left: path,
                right: from,
                differences: self.spec().differences(other.spec()),
            });
        }
        let cannot = |reason: String| ArchiveError::CannotMerge {
            path: path.clone(),
            from: from.clone(),
            reason,
        };
        if self.id_type() != other.id_type() {
            let (own, others) = (self.id_type(), other.id_type());
            return Err(cannot(format!("its ids are {others}, not {own}")));
        }
        if other.has_kept() && !self.has_kept() {
            return Err(cannot(
                "it says which documents are kept, and the other archive could not; make one with decisions, and merge both into it".into(),
            ));
        }
        let mut by_day: BTreeMap<DayBatch, Vec<DataFile>> = BTreeMap::new();
        for file in other.files()? {
            let Some(of_file) = file.batch() else {
                return Err(cannot("another program wrote rows without a day".into()));
            };
            if day.is_none_or(|day| day == of_file.day) {
                by_day.entry(of_file).or_default().push(file);
            }
        }
        if let (Some(day), true) = (day, by_day.is_empty()) {
            return Err(cannot(format!("it has no day {day}")));
        }
        // Days that were never committed here need not be sought in the log.
        let mut known = self.recorded_batches().await?;
        known.extend(self.files()?.iter().filter_map(DataFile::batch));
        let mut merge = Merge {
            days: Vec::new(),
            there: 0,
        };
        for (day, mut files) in by_day {
            files.sort_by(|a, b| a.path.cmp(&b.path));
            // The tags of the day's own files say it, too, without the log.
            let mut tagged = files.iter().map(CommittedDay::of_file);
            let committed = match tagged.next().flatten() {
                Some(first) if tagged.all(|other| other.as_ref() == Some(&first)) => Some(first),
                _ => other.committed(day).await?,
            };
            let committed = committed
                .ok_or_else(|| cannot(format!("nothing says how day {day} was committed")))?;
            let decisions = committed.decisions.as_ref();
            let is_there = if known.contains(&day) {
                self.is_committed(day, &committed.digest, decisions, Existing::Keep)
                    .await
            } else {
                Ok(false)
            };
            let is_there = match is_there {
                Err(ArchiveError::DayDiffers { .. } | ArchiveError::DecisionsDiffer { .. }) => {
                    return Err(cannot(format!(
                        "both have day {day}, with other documents or decisions"
                    )));
                }
                is_there => is_there?,
            };
            if is_there {
                merge.there += 1
            } else {
                merge.days.push(MergedDay {
                    day,
                    committed,
                    files,
                })
            }
        }
        // In the order in which they were committed, so that a rerun of a day in an empty archive finds the days before it.
        merge
            .days
            .sort_by_key(|merged| merged.committed.base_version);
        Ok(merge)
    }

    /// Copies the days of a plan from `other`, one commit each, in their order. Calls `each` with the rows of each record batch.
    ///
    /// # Errors
    /// As [`Self::stage`] and [`Self::commit`]; days that are committed stay. A merge that is run again goes on with the others.
    pub async fn merge(
        &mut self,
        other: &Self,
        plan: Merge,
        mut each: impl FnMut(usize),
    ) -> Result<Merged> {
        let mut merged = Merged {
            there: plan.there,
            ..Merged::default()
        };
        if plan.days.is_empty() {
            return Ok(merged);
        }
        self.preflight().await?;
        let mut bulk = Bulk::new(self)?;
        let mut is_first = true;
        let days = plan.days.iter();
        let commits = days.filter_map(|day| day.committed.commit.clone());
        let commits: HashSet<String> = commits.collect();
        for day in plan.days {
            let mut staged = bulk.archive().stage_from(other, &day, &mut each).await?;
            loop {
                if is_first {
                    // What the other archive learnt and ruled comes with the first day; rulings of days that are not there yet say
                    // nothing.
                    let archive = bulk.archive();
                    let memory = archive.copied_memory(other).await?;
                    let rulings = archive.copy_rulings(other, &commits).await?;
                    staged = staged.with_templates(memory);
                    staged.rulings = rulings;
                }
                if let Some(version) = bulk.commit(&staged).await? {
                    is_first = false;
                    merged.days += 1;
                    merged.rows += staged.rows;
                    merged.version = Some(version);
                    break;
                }
                // Another program committed something, perhaps this day.
                let MergedDay { day, committed, .. } = &day;
                let decisions = committed.decisions.as_ref();
                let archive = bulk.archive();
                let is_there =
                    archive.is_committed(*day, &committed.digest, decisions, Existing::Keep);
                let is_there = is_there.await;
                if !matches!(is_there, Ok(false)) {
                    archive.discard(&staged).await;
                    is_there?;
                    merged.there += 1;
                    break;
                }
                if bulk.has_day(*day) {
                    archive.discard(&staged).await;
                    return Err(ArchiveError::ForeignRows {
                        path: archive.location().to_string(),
                        day: day.to_string(),
                    });
                }
            }
        }
        bulk.finish().await?;
        Ok(merged)
    }

    /// Copies what `other` remembers of templates, if this archive remembers nothing.
    async fn copied_memory(&self, other: &Self) -> Result<Option<CommittedMemory>> {
        let own = self.template_memory().await?;
        let theirs = other.template_memory().await?;
        let Some(version) = theirs.filter(|theirs| Some(*theirs) != own) else {
            return Ok(None);
        };
        if own.is_some() {
            tracing::warn!(
                "{} has learnt templates of its own: what {} learnt of other sources is not copied",
                self.location(),
                other.location()
            );
            return Ok(None);
        }
        template_memory::copy(other.location(), self.location(), version).await?;
        Ok(Some(CommittedMemory {
            before: None,
            after: version,
        }))
    }

    /// Writes the rows of a day of `other` as data files.
    async fn stage_from(
        &self,
        other: &Self,
        day: &MergedDay,
        each: &mut impl FnMut(usize),
    ) -> Result<StagedDay> {
        let mut staged = StagedDay::of_copy(day.day, &day.committed);
        let written = self.copy_files(other, day, &mut staged, each).await;
        if let Err(error) = written {
            if error.kind() != ErrorKind::Unreachable {
                self.discard(&staged).await;
            }
            return Err(error);
        }
        Ok(staged)
    }

    async fn copy_files(
        &self,
        other: &Self,
        MergedDay { day, files, .. }: &MergedDay,
        staged: &mut StagedDay,
        each: &mut impl FnMut(usize),
    ) -> Result<()> {
        let adds_kept = self.has_kept() && !other.has_kept();
        for file in files {
            let name = other.location().child_name(&file.path);
            let failed = ArchiveError::arrow(&name);
            let stored = other.stored_rows(file).await?;
            let (count, stored): (u64, Rows<'_>) = match (file.rows, CommittedDay::of_file(file)) {
                (Some(rows), Some(_)) => (rows, Box::new(stored)),
                // Files of other programs may not be sorted.
                _ => {
                    let all: Vec<RecordBatch> = stored.collect::<Result<_>>()?;
                    let present =
                        |rows: &RecordBatch| rows.num_rows() - rows.column(0).null_count();
                    let count = all.iter().map(present).sum::<usize>();
                    let rows = sorted(all).map(|rows| rows.map_err(&failed));
                    (count as u64, Box::new(rows))
                }
            };
            let rows = stored.map(|rows| {
                let rows = rows?;
                each(rows.num_rows());
                if adds_kept {
                    let kept = BooleanArray::new_null(rows.num_rows());
                    with_kept(&rows, kept).map_err(&failed)
                } else {
                    Ok(rows)
                }
            });
            let mut rows = RowsToWrite::foreign(rows);
            let written = &mut staged.files;
            self.write_files(Some(day.day), count, &mut rows, written)
                .await?;
            staged.rows += count;
        }
        staged.documents = staged.documents.max(staged.rows);
        if staged.files.is_empty() {
            // A day without rows has a file that says so.
            let mut rows = RowsToWrite::new(std::iter::empty());
            self.write_files(Some(day.day), 0, &mut rows, &mut staged.files)
                .await?;
        }
        Ok(())
    }
}
