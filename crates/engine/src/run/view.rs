//! The view of the archive that the batch is compared with: one version, without the batch's own day.

use std::sync::Arc;

use archive::{Archive, DecisionSettings, Rulings, Scope, Snapshot, SnapshotFile};
use chrono::NaiveDate;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};

use super::Run;
use super::opened::OpenedArchive;
use crate::error::Result;
use crate::fingerprint::FingerprintedBatch;
use crate::memory::reserve;

/// The archive, or plain files, as the batch is compared with them.
pub(super) struct View {
    /// The archive; `None` for plain files.
    pub(super) archive: Option<Archive>,
    pub(super) snapshot: Snapshot,
    /// How many of them, from the first on, are the archive's own.
    own_files: usize,
    /// What the archive's days say for later ones.
    pub(super) rulings: Arc<Rulings>,
    _memory: Option<MemoryReservation>,
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
    /// commit. `day` is that of the settings. `decisions` is what a commit of the batch would note about its decisions;
    /// `decides` says whether the run makes any.
    pub(super) async fn resolve(
        run: Run<'_>,
        opened: OpenedArchive,
        batch: &FingerprintedBatch,
        day: Option<NaiveDate>,
        decisions: Option<&DecisionSettings>,
        decides: bool,
    ) -> Result<Self> {
        let settings = run.settings;
        let archive = match opened {
            OpenedArchive::Plain(files) => {
                return Ok(Self {
                    date: day,
                    ..Self::of(run, None, files, false).await?
                });
            }
            OpenedArchive::Archive(archive) => *archive,
        };
        let digest = &batch.file.day_digest;
        let commit = settings.append.map(|_| settings.existing);
        let day_batch = day.map(|day| settings.day_batch(day));
        // One of several sets to compare with is no place where the batch was committed.
        let (scope, committed) = match (day_batch, settings.base.len()) {
            (None, 2..) => (Scope::All, None),
            (None, _) if settings.compares_all => (Scope::All, None),
            _ => {
                archive
                    .scope_for(day_batch, &batch.file, commit, decisions)
                    .await?
            }
        };
        let snapshot = Snapshot::open_archive(&archive, scope).await?;
        let Scope::Before {
            batch: committed_batch,
            base_version,
        } = scope
        else {
            return Ok(Self {
                date: day,
                ..Self::of(run, Some(archive), snapshot, decides).await?
            });
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
        let remaining = if is_same && !archive.is_whole(committed_batch, digest, rows)? {
            let (scratch, context) = (&settings.scratch, run.context);
            Some(
                batch
                    .remaining_in(&archive, committed_batch, scratch, context)
                    .await?,
            )
        } else {
            None
        };
        let snapshot = Snapshot {
            version: Some(base_version),
            ..snapshot
        };
        Ok(Self {
            date: Some(committed_batch.day),
            already_committed: true,
            remaining,
            ..Self::of(run, Some(archive), snapshot, decides).await?
        })
    }

    /// The files of the archive that are compared with, without those of others.
    pub(super) fn own_files(&self) -> &[SnapshotFile] {
        &self.snapshot.files[..self.own_files]
    }

    /// Whether the archive has the other batches of the batch's day.
    pub(super) fn has_own_day(&self) -> bool {
        let mut files = self.own_files().iter();
        self.date.is_some() && files.any(|file| file.day == self.date)
    }

    /// The view of a batch without a day that the archive does not hold.
    async fn of(
        run: Run<'_>,
        archive: Option<Archive>,
        snapshot: Snapshot,
        decides: bool,
    ) -> Result<Self> {
        let (mut rulings, mut reserved) = (Rulings::default(), None);
        if let Some(archive) = archive.as_ref().filter(|_| decides) {
            let list = archive.ruling_files().await?;
            let pool = &run.context.runtime_env().memory_pool;
            let memory = MemoryConsumer::new("rulings").register(pool);
            let bytes = list.bytes();
            reserve(&memory, bytes, || {
                let archive = archive.location();
                format!("the superseded captures and the pins of {archive} take {bytes} bytes")
            })?;
            reserved = Some(memory);
            if !list.is_empty() {
                let files = snapshot.files.iter();
                let files = files.map(|file| (file.day, file.commit.as_deref()));
                let commits = archive.commits_of(files).await?;
                rulings = archive.read_rulings(&list, &commits).await?;
            }
        }
        Ok(Self {
            archive,
            own_files: snapshot.files.len(),
            snapshot,
            rulings: Arc::new(rulings),
            _memory: reserved,
            date: None,
            already_committed: false,
            remaining: None,
        })
    }
}
