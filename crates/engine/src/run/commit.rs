//! The end of a run: appends the batch to the archive, then publishes the outputs.

use archive::{Append, StagedDay};
use chrono::NaiveDate;
use storage::Draft;

use super::Run;
use super::fingerprinting::Fingerprints;
use super::inputs::OpenedArchive;
use super::summary::Commit;
use super::view::View;
use crate::error::{EngineError, Result};
use crate::output::DraftOutput;
use crate::progress::Stage;

/// How a run left the archive.
pub(super) struct Outcome {
    pub(super) commit: Commit,
    /// Version of the archive before the run; `None` for plain files.
    pub(super) version_before: Option<u64>,
    /// Version of the archive after the run; `None` for plain files.
    pub(super) version_after: Option<u64>,
    /// The batch's day: its day in the archive, or else that of the settings.
    pub(super) date: Option<NaiveDate>,
    /// Documents that were removed from the archive since the batch was committed.
    pub(super) removed: u64,
    /// How often the batch was compared.
    pub(super) comparisons: u32,
}

/// The result of an attempt to commit.
pub(super) enum Attempt {
    /// There is nothing more to do.
    Done(Outcome),
    /// Another commit came first: the batch must be compared with the archive again.
    Overtaken(OpenedArchive),
}

/// Appends the batch; keeps its uploaded data files from one attempt to the next.
pub(super) struct Appender {
    version_before: Option<u64>,
    uploaded: Option<StagedDay>,
    attempts: u32,
}

impl Appender {
    /// An appender to the archive at `version`; `None` for plain files.
    pub(super) fn new(version: Option<u64>) -> Self {
        Self {
            version_before: version,
            uploaded: None,
            attempts: 0,
        }
    }

    /// If the settings ask for it, commits the batch after the days in `view`, which it was compared with.
    pub(super) async fn commit(
        &mut self,
        run: Run<'_>,
        fingerprints: &Fingerprints,
        view: View,
    ) -> Result<Attempt> {
        let settings = run.settings;
        run.enter(Stage::Commit);
        self.attempts += 1;
        let View {
            archive,
            date,
            already_committed,
            remaining,
            ..
        } = view;
        let rows = fingerprints.batch.file.rows;
        let compared = remaining.map_or(rows, |remaining| remaining.file.rows);
        let (version_before, comparisons) = (self.version_before, self.attempts);
        let done = |commit, version_after| {
            Attempt::Done(Outcome {
                commit,
                version_before,
                version_after,
                date,
                removed: rows - compared,
                comparisons,
            })
        };
        let Some(mut archive) = archive else {
            return Ok(done(Commit::NotAsked, None));
        };
        if !settings.append {
            return Ok(done(Commit::NotAsked, Some(archive.version())));
        }
        if already_committed {
            return Ok(done(Commit::AlreadyThere, Some(archive.version())));
        }
        let day = settings
            .day
            .ok_or_else(|| EngineError::Usage("--append needs --day".into()))?;
        if let Some(rows) = settings.rows_per_file {
            archive = archive.with_file_rows(rows);
        }
        let staged = match self.uploaded.take() {
            Some(staged) => staged,
            None => archive.stage(day, &fingerprints.batch.file).await?,
        };
        match archive.commit(&staged, settings.existing).await? {
            Append::Committed(version) => {
                return Ok(done(Commit::Committed(version), Some(version)));
            }
            // Another run committed the same day, and may have compared it with fewer days.
            Append::AlreadyThere => {}
            Append::Overtaken => {
                tracing::warn!(
                    "the archive changed meanwhile: the batch is compared with it again"
                );
                self.uploaded = Some(staged);
            }
        }
        Ok(Attempt::Overtaken(OpenedArchive::Archive(Box::new(
            archive,
        ))))
    }
}

/// Publishes the outputs: the file of fingerprints, if there is one, and the pairs.
///
/// # Errors
/// [`EngineError::Unpublished`] when `commit` says that the batch was committed.
pub(super) async fn publish(
    fingerprints: Option<Draft>,
    pairs: DraftOutput,
    commit: Commit,
    day: Option<NaiveDate>,
) -> Result<()> {
    let published = async {
        if let Some(draft) = fingerprints {
            draft.publish().await?;
        }
        // Last, because standard output cannot be taken back.
        pairs.publish().await
    };
    published.await.map_err(|error| match (commit, day) {
        (Commit::Committed(_), Some(day)) => EngineError::Unpublished {
            day: day.to_string(),
            source: Box::new(error),
        },
        _ => error,
    })
}
