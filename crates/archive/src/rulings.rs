//! What later days must know of the decisions of a day besides which of its documents it kept: the captures that newer ones supersede,
//! and people's pins.
//!
//! Rulings are Parquet files [beside](crate::beside) the table, `_dedup-job/rulings/`. The Delta application transaction `rulings`, in
//! the commit of the day that brings some, points to a list of these files. Each ruling names its commit, as the tags of the commit's data
//! files do, so it counts only where the rows of that commit do: not for reruns of earlier days, and not once the day is removed or
//! replaced.

use std::collections::{HashMap, HashSet};
use std::hash::Hash as _;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, Date32Array, Int64Array, RecordBatch, StringArray};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Date32Type, Field, Int64Type, Schema, SchemaRef};
use arrow::error::ArrowError;
use chrono::NaiveDate;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::beside::Beside;
use crate::error::{ArchiveError, Result};
use crate::id_set::IdSet;
use crate::table::Archive;

/// The application id of the transaction.
pub(crate) const TRANSACTION: &str = "rulings";
pub(crate) const FILES: Beside = Beside {
    directory: "_dedup-job/rulings",
    extension: "parquet",
};
pub(crate) const LISTS: Beside = Beside {
    directory: "_dedup-job/rulings",
    extension: "json",
};

/// Whether a path below the archive's directory is that of a file or a list of rulings.
pub(crate) fn is_path(path: &str) -> bool {
    FILES.parse_path(path).is_some() || LISTS.parse_path(path).is_some()
}

/// Files of more rulings are not merged with others.
const MERGED_ROWS: u64 = 1 << 22;

/// What people say of documents, which are named by their ids. It wins over distances.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pin {
    /// Two documents are duplicates.
    Same(String, String),
    /// Two documents are no duplicates.
    Distinct(String, String),
    /// A document is never dropped.
    Keep(String),
    /// What was said of two documents before, or that one is never dropped, counts no more.
    Forget(String, Option<String>),
}

impl Pin {
    /// The pin, with its two ids in order.
    pub fn ordered(self) -> Self {
        match self {
            Self::Same(a, b) if b < a => Self::Same(b, a),
            Self::Distinct(a, b) if b < a => Self::Distinct(b, a),
            Self::Forget(a, Some(b)) if b < a => Self::Forget(b, Some(a)),
            pin => pin,
        }
    }

    /// What it is about: its ids, in order; the second is empty if it has one.
    pub fn about(&self) -> (String, String) {
        match self {
            Self::Same(a, b) | Self::Distinct(a, b) => (a.clone(), b.clone()),
            Self::Keep(id) => (id.clone(), String::new()),
            Self::Forget(id, other) => (id.clone(), other.clone().unwrap_or_default()),
        }
    }
}

/// What tells a capture of a document from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureName {
    pub id: String,
    /// Its day, in days since 1970; `None` for a row without one.
    pub day: Option<i32>,
    /// Its fingerprint: a day may have several captures.
    pub fingerprint: u64,
}

/// What a commit says for later days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// A newer capture of the document counts instead of this one.
    Superseded(CaptureName),
    /// This capture counts, although an equal one of its day is superseded.
    Current(CaptureName),
    Pin(Pin),
}

/// The rulings that count for a view of the archive.
#[derive(Debug, Clone, Default)]
pub struct Rulings {
    /// Superseded captures: hashes of their ids and days, and fingerprints; sorted.
    superseded: Vec<(u128, u64)>,
    /// The pins. Of contradicting ones, the last.
    pub pins: Vec<Pin>,
}

impl Rulings {
    /// Whether a capture of `id` on `day`, in days since 1970, whose fingerprint may be that of the capture is superseded.
    pub fn is_superseded(&self, id: &str, day: Option<i32>, may_be: impl Fn(u64) -> bool) -> bool {
        if self.superseded.is_empty() {
            return false;
        }
        let hash = hash(id, day);
        let start = self.superseded.partition_point(|(other, _)| *other < hash);
        let mut same = self.superseded[start..]
            .iter()
            .take_while(|(other, _)| *other == hash);
        same.any(|(_, fingerprint)| may_be(*fingerprint))
    }

    /// Whether any capture is superseded.
    pub fn has_superseded(&self) -> bool {
        !self.superseded.is_empty()
    }
}

/// 128 bits stand for a capture: no two of 10¹² are likely to meet.
fn hash(id: &str, day: Option<i32>) -> u128 {
    let half = |seed| {
        let mut hasher = XxHash3_64::with_seed(seed);
        (id, day).hash(&mut hasher);
        std::hash::Hasher::finish(&hasher)
    };
    (u128::from(half(0)) << 64) | u128::from(half(1))
}

/// The files of rulings that count.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RulingFiles {
    files: Vec<RulingFile>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct RulingFile {
    version: i64,
    rows: u64,
    bytes: u64,
}

impl RulingFiles {
    /// The most bytes of memory that it takes to read the [`Rulings`] of the files.
    pub fn bytes(&self) -> usize {
        // A damaged list may claim any number.
        let bytes = self.files.iter().fold(0u64, |sum, file| {
            sum.saturating_add(file.rows.saturating_mul(RULING_BYTES))
                .saturating_add(file.bytes)
        });
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// Bytes of memory of a ruling besides those of its file.
const RULING_BYTES: u64 = 64;
const ROWS_AT_ONCE: usize = 1 << 16;

const SAME: &str = "same";
const DISTINCT: &str = "distinct";
const KEEP: &str = "keep";
const FORGET: &str = "forget";
const SUPERSEDED: &str = "superseded";
const CURRENT: &str = "current";

fn schema() -> SchemaRef {
    let text = |name, nullable| Field::new(name, DataType::Utf8, nullable);
    Arc::new(Schema::new(vec![
        text("commit", false),
        text("ruling", false),
        text("id", false),
        text("other", true),
        Field::new("of_day", DataType::Date32, true),
        Field::new("of_fp", DataType::Int64, true),
    ]))
}

fn to_rows(commit: &str, rulings: &[Ruling]) -> Result<RecordBatch> {
    let named = |kind, capture: &'_ CaptureName| {
        let fingerprint = capture.fingerprint.cast_signed();
        (kind, capture.day, Some(fingerprint))
    };
    let rows = rulings.iter().map(|ruling| match ruling {
        Ruling::Superseded(capture) => (named(SUPERSEDED, capture), &capture.id, None),
        Ruling::Current(capture) => (named(CURRENT, capture), &capture.id, None),
        Ruling::Pin(Pin::Same(id, other)) => ((SAME, None, None), id, Some(other)),
        Ruling::Pin(Pin::Distinct(id, other)) => ((DISTINCT, None, None), id, Some(other)),
        Ruling::Pin(Pin::Keep(id)) => ((KEEP, None, None), id, None),
        Ruling::Pin(Pin::Forget(id, other)) => ((FORGET, None, None), id, other.as_ref()),
    });
    let rows: Vec<_> = rows.collect();
    let text =
        |text: &mut dyn Iterator<Item = Option<&str>>| Arc::new(text.collect::<StringArray>());
    let batch = RecordBatch::try_new(
        schema(),
        vec![
            text(&mut std::iter::repeat_n(Some(commit), rows.len())),
            text(&mut rows.iter().map(|row| Some(row.0.0))),
            text(&mut rows.iter().map(|row| Some(row.1.as_str()))),
            text(&mut rows.iter().map(|row| row.2.map(String::as_str))),
            Arc::new(rows.iter().map(|row| row.0.1).collect::<Date32Array>()),
            Arc::new(rows.iter().map(|row| row.0.2).collect::<Int64Array>()),
        ],
    );
    batch.map_err(arrow_error)
}

fn arrow_error(source: ArrowError) -> ArchiveError {
    ArchiveError::arrow("rulings")(source)
}

impl Archive {
    /// The files of rulings that count now.
    pub async fn ruling_files(&self) -> Result<RulingFiles> {
        let Some(version) = self.app_transaction(TRANSACTION).await? else {
            return Ok(RulingFiles::default());
        };
        let list = self.read_list(version).await?;
        list.ok_or_else(|| missing(self.location().child_name(&LISTS.path(version))))
    }

    /// Reads a list; `None` if it is gone.
    async fn read_list(&self, version: i64) -> Result<Option<RulingFiles>> {
        let list = LISTS.read(self.location(), version).await?;
        let list = list.map(|list| serde_json::from_slice(&list)).transpose();
        list.map_err(|error| {
            ArchiveError::bad_data(
                self.location().child_name(&LISTS.path(version)),
                error.to_string(),
            )
        })
    }

    /// The commits that data files are of, given by their days and by what their tags say. Other programs drop the tags of files that
    /// they rewrite; then all commits of the day count.
    pub async fn commits_of(
        &self,
        files: impl Iterator<Item = (Option<NaiveDate>, Option<&str>)>,
    ) -> Result<HashSet<String>> {
        let mut commits = HashSet::new();
        let mut days = HashSet::new();
        for (day, commit) in files {
            match commit {
                Some(commit) => {
                    commits.insert(commit.to_owned());
                }
                None => days.extend(day),
            }
        }
        if !days.is_empty() {
            let recorded = self.recorded_batches().await?.into_iter();
            for batch in recorded.filter(|batch| days.contains(&batch.day)) {
                let record = self.last_record(batch).await?;
                commits.extend(record.and_then(|record| record.commit));
            }
        }
        Ok(commits)
    }

    pub async fn read_rulings(
        &self,
        files: &RulingFiles,
        commits: &HashSet<String>,
    ) -> Result<Rulings> {
        let mut superseded = Vec::new();
        let mut pins = HashMap::new();
        for file in &files.files {
            for rows in self.ruling_rows(*file).await? {
                add_rows(&rows?, commits, &mut superseded, &mut pins);
            }
        }
        superseded.sort_unstable();
        let mut pins: Vec<Pin> = pins.into_values().collect();
        pins.sort_unstable();
        Ok(Rulings { superseded, pins })
    }

    /// The rulings of all days.
    pub async fn rulings(&self) -> Result<Rulings> {
        let list = self.ruling_files().await?;
        if list.is_empty() {
            return Ok(Rulings::default());
        }
        self.read_rulings(&list, &self.live_commits().await?).await
    }

    async fn live_commits(&self) -> Result<HashSet<String>> {
        let files = self.files()?;
        let files = files.iter().map(|file| (file.day, file.commit.as_deref()));
        self.commits_of(files).await
    }

    /// Writes the rulings of a commit, and a list of all; they count when the commit names the list. Returns the list's version.
    pub(crate) async fn write_rulings(&self, commit: &str, rulings: &[Ruling]) -> Result<i64> {
        let mut list = self.ruling_files().await?;
        let mut count = rulings.len() as u64;
        // Files of growing size, so that there are few, and each ruling is written again a few times.
        let mut merged = Vec::new();
        while let Some(last) = list.files.last().copied()
            && last.rows <= count.saturating_mul(2)
            && last.rows.saturating_add(count) <= MERGED_ROWS
        {
            merged.push(last);
            count += last.rows;
            list.files.pop();
        }
        let mut file = NewFile::create()?;
        // Those of commits that are no more go.
        let live = if merged.is_empty() {
            HashSet::new()
        } else {
            self.live_commits().await?
        };
        // Later ones come later.
        for before in merged.into_iter().rev() {
            for rows in self.ruling_rows(before).await? {
                file.write(&of_commits(&rows?, &live)?)?;
            }
        }
        for rulings in rulings.chunks(ROWS_AT_ONCE) {
            file.write(&to_rows(commit, rulings)?)?;
        }
        list.files.extend(self.store_rulings(file).await?);
        self.write_list(&list).await
    }

    /// Writes the rulings without those about documents with one of `ids`; `None` if none is about them.
    pub(crate) async fn write_rulings_without(&self, ids: &IdSet) -> Result<Option<i64>> {
        let (mut list, mut is_changed) = (RulingFiles::default(), false);
        for before in self.ruling_files().await?.files {
            let mut file = NewFile::create()?;
            let mut rows_before = 0;
            for rows in self.ruling_rows(before).await? {
                let rows = rows?;
                let [of, others] = [2, 3].map(|at| rows.column(at).as_string::<i32>());
                let others_rows = (0..rows.num_rows()).map(|row| {
                    let other = others.is_valid(row) && ids.has_text(others.value(row));
                    Some(!other && !ids.has_text(of.value(row)))
                });
                let rest = filter_record_batch(&rows, &others_rows.collect());
                rows_before += rows.num_rows() as u64;
                file.write(&rest.map_err(arrow_error)?)?;
            }
            if file.rows == rows_before {
                list.files.push(before);
            } else {
                is_changed = true;
                list.files.extend(self.store_rulings(file).await?);
            }
        }
        if is_changed {
            self.write_list(&list).await.map(Some)
        } else {
            Ok(None)
        }
    }

    /// Stores a file; `None` if it has no rulings.
    async fn store_rulings(&self, file: NewFile) -> Result<Option<RulingFile>> {
        let rows = file.rows;
        if rows == 0 {
            return Ok(None);
        }
        let file = file.finish()?;
        let bytes = file.len() as u64;
        let version = FILES.write(self.location(), file.into()).await?;
        Ok(Some(RulingFile {
            version,
            rows,
            bytes,
        }))
    }

    /// Copies the rulings that `commits` of `other` brought, before its own. Returns the version of the list of both; `None` if there
    /// are none.
    pub(crate) async fn copy_rulings(
        &self,
        other: &Self,
        commits: &HashSet<String>,
    ) -> Result<Option<i64>> {
        let mut file = NewFile::create()?;
        for theirs in other.ruling_files().await?.files {
            for rows in other.ruling_rows(theirs).await? {
                file.write(&of_commits(&rows?, commits)?)?;
            }
        }
        match self.store_rulings(file).await? {
            None => Ok(None),
            Some(copied) => {
                let mut list = self.ruling_files().await?;
                list.files.insert(0, copied);
                self.write_list(&list).await.map(Some)
            }
        }
    }

    /// The paths, below the archive's directory, of the list that counts and of those in `lists`, and of all files that these name.
    pub(crate) async fn ruling_paths(&self, lists: &[i64]) -> Result<HashSet<String>> {
        let current = self.app_transaction(TRANSACTION).await?;
        let mut paths: HashSet<String> = current.iter().map(|list| LISTS.path(*list)).collect();
        let mut files = self.ruling_files().await?.files;
        for version in lists {
            paths.insert(LISTS.path(*version));
            // Another vacuum may have deleted it.
            let list = self.read_list(*version).await?.unwrap_or_default();
            files.extend(list.files);
        }
        paths.extend(files.iter().map(|file| FILES.path(file.version)));
        Ok(paths)
    }

    async fn write_list(&self, list: &RulingFiles) -> Result<i64> {
        let text = serde_json::to_vec(list)
            .map_err(|error| ArchiveError::bad_data("rulings", error.to_string()))?;
        LISTS.write(self.location(), text.into()).await
    }

    async fn ruling_rows(
        &self,
        file: RulingFile,
    ) -> Result<impl Iterator<Item = Result<RecordBatch>>> {
        let name = self.location().child_name(&FILES.path(file.version));
        let failed = |error| ArchiveError::parquet(name.clone())(error);
        let bytes = FILES.read(self.location(), file.version).await?;
        let bytes = bytes.ok_or_else(|| missing(name.clone()))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(failed)?;
        if reader.schema().fields() != schema().fields() {
            return Err(ArchiveError::bad_data(name, "it has no columns of rulings"));
        }
        let rows = reader.build().map_err(failed)?;
        Ok(rows.map(|rows| rows.map_err(arrow_error)))
    }
}

fn missing(object: String) -> ArchiveError {
    ArchiveError::bad_data(object, "it is missing, and the archive's log names it")
}

fn of_commits(rows: &RecordBatch, commits: &HashSet<String>) -> Result<RecordBatch> {
    let of = rows.column(0).as_string::<i32>();
    let is_of = (0..rows.num_rows()).map(|row| Some(commits.contains(of.value(row))));
    filter_record_batch(rows, &is_of.collect()).map_err(arrow_error)
}

/// A file of rulings that is being written.
struct NewFile {
    writer: ArrowWriter<Vec<u8>>,
    rows: u64,
}

impl NewFile {
    fn create() -> Result<Self> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .build();
        let writer = ArrowWriter::try_new(Vec::new(), schema(), Some(properties));
        Ok(Self {
            writer: writer.map_err(ArchiveError::parquet("rulings"))?,
            rows: 0,
        })
    }

    fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.rows += rows.num_rows() as u64;
        self.writer
            .write(rows)
            .map_err(ArchiveError::parquet("rulings"))
    }

    fn finish(self) -> Result<Vec<u8>> {
        self.writer
            .into_inner()
            .map_err(ArchiveError::parquet("rulings"))
    }
}

/// Adds the rulings of `commits`. Of several pins about the same documents, the map keeps the last.
fn add_rows(
    rows: &RecordBatch,
    commits: &HashSet<String>,
    superseded: &mut Vec<(u128, u64)>,
    pins: &mut HashMap<(String, String), Pin>,
) {
    let text = |at: usize| rows.column(at).as_string::<i32>();
    let (of_commits, kinds, ids, others) = (text(0), text(1), text(2), text(3));
    let days = rows.column(4).as_primitive::<Date32Type>();
    let fingerprints = rows.column(5).as_primitive::<Int64Type>();
    for row in 0..rows.num_rows() {
        if !commits.contains(of_commits.value(row)) {
            continue;
        }
        let (id, other) = (ids.value(row).to_owned(), others.value(row).to_owned());
        let pin = match kinds.value(row) {
            kind @ (SUPERSEDED | CURRENT) => {
                let day = days.is_valid(row).then(|| days.value(row));
                let capture = (hash(&id, day), fingerprints.value(row).cast_unsigned());
                if kind == CURRENT {
                    superseded.retain(|other| *other != capture);
                } else {
                    superseded.push(capture);
                }
                continue;
            }
            SAME => Pin::Same(id, other),
            DISTINCT => Pin::Distinct(id, other),
            KEEP => Pin::Keep(id),
            FORGET => {
                pins.remove(&(id, other));
                continue;
            }
            _ => continue,
        };
        pins.insert(pin.about(), pin);
    }
}
