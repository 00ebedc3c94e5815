//! Generates fingerprints without texts, with planted pairs. Streams them, so that memory does not
//! grow with the archive.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use ::archive::{DocumentId, FingerprintFile, FingerprintWriter, IdType, SpecFiles};
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
    BATCH_ROWS, BatchWriter, Expected, Target, archive_day, write_archive, write_expected,
};
use crate::args::GenerateFingerprintsArgs;
use crate::exit::Failure;
use crate::process::Process;

pub(super) async fn generate(
    args: &GenerateFingerprintsArgs,
    process: &Process,
    target: &Target,
) -> Result<Generated, Failure> {
    let (shared, id_type) = (&args.shared, args.id_type);
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
    write_batch(args, target, &new).await?;
    let spec = Spec::default();
    let path = process.scratch.path().join("day.parquet");
    let files = SpecFiles::default();
    write_archive(shared, target, id_type, (&spec, &files), async |day| {
        archive_day_file(&generator, day, process.threads(), (&path, &spec), id_type).await
    })
    .await?;
    let expected = new.iter().enumerate().filter_map(|(number, new)| {
        let (base, distance) = new.near?;
        Some(Expected {
            new: new_id(args, number as u64),
            distance,
            base: base_id(id_type, base.number),
            day: days_since_epoch(archive_day(shared, base.day)),
        })
    });
    let expected = write_expected(target, id_type, expected.collect()).await?;
    Ok(Generated {
        base: shared.base,
        expected,
    })
}

fn new_id(args: &GenerateFingerprintsArgs, number: u64) -> DocumentId {
    match args.id_type {
        IdType::String => DocumentId::Text(format!("new/{number:012}").into()),
        // The ids of the batch follow those of the archive.
        IdType::Bigint => DocumentId::Number((args.shared.base + number).cast_signed()),
    }
}

fn base_id(id_type: IdType, number: u64) -> DocumentId {
    match id_type {
        IdType::String => DocumentId::Text(format!("archive/{number:012}").into()),
        IdType::Bigint => DocumentId::Number(number.cast_signed()),
    }
}

/// Chunks of the generator that are generated and written at once.
const CHUNKS: u64 = 64;

/// Generates the fingerprints of a day of the archive on `threads` threads, and writes them to a file of this path and
/// specification.
async fn archive_day_file(
    generator: &Arc<Generator>,
    day: u64,
    threads: usize,
    (path, spec): (&Path, &Spec),
    id_type: IdType,
) -> Result<FingerprintFile, Failure> {
    let mut writer = FingerprintWriter::create(path, id_type, spec)?;
    let chunks = generator.chunks(day);
    let parts = (0..chunks).step_by(CHUNKS as usize).map(|first| {
        let generator = Arc::clone(generator);
        let chunks = first..chunks.min(first + CHUNKS);
        SpawnedTask::spawn_blocking(move || archive_part(&generator, day, chunks, id_type))
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
fn archive_part(
    generator: &Generator,
    day: u64,
    chunks: Range<u64>,
    id_type: IdType,
) -> Result<RecordBatch, ArrowError> {
    let (mut ids, mut fingerprints) = (Vec::new(), Vec::new());
    let id = |number| base_id(id_type, number);
    for chunk in chunks {
        let (first, chunk) = generator.chunk(day, chunk);
        ids.extend((first..).take(chunk.len()).map(id));
        fingerprints.extend(chunk.into_iter().map(u64::cast_signed));
    }
    let fingerprints: ArrayRef = Arc::new(Int64Array::from(fingerprints));
    let schema = ::archive::schema::fingerprint_schema(id_type, SketchBits::None, true);
    let ids = DocumentId::array(&ids, id_type == IdType::String);
    RecordBatch::try_new(schema, vec![fingerprints, ids])
}

async fn write_batch(
    args: &GenerateFingerprintsArgs,
    target: &Target,
    new: &[BatchFingerprint],
) -> Result<(), Failure> {
    let fields = vec![
        Field::new("id", args.id_type.data_type(), false),
        Field::new("fp", DataType::Int64, false),
    ];
    let mut writer = BatchWriter::create(target, fields)?;
    for (at, part) in new.chunks(BATCH_ROWS as usize).enumerate() {
        let first = at as u64 * BATCH_ROWS;
        let ids = (first..)
            .take(part.len())
            .map(|number| new_id(args, number));
        let ids: Vec<DocumentId> = ids.collect();
        let ids = DocumentId::array(&ids, args.id_type == IdType::String);
        let fingerprints: Int64Array = part
            .iter()
            .map(|new| new.fingerprint.cast_signed())
            .collect();
        writer.write(vec![ids, Arc::new(fingerprints)])?;
    }
    writer.close().await
}
