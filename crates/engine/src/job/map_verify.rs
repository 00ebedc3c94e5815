//! The verification by texts in parts: each part reads the texts of its pairs' documents, and compares them.

use std::path::Path;
use std::sync::Arc;

use archive::IdType;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use serde::{Deserialize, Serialize};
use simhash::{Measure, Model};

use super::left_out::LeftOutPlan;
use super::map_documents::ModelPlan;
use super::plan::{Item, Planning};
use super::{Job, Map, SharedFile};
use crate::error::Result;
use crate::verify::{self, Counts, Origin, Verifier, Verify};
use documents::DocumentsPlan;

/// Core seconds that one pair takes: its texts are prepared and compared.
const PAIR_SECONDS: f64 = 25e-6;
/// The fewest pairs of a part that is not asked for.
const STEP: u64 = 1 << 12;

/// Pairs to those whose texts are similar.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct VerifyMap {
    pub(super) model: ModelPlan,
    measure: Measure,
    min_similarity: f64,
    by_model: bool,
    batch: DocumentsPlan,
    archive: Option<DocumentsPlan>,
    /// What is left out of the texts of the batch, and of the archive.
    left_out: [Option<LeftOutPlan>; 2],
    pairs: SharedFile,
    id_type: IdType,
    /// Where the documents of pairs can be; `None` for pairs of classes, which name documents by their positions.
    origin: Option<Origin>,
}

impl VerifyMap {
    /// Plans the verification of the `rows` pairs in the file at `path`: pairs of documents with an `origin`, or pairs of classes.
    pub(crate) async fn plan(
        job: &Job,
        verifier: &Verifier,
        model: ModelPlan,
        (path, rows): (&Path, u64),
        id_type: IdType,
        origin: Option<Origin>,
    ) -> Result<Planning> {
        let items = (0..rows).step_by(STEP as usize).map(|first| {
            let end = rows.min(first + STEP);
            let cost = (end - first) as f64 * PAIR_SECONDS;
            (Item::Pairs { first, end }, cost)
        });
        let archive = match &verifier.archive {
            Some(archive) => Some(archive.to_plan().await?),
            None => None,
        };
        let verify = &verifier.verify;
        let map = Map::Verify(Box::new(Self {
            model,
            measure: verify.measure,
            min_similarity: verify.min_similarity,
            by_model: verifier.by_model,
            batch: verifier.batch.to_plan().await?,
            archive,
            left_out: [
                LeftOutPlan::of(job, Some(&verifier.batch)).await?,
                LeftOutPlan::of(job, verifier.archive.as_ref()).await?,
            ],
            pairs: job.share(path).await?,
            id_type,
            origin,
        }));
        Ok(Planning {
            map,
            items: items.collect(),
            bytes: path.metadata().map_or(0, |metadata| metadata.len()),
        })
    }

    /// The pairs of a part that are similar enough; the counts are complete when the stream has ended.
    pub(super) async fn rows(
        &self,
        job: &Job,
        context: &SessionContext,
        items: &[Item],
        model: Model,
    ) -> Result<(SendableRecordBatchStream, Arc<Counts>)> {
        let range = |item: &Item| match item {
            Item::Pairs { first, end } => Some((*first, *end)),
            _ => None,
        };
        let ranges: Vec<(u64, u64)> = items.iter().filter_map(range).collect();
        let first = ranges.first().map_or(0, |range| range.0);
        let end = ranges.last().map_or(0, |range| range.1);
        let verify = Verify {
            measure: self.measure,
            min_similarity: self.min_similarity,
            base_text: Vec::new(),
        };
        let batch = self.batch.open(context, 0..self.batch.file_count()).await?;
        let archive = match &self.archive {
            Some(plan) => Some(plan.open(context, 0..plan.file_count()).await?.documents),
            None => None,
        };
        let mut verifier = Verifier {
            verify,
            model,
            by_model: self.by_model,
            batch: batch.documents,
            archive,
        };
        if let [Some(of_batch), of_archive] = &self.left_out {
            let of_batch = of_batch.load(job).await?;
            let of_archive = match of_archive {
                Some(of_archive) => of_archive.load(job).await?,
                None => Arc::clone(&of_batch),
            };
            verifier.leave_out(&of_batch, &of_archive);
        }
        let (path, scratch) = (job.fetch(&self.pairs).await?, &job.scratch);
        match self.origin {
            Some(origin) => {
                verify::verify(context, &path, first..end, &verifier, origin, scratch).await
            }
            None => {
                let (rows, id_type) = (first..end, self.id_type);
                verify::verify_class_pairs(context, &path, rows, &verifier, id_type, scratch, None)
                    .await
            }
        }
    }
}
