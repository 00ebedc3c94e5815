//! `dedup-job generate`: a day, an archive, and the hits that a run of the two must give.
//!
//! Below the output directory: `day.parquet`, `archive/`, `expected.parquet`. The expected hits come from what was
//! planted, or from the oracle, never from the join.

mod fingerprints;
mod pages;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::archive::{Archive, FingerprintFile, IdType, Kept, Location};
use arrow::array::{ArrayRef, Date32Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{Field, Schema};
use chrono::{Days, NaiveDate};
use engine::draft::Draft;
use engine::probe::hits_schema;
use futures::StreamExt as _;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use simhash::Spec;

use crate::args::{CommonArgs, GenerateArgs, GenerateCommand};
use crate::exit::Failure;
use crate::process::{self, Process};
use crate::terminal::{count, print, print_json};

/// Rows that are made and written at once.
const BATCH: u64 = 1 << 16;

/// What was made.
struct Made {
    new: u64,
    base: u64,
    expected: u64,
}

pub fn run(common: &CommonArgs, command: GenerateCommand) -> Result<(), Failure> {
    let all = match &command {
        GenerateCommand::Pages(args) => args.all.clone(),
        GenerateCommand::Fingerprints(args) => args.all.clone(),
    };
    let output = &all.output;
    if all
        .day
        .checked_sub_days(Days::new(all.days.into()))
        .is_none()
    {
        return Err(Failure::Usage(format!(
            "there are no {} days before {}",
            all.days, all.day
        )));
    }
    let made = process::run(common, async |process: &Process| {
        let target = Target::new(process, output).await?;
        match command {
            GenerateCommand::Pages(args) => pages::make(&args, process, &target).await,
            GenerateCommand::Fingerprints(args) => {
                fingerprints::make(&args, process, &target).await
            }
        }
    })?;
    if common.json {
        return print_json(&serde_json::json!({
            "output": output,
            "new": made.new,
            "base": made.base,
            "expected": made.expected,
        }));
    }
    if common.quiet {
        return Ok(());
    }
    let dir = output.trim_end_matches('/');
    print(&format!(
        "{dir}: {} new documents, {} in the archive, {} expected hits\n\
         try: dedup-job run --new {dir}/day.parquet --base {dir}/archive --day {} -k {} --output hits.parquet && cmp hits.parquet {dir}/expected.parquet\n",
        count(made.new),
        count(made.base),
        count(made.expected),
        all.day,
        all.max_distance
    ))
}

/// Where all of it goes.
struct Target {
    directory: Location,
    scratch: PathBuf,
}

impl Target {
    /// A directory that is not there yet.
    async fn new(process: &Process, output: &str) -> Result<Self, Failure> {
        let directory = process.locate(output)?;
        let exists = match directory.local() {
            Some(local) => local.exists(),
            None => {
                let mut objects = directory.store().list(Some(directory.path()));
                let first = objects.next().await.transpose();
                let failed = |error| ::archive::ArchiveError::stored(&directory, error);
                first.map_err(failed)?.is_some()
            }
        };
        if exists {
            return Err(Failure::Usage(format!("--output {output} exists already")));
        }
        if let Some(local) = directory.local() {
            std::fs::create_dir_all(local).map_err(io(local))?;
        }
        Ok(Self {
            directory,
            scratch: process.scratch.path().to_owned(),
        })
    }

    fn draft(&self, name: &str) -> Result<Draft, Failure> {
        let place = self.directory.child(name)?;
        Ok(Draft::new(&place, &self.scratch)?)
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let path = path.display().to_string();
    move |source| Failure::Io { path, source }
}

fn parquet_error(name: &str) -> impl Fn(parquet::errors::ParquetError) -> Failure + use<> {
    let object = name.to_owned();
    move |source| {
        ::archive::ArchiveError::Parquet {
            object: object.clone(),
            source,
        }
        .into()
    }
}

/// Day `number` (from 0) of the archive.
fn archive_day(args: &GenerateArgs, number: u64) -> NaiveDate {
    args.day - Days::new(u64::from(args.days) - number)
}

/// Days since 1970, as Arrow counts them.
fn days_since_1970(day: NaiveDate) -> i32 {
    engine::work::chrono_days(day)
}

/// Writes the new day.
struct DayWriter {
    draft: Draft,
    writer: ArrowWriter<File>,
    schema: Arc<Schema>,
    fail: Box<dyn Fn(parquet::errors::ParquetError) -> Failure>,
}

impl DayWriter {
    fn create(target: &Target, fields: Vec<Field>) -> Result<Self, Failure> {
        let schema = Arc::new(Schema::new(fields));
        let zstd = ZstdLevel::try_new(3).map_or(Compression::SNAPPY, Compression::ZSTD);
        let properties = WriterProperties::builder()
            .set_compression(zstd)
            .set_max_row_group_row_count(Some(BATCH as usize))
            .build();
        let draft = target.draft("day.parquet")?;
        let file = draft.open()?;
        let fail = Box::new(parquet_error("day.parquet"));
        let writer =
            ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties)).map_err(&fail)?;
        Ok(Self {
            draft,
            writer,
            schema,
            fail,
        })
    }

    fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), Failure> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| (self.fail)(error.into()))?;
        self.writer.write(&batch).map_err(&self.fail)
    }

    async fn close(self) -> Result<(), Failure> {
        self.writer.close().map_err(&self.fail)?;
        Ok(self.draft.publish().await?)
    }
}

/// An expected hit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected<I> {
    new: I,
    base: I,
    distance: u32,
    day: i32,
}

/// Ids as they are written and sorted.
trait Id: Ord + Clone {
    const TYPE: IdType;
    fn array(ids: Vec<Self>) -> ArrayRef;
}

impl Id for String {
    const TYPE: IdType = IdType::String;

    fn array(ids: Vec<Self>) -> ArrayRef {
        Arc::new(StringArray::from(ids))
    }
}

impl Id for i64 {
    const TYPE: IdType = IdType::Bigint;

    fn array(ids: Vec<Self>) -> ArrayRef {
        Arc::new(Int64Array::from(ids))
    }
}

/// Writes the expected hits in the order and layout of a run's output.
async fn write_expected<I: Id>(
    target: &Target,
    mut hits: Vec<Expected<I>>,
) -> Result<u64, Failure> {
    let name = "expected.parquet";
    hits.sort_by(|a, b| {
        (&a.new, a.distance, &a.base, a.day).cmp(&(&b.new, b.distance, &b.base, b.day))
    });
    let schema = hits_schema(I::TYPE);
    let columns: Vec<ArrayRef> = vec![
        I::array(hits.iter().map(|hit| hit.new.clone()).collect()),
        I::array(hits.iter().map(|hit| hit.base.clone()).collect()),
        Arc::new(
            hits.iter()
                .map(|hit| hit.distance.cast_signed())
                .collect::<Int32Array>(),
        ),
        Arc::new(
            hits.iter()
                .map(|hit| Some(hit.day))
                .collect::<Date32Array>(),
        ),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
        .map_err(|error| parquet_error(name)(error.into()))?;
    let stream = datafusion::physical_plan::stream::RecordBatchStreamAdapter::new(
        Arc::clone(&schema),
        futures::stream::iter([Ok(batch)]),
    );
    let place = target.directory.child(name)?;
    let staged =
        engine::output::stage(Box::pin(stream), &schema, &place, &target.scratch, None).await?;
    let rows = staged.rows;
    staged.publish().await?;
    Ok(rows)
}

/// Makes the archive and commits its days one after the other.
async fn write_archive(
    args: &GenerateArgs,
    target: &Target,
    id_type: IdType,
    (spec, kept): (&Spec, &Kept),
    mut day: impl AsyncFnMut(u64) -> Result<FingerprintFile, Failure>,
) -> Result<(), Failure> {
    let location = target.directory.child("archive")?;
    let mut archive = Archive::create(&location, id_type, spec, kept).await?;
    for number in 0..u64::from(args.days) {
        let file = day(number).await?;
        archive.append(archive_day(args, number), &file).await?;
        std::fs::remove_file(&file.path).map_err(io(&file.path))?;
    }
    Ok(())
}
