//! `dedup-job fingerprint` on Parquet files, against the kernel alone: [`Fingerprinter`] on such
//! texts in memory.
//!
//! The documents have just been written, so the page cache holds them if they fit. Every fingerprint in the output is
//! checked against one computed from its text directly.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, AsArray as _, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use simhash::{Fingerprinter, Model, Spec};

use crate::{documents, program, threads};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Parquet files with a column `text`, from whose texts the documents are assembled
    #[arg(required = true, value_name = "PATH")]
    texts: Vec<PathBuf>,
    /// Number of documents
    #[arg(long, default_value_t = 1_000_000)]
    documents: usize,
    /// Approximate size of a document, in bytes
    #[arg(long, default_value_t = 5_000)]
    bytes: usize,
    /// Directory in which the documents are written, about 5 GB by default; they are removed at the end
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Number of runs of each; the fastest counts
    #[arg(long, default_value_t = 5)]
    times: usize,
    /// Path of dedup-job [default: beside this program]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

/// Rows of a row group.
const GROUP_ROWS: usize = 25_000;
/// Bytes of one excerpt of the real text; a document is several excerpts in a row.
const EXCERPT_BYTES: usize = 500;
/// Bytes of text on which the kernel is measured, for each thread.
const SAMPLE_BYTES: usize = 128 << 20;
/// Number of times that the kernel fingerprints the sample. That takes about as long as a run of the program, so that
/// other load of the machine slows both alike.
const PASSES: usize = 16;

/// Real text whose excerpts make up the documents, and the number of excerpts in each document.
struct Source {
    text: String,
    excerpts: usize,
}

impl Source {
    /// Assembles document `number`, which is the same in each call.
    fn document(&self, number: usize) -> String {
        let mut rng = ChaCha8Rng::seed_from_u64(number as u64);
        let mut document = String::with_capacity(self.excerpts * EXCERPT_BYTES);
        for _ in 0..self.excerpts {
            let at = rng.random_range(0..self.text.len() - EXCERPT_BYTES);
            let (from, to) = (
                self.text.floor_char_boundary(at),
                self.text.floor_char_boundary(at + EXCERPT_BYTES),
            );
            document.push_str(&self.text[from..to]);
        }
        document
    }
}

fn model() -> Model {
    Model::plain(Spec::default()).expect("a spec without tables")
}

pub fn run(args: &Args) -> Vec<Value> {
    let program = program::path(args.program.as_deref());
    let texts: Vec<String> = args
        .texts
        .iter()
        .flat_map(|path| documents::strings(path, "text"))
        .collect();
    let source = Source {
        text: texts.concat(),
        excerpts: args.bytes.div_ceil(EXCERPT_BYTES),
    };
    assert!(source.text.len() > EXCERPT_BYTES, "too little text");
    let threads = threads::cores();
    let directory = tempfile::tempdir_in(&args.directory).expect("a directory");
    println!(
        "{} documents of {} bytes, {threads} threads, best of {}",
        args.documents,
        source.excerpts * EXCERPT_BYTES,
        args.times
    );
    println!(
        "{:<14} {:>9} {:>9} {:>11} {:>22} {:>22}",
        "Parquet",
        "seconds",
        "MB/s",
        "MB on disk",
        "of kernel alone x cores",
        "of kernel on all cores"
    );
    let codecs = [
        ("uncompressed", Compression::UNCOMPRESSED),
        ("snappy", Compression::SNAPPY),
        ("zstd", Compression::ZSTD(ZstdLevel::default())),
    ];
    let mut rows = Vec::new();
    for (name, codec) in codecs {
        let input = directory.path().join(format!("{name}.parquet"));
        let (bytes, expected) = write_documents(&source, args.documents, &input, codec);
        let mut best = f64::INFINITY;
        let (mut alone, mut together) = (0.0, 0.0);
        for _ in 0..args.times {
            let output = directory.path().join("fingerprints.parquet");
            let begin = Instant::now();
            program::output(
                Command::new(&program)
                    .args(["fingerprint", "--quiet", "--threads", &threads.to_string()])
                    .args(["--input".as_ref(), input.as_os_str()])
                    .args(["--output".as_ref(), output.as_os_str()]),
            );
            let seconds = begin.elapsed().as_secs_f64();
            assert!(
                read_fingerprints(&output, args.documents) == expected,
                "other fingerprints"
            );
            best = best.min(seconds);
            alone = kernel_rate(&source, 1).max(alone);
            together = kernel_rate(&source, threads).max(together);
        }
        let rate = bytes as f64 / 1e6 / best;
        let of_alone = rate / alone / threads as f64;
        let stored = input.metadata().map_or(0, |metadata| metadata.len());
        println!(
            "{name:<14} {best:>9.2} {rate:>9.0} {:>11} {:>22} {:>22}",
            stored / 1_000_000,
            format!("{alone:.0}: {of_alone:.2}"),
            format!("{together:.0}: {:.2}", rate / together)
        );
        rows.push(json!({
            "compression": name, "documents": args.documents, "bytes": bytes, "stored_bytes": stored, "threads": threads,
            "seconds": best, "megabytes_per_second": rate,
            "kernel_megabytes_per_second": { "one_thread": alone, "all_threads": together },
            "of_kernel_times_cores": of_alone, "of_kernel_on_all_cores": rate / together,
        }));
        std::fs::remove_file(&input).expect("the documents, removed");
    }
    rows
}

/// Writes the documents to a Parquet file; returns the bytes of their texts, and their fingerprints in the order of
/// ids.
fn write_documents(
    source: &Source,
    documents: usize,
    path: &Path,
    codec: Compression,
) -> (usize, Vec<Option<i64>>) {
    let properties = WriterProperties::builder()
        .set_compression(codec)
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    let mut fingerprinter = Fingerprinter::new(model());
    let (mut bytes, mut expected) = (0, Vec::with_capacity(documents));
    let mut writer = None;
    for first in (0..documents).step_by(GROUP_ROWS) {
        let texts: Vec<String> = (first..documents.min(first + GROUP_ROWS))
            .map(|number| source.document(number))
            .collect();
        bytes += texts.iter().map(String::len).sum::<usize>();
        let fingerprints = texts.iter().map(|text| fingerprinter.fingerprint(text));
        expected.extend(fingerprints.map(|fingerprint| fingerprint.map(u64::cast_signed)));
        let ids: Int64Array = (first..first + texts.len())
            .map(|number| number as i64)
            .collect();
        let columns: [(&str, ArrayRef); 2] = [
            ("id", Arc::new(ids)),
            ("text", Arc::new(StringArray::from(texts))),
        ];
        let batch = RecordBatch::try_from_iter(columns).expect("two columns");
        let writer = writer.get_or_insert_with(|| {
            let file = File::create(path).expect("a file");
            ArrowWriter::try_new(file, batch.schema(), Some(properties.clone())).expect("a writer")
        });
        writer.write(&batch).expect("a written batch");
    }
    writer.expect("documents").close().expect("a written file");
    (bytes, expected)
}

/// Reads the fingerprints of a file, in the order of ids.
fn read_fingerprints(path: &Path, documents: usize) -> Vec<Option<i64>> {
    let file = File::open(path).expect("the output");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
    let mut found = vec![None; documents];
    let mut rows = 0;
    for batch in reader.expect("Parquet") {
        let batch = batch.expect("a batch");
        let ids = batch
            .column_by_name("id")
            .expect("ids")
            .as_primitive::<Int64Type>();
        let fingerprints = batch.column_by_name("fp").expect("fingerprints");
        let fingerprints = fingerprints.as_primitive::<Int64Type>().iter();
        rows += batch.num_rows();
        for (id, fingerprint) in ids.values().iter().zip(fingerprints) {
            found[*id as usize] = fingerprint;
        }
    }
    assert_eq!(rows, documents, "a row for each document");
    found
}

/// Fingerprints texts in memory; returns the megabytes per second of all threads together.
fn kernel_rate(source: &Source, threads: usize) -> f64 {
    let share = (SAMPLE_BYTES / (source.excerpts * EXCERPT_BYTES)).max(1);
    let samples: Vec<Vec<String>> = (0..threads)
        .map(|thread| {
            (0..share)
                .map(|at| source.document(thread * share + at))
                .collect()
        })
        .collect();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for sample in &samples {
            scope.spawn(move || {
                let mut fingerprinter = Fingerprinter::new(model());
                for _ in 0..PASSES {
                    for text in sample {
                        std::hint::black_box(fingerprinter.fingerprint(text));
                    }
                }
            });
        }
    });
    let bytes: usize = samples.iter().flatten().map(String::len).sum();
    (PASSES * bytes) as f64 / 1e6 / begin.elapsed().as_secs_f64()
}
