//! Merging small files of a day into few large ones, without a change of what a run finds.
//!
//! A run reads every file's footer and one piece of each row group; what it costs grows with their number. The rows of a
//! day stay together in its partition, sorted as before, with the day's own digest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, Int64Array, RecordBatch, StringBuilder};
use arrow::datatypes::Int64Type;
use bytes::Bytes;
use chrono::NaiveDate;
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties, TableReference};
use deltalake_core::kernel::{Action, Remove};
use deltalake_core::protocol::DeltaOperation;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use sha2::{Digest as _, Sha256};
use simhash::hash::murmur3_low64;

use crate::data_files::{DayTags, Rows, WrittenFile};
use crate::error::{ArchiveError, ErrorKind, Result};
use crate::schema::{self, IdType};
use crate::table::{Archive, DataFile};
use crate::upload::hex;

/// Rows of a batch of merged rows.
const BATCH_ROWS: usize = 8192;

/// What was merged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Days that had files to merge.
    pub days: u64,
    /// Files that were merged.
    pub merged: u64,
    /// Files that hold their rows now.
    pub written: u64,
    /// The rows.
    pub rows: u64,
    /// The version that this made, if there was anything to do.
    pub version: Option<u64>,
}

/// Files of a day whose rows fit into fewer files.
struct Group {
    day: NaiveDate,
    tags: DayTags,
    files: Vec<DataFile>,
    rows: u64,
}

impl Archive {
    /// Merges small files of the days before `before`, or of all days, in one commit. The files that were merged stay
    /// until they are vacuumed, for those who read an earlier version.
    ///
    /// # Errors
    /// [`ArchiveError`]; the table is then as it was.
    pub async fn compact(&mut self, before: Option<NaiveDate>) -> Result<Compacted> {
        let groups = self.groups(before)?;
        let mut compacted = Compacted::default();
        if groups.is_empty() {
            return Ok(compacted);
        }
        self.preflight().await?;
        let mut written = Vec::new();
        let done = self.merge_all(&groups, &mut written, &mut compacted).await;
        match done {
            Ok(version) => {
                compacted.version = Some(version);
                self.reopen().await?;
                Ok(compacted)
            }
            Err(error) => {
                // The outcome is in the log. While it cannot be read, the files stay: it may name them.
                let now = Self::open(self.location()).await?;
                let files = now.files()?;
                if files
                    .iter()
                    .any(|file| written.iter().any(|of| of.path == file.path))
                {
                    compacted.version = Some(now.version());
                    *self = now.with_file_rows(self.file_rows());
                    return Ok(compacted);
                }
                // Only where it is certain that the entry cannot come any more.
                if error.kind() == ErrorKind::TryAgain {
                    self.remove(&written).await;
                }
                Err(error)
            }
        }
    }

    async fn merge_all(
        &self,
        groups: &[Group],
        written: &mut Vec<WrittenFile>,
        compacted: &mut Compacted,
    ) -> Result<u64> {
        let now = chrono::Utc::now().timestamp_millis();
        let mut actions = Vec::new();
        let mut days = BTreeSet::new();
        for group in groups {
            let from = written.len();
            self.merge(group, written).await?;
            days.insert(group.day);
            compacted.merged += group.files.len() as u64;
            compacted.written += (written.len() - from) as u64;
            compacted.rows += group.rows;
            let removed = group.files.iter().map(|file| removal(file, now));
            actions.extend(removed.map(Action::Remove));
            let added = written[from..].iter();
            actions.extend(
                added.map(|file| Action::Add(file.add(group.day, &group.tags, now, false))),
            );
        }
        compacted.days = days.len() as u64;
        let given = self.location().given();
        let operation = DeltaOperation::Optimize {
            predicate: None,
            target_size: 0,
        };
        let state = self
            .table()
            .snapshot()
            .map_err(ArchiveError::delta(given))?;
        let properties = CommitProperties::default().with_cleanup_expired_logs(Some(false));
        let committed = CommitBuilder::from(properties)
            .with_actions(actions)
            .build(
                Some(state as &dyn TableReference),
                self.table().log_store(),
                operation,
            )
            .await
            .map_err(ArchiveError::delta(given))?;
        Ok(committed.version())
    }

    /// What is worth merging: the files of a day that are less than half full, if they fit into fewer.
    fn groups(&self, before: Option<NaiveDate>) -> Result<Vec<Group>> {
        let mut days: BTreeMap<NaiveDate, Vec<DataFile>> = BTreeMap::new();
        for file in self.files()? {
            let Some(day) = file.day else { continue };
            let small = file.rows.is_some_and(|rows| rows <= self.file_rows() / 2);
            if small && before.is_none_or(|before| day < before) {
                days.entry(day).or_default().push(file);
            }
        }
        let groups = days.into_iter().flat_map(|(day, mut files)| {
            files.sort_by(|a, b| a.path.cmp(&b.path));
            let mut groups: Vec<Group> = Vec::new();
            for file in files {
                let rows = file.rows.unwrap_or(0);
                let Some(tags) = tags_of(&file) else { continue };
                match groups.last_mut() {
                    // Each group becomes one file, and is held in memory as such.
                    Some(group) if group.rows + rows <= self.file_rows() && group.tags == tags => {
                        group.rows += rows;
                        group.files.push(file);
                    }
                    _ => groups.push(Group {
                        day,
                        tags,
                        files: vec![file],
                        rows,
                    }),
                }
            }
            groups
        });
        Ok(groups.filter(|group| group.files.len() > 1).collect())
    }

    /// Writes the rows of a group's files as few files.
    async fn merge(&self, group: &Group, written: &mut Vec<WrittenFile>) -> Result<()> {
        let mut sources = Vec::new();
        for file in &group.files {
            let location = self.location().child(&file.path)?;
            let bytes = location.read().await;
            let bytes = bytes.map_err(|error| error.or_missing(location.given()))?;
            file.check(location.given(), &hex(&Sha256::digest(&bytes)))?;
            sources.push(Source::open(location.given().to_owned(), bytes)?);
        }
        let mut merged = Merged {
            sources,
            heap: BinaryHeap::new(),
            id_type: self.id_type(),
            started: false,
            read: Checksum::default(),
        };
        let own = written.len();
        let mut rows = Rows::new(&mut merged);
        self.write_files(group.day, group.rows, &mut rows, written)
            .await?;
        // Whatever the merge did: the rows that went out are those that came in.
        let mut wrote = Checksum::default();
        for file in &written[own..] {
            let location = self.location().child(&file.path)?;
            let mut source = Source::open(location.given().to_owned(), location.read().await?)?;
            while source.advance()? {
                wrote.add(&source.batch, source.row);
            }
        }
        match wrote == merged.read && wrote.rows == group.rows {
            true => Ok(()),
            false => Err(ArchiveError::BadData {
                object: format!("{}, day {}", self.location(), group.day),
                reason: format!(
                    "{} rows were read and {} written, or they differ; nothing was changed",
                    merged.read.rows, wrote.rows
                ),
            }),
        }
    }
}

fn tags_of(file: &DataFile) -> Option<DayTags> {
    Some(DayTags {
        digest: file.day_digest.clone()?,
        base_version: file.base_version?,
    })
}

fn removal(file: &DataFile, now: i64) -> Remove {
    Remove {
        path: file.path.clone(),
        data_change: false,
        deletion_timestamp: Some(now),
        extended_file_metadata: Some(true),
        partition_values: file
            .day
            .map(|day| [(schema::DAY.to_owned(), Some(day.to_string()))].into()),
        size: Some(file.size.cast_signed()),
        ..Default::default()
    }
}

/// What rows are there, in whatever order.
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
        self.rows += 1;
        self.sum = self
            .sum
            .wrapping_add(id ^ fingerprint.cast_unsigned().rotate_left(17));
    }
}

/// The rows of one file, at one of them.
struct Source {
    name: String,
    batches: ParquetRecordBatchReader,
    batch: RecordBatch,
    row: usize,
}

impl Source {
    fn open(name: String, bytes: Bytes) -> Result<Self> {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes)
            .and_then(|builder| builder.with_batch_size(BATCH_ROWS).build())
            .map_err(ArchiveError::parquet(name.clone()))?;
        let batch = RecordBatch::new_empty(arrow::array::RecordBatchReader::schema(&reader));
        Ok(Self {
            name,
            batches: reader,
            batch,
            row: 0,
        })
    }

    /// Goes on to the next row; false when there is none.
    fn advance(&mut self) -> Result<bool> {
        self.row += 1;
        while self.row >= self.batch.num_rows() {
            let Some(batch) = self.batches.next() else {
                return Ok(false);
            };
            self.batch = batch.map_err(|source| ArchiveError::Arrow {
                object: self.name.clone(),
                source,
            })?;
            self.row = 0;
            if self.batch.num_rows() > 0 {
                break;
            }
        }
        Ok(true)
    }

    /// What the row is sorted by.
    fn key(&self) -> (i64, Key) {
        let fingerprint = self.batch.column(0).as_primitive::<Int64Type>();
        let ids = self.batch.column(1);
        let id = match ids.as_string_opt::<i32>() {
            Some(text) => Key::Text(text.value(self.row).into()),
            None => Key::Number(ids.as_primitive::<Int64Type>().value(self.row)),
        };
        (fingerprint.value(self.row), id)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Number(i64),
    Text(Box<str>),
}

/// The rows of several sorted files, sorted.
struct Merged {
    sources: Vec<Source>,
    /// The next row of each file, the least on top.
    heap: BinaryHeap<Reverse<(i64, Key, usize)>>,
    id_type: IdType,
    started: bool,
    read: Checksum,
}

impl Merged {
    fn advance(&mut self, source: usize) -> Result<()> {
        let from = &mut self.sources[source];
        if from.advance()? {
            self.read.add(&from.batch, from.row);
            let (fingerprint, id) = from.key();
            self.heap.push(Reverse((fingerprint, id, source)));
        }
        Ok(())
    }

    fn batch(&mut self) -> Result<Option<RecordBatch>> {
        if !self.started {
            self.started = true;
            for source in 0..self.sources.len() {
                self.advance(source)?;
            }
        }
        let mut fingerprints = Vec::with_capacity(BATCH_ROWS);
        let mut texts = StringBuilder::new();
        let mut numbers = Vec::new();
        while fingerprints.len() < BATCH_ROWS {
            let Some(Reverse((fingerprint, id, source))) = self.heap.pop() else {
                break;
            };
            fingerprints.push(fingerprint);
            match id {
                Key::Text(text) => texts.append_value(&text),
                Key::Number(number) => numbers.push(number),
            }
            self.advance(source)?;
        }
        if fingerprints.is_empty() {
            return Ok(None);
        }
        let ids: ArrayRef = match self.id_type {
            IdType::String => Arc::new(texts.finish()),
            IdType::Bigint => Arc::new(Int64Array::from(numbers)),
        };
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(fingerprints)), ids];
        let batch = RecordBatch::try_new(schema::fingerprints(self.id_type, true), columns);
        batch.map(Some).map_err(|source| ArchiveError::Arrow {
            object: "merged rows".into(),
            source,
        })
    }
}

impl Iterator for &mut Merged {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batch().transpose()
    }
}
