//! The maps that read documents: pages, fingerprints, digests of texts, columns for decisions, copies.

use std::collections::HashMap;
use std::sync::Arc;

use archive::{IdType, spec_files};
use arrow::array::{
    Array as _, ArrayRef, AsArray as _, FixedSizeBinaryArray, Int64Array, RecordBatch,
};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use datafusion::prelude::SessionContext;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use simhash::{Markup, Measure, Model, Similarity, Spec};

use super::cut::PART_SECONDS;
use super::left_out::LeftOutPlan;
use super::plan::{Item, Planning};
use super::{Job, Map};
use crate::error::{EngineError, Result};
use documents::{Documents, DocumentsPlan, POSITION, PlannedDocuments, RowSet, SplitPlan};
use documents::{TextRows, positions_and_bytes};

/// Bytes of documents that one core reads in a second, and copies.
const READ_BYTES_PER_SECOND: f64 = 300e6;

/// Bytes of text that one core fingerprints in a second, with `sketches` or without.
pub(super) fn text_bytes_per_second(sketches: bool) -> f64 {
    if sketches { 90e6 } else { 150e6 }
}

/// Documents whose splits are the items of a map.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct DocumentsMap {
    pub(super) documents: DocumentsPlan,
    pub(super) id_type: IdType,
    left_out: Option<LeftOutPlan>,
}

/// A model: its spec, and where the files that the spec names are.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ModelPlan {
    pub(crate) spec: Spec,
    /// The archive, or the job.
    pub(crate) files: String,
}

impl ModelPlan {
    pub(super) async fn load(&self, job: &Job) -> Result<Model> {
        let location = job.stores.locate(&self.files)?;
        Ok(spec_files::load(&location, &self.spec).await?)
    }
}

impl DocumentsMap {
    pub(super) async fn new(job: &Job, documents: &Documents, id_type: IdType) -> Result<Self> {
        Ok(Self {
            documents: documents.to_plan().await?,
            id_type,
            left_out: LeftOutPlan::of(job, documents).await?,
        })
    }

    /// Opens the files with these numbers, whose texts come without templates.
    pub(super) async fn open(
        &self,
        job: &Job,
        context: &SessionContext,
        files: impl IntoIterator<Item = usize>,
    ) -> Result<PlannedDocuments> {
        let mut opened = self.documents.open(context, files).await?;
        if let Some(left_out) = &self.left_out {
            let left_out = left_out.load(job).await?;
            opened.documents.leave_out(Some(&left_out));
        }
        Ok(opened)
    }

    /// The model for the texts of [`Self::open`].
    pub(super) fn model(&self, model: Model) -> Model {
        match self.left_out {
            Some(_) => model.without_markup(),
            None => model,
        }
    }
}

/// The splits of `documents` as items, each with its cost at `bytes_per_second`.
fn split_items(job: &Job, documents: &Documents, bytes_per_second: f64) -> (Vec<(Item, f64)>, u64) {
    let most = match job.record.parts {
        Some(parts) => documents.bytes().div_ceil(parts.max(1)),
        None => (PART_SECONDS * bytes_per_second) as u64,
    };
    let splits = documents.split_plans(most);
    let bytes = splits.iter().map(|(_, bytes)| bytes).sum();
    let item = |(split, bytes)| {
        let cost = bytes as f64 / bytes_per_second;
        (Item::Documents(split), cost)
    };
    (splits.into_iter().map(item).collect(), bytes)
}

/// The splits among the items of a part.
pub(super) fn splits(items: &[Item]) -> Vec<SplitPlan> {
    let split = |item: &Item| match item {
        Item::Documents(split) => Some(split.clone()),
        _ => None,
    };
    items.iter().filter_map(split).collect()
}

impl Map {
    pub(crate) async fn plan_pages(
        job: &Job,
        documents: &Documents,
        id_type: IdType,
        markup: Markup,
    ) -> Result<Planning> {
        let (items, bytes) = split_items(job, documents, READ_BYTES_PER_SECOND);
        let source = DocumentsMap::new(job, documents, id_type).await?;
        let map = Self::Pages { source, markup };
        Ok(Planning { map, items, bytes })
    }

    pub(crate) async fn plan_fingerprints(
        job: &Job,
        documents: &Documents,
        id_type: IdType,
        model: ModelPlan,
        decision_columns: bool,
    ) -> Result<Planning> {
        let rate = text_bytes_per_second(!model.spec.sketch.is_none());
        let (items, bytes) = split_items(job, documents, rate);
        let source = DocumentsMap::new(job, documents, id_type).await?;
        let map = Self::Fingerprint {
            source,
            model,
            decision_columns,
        };
        Ok(Planning { map, items, bytes })
    }

    pub(crate) async fn plan_digests(
        job: &Job,
        documents: &Documents,
        id_type: IdType,
        model: ModelPlan,
        measure: Measure,
        wanted: &RowSet,
    ) -> Result<Planning> {
        let (items, bytes) = split_items(job, documents, READ_BYTES_PER_SECOND);
        let map = Self::Digest {
            source: DocumentsMap::new(job, documents, id_type).await?,
            model,
            measure,
            wanted: job.share_bytes(&wanted.to_bytes()).await?,
        };
        Ok(Planning { map, items, bytes })
    }

    pub(crate) async fn plan_carried(
        job: &Job,
        documents: &Documents,
        schema: &SchemaRef,
    ) -> Result<Planning> {
        let (items, bytes) = split_items(job, documents, READ_BYTES_PER_SECOND);
        let bytes_of_schema = arrow::ipc::writer::StreamWriter::try_new(Vec::new(), schema)
            .and_then(|mut writer| {
                writer.finish()?;
                writer.into_inner()
            })
            .map_err(EngineError::internal)?;
        let map = Self::Carried {
            source: DocumentsMap::new(job, documents, IdType::String).await?,
            schema: job.share_bytes(&bytes_of_schema).await?,
        };
        Ok(Planning { map, items, bytes })
    }

    pub(crate) async fn plan_copies(
        job: &Job,
        documents: &Documents,
        kept: &RowSet,
    ) -> Result<Planning> {
        let source = DocumentsMap::new(job, documents, IdType::String).await?;
        let mut bytes_of_file = vec![0_u64; source.documents.file_count()];
        for (split, bytes) in documents.split_plans(u64::MAX) {
            bytes_of_file[split.file] += bytes;
        }
        let items = bytes_of_file.iter().enumerate();
        let items = items.map(|(number, bytes)| {
            let cost = *bytes as f64 / READ_BYTES_PER_SECOND;
            (Item::File(number), cost)
        });
        Ok(Planning {
            items: items.collect(),
            bytes: bytes_of_file.iter().sum(),
            map: Self::Copy {
                source,
                kept: job.share_bytes(&kept.to_bytes()).await?,
            },
        })
    }
}

/// The schema of digests: the position of a document, and the first bytes of the SHA-256 of its text as it is compared.
pub(crate) fn digest_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(POSITION, DataType::Int64, false),
        Field::new("digest", DataType::FixedSizeBinary(16), false),
    ]))
}

/// Rows of [`digest_schema`] for the documents of `batch` that have a text.
pub(super) fn digests(batch: &RecordBatch, similarity: &mut Similarity) -> Result<RecordBatch> {
    let (of_rows, _) = positions_and_bytes(batch)?;
    let texts = TextRows::read(batch)?.texts;
    let (mut positions, mut found) = (Vec::new(), Vec::new());
    for row in (0..batch.num_rows()).filter(|&row| texts.is_valid(row)) {
        positions.push(of_rows.value(row));
        found.push(text_digest(texts.value(row), similarity));
    }
    let found = found.iter().map(Some);
    let made =
        FixedSizeBinaryArray::try_from_sparse_iter_with_size(found, 16).and_then(|digests| {
            let columns: Vec<ArrayRef> =
                vec![Arc::new(Int64Array::from(positions)), Arc::new(digests)];
            RecordBatch::try_new(digest_schema(), columns)
        });
    made.map_err(EngineError::internal)
}

/// The first 16 bytes of the SHA-256 of a text without its markup, folded: texts with equal digests compare as equal.
pub(crate) fn text_digest(text: &[u8], similarity: &mut Similarity) -> [u8; 16] {
    let text = String::from_utf8_lossy(text);
    let mut digest = [0; 16];
    let compared = similarity.compared(&text).as_bytes();
    digest.copy_from_slice(&Sha256::digest(compared)[..16]);
    digest
}

/// Adds rows of [`digest_schema`] to `found`.
pub(crate) fn add_digests(batch: &RecordBatch, found: &mut HashMap<i64, [u8; 16]>) {
    let positions = batch.column(0).as_primitive::<Int64Type>().values();
    let digests = batch.column(1).as_fixed_size_binary();
    for (row, position) in positions.iter().enumerate() {
        let mut digest = [0; 16];
        digest.copy_from_slice(digests.value(row));
        found.insert(*position, digest);
    }
}
