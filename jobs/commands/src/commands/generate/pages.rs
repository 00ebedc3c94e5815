//! Generates pages with planted near-duplicates.

use std::sync::Arc;

use ::archive::{DocumentId, FingerprintFile, FingerprintWriter, IdType};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field};
use engine::work_items::days_since_epoch;
use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use simhash::{Fingerprinter, Model, SketchBits};
use testkit::oracle;
use testkit::pages::Pages;

use super::Generated;
use super::files::{
    BATCH_ROWS, BatchWriter, Expected, Target, archive_day, write_archive, write_expected,
};
use crate::args::GeneratePagesArgs;
use crate::exit::{Failure, usage};
use crate::process::Process;

/// The most comparisons for brute force. Beyond, the oracle finds the expected pairs by blocks.
const BRUTE_FORCE: u64 = 4_000_000_000;

/// A document of the archive.
#[derive(Debug, Clone, Copy)]
struct Archived {
    fingerprint: u64,
    number: u64,
}

pub(super) async fn generate(
    args: &GeneratePagesArgs,
    process: &Process,
    target: &Target,
) -> Result<Generated, Failure> {
    let shared = &args.shared;
    let options = args.spec.spec_options(process.stores()).await?;
    let (model, files) = options.model_and_files()?;
    let spec = model.spec();
    if !spec.sketch.is_none() {
        // Fingerprints of --filler are random numbers without a text to make a sketch of.
        return usage("generate pages makes no sketches: leave out --sketch");
    }
    let pages = Pages::new(shared.base, shared.seed);
    let threads = process.threads();
    let new = write_batch(args, target, &pages, &model, threads).await?;
    let archived = archived(args, &pages, &model, threads);
    let days = u64::from(shared.days);
    write_archive(
        shared,
        target,
        IdType::String,
        (spec, &files),
        async |day| {
            let is_own = |document: &&Archived| document.number % days == day;
            let own = archived.iter().filter(is_own).copied().collect();
            let path = process.scratch.path().join(format!("day-{day}.parquet"));
            let writer = FingerprintWriter::create(&path, IdType::String, spec)?;
            write_archive_day(args, own, writer)
        },
    )
    .await?;
    let pairs = find_expected(args, &new, &archived);
    let expected = write_expected(target, IdType::String, pairs).await?;
    Ok(Generated {
        base: archived.len() as u64,
        expected,
    })
}

/// Writes the batch; returns its fingerprints.
async fn write_batch(
    args: &GeneratePagesArgs,
    target: &Target,
    pages: &Pages,
    model: &Model,
    threads: usize,
) -> Result<Vec<Option<u64>>, Failure> {
    let fields = vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("text", DataType::Utf8, false),
    ];
    let mut writer = BatchWriter::create(target, fields)?;
    let mut fingerprints = Vec::new();
    for first in (0..args.shared.new).step_by(BATCH_ROWS as usize) {
        let numbers = first..args.shared.new.min(first + BATCH_ROWS);
        let generated = in_parallel(numbers, threads, model, |number, fingerprinter| {
            let page = pages.batch_page(number);
            let fingerprint = fingerprinter.fingerprint(&page.text);
            (page, fingerprint)
        });
        let ids: StringArray = generated.iter().map(|(page, _)| Some(&page.id)).collect();
        let texts: StringArray = generated.iter().map(|(page, _)| Some(&page.text)).collect();
        writer.write(vec![Arc::new(ids), Arc::new(texts)])?;
        fingerprints.extend(generated.iter().map(|(_, fingerprint)| *fingerprint));
    }
    writer.close().await?;
    Ok(fingerprints)
}

/// The archive's documents that have a fingerprint: its pages, then the filler.
fn archived(
    args: &GeneratePagesArgs,
    pages: &Pages,
    model: &Model,
    threads: usize,
) -> Vec<Archived> {
    let numbers = 0..args.shared.base;
    let pages = in_parallel(numbers, threads, model, |number, fingerprinter| {
        let fingerprint = fingerprinter.fingerprint(&pages.archive_page(number).text)?;
        Some(Archived {
            fingerprint,
            number,
        })
    });
    let mut rng = ChaCha8Rng::seed_from_u64(args.shared.seed);
    // A random stream that no page uses: pages with number n use streams 4 n to 4 n + 3.
    rng.set_stream(u64::MAX);
    let filler = (args.shared.base..args.shared.base + args.filler).map(|number| Archived {
        fingerprint: rng.next_u64(),
        number,
    });
    pages.into_iter().flatten().chain(filler).collect()
}

fn archive_id(args: &GeneratePagesArgs, number: u64) -> String {
    let kind = if number < args.shared.base {
        "archive"
    } else {
        "filler"
    };
    format!("{kind}/{number:010}")
}

fn new_id(number: u64) -> DocumentId {
    DocumentId::Text(format!("new/{number:010}").into())
}

fn write_archive_day(
    args: &GeneratePagesArgs,
    mut own: Vec<Archived>,
    mut writer: FingerprintWriter,
) -> Result<FingerprintFile, Failure> {
    // Sorts equal fingerprints by id: pages come before filler.
    own.sort_unstable_by_key(|document| (document.fingerprint.cast_signed(), document.number));
    let schema = ::archive::schema::fingerprint_schema(IdType::String, SketchBits::None, true);
    for part in own.chunks(BATCH_ROWS as usize) {
        let fingerprints: Int64Array = part
            .iter()
            .map(|document| document.fingerprint.cast_signed())
            .collect();
        let ids: StringArray = part
            .iter()
            .map(|document| Some(archive_id(args, document.number)))
            .collect();
        let columns: Vec<ArrayRef> = vec![Arc::new(fingerprints), Arc::new(ids)];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
            .map_err(::archive::ArchiveError::arrow("generated pages"))?;
        writer.write(batch)?;
    }
    Ok(writer.finish()?)
}

/// Finds the pairs of the batch with the archive and within the batch: by brute force, or by the
/// blocks of the oracle if brute force would take minutes.
fn find_expected(
    args: &GeneratePagesArgs,
    new: &[Option<u64>],
    archive: &[Archived],
) -> Vec<Expected> {
    let k = args.shared.max_distance;
    let (numbers, fingerprints): (Vec<u64>, Vec<u64>) =
        (0..).zip(new).filter_map(|(n, f)| Some((n, (*f)?))).unzip();
    let archived: Vec<u64> = archive
        .iter()
        .map(|document| document.fingerprint)
        .collect();
    let compared = (archived.len() as u64 + fingerprints.len() as u64) * fingerprints.len() as u64;
    let (across, within) = if compared <= BRUTE_FORCE {
        (
            oracle::pairs_within(&fingerprints, &archived, k),
            oracle::pairs_inside(&fingerprints, k),
        )
    } else {
        let mut within = oracle::pairs_by_blocks(&fingerprints, &fingerprints, k);
        within.retain(|pair| pair.0 < pair.1);
        (oracle::pairs_by_blocks(&fingerprints, &archived, k), within)
    };
    let across = across.into_iter().map(|(new, base, distance)| {
        let base = archive[base].number;
        let day = archive_day(&args.shared, base % u64::from(args.shared.days));
        Expected {
            new: new_id(numbers[new]),
            distance,
            base: DocumentId::Text(archive_id(args, base).into()),
            day: days_since_epoch(day),
        }
    });
    // The document with the smaller number, and id, is the base.
    let within = within
        .into_iter()
        .map(|(smaller, larger, distance)| Expected {
            new: new_id(numbers[larger]),
            distance,
            base: new_id(numbers[smaller]),
            day: days_since_epoch(args.shared.day),
        });
    across.chain(within).collect()
}

/// Maps `numbers` on `threads` threads; the results are in order.
fn in_parallel<T: Send>(
    numbers: std::ops::Range<u64>,
    threads: usize,
    model: &Model,
    each: impl Fn(u64, &mut Fingerprinter) -> T + Sync,
) -> Vec<T> {
    let share = (numbers.end - numbers.start)
        .div_ceil(threads as u64)
        .max(1);
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
