//! [`DataFile`]: a data file as the log lists it. Lists and verifies an archive's data files.

use std::collections::HashMap;

use chrono::NaiveDate;
use deltalake_core::kernel::{Action, DeletionVectorDescriptor, LogicalFileView, Remove};
use futures::{Stream, StreamExt as _, TryStreamExt as _};

use super::Archive;
use crate::data_files::StoredRows;
use crate::day_batch::{BatchName, DayBatch};
use crate::decision_settings::DecisionSettings;
use crate::delta::catch_panic;
use crate::error::{ArchiveError, Result};
use crate::file_checksums::Tail;
use crate::schema::{
    BASE_VERSION_TAG, BATCH_TAG, COMMIT_TAG, DAY, DAY_DIGEST_TAG, DECISIONS_TAG, SHA256_TAG,
    TAIL_TAG,
};

/// A data file as the log lists it.
#[derive(Debug, Clone)]
pub struct DataFile {
    /// Path below the archive's directory.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Rows, if the log says how many.
    pub rows: Option<u64>,
    pub day: Option<NaiveDate>,
    /// The name of the batch of its day, if the log says one.
    pub(crate) batch_name: BatchName,
    /// What names its commit in rulings, if the log says it.
    pub(crate) commit: Option<String>,
    /// SHA-256 of its bytes, if the log says it.
    pub sha256: Option<String>,
    /// Offsets and checksums of its tail, if the log says them. A tag in the format of another release is ignored.
    pub(crate) tail: Option<Tail>,
    /// Digest of its day's rows, as they were committed.
    pub(crate) day_digest: Option<String>,
    /// The table version that its day was compared with.
    pub base_version: Option<u64>,
    pub(crate) decisions: Option<DecisionSettings>,
    deletion_vector: Option<DeletionVectorDescriptor>,
}

impl DataFile {
    fn from_log(file: &LogicalFileView) -> Self {
        // The Delta library has no other accessor of tags.
        #[allow(deprecated)]
        let tags = file.add_action().tags.unwrap_or_default();
        let tag = |name: &str| tags.get(name).cloned().flatten();
        let partition = file.partition_values_map();
        let (day, name) = (partition.get(DAY), tag(BATCH_TAG));
        Self {
            path: file.path().into_owned(),
            size: file.size().max(0).cast_unsigned(),
            rows: file.num_records().map(|rows| rows as u64),
            day: day.and_then(|day| day.as_ref()?.parse().ok()),
            batch_name: name.and_then(|name| name.parse().ok()).unwrap_or_default(),
            commit: tag(COMMIT_TAG),
            sha256: tag(SHA256_TAG),
            tail: tag(TAIL_TAG).and_then(|tail| tail.try_into().ok()),
            deletion_vector: file.deletion_vector_descriptor(),
            day_digest: tag(DAY_DIGEST_TAG),
            base_version: tag(BASE_VERSION_TAG).and_then(|version| version.parse().ok()),
            decisions: tag(DECISIONS_TAG).and_then(|tag| tag.try_into().ok()),
        }
    }

    /// The log action that removes it from the table, at the time `now` in milliseconds.
    pub(crate) fn remove_action(&self, now: i64, data_change: bool) -> Action {
        let day = self.day.map(|day| day.to_string());
        Action::Remove(Remove {
            path: self.path.clone(),
            data_change,
            deletion_timestamp: Some(now),
            extended_file_metadata: Some(true),
            partition_values: Some(HashMap::from([(DAY.to_owned(), day)])),
            size: Some(self.size.cast_signed()),
            // To Delta, a path with another deletion vector is another file.
            deletion_vector: self.deletion_vector.clone(),
            ..Default::default()
        })
    }

    /// The batch of its rows, or the day's batch without a name if nothing says which; `None` without a day.
    pub(crate) fn batch(&self) -> Option<DayBatch> {
        let name = self.batch_name;
        self.day.map(|day| DayBatch { day, name })
    }

    /// Whether it may have rows of a batch: another program that rewrites files drops what says which.
    pub(crate) fn may_have(&self, batch: DayBatch) -> bool {
        self.batch() == Some(batch) || (self.day == Some(batch.day) && self.day_digest.is_none())
    }

    pub(crate) fn has_only_kept(&self) -> bool {
        let decisions = self.decisions.as_ref();
        decisions.is_some_and(|decisions| decisions.only_kept)
    }

    /// Whether both are the same file with the same rows.
    pub(crate) fn is_same_file(&self, other: &Self) -> bool {
        self.path == other.path && self.deletion_vector == other.deletion_vector
    }

    /// Refuses a digest that differs from the log's, if the log has one.
    pub(crate) fn check_digest(&self, object: &str, found: &str) -> Result<()> {
        match &self.sha256 {
            Some(expected) if expected != found => Err(ArchiveError::Digest {
                object: object.to_owned(),
                expected: expected.clone(),
                found: found.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// What a check of all data files found right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Files whose SHA-256 is that of the log.
    pub files: u64,
    /// Files that can be read, and that the log has no SHA-256 of.
    pub without_checksum: u64,
}

/// Files whose digests are computed at a time, and small files that are fetched at a time.
const DIGESTS: usize = 32;
/// Bytes of the files that are fetched at a time.
const FETCHED_BYTES: u64 = 32 << 20;

impl Archive {
    /// The archive's data files.
    ///
    /// # Errors
    /// [`ArchiveError::Delta`] when the log cannot be read.
    pub fn files(&self) -> Result<Vec<DataFile>> {
        let failed = || ArchiveError::delta(self.location().given());
        let state = self.table.snapshot().map_err(failed())?;
        let log = state.log_data();
        catch_panic(|| log.iter().map(|file| DataFile::from_log(&file)).collect()).map_err(failed())
    }

    /// Reads every data file, and compares its SHA-256 with the log's. Of one without a SHA-256 in the log, which another program
    /// wrote, it reads all rows. It also reads the records of days.
    ///
    /// # Errors
    /// [`ArchiveError::Digest`] for the first that differs, [`ArchiveError::BadData`] for one that is missing or cannot be read.
    pub async fn verify(&self) -> Result<Verified> {
        self.verify_records().await?;
        let files = self.files()?.into_iter();
        let (with, without): (Vec<_>, Vec<_>) = files.partition(|file| file.sha256.is_some());
        let verified = Verified {
            files: with.len() as u64,
            without_checksum: without.len() as u64,
        };
        let digests = with.into_iter().map(async |file| {
            let object = self.location().child(&file.path)?;
            let digest = object.digest().await;
            let (_, found) = digest.map_err(ArchiveError::data_file(object.given()))?;
            file.check_digest(object.given(), &found)
        });
        let digests = futures::stream::iter(digests).buffer_unordered(DIGESTS);
        digests.try_collect::<()>().await?;
        let mut rows = std::pin::pin!(self.rows_of(without));
        while let Some((_, rows)) = rows.next().await.transpose()? {
            for batch in rows {
                batch?;
            }
        }
        Ok(verified)
    }

    /// The rows of these files, in their order. Each file is held in memory whole, and several are fetched at a time where they are
    /// small.
    pub(crate) fn rows_of(
        &self,
        files: Vec<DataFile>,
    ) -> impl Stream<Item = Result<(DataFile, StoredRows)>> {
        let largest = files.iter().map(|file| file.size).max().unwrap_or(0);
        let in_flight = (FETCHED_BYTES / largest.max(1)).clamp(1, DIGESTS as u64);
        let fetched = files.into_iter().map(async |file| {
            let rows = self.stored_rows(&file).await?;
            Ok((file, rows))
        });
        futures::stream::iter(fetched).buffered(in_flight as usize)
    }
}
