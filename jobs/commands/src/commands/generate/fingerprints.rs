//! Generates fingerprints without texts, with planted pairs. Streams them, so that memory does not
//! grow with the archive.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use ::archive::{FingerprintFile, FingerprintWriter, IdType, SpecFiles};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use datafusion::common::runtime::SpawnedTask;
use engine::work_items::days_since_epoch;
use futures::StreamExt as _;
use simhash::{SketchBits, Spec};
use testkit::codewords::{BatchFingerprint, Generator, Settings};

use super::Generated;
use super::files::{
    BATCH_ROWS, BatchWriter, Expected, Id, Target, archive_day, write_archive, write_expected,
};
use crate::args::GenerateFingerprintsArgs;
use crate::exit::Failure;
use crate::process::Process;

pub(super) async fn generate(
    args: &GenerateFingerprintsArgs,
    process: &Process,
    target: &Target,
) -> Result<Generated, Failure> {
    match args.id_type {
        IdType::String => {
            let new_id = |n: u64| format!("new/{n:012}");
            let base_id = |n: u64| format!("archive/{n:012}");
            generate_with(args, process, target, new_id, base_id).await
        }
        // The ids of the batch follow those of the archive.
        IdType::Bigint => {
            let above = args.shared.base.cast_signed();
            let new_id = |n: u64| above + n.cast_signed();
            generate_with(args, process, target, new_id, u64::cast_signed).await
        }
    }
}

async fn generate_with<I: Id>(
    args: &GenerateFingerprintsArgs,
    process: &Process,
    target: &Target,
    new_id: impl Fn(u64) -> I,
    base_id: impl Fn(u64) -> I + Copy + Send + 'static,
) -> Result<Generated, Failure> {
    let shared = &args.shared;
    let settings = Settings {
        archive: shared.base,
        days: shared.days.into(),
        batch: shared.new,
        pairs: args.pairs.unwrap_or((shared.new / 10).min(shared.base)),
        max_distance: shared.max_distance,
        seed: shared.seed,
    };
    let generator = Arc::new(Generator::new(settings).map_err(Failure::Usage)?);
    let new = generator.batch();
    write_batch(target, &new, &new_id).await?;
    let spec = Spec::default();
    let path = process.scratch.path().join("day.parquet");
    let files = SpecFiles::default();
    write_archive(shared, target, I::TYPE, (&spec, &files), async |day| {
        archive_day_file(&generator, day, process.threads(), (&path, &spec), base_id).await
    })
    .await?;
    let expected = new.iter().enumerate().filter_map(|(number, new)| {
        let (base, distance) = new.near?;
        Some(Expected {
            new: new_id(number as u64),
            base: base_id(base.number),
            distance,
            day: days_since_epoch(archive_day(shared, base.day)),
        })
    });
    let expected = write_expected(target, expected.collect()).await?;
    Ok(Generated {
        new: shared.new,
        base: shared.base,
        expected,
    })
}

/// Chunks of the generator that are generated and written at once.
const CHUNKS: u64 = 64;

/// Generates the fingerprints of a day of the archive on `threads` threads, and writes them to a file of this path and
/// specification.
async fn archive_day_file<I: Id>(
    generator: &Arc<Generator>,
    day: u64,
    threads: usize,
    (path, spec): (&Path, &Spec),
    base_id: impl Fn(u64) -> I + Copy + Send + 'static,
) -> Result<FingerprintFile, Failure> {
    let mut writer = FingerprintWriter::create(path, I::TYPE, spec)?;
    let chunks = generator.chunks(day);
    let parts = (0..chunks).step_by(CHUNKS as usize).map(|first| {
        let generator = Arc::clone(generator);
        let chunks = first..chunks.min(first + CHUNKS);
        SpawnedTask::spawn_blocking(move || archive_part(&generator, day, chunks, base_id))
    });
    let mut parts = futures::stream::iter(parts).buffered(threads);
    while let Some(part) = parts.next().await {
        let part = part.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()));
        let part = part.map_err(::archive::ArchiveError::arrow("generated fingerprints"))?;
        writer.write(part)?;
    }
    Ok(writer.finish()?)
}

/// Generates some chunks of a day of the archive.
fn archive_part<I: Id>(
    generator: &Generator,
    day: u64,
    chunks: Range<u64>,
    base_id: impl Fn(u64) -> I,
) -> Result<RecordBatch, ArrowError> {
    let (mut ids, mut fingerprints) = (Vec::new(), Vec::new());
    for chunk in chunks {
        let (first, chunk) = generator.chunk(day, chunk);
        ids.extend((first..).take(chunk.len()).map(&base_id));
        fingerprints.extend(chunk.into_iter().map(u64::cast_signed));
    }
    let fingerprints: ArrayRef = Arc::new(Int64Array::from(fingerprints));
    let schema = ::archive::schema::fingerprint_schema(I::TYPE, SketchBits::None, true);
    RecordBatch::try_new(schema, vec![fingerprints, I::array(ids)])
}

async fn write_batch<I: Id>(
    target: &Target,
    new: &[BatchFingerprint],
    new_id: &impl Fn(u64) -> I,
) -> Result<(), Failure> {
    let fields = vec![
        Field::new("id", I::TYPE.data_type(), false),
        Field::new("fp", DataType::Int64, false),
    ];
    let mut writer = BatchWriter::create(target, fields)?;
    for (at, part) in new.chunks(BATCH_ROWS as usize).enumerate() {
        let first = at as u64 * BATCH_ROWS;
        let ids = (first..).take(part.len()).map(new_id).collect();
        let fingerprints: Int64Array = part
            .iter()
            .map(|new| new.fingerprint.cast_signed())
            .collect();
        writer.write(vec![I::array(ids), Arc::new(fingerprints)])?;
    }
    writer.close().await
}
