//! What a run refuses before it publishes anything: a batch that is too small, and decisions that drop too much.

use archive::ArchiveError;
use arrow::datatypes::Date32Type;

use super::summary::{DecisionSummary, Repeats};
use crate::error::Result;
use documents::read_counts::{Note, Notes};

/// Share of a batch from which on its duplicates of one day mean that the batch is that day.
const REPEATED: f64 = 0.9;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunLimits {
    /// The fewest documents of a batch.
    pub min_new: Option<u64>,
    /// Whether a batch without documents may be appended.
    pub allow_empty: bool,
    /// The greatest share of documents that are dropped, from 0 to 1: of all, and of each source with ten or more.
    pub max_dropped: Option<f64>,
    /// Whether the run refuses a batch if it cannot compare one of its documents or files.
    pub strict: bool,
    /// What becomes of a batch that is a day of the archive already, by more than nine tenths.
    pub on_repeats: OnRepeats,
}

/// What becomes of a batch that repeats a day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnRepeats {
    /// A run of it warns.
    #[default]
    Warn,
    Refuse,
    Accept,
}

impl RunLimits {
    /// Whether they can be checked only with decisions.
    pub(super) fn need_decisions(&self) -> bool {
        self.max_dropped.is_some() || self.on_repeats == OnRepeats::Refuse
    }

    /// Checks the number of documents of the batch called `given`.
    ///
    /// # Errors
    /// When it has too few.
    pub fn check_batch(&self, given: &str, documents: u64, appends: bool) -> Result<()> {
        let reason = match self.min_new {
            Some(least) if documents < least => {
                format!("it has {documents} documents, fewer than --min-new {least}")
            }
            _ if documents == 0 && appends && !self.allow_empty => {
                "it has no documents, and a day is committed only once: check that it is complete, or commit the empty day with --allow-empty".into()
            }
            _ => return Ok(()),
        };
        Err(refused(given, reason))
    }

    /// Checks the notes on the batch called `given`, which has `documents`, some of them without a fingerprint. Warns if more than one
    /// document in a hundred has no text.
    ///
    /// # Errors
    /// If the run is strict, when a document or a file is not compared.
    pub fn check_notes(
        &self,
        given: &str,
        notes: &Notes,
        documents: u64,
        without_fingerprint: u64,
    ) -> Result<()> {
        let without_text = notes.iter().find(|(note, _)| *note == Note::WithoutText);
        if let Some((_, noted)) = without_text
            && 100 * noted.number > documents
        {
            tracing::warn!(
                "{given}: {} of {documents} documents have no text, the first of them in {} (see --text-column)",
                noted.number,
                noted.first
            );
        }
        if !self.strict {
            return Ok(());
        }
        let mut reasons: Vec<String> = notes
            .iter()
            .filter(|(note, _)| note.is_not_compared())
            .map(|(note, noted)| format!("{note}: {} (first: {})", noted.number, noted.first))
            .collect();
        let said = [Note::WithoutText, Note::Empty, Note::Garbled].map(|note| notes.number(note));
        let others = without_fingerprint.saturating_sub(said.iter().sum());
        if others > 0 {
            reasons.push(format!("documents that are too short: {others}"));
        }
        if reasons.is_empty() {
            Ok(())
        } else {
            let reason = format!(
                "not compared: {}; --strict refuses that",
                reasons.join("; ")
            );
            Err(refused(given, reason))
        }
    }

    /// Checks the decisions about the batch called `given`; returns the day that the batch repeats, if it does.
    pub(super) fn check_decisions(
        &self,
        given: &str,
        decisions: &DecisionSummary,
    ) -> Result<Option<Repeats>> {
        let counts = &decisions.counts;
        let (dropped, documents) = (counts.dropped(), counts.documents());
        let share = |part: u64| part as f64 / documents.max(1) as f64;
        if let Some(most) = self.max_dropped.filter(|most| share(dropped) > *most) {
            let reason = format!(
                "{dropped} of {documents} documents would be dropped ({:.1} %), more than --max-dropped {most}: {} are duplicates of the archive, {} of others in the batch",
                100.0 * share(dropped),
                counts.duplicates_of_archive,
                counts.duplicates_within
            );
            return Err(refused(given, reason));
        }
        let worst = decisions.worst_source.as_ref();
        if let (Some(most), Some(worst)) = (self.max_dropped, worst)
            && worst.share() > most
        {
            let source: String = worst.source.chars().take(100).collect();
            let reason = format!(
                "of source {source:?}, {} of {} documents would be dropped, more than --max-dropped {most}",
                worst.dropped, worst.documents
            );
            return Err(refused(given, reason));
        }
        let Some((day, part)) = counts.most_repeated else {
            return Ok(None);
        };
        if share(part) <= REPEATED {
            return Ok(None);
        }
        let day = Date32Type::to_naive_date_opt(day);
        let day = day.map_or_else(String::new, |day| day.to_string());
        let said = format!(
            "{part} of {documents} documents are duplicates of day {day} of the archive: is it the same batch under another --day, or an unchanged crawl?"
        );
        match self.on_repeats {
            OnRepeats::Refuse => return Err(refused(given, said)),
            OnRepeats::Warn => tracing::warn!("{given}: {said}"),
            OnRepeats::Accept => {}
        }
        Ok(Some(Repeats {
            day,
            documents: part,
        }))
    }
}

fn refused(given: &str, reason: String) -> crate::error::EngineError {
    ArchiveError::bad_data(given, reason).into()
}
