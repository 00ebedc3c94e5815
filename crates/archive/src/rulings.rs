//! What later days must know of the decisions of a day besides which of its documents it kept: the captures that newer ones supersede,
//! and people's pins.
//!
//! Rulings are Parquet files [beside](crate::beside) the table, `_dedup-job/rulings/`. The Delta application transaction `rulings`, in
//! the commit of the day that brings some, points to a list of these files. Each ruling names the day and the digest of its commit, so
//! it counts only where the rows of that commit do: not for reruns of earlier days, and not once the day is removed or replaced.

use std::collections::HashSet;
use std::hash::Hash as _;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, Date32Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Date32Type, Field, Schema, SchemaRef};
use chrono::NaiveDate;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::beside::Beside;
use crate::error::{ArchiveError, Result};
use crate::table::Archive;

/// The application id of the transaction.
pub(crate) const TRANSACTION: &str = "rulings";
/// The files of rulings.
pub(crate) const FILES: Beside = Beside {
    directory: "_dedup-job/rulings",
    extension: "parquet",
};
/// The lists of files.
pub(crate) const LISTS: Beside = Beside {
    directory: "_dedup-job/rulings",
    extension: "json",
};

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
}

/// What a commit says for later days.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// The capture of the document `id` on `day` has a newer one, which counts instead.
    Superseded {
        /// Its id.
        id: String,
        /// Its day, in days since 1970; `None` for a row without one.
        day: Option<i32>,
    },
    /// A pin.
    Pin(Pin),
}

/// The rulings that count for a view of the archive.
#[derive(Debug, Clone, Default)]
pub struct Rulings {
    /// Hashes of superseded captures, sorted.
    superseded: Vec<u128>,
    /// The pins, each once.
    pub pins: Vec<Pin>,
}

impl Rulings {
    /// Whether the capture of `id` on `day`, in days since 1970, is superseded.
    #[must_use]
    pub fn is_superseded(&self, id: &str, day: Option<i32>) -> bool {
        !self.superseded.is_empty() && self.superseded.binary_search(&hash(id, day)).is_ok()
    }

    /// The pins alone.
    #[must_use]
    pub fn without_superseded(self) -> Self {
        Self {
            superseded: Vec::new(),
            ..self
        }
    }

    /// Whether any capture is superseded.
    #[must_use]
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
}

impl RulingFiles {
    /// The most bytes of memory that the [`Rulings`] of the files take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let rows = self.files.iter().map(|file| file.rows).sum::<u64>();
        usize::try_from(rows)
            .unwrap_or(usize::MAX)
            .saturating_mul(size_of::<u128>())
    }
}

const SAME: &str = "same";
const DISTINCT: &str = "distinct";
const KEEP: &str = "keep";
const SUPERSEDED: &str = "superseded";

fn schema() -> SchemaRef {
    let text = |name, nullable| Field::new(name, DataType::Utf8, nullable);
    Arc::new(Schema::new(vec![
        Field::new("day", DataType::Date32, false),
        text("digest", false),
        text("ruling", false),
        text("id", false),
        text("other", true),
        Field::new("of_day", DataType::Date32, true),
    ]))
}

/// The rulings of a commit as rows.
fn to_rows(day: NaiveDate, digest: &str, rulings: &[Ruling]) -> Result<RecordBatch> {
    let day = Date32Type::from_naive_date(day);
    let rows = rulings.iter().map(|ruling| match ruling {
        Ruling::Superseded { id, day } => (SUPERSEDED, id, None, *day),
        Ruling::Pin(Pin::Same(id, other)) => (SAME, id, Some(other), None),
        Ruling::Pin(Pin::Distinct(id, other)) => (DISTINCT, id, Some(other), None),
        Ruling::Pin(Pin::Keep(id)) => (KEEP, id, None, None),
    });
    let text =
        |text: &mut dyn Iterator<Item = Option<&str>>| Arc::new(text.collect::<StringArray>());
    let rows: Vec<_> = rows.collect();
    let count = rows.len();
    let batch = RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(Date32Array::from(vec![day; count])),
            text(&mut std::iter::repeat_n(Some(digest), count)),
            text(&mut rows.iter().map(|row| Some(row.0))),
            text(&mut rows.iter().map(|row| Some(row.1.as_str()))),
            text(&mut rows.iter().map(|row| row.2.map(String::as_str))),
            Arc::new(rows.iter().map(|row| row.3).collect::<Date32Array>()),
        ],
    );
    batch.map_err(|source| ArchiveError::Arrow {
        object: "rulings".into(),
        source,
    })
}

impl Archive {
    /// The files of rulings that count now.
    ///
    /// # Errors
    /// [`ArchiveError`] when the log or the list cannot be read.
    pub async fn ruling_files(&self) -> Result<RulingFiles> {
        let Some(version) = self.app_transaction(TRANSACTION).await? else {
            return Ok(RulingFiles::default());
        };
        let name = || self.location().child_name(&LISTS.path(version));
        let list = LISTS.read(self.location(), version).await?;
        let list = list.ok_or_else(|| missing(name()))?;
        serde_json::from_slice(&list).map_err(|error| ArchiveError::BadData {
            object: name(),
            reason: error.to_string(),
        })
    }

    /// The rulings of the commits of these days, with the digests that their files have.
    ///
    /// # Errors
    /// [`ArchiveError`] when a file cannot be read.
    pub async fn read_rulings(
        &self,
        files: &RulingFiles,
        days: impl Iterator<Item = (Option<NaiveDate>, Option<&str>)>,
    ) -> Result<Rulings> {
        let committed: Committed<'_> = days.collect();
        let mut rulings = Rulings::default();
        let mut pins = HashSet::new();
        for file in &files.files {
            for rows in self.ruling_rows(*file).await? {
                add_rows(&rows, &committed, &mut rulings.superseded, &mut pins);
            }
        }
        rulings.superseded.sort_unstable();
        rulings.pins = pins.into_iter().collect();
        rulings.pins.sort_unstable();
        Ok(rulings)
    }

    /// The rulings of all days.
    ///
    /// # Errors
    /// As [`Self::read_rulings`].
    pub async fn rulings(&self) -> Result<Rulings> {
        let files = self.files()?;
        let days = files
            .iter()
            .map(|file| (file.day, file.day_digest.as_deref()));
        self.read_rulings(&self.ruling_files().await?, days).await
    }

    /// Writes the rulings of a commit, and a list of all; they count when the commit names the list. Returns the list's version.
    ///
    /// # Errors
    /// [`ArchiveError`] when those before cannot be read, or a store's error.
    pub async fn write_rulings(
        &self,
        day: NaiveDate,
        digest: &str,
        rulings: &[Ruling],
    ) -> Result<i64> {
        let mut list = self.ruling_files().await?;
        let mut rows = vec![to_rows(day, digest, rulings)?];
        let mut count = rulings.len() as u64;
        // Files of growing size, so that there are few, and each ruling is written again a few times.
        while let Some(last) = list.files.last().copied()
            && last.rows <= 2 * count
            && last.rows + count <= MERGED_ROWS
        {
            rows.extend(self.ruling_rows(last).await?);
            count += last.rows;
            list.files.pop();
        }
        let version = FILES.write(self.location(), to_file(&rows)?.into()).await?;
        list.files.push(RulingFile {
            version,
            rows: count,
        });
        self.write_list(&list).await
    }

    /// Copies the rulings of `other` beside its own. Returns the version of the list of both; `None` if it has all already.
    ///
    /// # Errors
    /// As [`Self::write_rulings`].
    pub(crate) async fn copy_rulings(&self, other: &Self) -> Result<Option<i64>> {
        let (mut list, theirs) = (self.ruling_files().await?, other.ruling_files().await?);
        let own = list.files.len();
        for file in theirs.files {
            if !list.files.contains(&file) {
                let bytes = other.ruling_file(file).await?;
                FILES.write(self.location(), bytes).await?;
                list.files.push(file);
            }
        }
        match list.files.len() == own {
            true => Ok(None),
            false => self.write_list(&list).await.map(Some),
        }
    }

    /// The paths of the list and the files that count, below the archive's directory.
    pub(crate) async fn ruling_paths(&self) -> Result<HashSet<String>> {
        let list = self.app_transaction(TRANSACTION).await?;
        let files = self.ruling_files().await?.files;
        let files = files.iter().map(|file| FILES.path(file.version));
        Ok(files.chain(list.map(|list| LISTS.path(list))).collect())
    }

    async fn write_list(&self, list: &RulingFiles) -> Result<i64> {
        let text = serde_json::to_vec(list).map_err(|error| ArchiveError::BadData {
            object: "rulings".into(),
            reason: error.to_string(),
        })?;
        LISTS.write(self.location(), text.into()).await
    }

    async fn ruling_file(&self, file: RulingFile) -> Result<bytes::Bytes> {
        let bytes = FILES.read(self.location(), file.version).await?;
        bytes.ok_or_else(|| missing(self.location().child_name(&FILES.path(file.version))))
    }

    async fn ruling_rows(&self, file: RulingFile) -> Result<Vec<RecordBatch>> {
        let name = self.location().child_name(&FILES.path(file.version));
        let failed = |error| ArchiveError::parquet(name.clone())(error);
        let bytes = self.ruling_file(file).await?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(failed)?;
        if reader.schema().fields() != schema().fields() {
            return Err(ArchiveError::BadData {
                object: name,
                reason: "it has no columns of rulings".into(),
            });
        }
        let rows = reader.build().map_err(failed)?;
        let rows: Result<Vec<_>, _> = rows.collect();
        rows.map_err(|source| ArchiveError::Arrow {
            object: name.clone(),
            source,
        })
    }
}

/// The days of data files, with the digests that these have.
type Committed<'a> = HashSet<(Option<NaiveDate>, Option<&'a str>)>;

fn missing(object: String) -> ArchiveError {
    ArchiveError::BadData {
        object,
        reason: "it is missing, and the archive's log names it".into(),
    }
}

fn to_file(rows: &[RecordBatch]) -> Result<Vec<u8>> {
    let object = "rulings";
    let rows = concat_batches(&schema(), rows).map_err(|source| ArchiveError::Arrow {
        object: object.into(),
        source,
    })?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let written = || {
        let mut writer = ArrowWriter::try_new(Vec::new(), schema(), Some(properties))?;
        writer.write(&rows)?;
        writer.into_inner()
    };
    written().map_err(ArchiveError::parquet(object))
}

/// Adds the rows that count.
fn add_rows(
    rows: &RecordBatch,
    committed: &Committed<'_>,
    superseded: &mut Vec<u128>,
    pins: &mut HashSet<Pin>,
) {
    let text = |at: usize| rows.column(at).as_string::<i32>();
    let day = |at: usize| rows.column(at).as_primitive::<Date32Type>();
    let (days, of_days) = (day(0), day(5));
    let (digests, kinds, ids, others) = (text(1), text(2), text(3), text(4));
    for row in 0..rows.num_rows() {
        let Some(day) = Date32Type::to_naive_date_opt(days.value(row)) else {
            continue;
        };
        // Other programs drop the digests of the files that they rewrite.
        let is_committed = |digest| committed.contains(&(Some(day), digest));
        if !is_committed(Some(digests.value(row))) && !is_committed(None) {
            continue;
        }
        let id = || ids.value(row).to_owned();
        let other = || others.value(row).to_owned();
        match kinds.value(row) {
            SUPERSEDED => {
                let of_day = of_days.is_valid(row).then(|| of_days.value(row));
                superseded.push(hash(ids.value(row), of_day));
            }
            SAME => {
                pins.insert(Pin::Same(id(), other()));
            }
            DISTINCT => {
                pins.insert(Pin::Distinct(id(), other()));
            }
            KEEP => {
                pins.insert(Pin::Keep(id()));
            }
            _ => {}
        }
    }
}
