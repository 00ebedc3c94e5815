//! Bare fingerprints with planted pairs, streamed: nothing grows with the archive.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use ::archive::Kept;
use ::archive::{FingerprintFile, FingerprintWriter, IdType};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use datafusion::common::runtime::SpawnedTask;
use futures::StreamExt as _;
use simhash::Spec;
use testkit::codewords::{Generator, New, Plan};

use super::{
    BATCH, DayWriter, Expected, Id, Made, Target, archive_day, days_since_1970, write_archive,
    write_expected,
};
use crate::args::GenerateFingerprintsArgs;
use crate::exit::Failure;
use crate::process::Process;

pub(super) async fn make(
    args: &GenerateFingerprintsArgs,
    process: &Process,
    target: &Target,
) -> Result<Made, Failure> {
    match args.id_type {
        IdType::String => {
            make_with(
                args,
                process,
                target,
                |n| format!("new/{n:012}"),
                |n| format!("archive/{n:012}"),
            )
            .await
        }
        // New ids lie above the archive's.
        IdType::Bigint => {
            let above = args.all.base.cast_signed();
            make_with(
                args,
                process,
                target,
                |n| above + n.cast_signed(),
                u64::cast_signed,
            )
            .await
        }
    }
}

async fn make_with<I: Id>(
    args: &GenerateFingerprintsArgs,
    process: &Process,
    target: &Target,
    new_id: impl Fn(u64) -> I,
    base_id: impl Fn(u64) -> I + Copy + Send + 'static,
) -> Result<Made, Failure> {
    let all = &args.all;
    let plan = Plan {
        base: all.base,
        days: all.days.into(),
        new: all.new,
        pairs: args.pairs.unwrap_or((all.new / 10).min(all.base)),
        max_distance: all.max_distance,
        seed: all.seed,
    };
    let generator = Generator::new(plan).map_err(|error| Failure::Usage(error.to_string()))?;
    let generator = Arc::new(generator);
    let new = generator.new_day();
    write_day(target, &new, &new_id).await?;
    let spec = Spec::default();
    let path = process.scratch.path().join("day.parquet");
    let kept = Kept::default();
    write_archive(all, target, I::TYPE, (&spec, &kept), async |day| {
        base_day(&generator, day, &path, &spec, base_id).await
    })
    .await?;
    let expected = new.iter().enumerate().filter_map(|(number, new)| {
        let (base, distance) = new.near?;
        Some(Expected {
            new: new_id(number as u64),
            base: base_id(base.number),
            distance,
            day: days_since_1970(archive_day(all, base.day)),
        })
    });
    let expected = write_expected(target, expected.collect()).await?;
    Ok(Made {
        new: all.new,
        base: all.base,
        expected,
    })
}

/// Blocks of the generator that are made and written at once.
const BLOCKS: u64 = 64;

/// Writes the fingerprints of a day of the archive, which all cores make.
async fn base_day<I: Id>(
    generator: &Arc<Generator>,
    day: u64,
    path: &Path,
    spec: &Spec,
    base_id: impl Fn(u64) -> I + Copy + Send + 'static,
) -> Result<FingerprintFile, Failure> {
    let mut writer = FingerprintWriter::create(path, I::TYPE, spec)?;
    let blocks = generator.blocks(day);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = (0..blocks).step_by(BLOCKS as usize).map(|first| {
        let generator = Arc::clone(generator);
        let blocks = first..blocks.min(first + BLOCKS);
        SpawnedTask::spawn_blocking(move || base_part(&generator, day, blocks, base_id))
    });
    let mut parts = futures::stream::iter(parts).buffered(threads);
    while let Some(part) = parts.next().await {
        let part = part.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()));
        let part = part.map_err(|source| ::archive::ArchiveError::Arrow {
            object: "generated fingerprints".into(),
            source,
        })?;
        writer.write(part)?;
    }
    Ok(writer.finish()?)
}

/// Some blocks of a day of the archive.
fn base_part<I: Id>(
    generator: &Generator,
    day: u64,
    blocks: Range<u64>,
    base_id: impl Fn(u64) -> I,
) -> Result<RecordBatch, ArrowError> {
    let (mut ids, mut fingerprints) = (Vec::new(), Vec::new());
    for block in blocks {
        let (first, block) = generator.block(day, block);
        ids.extend((first..).take(block.len()).map(&base_id));
        fingerprints.extend(block.into_iter().map(u64::cast_signed));
    }
    let fingerprints: ArrayRef = Arc::new(Int64Array::from(fingerprints));
    let schema = ::archive::schema::fingerprints(I::TYPE, true);
    RecordBatch::try_new(schema, vec![fingerprints, I::array(ids)])
}

async fn write_day<I: Id>(
    target: &Target,
    new: &[New],
    new_id: &impl Fn(u64) -> I,
) -> Result<(), Failure> {
    let fields = vec![
        Field::new("id", I::TYPE.data_type(), false),
        Field::new("fp", DataType::Int64, false),
    ];
    let mut writer = DayWriter::create(target, fields)?;
    for (at, part) in new.chunks(BATCH as usize).enumerate() {
        let first = at as u64 * BATCH;
        let ids = (first..).take(part.len()).map(new_id).collect();
        let fingerprints: Int64Array = part
            .iter()
            .map(|new| new.fingerprint.cast_signed())
            .collect();
        writer.write(vec![I::array(ids), Arc::new(fingerprints)])?;
    }
    writer.close().await
}
