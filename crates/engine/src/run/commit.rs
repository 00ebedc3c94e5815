//! The end of a run: appends the batch to the archive, then publishes the outputs.

use archive::{
    Append, Archive, DayBatch, DecisionSettings, Existing, RowDecisions, Ruling, StagedDay,
};
use chrono::NaiveDate;
use storage::{Draft, is_closed_pipe};

use super::Run;
use super::compare::{Compared, DraftDecisions};
use super::fingerprinting::Fingerprints;
use super::opened::OpenedArchive;
use super::summary::Commit;
use super::view::View;
use crate::error::{EngineError, Result};
use crate::progress::Stage;
use documents::Columns;

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
    /// Version of the archive before the run; `None` for plain files.
    pub(super) version_before: Option<u64>,
    pub(super) uploaded: Option<StagedDay>,
    pub(super) attempts: u32,
}

impl Appender {
    /// Commits the batch after the days in `view`, which it was compared with, if the settings ask
    /// for it. `decided` is `None` if nothing was decided. `decisions` is what the archive notes about the decisions; `None` if it
    /// notes nothing.
    pub(super) async fn commit(
        &mut self,
        run: Run<'_>,
        fingerprints: &Fingerprints,
        view: View,
        decided: Option<&DraftDecisions>,
        decisions: Option<&DecisionSettings>,
    ) -> Result<Attempt> {
        let settings = run.settings;
        run.enter(Stage::Commit);
        self.attempts += 1;
        let (date, is_first_day) = (view.date, view.snapshot.files.is_empty());
        let rows = fingerprints.batch.file.rows;
        let compared = view.remaining.map_or(rows, |remaining| remaining.file.rows);
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
        let Some(mut archive) = view.archive else {
            return Ok(done(Commit::NotAsked, None));
        };
        if settings.append.is_none() {
            return Ok(done(Commit::NotAsked, Some(archive.version())));
        }
        if view.already_committed {
            return Ok(done(Commit::AlreadyThere, Some(archive.version())));
        }
        let day = date.ok_or_else(|| EngineError::Usage("--append needs --day".into()))?;
        if let Some(rows) = settings.rows_per_file {
            archive = archive.with_file_rows(rows);
        }
        let decisions = match decisions {
            Some(decisions) => Some(RowDecisions {
                kept: decided
                    .ok_or_else(|| EngineError::Internal("nothing was decided".into()))?
                    .kept_in_batch
                    .clone(),
                settings: decisions.clone(),
            }),
            None => None,
        };
        if settings.existing == Existing::Replace && archive.has_kept() {
            let (later, _) = archive.later_batches(day, Some(settings.day_batch(day).name))?;
            if !later.is_empty() {
                let later: Vec<String> = later.iter().map(DayBatch::to_string).collect();
                tracing::warn!(
                    "later days were decided with the documents that are replaced: what they dropped as duplicates of them stays dropped; to decide anew, remove these days and run them again in order: {}",
                    later.join(", ")
                );
            }
        }
        let staged = match self.uploaded.take() {
            Some(staged) => staged,
            None => {
                let file = &fingerprints.batch.file;
                let batch = settings.day_batch(day);
                archive.stage(batch, file, decisions.as_ref()).await?
            }
        };
        let remembered = match &fingerprints.templates {
            Some(templates) => Some(templates.remember(&archive, day, rows).await?),
            None => None,
        };
        let rulings: &[Ruling] = decided.map_or(&[], |decided| &decided.rulings);
        let staged = archive
            .with_rulings(staged.with_templates(remembered), rulings)
            .await?;
        match archive.commit(&staged, settings.existing).await? {
            Append::Committed(version) => {
                if is_first_day {
                    remember_columns(&mut archive, &settings.columns).await;
                }
                return Ok(done(Commit::Committed(version), Some(archive.version())));
            }
            // Another run committed the same day, and may have compared it with fewer days.
            Append::AlreadyThere => {}
            Append::Overtaken => {
                tracing::warn!(
                    "the archive changed meanwhile: the batch is compared with it again"
                );
                match decisions {
                    // The files have decisions, which the new comparison may change.
                    Some(_) => archive.discard(&staged).await,
                    None => self.uploaded = Some(staged),
                }
            }
        }
        Ok(Attempt::Overtaken(OpenedArchive::Archive(Box::new(
            archive,
        ))))
    }
}

/// Records in an archive the columns that options named for its first day, so that further days need no options.
pub async fn remember_columns(archive: &mut Archive, columns: &Columns) {
    let recorded = archive.set_run_defaults(|defaults| {
        let named = [
            (&mut defaults.id_column, &columns.id),
            (&mut defaults.text_column, &columns.text),
            (&mut defaults.source_column, &columns.source),
        ];
        for (recorded, named) in named {
            if recorded.is_none() {
                recorded.clone_from(named);
            }
        }
    });
    if let Err(error) = recorded.await {
        tracing::warn!(
            "{}: the names of the columns were not recorded, name them again with the next day: {error}",
            archive.location()
        );
    }
}

/// Publishes those outputs that were asked for: fingerprints, kept documents, decisions, pairs.
///
/// # Errors
/// [`EngineError::Unpublished`] when `commit` says that the batch was committed, or when others are in place already.
pub(super) async fn publish(
    fingerprints: Option<Draft>,
    compared: Compared,
    commit: Commit,
    day: Option<NaiveDate>,
) -> Result<()> {
    let mut placed = Vec::new();
    let published = async {
        if let Some(draft) = fingerprints {
            let target = draft.target().map(ToString::to_string);
            draft.publish().await?;
            placed.extend(target);
        }
        let (decided, pairs) = (compared.decided, compared.output);
        let (kept, decisions) =
            decided.map_or((None, None), |decided| (decided.kept, decided.decisions));
        if let Some(kept) = kept {
            kept.publish(&mut placed).await?;
        }
        let outputs = [decisions, pairs].into_iter().flatten();
        let outputs = outputs.map(|output| output.draft);
        // Standard output last, because it cannot be taken back.
        let (to_stdout, files): (Vec<_>, Vec<_>) = outputs.partition(Draft::is_to_stdout);
        for output in files.into_iter().chain(to_stdout) {
            let target = output.target().map(ToString::to_string);
            output.publish().await?;
            placed.extend(target);
        }
        Ok(())
    };
    let published: Result<()> = published.await;
    let day = day.filter(|_| matches!(commit, Commit::Committed(_)));
    published.map_err(|error| {
        let is_closed = matches!(&error, EngineError::Storage(error) if is_closed_pipe(error));
        if day.is_none() && (placed.is_empty() || is_closed) {
            error
        } else {
            EngineError::Unpublished {
                day: day.map(|day| day.to_string()),
                placed,
                source: Box::new(error),
            }
        }
    })
}
