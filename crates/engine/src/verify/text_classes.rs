//! Classes of the batch by text: documents with equal fingerprints and equal texts, without their markup and folded.

use std::collections::HashMap;
use std::sync::Arc;

use archive::IdType;
use arrow::buffer::BooleanBuffer;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::prelude::SessionContext;
use futures::StreamExt as _;

use super::Verifier;
use super::prepared::TextWorkers;
use super::texts_at::texts_at;
use crate::batch::{Batch, Classes};
use crate::decide::Keys;
use crate::error::{EngineError, Result};
use crate::job::{Job, Map, ModelPlan, add_digests, digest_schema, text_digest};
use crate::memory::reserve;
use documents::RowSet;
use streams::blocking;

/// Bytes of memory for each document whose fingerprint repeats: the entry of its text's digest in a
/// map, and the entry's share of free slots.
const DIGEST_BYTES: usize = 64;
/// Bytes of memory of each document: its position.
const POSITION_BYTES: usize = 8;

/// The classes of a batch by text, and the documents that stand for them.
#[derive(Debug)]
pub(crate) struct TextClasses {
    pub(crate) classes: Arc<Classes>,
    /// Distinct fingerprints.
    pub(super) fingerprints: u32,
    /// Whether each row of the batch's file has a text; false, too, for a document whose
    /// fingerprint does not repeat, because that text is not read.
    pub(crate) have_text: BooleanBuffer,
    /// The position in the inputs of each row of the batch's file.
    positions: Vec<i64>,
    _memory: MemoryReservation,
}

impl TextClasses {
    /// Reads the texts of those documents of `batch` whose fingerprints repeat, or takes their digests from the parts of a job, which
    /// comes with the model.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`] when the pool has too few bytes; another one when a text cannot be read.
    pub(crate) async fn read(
        context: &SessionContext,
        verifier: &Verifier,
        batch: Arc<Batch>,
        keys: &Keys,
        id_type: IdType,
        job: Option<(&Job, ModelPlan)>,
    ) -> Result<Self> {
        let rows = batch.rows;
        let distinct = Arc::clone(&batch.distinct);
        let fingerprints = distinct.values().len() as u32;
        let repeated = (0..fingerprints).map(|entry| distinct.rows(entry));
        let repeated = repeated.filter(|rows| rows.len() > 1);
        let repeated_rows: usize = repeated.clone().map(|rows| rows.len()).sum();
        let memory =
            MemoryConsumer::new("classes by text").register(&context.runtime_env().memory_pool);
        let bytes = keys.rows as usize * POSITION_BYTES
            + Classes::by_content_bytes(rows)
            + DIGEST_BYTES * repeated_rows
            + RowSet::bytes_for(keys.rows);
        reserve(&memory, bytes, || {
            format!("comparing the texts of {rows} documents takes {bytes} bytes")
        })?;
        let keys = keys.clone();
        let positions = blocking(move || keys.positions()).await?;
        let mut wanted = RowSet::default();
        for row in repeated.flatten() {
            wanted.add(positions[row as usize]);
        }
        // Hold digests, because texts would take too much memory. No two texts are known to share
        // 128 bits of SHA-256.
        let mut digests: HashMap<i64, [u8; 16]> = HashMap::with_capacity(repeated_rows);
        let measure = verifier.verify.measure;
        match job {
            Some((job, model)) => {
                let documents = &verifier.batch;
                let answers = job.answers("digest", async || {
                    Map::plan_digests(job, documents, id_type, model, measure, &wanted).await
                });
                let answers = answers.await?.ok_or(EngineError::Planned)?;
                let mut rows = answers.rows(&digest_schema());
                while let Some(batch) = rows.next().await {
                    let batch = batch.map_err(EngineError::query(job.name()))?;
                    add_digests(&batch, &mut digests);
                }
            }
            None => {
                let texts = texts_at(context, &verifier.batch, id_type, wanted).await?;
                // Pages often differ in their markup alone, and all pairs of different texts would be compared.
                let workers = TextWorkers::new(verifier, context)?;
                let mut batches = workers.work(texts, |worker, text| text_digest(text, worker));
                while let Some(batch) = batches.next().await {
                    let (batch, made) = batch?;
                    let positions = batch.iter()?.map(|(position, _)| position);
                    digests.extend(positions.zip(made));
                }
            }
        }
        blocking(move || {
            let digest = |row: u32| digests.get(&positions[row as usize]);
            let classes = Arc::new(Classes::by_content(&batch, digest));
            let have_text = (0..rows as u32).map(|row| digest(row).is_some()).collect();
            drop(digests);
            memory.shrink(DIGEST_BYTES * repeated_rows);
            Ok(Self {
                fingerprints,
                classes,
                have_text,
                positions,
                _memory: memory,
            })
        })
        .await
    }

    /// The position of the document that stands for a class.
    pub(super) fn position(&self, class: u32) -> i64 {
        self.positions[self.classes.row(class) as usize]
    }
}
