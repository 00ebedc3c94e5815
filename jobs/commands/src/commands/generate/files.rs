//! Writes the files of generated data.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use ::archive::{
    Archive, ArchiveError, Bulk, DocumentId, FingerprintFile, IdType, RunDefaults, SpecFiles,
};
use arrow::array::{ArrayRef, Date32Array, Int32Array, RecordBatch, new_null_array};
use arrow::datatypes::{Field, Schema};
use chrono::{Days, NaiveDate};
use engine::output::OutputTarget;
use engine::pairs::{self, Similarities};
use futures::StreamExt as _;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use simhash::Spec;
use storage::{Draft, Location, StorageError};

use crate::args::GenerateArgs;
use crate::exit::{Failure, usage};
use crate::process::Process;

/// Rows that are generated and written at once.
pub(super) const BATCH_ROWS: u64 = 1 << 16;

/// The output directory.
pub(super) struct Target {
    directory: Location,
    scratch: PathBuf,
}

impl Target {
    /// The directory at `output`, which must not exist yet.
    pub(super) async fn new(process: &Process, output: &str) -> Result<Self, Failure> {
        let directory = process.locate(output)?;
        let exists = match directory.local() {
            Some(local) => local.exists(),
            None => {
                let mut objects = directory.store().list(Some(directory.path()));
                let first = objects.next().await.transpose();
                first.map_err(StorageError::store(&directory))?.is_some()
            }
        };
        if exists {
            return usage(format!("--output {output} exists already"));
        }
        Ok(Self {
            directory,
            scratch: process.scratch.path().to_owned(),
        })
    }

    fn draft(&self, name: &str) -> Result<Draft, Failure> {
        if let Some(local) = self.directory.local() {
            std::fs::create_dir_all(local).map_err(StorageError::io(local.display()))?;
        }
        let place = self.directory.child(name)?;
        Ok(Draft::new(&place, &self.scratch)?)
    }
}

fn parquet_error(name: &str, source: impl Into<ParquetError>) -> Failure {
    ArchiveError::parquet(name)(source.into()).into()
}

/// The date of the archive's day `number`, from 0.
pub(super) fn archive_day(args: &GenerateArgs, number: u64) -> NaiveDate {
    args.day - Days::new(u64::from(args.days) - number)
}

/// Writes the documents of the batch.
pub(super) struct BatchWriter {
    draft: Draft,
    writer: ArrowWriter<File>,
    schema: Arc<Schema>,
}

/// The name of the batch's file.
const BATCH: &str = "day.parquet";

impl BatchWriter {
    pub(super) fn create(target: &Target, fields: Vec<Field>) -> Result<Self, Failure> {
        let schema = Arc::new(Schema::new(fields));
        let zstd = ZstdLevel::try_new(3).map_or(Compression::SNAPPY, Compression::ZSTD);
        let properties = WriterProperties::builder()
            .set_compression(zstd)
            .set_max_row_group_row_count(Some(BATCH_ROWS as usize))
            .build();
        let draft = target.draft(BATCH)?;
        let writer = ArrowWriter::try_new(draft.open()?, Arc::clone(&schema), Some(properties))
            .map_err(|error| parquet_error(BATCH, error))?;
        Ok(Self {
            draft,
            writer,
            schema,
        })
    }

    pub(super) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), Failure> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| parquet_error(BATCH, error))?;
        let written = self.writer.write(&batch);
        written.map_err(|error| parquet_error(BATCH, error))
    }

    pub(super) async fn close(self) -> Result<(), Failure> {
        let closed = self.writer.close();
        closed.map_err(|error| parquet_error(BATCH, error))?;
        Ok(self.draft.publish().await?)
    }
}

/// An expected pair. The order of the fields is that of a run's output.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Expected {
    pub(super) new: DocumentId,
    pub(super) distance: u32,
    pub(super) base: DocumentId,
    /// The other document's day, in days since 1970.
    pub(super) day: i32,
}

/// Writes the expected pairs in the order and layout of a run's output; returns their number.
pub(super) async fn write_expected(
    target: &Target,
    id_type: IdType,
    mut expected: Vec<Expected>,
) -> Result<u64, Failure> {
    let name = "expected.parquet";
    expected.sort();
    let schema = pairs::schema(id_type, Similarities::Unknown);
    let ids = |of: fn(&Expected) -> &DocumentId| {
        DocumentId::array(expected.iter().map(of), id_type == IdType::String)
    };
    let column = |field: &Arc<Field>| -> ArrayRef {
        match field.name().as_str() {
            pairs::NEW_ID => ids(|pair| &pair.new),
            pairs::BASE_ID => ids(|pair| &pair.base),
            pairs::DISTANCE => {
                let distances = expected.iter().map(|pair| pair.distance.cast_signed());
                Arc::new(distances.collect::<Int32Array>())
            }
            pairs::BASE_DAY => {
                let days = expected.iter().map(|pair| Some(pair.day));
                Arc::new(days.collect::<Date32Array>())
            }
            _ => new_null_array(field.data_type(), expected.len()),
        }
    };
    let columns = schema.fields().iter().map(column).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
        .map_err(|error| parquet_error(name, error))?;
    let stream = streams::of_batches(Arc::clone(&schema), std::iter::once(batch));
    let place = OutputTarget::file(target.directory.child(name)?)?;
    let staged = engine::output::write_draft(stream, &schema, &place, &target.scratch, None);
    let staged = staged.await?;
    let rows = staged.rows;
    staged.draft.publish().await?;
    Ok(rows)
}

/// Creates the archive and commits its days in order.
pub(super) async fn write_archive(
    args: &GenerateArgs,
    target: &Target,
    id_type: IdType,
    (spec, files): (&Spec, &SpecFiles),
    mut day: impl AsyncFnMut(u64) -> Result<FingerprintFile, Failure>,
) -> Result<(), Failure> {
    let location = target.directory.child("archive")?;
    // So a run without options finds the expected pairs.
    let defaults = RunDefaults::new(args.max_distance, None);
    let mut archive = Archive::create(&location, id_type, false, spec, files, &defaults).await?;
    let mut bulk = Bulk::new(&mut archive)?;
    for number in 0..u64::from(args.days) {
        let file = day(number).await?;
        let day = archive_day(args, number);
        let staged = bulk.archive().stage(day, &file, None).await?;
        if bulk.commit(&staged).await?.is_none() {
            let busy = format!("{location}: another program writes to it");
            return Err(engine::EngineError::TryAgain(busy).into());
        }
        std::fs::remove_file(&file.path).map_err(StorageError::io(file.path.display()))?;
    }
    Ok(bulk.finish().await?)
}
