//! Merging small data files of a day into few large ones. A run finds the same pairs as before.
//!
//! The cost of a run grows with the number of files and row groups: a run reads every footer, and a part of each row
//! group. The rows of a day stay in its partition, sorted as before, and the new files carry the day's tags.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use arrow::array::{
    ArrayBuilder as _, ArrayRef, AsArray as _, BinaryBuilder, BooleanBuilder, Int64Array,
    RecordBatch, StringBuilder,
};
use arrow::datatypes::{DataType, Int64Type, SchemaRef};
use chrono::NaiveDate;
use deltalake_core::kernel::Action;
use deltalake_core::protocol::DeltaOperation;
use simhash::hash::murmur3_low64;

use crate::commit::COMMIT_ATTEMPTS;
use crate::data_files::{RowsToWrite, StoredRows, WrittenFile};
use crate::day_batch::DayBatch;
use crate::day_records::CommittedDay;
use crate::document_id::DocumentId;
use crate::error::{ArchiveError, Result};
use crate::operations::operation_name;
use crate::schema;
use crate::table::{Archive, DataFile};

/// Rows of a record batch of merged rows.
const RECORD_BATCH_ROWS: usize = 8192;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Days that had files to merge.
    pub days: u64,
    /// Files that were merged.
    pub merged: u64,
    /// Files written for their rows.
    pub written: u64,
    /// Rows of the merged files.
    pub rows: u64,
    /// Small files that other programs wrote, which stay: nothing says which commit their rows belong to.
    pub skipped: u64,
    /// The version that the compaction committed; `None` if there was nothing to merge.
    pub version: Option<u64>,
}

/// Small files of one commit of a day, whose rows fit into one file.
struct MergeSet {
    batch: DayBatch,
    committed: CommittedDay,
    files: Vec<DataFile>,
    rows: u64,
}

impl Archive {
    /// Merges small files of the days before `before`, or of all days, in one commit. The merged files stay for readers
    /// of earlier versions until a vacuum removes them.
    ///
    /// # Errors
    /// [`ArchiveError`]; the table is unchanged then.
    pub async fn compact(&mut self, before: Option<NaiveDate>) -> Result<Compacted> {
        let (sets, skipped) = self.merge_sets(before)?;
        let mut compacted = Compacted {
            skipped,
            ..Compacted::default()
        };
        if sets.is_empty() {
            return Ok(compacted);
        }
        self.preflight().await?;
        let mut written = Vec::new();
        let merged = self.merge_all(&sets, &mut written, &mut compacted).await;
        let actions = self.made_or_removed(merged, &written).await?;
        compacted.version = Some(self.commit_merged(&sets, &written, actions).await?);
        Ok(compacted)
    }

    /// Commits the new files. If another commit comes first, tries again, unless that commit
    /// removed a file that the new ones replace.
    async fn commit_merged(
        &mut self,
        sets: &[MergeSet],
        written: &[WrittenFile],
        actions: Vec<Action>,
    ) -> Result<u64> {
        for attempt in 1..=COMMIT_ATTEMPTS {
            let version = self.version();
            let operation = DeltaOperation::Optimize {
                predicate: None,
                target_size: 0,
            };
            let committed = self.commit_changes(actions.clone(), operation, vec![], vec![]);
            if let Some(version) = committed.await? {
                return Ok(version);
            }
            let latest = self.files()?;
            let mut merged = sets.iter().flat_map(|set| &set.files);
            // If another commit rewrote or removed one of them, this commit would bring its rows back.
            if !merged.all(|file| latest.iter().any(|other| other.is_same_file(file))) {
                let operation = self.operation_that_removed(sets, version).await;
                self.remove_written(written).await;
                return Err(ArchiveError::CompactionOvertaken {
                    path: self.location().to_string(),
                    operation,
                    attempts: attempt,
                });
            }
        }
        self.remove_written(written).await;
        Err(self.busy_error())
    }

    /// The operation of the first commit after `version` that removes a file of `sets`, if the log says it.
    async fn operation_that_removed(&self, sets: &[MergeSet], version: u64) -> Option<String> {
        let merged = || sets.iter().flat_map(|set| &set.files);
        for version in version + 1..=self.version() {
            // An entry that cannot be read must not hide the conflict.
            let actions = self.log_actions(version).await.ok()??;
            let removes_one = actions.iter().any(|action| match action {
                Action::Remove(remove) => merged().any(|file| file.path == remove.path),
                _ => false,
            });
            if removes_one {
                return operation_name(&actions).map(str::to_owned);
            }
        }
        None
    }

    async fn merge_all(
        &self,
        sets: &[MergeSet],
        written: &mut Vec<WrittenFile>,
        compacted: &mut Compacted,
    ) -> Result<Vec<Action>> {
        let now = chrono::Utc::now().timestamp_millis();
        let mut actions = Vec::new();
        let mut days = BTreeSet::new();
        for set in sets {
            let from = written.len();
            self.write_merged(set, written).await?;
            days.insert(set.batch.day);
            compacted.merged += set.files.len() as u64;
            compacted.written += (written.len() - from) as u64;
            compacted.rows += set.rows;
            let removed = set.files.iter();
            actions.extend(removed.map(|file| file.remove_action(now, false)));
            let (batch, committed) = (Some(set.batch), Some(&set.committed));
            let added = written[from..].iter();
            actions.extend(added.map(|file| file.add_action(batch, committed, now, false)));
        }
        compacted.days = days.len() as u64;
        Ok(actions)
    }

    /// The files worth merging, in sets: small files of one commit of a day, whose rows fit into one file; and the number of small files
    /// of other programs.
    fn merge_sets(&self, before: Option<NaiveDate>) -> Result<(Vec<MergeSet>, u64)> {
        let mut skipped = 0;
        let mut batches: BTreeMap<DayBatch, Vec<(DataFile, CommittedDay)>> = BTreeMap::new();
        for file in self.files()? {
            let Some(batch) = file.batch() else { continue };
            // At most half full.
            let small = file.rows.is_some_and(|rows| rows <= self.file_rows / 2);
            if !small || before.is_some_and(|before| batch.day >= before) {
                continue;
            }
            match CommittedDay::of_file(&file) {
                Some(committed) => batches.entry(batch).or_default().push((file, committed)),
                None => skipped += 1,
            }
        }
        let mut sets: Vec<MergeSet> = Vec::new();
        for (batch, mut files) in batches {
            files.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
            for (file, committed) in files {
                let rows = file.rows.unwrap_or(0);
                match sets.last_mut() {
                    // A set becomes one file, which has to fit into memory.
                    Some(set)
                        if set.rows + rows <= self.file_rows
                            && set.batch == batch
                            && set.committed == committed =>
                    {
                        set.rows += rows;
                        set.files.push(file);
                    }
                    _ => sets.push(MergeSet {
                        batch,
                        committed,
                        files: vec![file],
                        rows,
                    }),
                }
            }
        }
        sets.retain(|set| set.files.len() > 1);
        Ok((sets, skipped))
    }

    /// Writes the rows of a set as one file, and checks that they are the same rows.
    async fn write_merged(&self, set: &MergeSet, written: &mut Vec<WrittenFile>) -> Result<()> {
        let mut sources = Vec::new();
        for file in &set.files {
            sources.push(Cursor::new(self.stored_rows(file).await?));
        }
        let mut merged = MergedRows {
            sources,
            heap: BinaryHeap::new(),
            schema: self.rows_schema(true),
            read: Checksum::default(),
        };
        for source in 0..set.files.len() {
            merged.advance(source)?;
        }
        let from = written.len();
        let mut rows = RowsToWrite::new(&mut merged);
        self.write_files(Some(set.batch.day), set.rows, &mut rows, written)
            .await?;
        // Checks the merge itself: the rows read back must be the rows that were merged.
        let mut found = Checksum::default();
        for file in &written[from..] {
            let location = self.location().child(&file.path)?;
            let rows = self.stored_rows_at(&location, location.read().await?)?;
            let mut source = Cursor::new(rows);
            while source.advance()? {
                found.add(&source.batch, source.row);
            }
        }
        if found == merged.read && found.rows == set.rows {
            Ok(())
        } else {
            Err(ArchiveError::bad_data(
                format!("{}, day {}", self.location(), set.batch.day),
                format!(
                    "{} rows were merged and {} read back, or they differ; nothing was changed",
                    merged.read.rows, found.rows
                ),
            ))
        }
    }
}

/// A checksum of rows that does not depend on their order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Checksum {
    rows: u64,
    sum: u64,
}

impl Checksum {
    fn add(&mut self, batch: &RecordBatch, row: usize) {
        let fingerprint = batch.column(0).as_primitive::<Int64Type>().value(row);
        let seed = fingerprint as u32 ^ (fingerprint >> 32) as u32;
        let id = match batch.column(1).as_string_opt::<i32>() {
            Some(text) => murmur3_low64(text.value(row).as_bytes(), seed),
            None => {
                let number = batch.column(1).as_primitive::<Int64Type>().value(row);
                murmur3_low64(&number.to_le_bytes(), seed)
            }
        };
        let sketch = schema::sketch_at(batch, row);
        let sketch = sketch.map_or(0, |sketch| murmur3_low64(sketch, seed));
        let kept = schema::kept_at(batch, row);
        let kept = kept.map_or(0, |kept| murmur3_low64(&[kept.into()], seed ^ id as u32));
        self.rows += 1;
        let sum = id ^ fingerprint.cast_unsigned().rotate_left(17) ^ sketch.rotate_left(34) ^ kept;
        self.sum = self.sum.wrapping_add(sum);
    }
}

struct Cursor {
    rows: StoredRows,
    batch: RecordBatch,
    row: usize,
}

impl Cursor {
    fn new(rows: StoredRows) -> Self {
        let batch = RecordBatch::new_empty(rows.schema.clone());
        Self {
            rows,
            batch,
            row: 0,
        }
    }

    /// Moves to the next row; false after the last.
    fn advance(&mut self) -> Result<bool> {
        self.row += 1;
        while self.row >= self.batch.num_rows() {
            let Some(batch) = self.rows.next().transpose()? else {
                return Ok(false);
            };
            self.batch = batch;
            self.row = 0;
            if self.batch.num_rows() > 0 {
                break;
            }
        }
        Ok(true)
    }

    /// The sort key of the current row: fingerprint, then id.
    fn key(&self) -> (i64, DocumentId) {
        let fingerprint = self.batch.column(0).as_primitive::<Int64Type>();
        let id = DocumentId::read(self.batch.column(1), self.row);
        (fingerprint.value(self.row), id)
    }
}

/// The rows of several sorted files, merged in sort order.
struct MergedRows {
    sources: Vec<Cursor>,
    /// The sort key of each file's next row, with the file's number; the smallest key on top.
    heap: BinaryHeap<Reverse<(i64, DocumentId, usize)>>,
    schema: SchemaRef,
    /// Checksum of the rows that were read from `sources`.
    read: Checksum,
}

impl MergedRows {
    /// Moves one file's cursor to its next row, and pushes that row's key onto the heap.
    fn advance(&mut self, source: usize) -> Result<()> {
        let from = &mut self.sources[source];
        if from.advance()? {
            self.read.add(&from.batch, from.row);
            let (fingerprint, id) = from.key();
            self.heap.push(Reverse((fingerprint, id, source)));
        }
        Ok(())
    }

    /// The next rows, [`RECORD_BATCH_ROWS`] at most; `None` after the last.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut fingerprints = Vec::with_capacity(RECORD_BATCH_ROWS);
        let mut texts = StringBuilder::new();
        let mut numbers = Vec::new();
        let mut sketches = BinaryBuilder::new();
        let mut decisions = BooleanBuilder::new();
        while fingerprints.len() < RECORD_BATCH_ROWS {
            let Some(Reverse((fingerprint, id, source))) = self.heap.pop() else {
                break;
            };
            fingerprints.push(fingerprint);
            match id {
                DocumentId::Text(text) => texts.append_value(&text),
                DocumentId::Number(number) => numbers.push(number),
            }
            let from = &self.sources[source];
            if schema::sketches(&from.batch).is_some() {
                sketches.append_option(schema::sketch_at(&from.batch, from.row));
            }
            if schema::kept(&from.batch).is_some() {
                decisions.append_option(schema::kept_at(&from.batch, from.row));
            }
            self.advance(source)?;
        }
        if fingerprints.is_empty() {
            return Ok(None);
        }
        let ids: ArrayRef = match self.schema.field(1).data_type() {
            DataType::Int64 => Arc::new(Int64Array::from(numbers)),
            _ => Arc::new(texts.finish()),
        };
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(fingerprints)), ids];
        if !sketches.is_empty() {
            columns.push(Arc::new(sketches.finish()));
        }
        if !decisions.is_empty() {
            columns.push(Arc::new(decisions.finish()));
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        batch.map(Some).map_err(ArchiveError::arrow("merged rows"))
    }
}

impl Iterator for &mut MergedRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}
