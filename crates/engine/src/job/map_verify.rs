//! The verification by texts in parts: each part reads the texts of its pairs' documents, and compares them.

use std::path::Path;
use std::sync::Arc;

use archive::IdType;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use serde::{Deserialize, Serialize};
use simhash::{Measure, Model};

use super::map_documents::{DocumentsMap, ModelPlan};
use super::plan::{Item, Planning};
use super::{Job, Map, SharedFile};
use crate::error::Result;
use crate::verify::{self, Counts, Origin, Verifier, Verify};

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
    batch: DocumentsMap,
    archive: Option<DocumentsMap>,
    pairs: SharedFile,
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
            Some(archive) => Some(DocumentsMap::new(job, archive, id_type).await?),
            None => None,
        };
        let verify = &verifier.verify;
        let map = Map::Verify(Box::new(Self {
            model,
            measure: verify.measure,
            min_similarity: verify.min_similarity,
            by_model: verifier.by_model,
            batch: DocumentsMap::new(job, &verifier.batch, id_type).await?,
            archive,
            pairs: job.share(path).await?,
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
        let files = |map: &DocumentsMap| 0..map.documents.file_count();
        let batch = self.batch.open(job, context, files(&self.batch)).await?;
        let archive = match &self.archive {
            Some(archive) => {
                let opened = archive.open(job, context, files(archive)).await?;
                Some(opened.documents)
            }
            None => None,
        };
        let verifier = Verifier {
            verify,
            model: self.batch.model(model),
            by_model: self.by_model,
            batch: batch.documents,
            archive,
        };
        let (path, scratch) = (job.fetch(&self.pairs).await?, &job.scratch);
        match self.origin {
            Some(origin) => {
                verify::verify(context, &path, first..end, &verifier, origin, scratch).await
            }
            None => {
                let (rows, id_type) = (first..end, self.batch.id_type);
                verify::verify_class_pairs(context, &path, rows, &verifier, id_type, scratch, None)
                    .await
            }
        }
    }
}
