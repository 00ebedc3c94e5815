//! The decisions of a run: probe for pairs of classes, verify them, and decide which documents are kept.

use std::collections::HashSet;
use std::sync::Arc;

use archive::{Archive, Pin, Ruling};
use arrow::buffer::BooleanBuffer;
use datafusion::execution::SendableRecordBatchStream;
use simhash::Measure;

use super::Comparison;
use crate::batch::{Batch, Classes};
use crate::class_pairs;
use crate::decide::{Decide, Decided, Deciding, History, Keys, SHOWN};
use crate::error::{EngineError, Result};
use crate::job::{Answers, Job, Map};
use crate::output::{self, DraftOutput};
use crate::probe::{Answer, CompareSketches, Originals, Probe};
use crate::progress::Stage;
use crate::run::summary::{Clock, DecisionSummary};
use crate::verify::{
    Counts, TextClasses, UnverifiedPairs, Verified, Verifier, similar_pairs, verify_class_pairs,
};
use crate::work_items;
use documents::{KeptDrafts, MadeCopy};
use streams::blocking;

/// Bytes of memory for each document that the plan of the tables leaves for decisions: for its
/// class, its rank, its decision, the size of its group, and for sorting the documents.
const DECISION_BYTES: usize = 72;
/// The same besides, if sketches are compared: for its class and its similarity.
const SKETCH_BYTES: usize = 28;
/// The same besides, if texts are compared: for its class, its position, the digest of its text and its similarity.
const TEXT_BYTES: usize = 96;
/// Bytes of memory for decisions, however few documents there are.
const LEAST_DECISION_BYTES: usize = 1 << 20;

/// Decisions and kept documents, not yet published.
pub(in crate::run) struct DraftDecisions {
    pub(in crate::run) decisions: Option<DraftOutput>,
    pub(in crate::run) kept: Option<KeptDrafts>,
    /// Whether each row of the batch's file is kept.
    pub(in crate::run) kept_in_batch: BooleanBuffer,
    /// What later days must know besides.
    pub(in crate::run) rulings: Vec<Ruling>,
    pub(in crate::run) summary: DecisionSummary,
}

impl Comparison<'_> {
    /// Probes for pairs of classes, verifies them and decides about the documents; writes decisions
    /// and kept documents as drafts.
    pub(super) async fn decide(
        &self,
        probe: Probe,
        distinct: usize,
        decide: &Decide,
        clock: &mut Clock,
    ) -> Result<(DraftDecisions, Option<Verified>)> {
        let (context, settings) = (self.run.context, self.run.settings);
        let keys = self.batch.keys.as_ref();
        let keys = keys.ok_or_else(|| EngineError::Internal("the batch has no keys".into()))?;
        let (decided, verified) = match self.verifier {
            Some(verifier) => {
                let deciding = self.decide_by_texts(probe, distinct, keys, verifier, clock);
                let (decided, verified) = deciding.await?;
                (decided, Some(verified))
            }
            None => {
                let decided = self.decide_by_fingerprints(probe, distinct, keys).await?;
                (decided, self.verified_by_sketch())
            }
        };
        let decided = Arc::new(decided);
        let scratch = &settings.scratch;
        let (copies, carried) = match self.run.job() {
            Some(job) => self.in_parts(job, &decided).await?,
            None => (None, None),
        };
        let (documents, positions) = (self.documents, &decided.kept_positions);
        let kept = match (self.kept_files, copies) {
            (Some(files), Some(copies)) => {
                Some(documents.take_copies(copies, files, scratch).await?)
            }
            (Some(files), None) => {
                let copying = documents.copy_kept(context, positions, files, scratch);
                Some(copying.await?)
            }
            (None, _) => None,
        };
        let audit = match (self.auditor, settings.audit) {
            (Some(auditor), Some(most)) => {
                let pairs = decided.drawn_pairs(keys, most)?;
                Some(self.audit(auditor, pairs).await?)
            }
            _ => None,
        };
        let counts = decided.counts;
        let kept_in_batch = decided.kept_in_batch.clone();
        let decisions = match &decide.decisions {
            Some(target) => {
                let rows = Arc::clone(&decided);
                let rows = if self.documents.has_carried() {
                    if settings.output.is_none() {
                        // The sort can have their memory.
                        decided.batch.release_tables();
                    }
                    let (id_type, documents) = (self.id_type, self.documents);
                    let rows = rows.rows_with_carried(context, id_type, documents, keys, carried);
                    rows.await?
                } else {
                    rows.rows(context, self.id_type)
                };
                let schema = rows.schema();
                let rows = self.writing(rows, keys.rows);
                Some(output::write_draft(rows, &schema, target, scratch, None).await?)
            }
            None => None,
        };
        clock.end(match self.verifier {
            Some(_) => Stage::Verify,
            None => Stage::Probe,
        });
        clock.seconds.of_probe = self.probe_seconds(0.0);
        let drafts = DraftDecisions {
            summary: DecisionSummary {
                output: decide.decisions.as_ref().map(ToString::to_string),
                kept_output: decide.kept.as_ref().map(|kept| kept.given.clone()),
                kept_bytes: kept.as_ref().map(|kept| kept.bytes),
                counts,
                sources: decided.sources.clone(),
                worst_source: decided.worst_source.clone(),
                dropped_at_random: decided.shown(),
                audit,
                repeats: None,
            },
            decisions,
            kept,
            kept_in_batch,
            rulings: decided.rulings(self.pins),
        };
        Ok((drafts, verified))
    }

    /// Whether the documents are read again once it is decided which are kept: for copies of these, or for columns.
    pub(super) fn needs_documents(&self) -> bool {
        self.kept_files.is_some() || self.documents.has_carried()
    }

    /// What the parts of a job copied, and the columns that they read.
    async fn in_parts(
        &self,
        job: &Job,
        decided: &Decided,
    ) -> Result<(Option<Vec<Option<MadeCopy>>>, Option<Answers>)> {
        let documents = self.documents;
        let (mut copies, mut carried) = (None, None);
        if self.kept_files.is_some() {
            let kept = &decided.kept_positions;
            let plan = async || Map::plan_copies(job, documents, kept).await;
            copies = Some(job.answers("copy", plan).await?);
        }
        if documents.has_carried() {
            let schema = documents.carried_schema();
            let plan = async || Map::plan_carried(job, documents, &schema).await;
            carried = job.answers("columns", plan).await?;
        }
        if job.splits {
            return Err(EngineError::Planned);
        }
        let copies = match copies {
            Some(answers) => Some(job.made_copies(&answers.ok_or(EngineError::Planned)?)?),
            None => None,
        };
        Ok((copies, carried))
    }

    /// Decides by pairs of fingerprints that are near and, if there are sketches, similar by these.
    async fn decide_by_fingerprints(
        &self,
        probe: Probe,
        distinct: usize,
        keys: &Keys,
    ) -> Result<Decided> {
        let by_sketch = probe.sketches.is_some();
        let batch = self.run.load(self.batch).await?;
        let of_batch = Arc::clone(&batch);
        let (classes, have_content) = blocking(move || {
            let have_sketch = by_sketch.then(|| {
                let rows = 0..of_batch.rows as u32;
                rows.map(|row| of_batch.sketch(row).is_some()).collect()
            });
            Ok::<_, EngineError>((of_batch.classes(by_sketch)?, have_sketch))
        })
        .await?;
        let (found, expected) = self.class_pairs(probe, distinct).await?;
        let deciding = self.deciding(batch, classes, have_content, keys);
        let decided = deciding.decide(found).await?;
        self.run.resources.progress.check_answered(expected)?;
        Ok(decided)
    }

    /// Decides by pairs of fingerprints that are near and whose texts are similar.
    async fn decide_by_texts(
        &self,
        probe: Probe,
        distinct: usize,
        keys: &Keys,
        verifier: &Verifier,
        clock: &mut Clock,
    ) -> Result<(Decided, Verified)> {
        let (context, settings) = (self.run.context, self.run.settings);
        let batch = self.run.load(self.batch).await?;
        let digests = match self.run.job() {
            Some(job) => Some((job, self.model_plan(job, verifier).await?)),
            None => None,
        };
        let (own, id_type) = (Arc::clone(&batch), self.id_type);
        let classes = TextClasses::read(context, verifier, own, keys, id_type, digests);
        let classes = Arc::new(classes.await?);
        let scratch = &settings.scratch;
        let pairs = UnverifiedPairs::create(Arc::clone(&classes), id_type, scratch)?;
        let (found, expected) = self.class_pairs(probe, distinct).await?;
        let (path, checked) = pairs.collect(found).await?;
        self.run.resources.progress.check_answered(expected)?;
        clock.end(Stage::Probe);

        self.run.enter(Stage::Verify);
        let (pairs, counts) = match self.run.job() {
            None => {
                let similar = match self.batch.bitmaps.clone() {
                    Some(bitmaps) => {
                        let (context, path) = (context.clone(), path.clone());
                        let (classes, least) =
                            (Arc::clone(&classes), verifier.verify.min_similarity);
                        blocking(move || {
                            let pairs = (path.as_path(), checked);
                            similar_pairs(&context, &bitmaps, pairs, &classes, least)
                        })
                        .await?
                    }
                    None => None,
                };
                let (path, pairs) = (path.as_path(), 0..checked);
                let verified =
                    verify_class_pairs(context, path, pairs, verifier, id_type, scratch, similar);
                verified.await?
            }
            Some(job) => {
                let pairs = (path.as_path(), checked);
                let answers = self.verified_in_parts(job, "verify-classes", verifier, pairs, None);
                let answers = answers.await?;
                if job.splits && !self.needs_documents() {
                    return Err(EngineError::Planned);
                }
                let schema = class_pairs::schema(id_type);
                (answers.rows(&schema), Counts::of(&answers))
            }
        };
        let have_text = classes.have_text.clone();
        let deciding = self.deciding(batch, Arc::clone(&classes.classes), Some(have_text), keys);
        let decided = deciding.decide(pairs).await?;
        Ok((decided, verifier.verified(&counts, checked)))
    }

    fn deciding(
        &self,
        batch: Arc<Batch>,
        classes: Arc<Classes>,
        have_content: Option<BooleanBuffer>,
        keys: &Keys,
    ) -> Deciding {
        Deciding {
            context: self.run.context.clone(),
            batch,
            classes,
            keys: keys.clone(),
            have_content,
            verified: self.settings.verify.is_some(),
            sources_must_fit: self.run.settings.limits.max_dropped.is_some(),
            prefer: self.run.settings.columns.prefer.clone(),
            drop_empty: self.run.settings.drop_empty,
            within: self.run.settings.within,
            history: self.history(),
            finds_updates: self.view.archive.is_some() && self.run.settings.finds_updates,
            pins: self.pins(),
            draws: self.run.settings.audit.unwrap_or(0).max(SHOWN),
            day: self.view.date.map(work_items::days_since_epoch),
        }
    }

    /// The pins of the run, and then what the archive remembers of others; and the number of the first.
    fn pins(&self) -> (Arc<[Pin]>, usize) {
        let files = self.view.snapshot.files.len();
        let own = match self.view.archive {
            Some(_) => self.view.own_files().len(),
            None => 0,
        };
        if !self.pins.is_empty() && own < files {
            tracing::warn!(
                "pins are about documents of the batch and of the first archive; those of other bases are not looked for"
            );
        }
        let about: HashSet<(String, String)> = self.pins.iter().map(Pin::about).collect();
        let remembered = self.view.rulings.pins.iter();
        let remembered = remembered.filter(|pin| !about.contains(&pin.about()));
        let all = self.pins.iter().chain(remembered).cloned().collect();
        (all, self.pins.len())
    }

    fn has_pins(&self) -> bool {
        !self.pins.is_empty() || !self.view.rulings.pins.is_empty()
    }

    /// Where earlier captures of documents are.
    fn history(&self) -> Option<History> {
        self.view.archive.as_ref()?;
        let size = self.batch.file.spec.sketch;
        let least = match &self.settings.verify {
            Some(verify) if verify.measure == Measure::Jaccard => Some(verify.min_similarity),
            _ => None,
        };
        let least = least.filter(|_| !size.is_none());
        Some(History {
            files: self.view.own_files().to_vec(),
            rulings: Arc::clone(&self.view.rulings),
            max_distance: self.settings.max_distance,
            sketches: least.map(|least| (CompareSketches::at_least(least, size), size)),
            on_update: self.run.settings.on_update,
        })
    }

    /// The request of the probe for pairs of classes.
    pub(super) fn class_probe(&self, probe: Probe) -> Probe {
        let originals = match self.verifier {
            Some(verifier) if verifier.archive.is_some() => Originals::All,
            // The nearest may not count.
            _ if self.view.rulings.has_superseded() || self.has_pins() => Originals::All,
            _ => Originals::Nearest,
        };
        Probe {
            answer: Answer::ClassPairs(originals),
            max_hits: None,
            kept_base: self.others.have_kept
                || self.view.archive.as_ref().is_some_and(Archive::has_kept),
            ..probe
        }
    }

    /// Starts to probe for pairs of classes; also returns the number of work items that this process must answer.
    async fn class_pairs(
        &self,
        probe: Probe,
        distinct: usize,
    ) -> Result<(SendableRecordBatchStream, usize)> {
        let probe = self.class_probe(probe);
        let (found, expected) = self.begin_probe(probe, distinct).await?;
        let found = found.execute_stream().await;
        let found = found.map_err(EngineError::query("planning the probe"))?;
        Ok((found, expected))
    }

    /// Bytes that decisions need besides the tables.
    pub(super) fn decision_bytes(&self) -> usize {
        let of_content = match (self.verifier, self.compare_sketches()) {
            (Some(_), _) => TEXT_BYTES,
            (None, Some(_)) => SKETCH_BYTES,
            (None, None) => 0,
        };
        if self.decide.is_none() {
            return 0;
        }
        let documents = usize::try_from(self.batch.file.rows).unwrap_or(usize::MAX);
        let of_documents = documents.saturating_mul(DECISION_BYTES + of_content);
        of_documents.saturating_add(LEAST_DECISION_BYTES)
    }
}
