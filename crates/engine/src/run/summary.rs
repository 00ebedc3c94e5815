//! The summary of a run: what it did, in numbers.

use std::time::Instant;

use serde::Serialize;

use crate::decide::{DecisionCounts, Dropped, SourceLoss};
use crate::fingerprint::ShortDocuments;
use crate::progress::Stage;
use crate::template::TemplateCounts;
use crate::verify::Verified;
use documents::ColumnsRead;
use documents::crawl_counts::CrawlRecordCounts;
use documents::read_counts::Notes;

/// What a run did.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    pub new: NewSummary,
    pub base: BaseSummary,
    /// The largest distance of a pair.
    pub max_distance: u32,
    pub design: String,
    /// How often the archive was read: once for each part that the batch was cut into.
    pub passes: u32,
    /// Instruction set of the probe.
    pub kernel: &'static str,
    /// Digest of the fingerprint spec.
    pub spec_digest: String,
    /// Counts of the verification; `None` when pairs were not verified.
    pub verified: Option<Verified>,
    /// Rows of the output; `None` if pairs were not asked for.
    pub hits: Option<u64>,
    /// Pairs left out because their document has `max_hits` nearer ones.
    pub hits_left_out: u64,
    /// The output of pairs.
    pub output: Option<String>,
    pub output_bytes: Option<u64>,
    /// What was decided about the documents; `None` if nothing was asked for.
    pub decisions: Option<DecisionSummary>,
    /// Whether the batch was committed to the archive.
    pub commit: Commit,
    /// The batch's day: its day in the archive, or else that of the settings.
    pub day: Option<String>,
    /// Documents that were removed from the archive since the day was committed, and are not compared.
    pub removed: u64,
    /// Version of the archive before the run; `None` for plain files.
    pub archive_version_before: Option<u64>,
    /// Version of the archive after the run; `None` for plain files.
    pub archive_version_after: Option<u64>,
    /// How often the batch was compared: once, and once more each time that another commit came first.
    pub comparisons: u32,
    /// Network traffic of this process.
    pub network: Network,
    /// Seconds of each stage.
    pub seconds: Seconds,
}

/// The decisions of a run, in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct DecisionSummary {
    pub output: Option<String>,
    /// Where the kept documents are.
    pub kept_output: Option<String>,
    /// Bytes of the files of kept documents.
    pub kept_bytes: Option<u64>,
    #[serde(flatten)]
    pub counts: DecisionCounts,
    /// The sources that lose most documents, ten at most.
    pub sources: Vec<SourceLoss>,
    /// The source that loses the greatest share of its documents, of those with ten or more.
    #[serde(skip)]
    pub worst_source: Option<SourceLoss>,
    /// Five duplicates that are dropped, drawn at random.
    pub dropped_at_random: Vec<Dropped>,
    /// The audit, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// The day that the batch repeats, if more than nine tenths of its documents are duplicates of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
}

/// What an audit found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Audit {
    /// Dropped documents that were compared with the ones that they repeat.
    pub compared: u64,
    /// Those that were not, because a text was not at hand.
    pub without_text: u64,
    /// The least similarity: of three-word shingles, by the texts.
    pub min_similarity: f64,
    /// Compared documents whose similarity is smaller.
    pub below: u64,
    /// With 95 % confidence, the share of such documents among all dropped ones whose texts are at hand is at most this; `None` if
    /// none was compared.
    pub bound: Option<f64>,
}

/// A day of the archive that a batch repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repeats {
    pub day: String,
    /// Documents of the batch that are duplicates of it.
    pub documents: u64,
}

/// The batch, in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct NewSummary {
    /// Documents read.
    pub documents: u64,
    /// Documents without a fingerprint: without a text, or, unless [`Self::only_empty`], with too few features. They are in no
    /// pair.
    pub without_fingerprint: u64,
    /// Documents that repeat the id of an earlier document of the batch.
    pub duplicate_ids: u64,
    /// Documents whose text is not UTF-8.
    pub invalid_utf8: u64,
    /// Whether short texts are compared as a whole, so that only empty ones have no fingerprint.
    #[serde(skip)]
    pub only_empty: bool,
    /// Documents that are too short to find nearly all of their near-duplicates; `None` for ready
    /// fingerprints, and if it is not known which documents these are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<ShortDocuments>,
    /// Documents that are mostly digits.
    #[serde(skip_serializing_if = "is_zero")]
    pub number_texts: u64,
    /// Documents of more than [`LONG`](crate::text_counts::LONG) bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub long_texts: u64,
    /// The records of the batch's WARC files; `None` without such files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crawl_records: Option<CrawlRecordCounts>,
    /// The columns that are read; several if files have others, those of the most files first.
    pub columns: Vec<ColumnsRead>,
    /// What is said of documents and files that are not compared, or were read in another way than as they say.
    #[serde(skip_serializing_if = "Notes::is_empty")]
    pub notes: Notes,
    /// The templates that are left out of the texts; `None` if none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub templates: Option<TemplateCounts>,
    pub distinct_fingerprints: u64,
    /// Digest of the batch: of its rows, or, if templates are left out, of its documents.
    pub digest: String,
}

/// The archive, in numbers.
#[derive(Debug, Clone, Serialize)]
pub struct BaseSummary {
    /// Version that was read; `None` for plain files.
    pub version: Option<u64>,
    pub files: u64,
    pub fingerprints: u64,
    /// Encoded bytes of fingerprints that were read.
    pub bytes_read: u64,
}

/// Whether a batch was committed to the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Commit {
    /// The run was not asked to append it.
    NotAsked,
    /// It was committed as this version of the archive.
    Committed(u64),
    /// The archive held it already, with the same rows.
    AlreadyThere,
}

/// Requests to object stores, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Requests, retries included.
    pub requests: u64,
    /// Requests that failed with a temporary error.
    pub retries: u64,
    /// Bytes of bodies sent.
    pub bytes_sent: u64,
    /// Bytes of bodies received.
    pub bytes_received: u64,
}

/// Seconds of each stage.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Seconds {
    /// Opening the inputs and the archive.
    pub open: f64,
    /// Fingerprinting the documents.
    pub fingerprint: f64,
    /// Building the tables.
    pub build: f64,
    /// Probing, reducing and writing the pairs.
    pub probe: f64,
    /// Finding the texts of pairs and comparing them.
    pub verify: f64,
    /// Committing the batch and publishing the outputs.
    pub commit: f64,
    /// The whole run.
    pub total: f64,
    /// The stages inside `probe`.
    pub of_probe: ProbeSeconds,
}

/// Seconds of the stages inside the probe. The first six are summed over all threads.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct ProbeSeconds {
    /// Fetching encoded fingerprints of the archive.
    pub read: f64,
    /// Decoding them.
    pub decode: f64,
    /// Partitioning them by table, in designs that partition.
    pub partition: f64,
    /// Filtering out fingerprints that have no candidate.
    pub filter: f64,
    /// Finding candidates and comparing them.
    pub verify: f64,
    /// Reading the ids of pairs.
    pub ids: f64,
    /// Dropping repeated pairs and sorting, after the last fingerprint was probed.
    pub reduce: f64,
    /// Encoding and writing the pairs.
    pub write: f64,
}

/// Measures the stages of a run.
pub(super) struct Clock {
    start: Instant,
    lap: Instant,
    pub(super) seconds: Seconds,
}

impl Clock {
    pub(super) fn start() -> Self {
        let now = Instant::now();
        Self {
            start: now,
            lap: now,
            seconds: Seconds::default(),
        }
    }

    /// Adds the time since the last call to the seconds of `stage`.
    pub(super) fn end(&mut self, stage: Stage) {
        let seconds = match stage {
            Stage::Open => &mut self.seconds.open,
            Stage::Fingerprint => &mut self.seconds.fingerprint,
            Stage::Build => &mut self.seconds.build,
            Stage::Probe => &mut self.seconds.probe,
            Stage::Verify => &mut self.seconds.verify,
            _ => &mut self.seconds.commit,
        };
        *seconds += self.lap.elapsed().as_secs_f64();
        self.lap = Instant::now();
    }

    /// The seconds of all stages, and of the whole run so far.
    pub(super) fn total(self) -> Seconds {
        Seconds {
            total: self.start.elapsed().as_secs_f64(),
            ..self.seconds
        }
    }
}

/// Whether a number is left out of the summary.
// Serde gives a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
