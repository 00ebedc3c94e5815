//! Bare fingerprints with planted pairs, streamed: nothing grows with the archive.

use std::sync::Arc;

use ::archive::Kept;
use ::archive::{FingerprintFile, FingerprintWriter, IdType};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field};
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
    base_id: impl Fn(u64) -> I,
) -> Result<Made, Failure> {
    let all = &args.all;
    let plan = Plan {
        base: all.base,
        new: all.new,
        pairs: args.pairs.unwrap_or((all.new / 10).min(all.base)),
        max_distance: all.max_distance,
        seed: all.seed,
    };
    let generator = Generator::new(plan).map_err(|error| Failure::Usage(error.to_string()))?;
    let new = generator.new_day();
    write_day(target, &new, &new_id).await?;
    let spec = Spec::default();
    let days = u64::from(all.days);
    write_archive(all, target, I::TYPE, (&spec, &Kept::default()), |day| {
        let path = process.scratch.path().join(format!("day-{day}.parquet"));
        base_day(
            &generator,
            day,
            days,
            FingerprintWriter::create(&path, I::TYPE, &spec)?,
            &base_id,
        )
    })
    .await?;
    let expected = new.iter().enumerate().filter_map(|(number, new)| {
        let (rank, distance) = new.near?;
        Some(Expected {
            new: new_id(number as u64),
            base: base_id(rank),
            distance,
            day: days_since_1970(archive_day(all, rank % days)),
        })
    });
    let expected = write_expected(target, expected.collect()).await?;
    Ok(Made {
        new: all.new,
        base: all.base,
        expected,
    })
}

/// The fingerprints whose rank is `day` modulo `days`, which are sorted as all are.
fn base_day<I: Id>(
    generator: &Generator,
    day: u64,
    days: u64,
    mut writer: FingerprintWriter,
    base_id: &impl Fn(u64) -> I,
) -> Result<FingerprintFile, Failure> {
    let schema = ::archive::schema::fingerprints(I::TYPE, true);
    let mut rank = 0;
    for block in generator.base() {
        let own: Vec<(u64, u64)> = (rank..)
            .zip(&block)
            .filter(|(rank, _)| rank % days == day)
            .map(|(r, &f)| (r, f))
            .collect();
        rank += block.len() as u64;
        let fingerprints: ArrayRef = Arc::new(
            own.iter()
                .map(|&(_, f)| f.cast_signed())
                .collect::<Int64Array>(),
        );
        let ids = I::array(own.iter().map(|&(rank, _)| base_id(rank)).collect());
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![fingerprints, ids]);
        let batch = batch.map_err(|source| ::archive::ArchiveError::Arrow {
            object: "generated fingerprints".into(),
            source,
        })?;
        writer.write(batch)?;
    }
    Ok(writer.finish()?)
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
