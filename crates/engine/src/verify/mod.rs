//! Verification: drops pairs whose texts are not similar enough.
//!
//! It prepares the texts of the documents in pairs while it reads them, or copies them to a file in the scratch directory; in
//! Parquet files, the reader decodes no other text. Memory grows with the pairs, not with the documents.
//! Only for decisions, `text_classes` holds some bytes for each document.

mod bitmaps;
mod class_pairs;
mod compare;
mod drawn;
mod prepared;
mod text_classes;
mod texts;
mod texts_at;

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archive::IdType;
use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use compare::{Comparer, PairTexts};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::{Deserialize, Serialize};
use simhash::{Measure, Model};
use texts::{Side, Texts};

pub(crate) use bitmaps::{BITMAP, schema as bitmap_schema, similar_pairs};
pub(crate) use class_pairs::{UnverifiedPairs, verify_class_pairs};
pub(crate) use drawn::{DrawnPair, Other, similarities};
pub(crate) use text_classes::TextClasses;

use crate::error::{EngineError, Result};
use crate::job::{Answers, Receipt};
use crate::pairs::{self, Pairs, Similarities};
use documents::{Columns, DocumentId, Documents, LeftOut, Pages};
use storage::StorageError;

/// How pairs are to be verified: by sketches when they are found, or by texts afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Verify {
    /// How texts are compared.
    pub measure: Measure,
    /// Pairs with a smaller similarity are dropped.
    pub min_similarity: f64,
    /// Files, directories or patterns of the archive's documents. If there are none, no text of the archive is found.
    pub base_text: Vec<String>,
}

impl Verify {
    /// Whether pairs are verified by their sketches. No texts are read then.
    pub fn is_by_sketch(&self) -> bool {
        self.measure == Measure::Sketch
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Verified {
    /// How texts were compared.
    pub measure: Measure,
    /// Pairs of a smaller similarity were dropped.
    pub min_similarity: f64,
    /// Pairs that were compared. A verification by sketches compares a pair of ids each time that the probe finds it.
    pub checked: u64,
    /// Pairs that were dropped.
    pub dropped: u64,
    /// Pairs that are written without a similarity, because a text or a sketch was not found. No document is dropped for them.
    pub without_text: u64,
}

/// Counts of a verification in progress.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    dropped: AtomicU64,
    without_text: AtomicU64,
}

impl Counts {
    /// The pairs that were dropped, and those that passed without a similarity.
    pub(crate) fn get(&self) -> (u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&self.dropped), load(&self.without_text))
    }

    /// The counts of all parts.
    pub(crate) fn of(answers: &Answers) -> Arc<Self> {
        let sum = |count: fn(&Receipt) -> u64| answers.receipts().map(count).sum::<u64>().into();
        Arc::new(Self {
            dropped: sum(|receipt| receipt.dropped),
            without_text: sum(|receipt| receipt.without_text),
        })
    }
}

/// The texts of both sides, and the model of their fingerprints and similarities.
#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) verify: Verify,
    /// The model of fingerprints and similarities.
    pub(crate) model: Model,
    /// Whether the fingerprints of the run are those that `model` makes of the texts, and not ready ones.
    pub(crate) by_model: bool,
    pub(crate) batch: Documents,
    /// The texts of the archive, if they are at hand.
    pub(crate) archive: Option<Documents>,
}

impl Verifier {
    /// Opens the texts of `documents` and, if `verify` names them, those of the archive. The model comes with whether the run's
    /// fingerprints are made by it.
    pub(crate) async fn open(
        context: &SessionContext,
        verify: Verify,
        (model, by_model): (Model, bool),
        documents: &Documents,
        columns: &Columns,
        pages: Pages,
    ) -> Result<Self> {
        let columns = Columns {
            fingerprint: None,
            texts_only: true,
            ..columns.clone()
        };
        let mut archive = if verify.base_text.is_empty() {
            None
        } else {
            Some(Documents::open(context, &verify.base_text, &columns).await?)
        };
        let mut batch = documents.reopen(context, &columns).await?;
        for documents in archive.iter_mut().chain([&mut batch]) {
            documents.read_pages(pages);
        }
        Ok(Self {
            verify,
            model,
            by_model,
            batch,
            archive,
        })
    }

    /// Leaves templates out of the texts of the batch, and of the archive's.
    pub(crate) fn leave_out(&mut self, of_batch: &Arc<LeftOut>, of_archive: &Arc<LeftOut>) {
        self.batch.leave_out(Some(of_batch));
        if let Some(archive) = &mut self.archive {
            archive.leave_out(Some(of_archive));
        }
        self.model = self.model.without_markup();
    }

    /// Cuts the files of the batch's texts where those of `documents` are cut.
    pub(crate) fn cut_as(&mut self, documents: &Documents) {
        self.batch.cut_as(documents);
    }

    /// The result of comparing the texts of `checked` pairs.
    pub(crate) fn verified(&self, counts: &Counts, checked: u64) -> Verified {
        let without_text = counts.without_text.load(Ordering::Relaxed);
        if without_text > 0 {
            let reason = match &self.archive {
                None => "name the texts of the archive's documents with --base-text".to_owned(),
                Some(documents) => {
                    format!(
                        "in {}, the texts of their documents are missing, or have other fingerprints than in the archive",
                        documents.given()
                    )
                }
            };
            tracing::warn!(
                "{without_text} of {checked} pairs could not be verified; they are written, and no document is dropped for them: {reason}"
            );
        }
        Verified {
            measure: self.verify.measure,
            min_similarity: self.verify.min_similarity,
            checked,
            dropped: counts.dropped.load(Ordering::Relaxed),
            without_text,
        }
    }
}

/// What is known about the documents of a run's pairs.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) id_type: IdType,
    /// Day of the batch, in days since 1970.
    pub(crate) day: Option<i32>,
    /// Whether there are pairs inside the batch.
    pub(crate) within: bool,
    /// Whether the batch is compared with one archive, and nothing else. The view then leaves
    /// out the batch's own day, so pairs with that day are inside the batch.
    pub(crate) archive: bool,
}

impl Origin {
    /// The sides where the base document of a pair can be, given its day.
    fn sides(self, base_day: Option<i32>) -> &'static [Side] {
        match base_day == self.day {
            true if self.within && self.archive => &[Side::Batch],
            true if self.within => &[Side::Batch, Side::Archive],
            _ => &[Side::Archive],
        }
    }
}

/// Verifies the pairs in rows `range` of the Parquet file `unverified`, in their order. The counts are complete when the stream has
/// ended.
pub(crate) async fn verify(
    context: &SessionContext,
    unverified: &Path,
    range: Range<u64>,
    verifier: &Verifier,
    origin: Origin,
    scratch: &Path,
) -> Result<(SendableRecordBatchStream, Arc<Counts>)> {
    let Verifier { batch, archive, .. } = verifier;
    // Ask for the texts of all documents in pairs, on each side where they can be.
    let mut texts = Texts::create(scratch, &context.runtime_env().memory_pool)?;
    for rows in within(read_pairs(unverified)?, range.clone()) {
        let rows = rows?;
        let pairs = Pairs::read(&rows).map_err(bad_pairs)?;
        for row in 0..rows.num_rows() {
            texts.want(Side::Batch, DocumentId::read(pairs.new_ids, row))?;
            for side in origin.sides(pairs.base_day(row)) {
                texts.want(*side, DocumentId::read(pairs.base_ids, row))?;
            }
        }
    }
    texts
        .copy_wanted(context, Side::Batch, batch, origin.id_type)
        .await?;
    if let Some(archive) = archive {
        texts
            .copy_wanted(context, Side::Archive, archive, origin.id_type)
            .await?;
    }

    let schema = pairs::schema(origin.id_type, Similarities::Known);
    let comparer = Comparer::new(texts, verifier, context)?;
    let pairs = range.end - range.start;
    let reader = within(read_pairs(unverified)?, range);
    let verified = comparer.verified(reader, schema, pairs, move |comparer, rows, schema| {
        let pairs = Pairs::read(rows).map_err(bad_pairs)?;
        let texts_of = |row| texts_of_pair(&comparer.texts, &pairs, row, origin);
        comparer.verify(rows, schema, texts_of)
    });
    Ok(verified)
}

fn texts_of_pair<'a>(
    texts: &'a Texts,
    pairs: &Pairs<'_>,
    row: usize,
    origin: Origin,
) -> PairTexts<'a> {
    let base_id = DocumentId::read(pairs.base_ids, row);
    let sides = origin.sides(pairs.base_day(row));
    let others = match sides {
        [side] => Cow::Borrowed(texts.places(*side, &base_id)),
        _ => {
            let places = sides.iter().flat_map(|side| texts.places(*side, &base_id));
            Cow::Owned(places.copied().collect())
        }
    };
    PairTexts {
        new: texts.places(Side::Batch, &DocumentId::read(pairs.new_ids, row)),
        others,
        is_archived: sides.contains(&Side::Archive),
        distance: pairs.distance(row),
    }
}

/// Pairs that are read and verified together.
const PAIRS: usize = 1024;

/// The error when Arrow cannot read or build a batch of pairs.
fn bad_pairs(source: ArrowError) -> EngineError {
    archive::ArchiveError::arrow("pairs")(source).into()
}

/// The rows `range` of record batches.
fn within(
    batches: impl Iterator<Item = Result<RecordBatch>>,
    range: Range<u64>,
) -> impl Iterator<Item = Result<RecordBatch>> {
    let mut first = 0;
    let selected = batches.map_while(move |batch| {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return Some(Some(Err(error))),
        };
        let rows = first..first + batch.num_rows() as u64;
        first = rows.end;
        let (start, end) = (rows.start.max(range.start), rows.end.min(range.end));
        let slice = (start < end).then(|| {
            let offset = (start - rows.start) as usize;
            Ok(batch.slice(offset, (end - start) as usize))
        });
        (rows.start < range.end).then_some(slice)
    });
    selected.flatten()
}

fn read_pairs(path: &Path) -> Result<impl Iterator<Item = Result<RecordBatch>> + Send + use<>> {
    let object = path.display().to_string();
    let file = std::fs::File::open(path).map_err(StorageError::io(&object))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .and_then(|builder| builder.with_batch_size(PAIRS).build())
        .map_err(archive::ArchiveError::parquet(&object))?;
    Ok(reader.map(move |batch| {
        batch.map_err(|source| archive::ArchiveError::arrow(&object)(source).into())
    }))
}
