//! What the batch is compared with: the archive at one version, without the batch's own day.

use archive::{Archive, Scope, Snapshot};
use chrono::NaiveDate;

use super::Run;
use super::inputs::Opened;
use crate::error::Result;
use crate::fingerprint::FingerprintedBatch;

/// The archive, or plain files, as the batch is compared with them.
pub(super) struct View {
    /// The archive; `None` for plain files.
    pub(super) archive: Option<Archive>,
    /// The files to compare with.
    pub(super) base: Snapshot,
    /// The batch's day: the day as which the archive holds it, or else the day asked for.
    pub(super) date: Option<NaiveDate>,
    /// Whether the archive holds the batch already.
    pub(super) already_committed: bool,
    /// The remaining documents of a batch that the archive holds, when some were removed since.
    pub(super) remaining: Option<FingerprintedBatch>,
}

impl View {
    /// Decides which days of the archive the batch is compared with: all but its own, and for a batch that the archive holds
    /// already, those that it was compared with before.
    pub(super) async fn resolve(
        run: Run<'_>,
        opened: Opened,
        batch: &FingerprintedBatch,
    ) -> Result<Self> {
        let settings = run.settings;
        let archive = match opened {
            Opened::Plain(base) => return Ok(Self::new(None, base, settings.day)),
            Opened::Archive(archive) => *archive,
        };
        let digest = &batch.file.digest;
        let commit = settings.append.then_some(settings.existing);
        let (scope, committed) = archive.scope_for(settings.day, &batch.file, commit).await?;
        let base = Snapshot::open_archive(&archive, scope).await?;
        let Scope::Before {
            day: date,
            base_version,
        } = scope
        else {
            return Ok(Self::new(Some(archive), base, settings.day));
        };
        let is_same = committed.is_some_and(|committed| committed.digest == *digest);
        let rows = batch.file.rows - batch.file.without_fingerprint;
        let remaining = match is_same && !archive.is_whole(date, digest, rows)? {
            true => {
                let runtime = run.context.runtime_env();
                let (scratch, pool) = (&settings.scratch, &runtime.memory_pool);
                Some(batch.remaining_in(&archive, date, scratch, pool).await?)
            }
            false => None,
        };
        Ok(Self {
            archive: Some(archive),
            base: Snapshot {
                version: Some(base_version),
                ..base
            },
            date: Some(date),
            already_committed: true,
            remaining,
        })
    }

    /// The view of a batch that the archive does not hold.
    fn new(archive: Option<Archive>, base: Snapshot, date: Option<NaiveDate>) -> Self {
        Self {
            archive,
            base,
            date,
            already_committed: false,
            remaining: None,
        }
    }
}
