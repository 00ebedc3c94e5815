//! Committing many days, one log entry each, without reading the log in between: a commit of the Delta library goes through all
//! files of the table, so a thousand days would cost a million.

use std::collections::HashSet;

use deltalake_core::kernel::transaction::{CommitData, TransactionError};
use deltalake_core::logstore::{CommitOrBytes, LogStore};
use deltalake_core::protocol::checkpoints::create_checkpoint;

use crate::commit::{Entry, StagedDay};
use crate::day_batch::DayBatch;
use crate::error::{ArchiveError, Result};
use crate::table::{Archive, DataFile};

/// After as many entries, a log gets a checkpoint.
const CHECKPOINT_INTERVAL: u64 = 100;

/// Commits days to an archive, one after the other. It does not read the archive's state between them.
pub struct Bulk<'a> {
    archive: &'a mut Archive,
    /// The version of the last entry.
    version: u64,
    written: u64,
    /// The days that have files.
    days: HashSet<DayBatch>,
}

impl<'a> Bulk<'a> {
    /// Begins at the version that the archive is open at.
    pub fn new(archive: &'a mut Archive) -> Result<Self> {
        Ok(Self {
            version: archive.version(),
            written: 0,
            days: days(archive)?,
            archive,
        })
    }

    pub fn has_day(&self, day: DayBatch) -> bool {
        self.days.contains(&day)
    }

    /// The archive, open at the version before the first day, or at which another program was found to have committed.
    pub fn archive(&self) -> &Archive {
        self.archive
    }

    /// Commits a day as the next version, compared with the version before it. Returns the version; `None` if the day has files
    /// already, or if another program committed that version: the archive is then open at the latest. After an error, nobody knows
    /// whether the day is committed.
    pub async fn commit(&mut self, staged: &StagedDay) -> Result<Option<u64>> {
        if self.has_day(staged.batch) {
            return Ok(None);
        }
        let given = self.archive.location().given().to_owned();
        let entry = Entry::new(staged, self.version, &[]);
        self.archive
            .write_record(staged.batch, &entry.record)
            .await?;
        let metadata = entry.metadata.into_iter().collect();
        let data = CommitData::new(entry.actions, entry.operation, metadata, entry.transactions);
        let failed = |error: TransactionError| ArchiveError::delta(&given)(error.into());
        let bytes = data.get_bytes().map_err(failed)?;
        let log = self.archive.table.log_store();
        let version = self.version + 1;
        let written = log.write_commit_entry(
            version,
            CommitOrBytes::LogBytes(bytes),
            uuid::Uuid::new_v4(),
        );
        match written.await {
            Ok(()) => {
                self.version = version;
                self.written += 1;
                self.days.insert(staged.batch);
                Ok(Some(version))
            }
            Err(TransactionError::VersionAlreadyExists(_)) => {
                self.archive.reopen().await?;
                let before = std::mem::replace(&mut self.version, self.archive.version());
                self.days = days(self.archive)?;
                // The store may have lost the answer to this commit.
                let is_own = self.archive.next_entry_adds(before, &staged.files).await?;
                self.written += u64::from(is_own);
                Ok(is_own.then_some(version))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Opens the archive at its latest version; after many days, with a checkpoint of it, as the Delta library would have made some.
    ///
    /// # Errors
    /// [`ArchiveError::Delta`] when the log cannot be read. All days are committed.
    pub async fn finish(self) -> Result<()> {
        if self.written == 0 {
            return Ok(());
        }
        self.archive.reopen().await?;
        if self.written < CHECKPOINT_INTERVAL {
            return Ok(());
        }
        let given = self.archive.location().given().to_owned();
        let checkpoint = create_checkpoint(&self.archive.table, None).await;
        checkpoint.map_err(ArchiveError::delta(&given))
    }
}

/// The days that have files.
fn days(archive: &Archive) -> Result<HashSet<DayBatch>> {
    let files = archive.files()?;
    Ok(files.iter().filter_map(DataFile::batch).collect())
}
