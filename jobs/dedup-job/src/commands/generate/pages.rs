//! Pages with planted near-copies.

use std::sync::Arc;

use ::archive::{FingerprintFile, FingerprintWriter, IdType};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field};
use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use simhash::{Fingerprinter, Model};
use testkit::oracle;
use testkit::pages::{Pages, Plan};

use super::{
    BATCH, DayWriter, Expected, Made, Target, archive_day, days_since_1970, write_archive,
    write_expected,
};
use crate::args::GeneratePagesArgs;
use crate::exit::Failure;
use crate::process::Process;

/// Up to so many comparisons the expected hits are found by brute force over all pairs.
const BRUTE_FORCE: u64 = 4_000_000_000;

/// A document of the archive, in numbers.
#[derive(Debug, Clone, Copy)]
struct Base {
    fingerprint: u64,
    number: u64,
}

pub(super) async fn make(
    args: &GeneratePagesArgs,
    process: &Process,
    target: &Target,
) -> Result<Made, Failure> {
    let all = &args.all;
    let (model, kept) = args.spec.wanted(process.stores()).await?.model_and_kept()?;
    let spec = model.spec();
    let pages = Pages::new(Plan {
        base: all.base,
        new: all.new,
        seed: all.seed,
    });
    let new = write_day(args, target, &pages, &model).await?;
    let base = base(args, &pages, &model);
    let days = u64::from(all.days);
    write_archive(all, target, IdType::String, (spec, &kept), async |day| {
        let own = base
            .iter()
            .filter(|document| document.number % days == day)
            .copied()
            .collect();
        let path = process.scratch.path().join(format!("day-{day}.parquet"));
        write_base_day(
            args,
            own,
            FingerprintWriter::create(&path, IdType::String, spec)?,
        )
    })
    .await?;
    let hits = find_expected(args, &new, &base);
    let expected = write_expected(target, hits).await?;
    Ok(Made {
        new: all.new,
        base: base.len() as u64,
        expected,
    })
}

/// Writes the new day; returns its fingerprints.
async fn write_day(
    args: &GeneratePagesArgs,
    target: &Target,
    pages: &Pages,
    model: &Model,
) -> Result<Vec<Option<u64>>, Failure> {
    let fields = vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("text", DataType::Utf8, false),
    ];
    let mut writer = DayWriter::create(target, fields)?;
    let mut fingerprints = Vec::with_capacity(args.all.new as usize);
    for first in (0..args.all.new).step_by(BATCH as usize) {
        let numbers = first..args.all.new.min(first + BATCH);
        let made = in_parallel(numbers, model, |number, fingerprinter| {
            let page = pages.new_day(number);
            let fingerprint = fingerprinter.fingerprint(&page.text);
            (page, fingerprint)
        });
        let ids: StringArray = made.iter().map(|(page, _)| Some(&page.id)).collect();
        let texts: StringArray = made.iter().map(|(page, _)| Some(&page.text)).collect();
        writer.write(vec![Arc::new(ids), Arc::new(texts)])?;
        fingerprints.extend(made.iter().map(|(_, fingerprint)| *fingerprint));
    }
    writer.close().await?;
    Ok(fingerprints)
}

/// The archive's documents that have a fingerprint: its pages, then the filler.
fn base(args: &GeneratePagesArgs, pages: &Pages, model: &Model) -> Vec<Base> {
    let made = in_parallel(0..args.all.base, model, |number, fingerprinter| {
        let fingerprint = fingerprinter.fingerprint(&pages.base(number).text)?;
        Some(Base {
            fingerprint,
            number,
        })
    });
    let mut rng = ChaCha8Rng::seed_from_u64(args.all.seed);
    // A stream that no page has: theirs are four a page.
    rng.set_stream(u64::MAX);
    let filler = (args.all.base..args.all.base + args.filler).map(|number| Base {
        fingerprint: rng.next_u64(),
        number,
    });
    made.into_iter().flatten().chain(filler).collect()
}

fn base_id(args: &GeneratePagesArgs, number: u64) -> String {
    let kind = if number < args.all.base {
        "archive"
    } else {
        "filler"
    };
    format!("{kind}/{number:010}")
}

fn new_id(number: u64) -> String {
    format!("new/{number:010}")
}

fn write_base_day(
    args: &GeneratePagesArgs,
    mut own: Vec<Base>,
    mut writer: FingerprintWriter,
) -> Result<FingerprintFile, Failure> {
    // Equal fingerprints by id, which is by kind first.
    own.sort_unstable_by_key(|document| (document.fingerprint.cast_signed(), document.number));
    let schema = ::archive::schema::fingerprints(IdType::String, true);
    for part in own.chunks(BATCH as usize) {
        let fingerprints: Int64Array = part
            .iter()
            .map(|document| document.fingerprint.cast_signed())
            .collect();
        let ids: StringArray = part
            .iter()
            .map(|document| Some(base_id(args, document.number)))
            .collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(fingerprints), Arc::new(ids)];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|source| {
            ::archive::ArchiveError::Arrow {
                object: "generated pages".into(),
                source,
            }
        })?;
        writer.write(batch)?;
    }
    Ok(writer.finish()?)
}

/// The pairs of the day with the archive, and inside the day: by brute force, or where that would take minutes by the
/// oracle's other way.
fn find_expected(
    args: &GeneratePagesArgs,
    new: &[Option<u64>],
    base: &[Base],
) -> Vec<Expected<String>> {
    let k = args.all.max_distance;
    let (numbers, fingerprints): (Vec<u64>, Vec<u64>) =
        (0..).zip(new).filter_map(|(n, f)| Some((n, (*f)?))).unzip();
    let archived: Vec<u64> = base.iter().map(|document| document.fingerprint).collect();
    let compared = (archived.len() as u64 + fingerprints.len() as u64) * fingerprints.len() as u64;
    let (across, inside) = if compared <= BRUTE_FORCE {
        (
            oracle::pairs_within(&fingerprints, &archived, k),
            oracle::pairs_inside(&fingerprints, k),
        )
    } else {
        let mut inside = oracle::pairs_by_blocks(&fingerprints, &fingerprints, k);
        inside.retain(|pair| pair.0 < pair.1);
        (oracle::pairs_by_blocks(&fingerprints, &archived, k), inside)
    };
    let history = across
        .into_iter()
        .map(|(i, j, distance)| against_base(args, numbers[i], base[j].number, distance));
    let inside = inside
        .into_iter()
        .map(|(i, j, distance)| inside_day(args, numbers[i], numbers[j], distance));
    history.chain(inside).collect()
}

fn against_base(args: &GeneratePagesArgs, new: u64, base: u64, distance: u32) -> Expected<String> {
    let day = archive_day(&args.all, base % u64::from(args.all.days));
    Expected {
        new: new_id(new),
        base: base_id(args, base),
        distance,
        day: days_since_1970(day),
    }
}

/// Of a pair inside the day the smaller id, and number, is the base.
fn inside_day(
    args: &GeneratePagesArgs,
    smaller: u64,
    larger: u64,
    distance: u32,
) -> Expected<String> {
    Expected {
        new: new_id(larger),
        base: new_id(smaller),
        distance,
        day: days_since_1970(args.all.day),
    }
}

/// Does `each` for all `numbers` on all cores, in order.
fn in_parallel<T: Send>(
    numbers: std::ops::Range<u64>,
    model: &Model,
    each: impl Fn(u64, &mut Fingerprinter) -> T + Sync,
) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let share = (numbers.end - numbers.start).div_ceil(threads).max(1);
    let each = &each;
    std::thread::scope(|scope| {
        let workers: Vec<_> = numbers
            .clone()
            .step_by(share as usize)
            .map(|first| {
                let last = numbers.end.min(first + share);
                scope.spawn(move || {
                    let mut fingerprinter = Fingerprinter::new(model.clone());
                    (first..last)
                        .map(|number| each(number, &mut fingerprinter))
                        .collect::<Vec<T>>()
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}
