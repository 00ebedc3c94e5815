//! The view of the archive that the batch is compared with: one version, without the batch's own day.

use archive::{Archive, DecisionSettings, Scope, Snapshot};
use chrono::NaiveDate;

use super::Run;
use super::opened::OpenedArchive;
use crate::error::Result;
use crate::fingerprint::FingerprintedBatch;

/// The archive, or plain files, as the batch is compared with them.
pub(super) struct View {
    /// The archive; `None` for plain files.
    pub(super) archive: Option<Archive>,
    /// The files to compare with.
    pub(super) snapshot: Snapshot,
    /// The batch's day: its day in the archive, or else that of the settings.
    pub(super) date: Option<NaiveDate>,
    /// Whether the archive holds the batch already.
    pub(super) already_committed: bool,
    /// What remains of the batch, if the archive holds it and some of its documents were removed since.
    pub(super) remaining: Option<FingerprintedBatch>,
}

impl View {
    /// Decides which days of the archive the batch is compared with: all but its own. If the
    /// archive holds the batch already, they are the days that it was compared with before its
    /// commit. `day` is that of the settings. `decisions` is what a commit of the batch would note about its decisions.
    pub(super) async fn resolve(
        run: Run<'_>,
        opened: OpenedArchive,
        batch: &FingerprintedBatch,
        day: Option<NaiveDate>,
        decisions: Option<&DecisionSettings>,
    ) -> Result<Self> {
        let settings = run.settings;
        let archive = match opened {
            OpenedArchive::Plain(files) => return Ok(Self::new(None, files, day)),
            OpenedArchive::Archive(archive) => *archive,
        };
        let digest = &batch.file.day_digest;
        let commit = settings.append.map(|_| settings.existing);
        let (scope, committed) = archive
            .scope_for(day, &batch.file, commit, decisions)
            .await?;
        let snapshot = Snapshot::open_archive(&archive, scope).await?;
        let Scope::Before {
            day: date,
            base_version,
        } = scope
        else {
            return Ok(Self::new(Some(archive), snapshot, day));
        };
        // If the day has only kept documents, the archive never had the others, so nobody can tell
        // which rows were removed since.
        let is_same = committed.is_some_and(|committed| {
            let has_all = !committed
                .decisions
                .is_some_and(|decisions| decisions.only_kept);
            committed.digest == *digest && has_all
        });
        let rows = batch.file.rows - batch.file.without_fingerprint;
        let remaining = match is_same && !archive.is_whole(date, digest, rows)? {
            true => {
                let (scratch, context) = (&settings.scratch, run.context);
                Some(batch.remaining_in(&archive, date, scratch, context).await?)
            }
            false => None,
        };
        Ok(Self {
            archive: Some(archive),
            snapshot: Snapshot {
                version: Some(base_version),
                ..snapshot
            },
            date: Some(date),
            already_committed: true,
            remaining,
        })
    }

    /// The view of a batch that the archive does not hold.
    fn new(archive: Option<Archive>, snapshot: Snapshot, date: Option<NaiveDate>) -> Self {
        Self {
            archive,
            snapshot,
            date,
            already_committed: false,
            remaining: None,
        }
    }
}
