//! Implements the engine's [`Cluster`] trait for [`Remote`]: builds the [`MapParameters`] of each of
//! the two maps, and returns its rows as a stream.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use archive::IdType;
use archive::fingerprint_file::FingerprintFile;
use async_trait::async_trait;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use engine::EngineError;
use engine::batch::BatchRef;
use engine::cluster::{Capacity, Cluster, ClusterSummary, FingerprintRequest, FingerprintedRows};
use engine::map_counters::MapCounters;
use engine::probe::{Probe, ProbeExec};
use engine::work_items::{self, Numbered, WorkItem};
use storage::{Draft, Location};

use super::connection::Remote;
use super::map_parameters::MapParameters;
use crate::plan::document_items::DocumentItem;
use crate::plan::fingerprint::{FingerprintExec, FingerprintSettings};

#[async_trait]
impl Cluster for Remote {
    async fn fingerprint(
        &self,
        request: FingerprintRequest<'_>,
    ) -> engine::Result<Option<FingerprintedRows>> {
        let inner = &self.0;
        let splits = request.documents.splits();
        let in_stores = inner.shared.local().is_none();
        if in_stores && splits.iter().any(|split| split.location.local().is_some()) {
            tracing::info!("the batch is on this machine, so it is fingerprinted here");
            return Ok(None);
        }
        let names_files = request.spec.idf.is_some() || request.spec.stop_words.is_some();
        let spec_files = match request.archive {
            Some(archive) => archive.location().absolute_name(),
            None => {
                if names_files {
                    create_directory(&inner.shared)?;
                    let files = request.spec_options.files(request.spec)?;
                    archive::spec_files::write(&inner.shared, request.spec, &files).await?;
                }
                inner.shared.absolute_name()
            }
        };
        let settings = FingerprintSettings {
            columns: request.columns.clone(),
            bigint_ids: request.id_type == IdType::Bigint,
            spec: request.spec.clone(),
            spec_files,
            decision_columns: request.decision_columns,
        };
        let total = request.documents.known_rows().unwrap_or(0);
        let progress = &inner.resources.progress;
        progress.documents_total.store(total, Ordering::Relaxed);
        let mut bytes = Vec::new();
        let mut items: Vec<DocumentItem> = Vec::new();
        for (number, split) in (0..).zip(splits) {
            bytes.push(split.bytes);
            let file = split.location.absolute_name();
            let size = match items.last() {
                Some(last) if last.file == file => last.size,
                _ => split.location.size().await?,
            };
            items.push(DocumentItem {
                number,
                file,
                part_number: split.part_number as u32,
                size,
                rows: split.rows,
                extent: split.extent,
            });
        }
        let schema = engine::fingerprint::rows_schema(
            request.id_type,
            request.spec,
            request.decision_columns,
        );
        let mut builder = RecordBatchReceiverStreamBuilder::new(schema, 4);
        let (sender, remote) = (builder.tx(), self.clone());
        let counters = MapCounters::default();
        let map_counters = counters.clone();
        builder.spawn(async move {
            let map = MapParameters {
                number: |item: &DocumentItem| item.number,
                weight: &|item: &DocumentItem| bytes[item.number as usize],
                group: |_| 0,
                item_schema: DocumentItem::schema(),
                encode: DocumentItem::encode,
                describe: |item| item.file.clone(),
                build: &|input| Ok(Arc::new(FingerprintExec::try_new(input, settings.clone())?)),
                exactly_once: true,
                counters: map_counters,
            };
            let done = remote.run_map(&map, items, sender).await;
            remote.0.resources.progress.take_answered();
            done.map_err(|error| EngineError::from(error).into())
        });
        Ok(Some(FingerprintedRows {
            rows: builder.build(),
            counters,
        }))
    }

    async fn capacity(&self) -> engine::Result<Capacity> {
        let state = self.wait_for_executors().await?;
        Ok(Capacity {
            executors: state.executors,
            slots: state.slots,
            memory: usize::try_from(state.memory).unwrap_or(usize::MAX),
        })
    }

    async fn share(&self, file: &FingerprintFile) -> engine::Result<BatchRef> {
        let inner = &self.0;
        create_directory(&inner.shared)?;
        let target = inner.shared.child("batch.parquet")?;
        let draft = Draft::new(&target, &inner.settings.scratch)?;
        draft.fill_from(&file.path)?;
        draft.publish().await?;
        Ok(BatchRef::new(file, target.absolute_name()))
    }

    async fn probe(
        &self,
        items: Vec<Numbered>,
        probe: Probe,
    ) -> engine::Result<SendableRecordBatchStream> {
        let inner = &self.0;
        // Executors run in other directories, so they get absolute paths.
        let absolute = |(number, mut item): Numbered| {
            if let WorkItem::RowGroup { file, .. } = &mut item {
                *file = inner.resources.stores.locate(file)?.absolute_name();
            }
            Ok((number, item))
        };
        let items: Vec<Numbered> = items
            .into_iter()
            .map(absolute)
            .collect::<engine::Result<_>>()?;
        let schema = probe.schema();
        let mut builder = RecordBatchReceiverStreamBuilder::new(schema, 4);
        let (sender, remote) = (builder.tx(), self.clone());
        builder.spawn(async move {
            let map = MapParameters {
                number: |item: &Numbered| item.0,
                weight: &|item: &Numbered| item.1.weight(),
                group: |item| match &item.1 {
                    WorkItem::RowGroup { part, .. } | WorkItem::Within { part, .. } => *part,
                },
                item_schema: work_items::schema(),
                encode: work_items::encode,
                describe: |item| match &item.1 {
                    WorkItem::RowGroup { file, .. } => file.clone(),
                    WorkItem::Within { .. } => "the batch".into(),
                },
                build: &|input| Ok(Arc::new(ProbeExec::try_new(input, probe.clone())?)),
                exactly_once: false,
                counters: MapCounters::default(),
            };
            let done = remote.run_map(&map, items, sender).await;
            remote.0.resources.progress.note_probe_done();
            done.map_err(|error| EngineError::from(error).into())
        });
        Ok(builder.build())
    }

    fn summary(&self) -> ClusterSummary {
        self.summary_mut().clone()
    }
}

/// Creates the directory of the shared location, if that is on a file system.
fn create_directory(shared: &Location) -> engine::Result<()> {
    match shared.local() {
        None => Ok(()),
        Some(local) => std::fs::create_dir_all(local).map_err(|source| EngineError::Io {
            path: local.display().to_string(),
            source,
        }),
    }
}
