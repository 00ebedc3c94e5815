//! Fuzzes the readers of documents: JSON Lines, CSV and Parquet; plain, gzip and zstd. Reading from disk and from a
//! store gives the same documents, or an error from both, within the memory limit.
#![no_main]

use std::io::Write as _;
use std::sync::{Arc, LazyLock};

use archive::IdType;
use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int64Type};
use documents::{Columns, Documents, Rows, extensions};
use engine::resources::Resources;
use engine::session::{Limits, session};
use engine::{EngineError, Result};
use inputs::{Input, assert_not_internal, block_on, edited, fixture, run, scratch};
use libfuzzer_sys::fuzz_target;
use object_store::memory::InMemory;
use parquet::arrow::ArrowWriter;
use storage::Stores;

/// Memory limit, in bytes.
const MEMORY: usize = 64 << 20;
/// Partitions of a plan.
const PARTITIONS: usize = 2;
/// Limit on repeated content, in bytes; more than a record may have under [`MEMORY`].
const MAX_REPEATED: usize = 12 << 20;

const JSON: &str = concat!(
    "{\"id\": \"a\", \"text\": \"one two \\u00e9 \\ud834\\udd1e\", \"n\": [1, {\"x\": null}]}\n",
    "\n",
    "{\"text\": null, \"id\": 7}\r\n",
    "{\"id\": \"c\", \"text\": \"four\", \"text\": \"five\"}",
);
const CSV: &str = "id,text,n\na,\"one, \"\"two\"\"\nthree\",1\nb,,2\r\nc,four,\n";

static PARQUET: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let texts =
        (0..40).map(|number| (number % 10 != 3).then(|| format!("{number} words").repeat(5)));
    let ids: ArrayRef = Arc::new(
        (0..40)
            .map(|id| Some(format!("id{id}")))
            .collect::<StringArray>(),
    );
    let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
    let batch = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).expect("a batch");
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).expect("a writer");
    writer.write(&batch).expect("to be written");
    writer.into_inner().expect("a whole file")
});

fuzz_target!(|bytes: &[u8]| run(|| {
    let mut input = Input::new(bytes);
    let extensions = extensions();
    let extension = extensions[input.below(extensions.len())];
    let bytes = content(extension, &mut input);
    if bytes.is_empty() {
        return;
    }
    let name = format!("x{extension}");
    let path = scratch().join(&name);
    std::fs::write(&path, &bytes).expect("a file");
    let (local, stored) = block_on(async {
        let local = read(Stores::default(), path.to_str().expect("a name")).await;
        let store = InMemory::new();
        fixture::put(
            &store,
            &object_store::path::Path::from(name.as_str()),
            bytes,
        )
        .await;
        let stores = fixture::stores(Arc::new(store));
        (local, read(stores, &format!("s3://fuzz/{name}")).await)
    });
    for error in [&local, &stored]
        .into_iter()
        .filter_map(|read| read.as_ref().err())
    {
        assert_not_internal(error.kind(), error);
    }
    // These Parquet pages have no checksums, and a store is read in other ranges than a disk. So only one of the two
    // may meet a damaged page.
    if extension != ".parquet" {
        match (local, stored) {
            (Ok(local), Ok(stored)) => assert!(local == stored, "the store gives other documents"),
            (Err(_), Err(_)) => {}
            (Ok(_), Err(error)) => panic!("only from the store: {error}"),
            (Err(error), Ok(_)) => panic!("only from the disk: {error}"),
        }
    }
}));

/// Returns the bytes of a file with this extension.
fn content(extension: &str, input: &mut Input<'_>) -> Vec<u8> {
    let template = match extension {
        ".parquet" => &PARQUET[..],
        name if name.starts_with(".csv") => CSV.as_bytes(),
        _ => JSON.as_bytes(),
    };
    let choice = input.byte();
    let encode: fn(&[u8]) -> Vec<u8> = match extension.rsplit_once('.') {
        Some((_, "gz")) => gzip,
        Some((_, "zst")) => zstd,
        _ => |bytes: &[u8]| bytes.to_vec(),
    };
    match choice % 8 {
        0 => input.rest().to_vec(),
        1 => encode(input.rest()),
        // Damaged compressed bytes.
        2 => edited(&encode(template), input),
        // Several gzip members or zstd frames.
        3 => {
            let content = edited(template, input);
            let (first, second) = content.split_at(content.len() / 2);
            [encode(first), encode(b""), encode(second)].concat()
        }
        // A skippable zstd frame in front.
        4 => {
            let length = input.byte();
            let frame = [0x50, 0x2a, 0x4d, 0x18, length, 0, 0, 0];
            let skipped = vec![b'x'; usize::from(length)];
            [&frame[..], &skipped, &encode(&edited(template, input))].concat()
        }
        // Few bytes repeated many times: rarely, because it takes long.
        5 if choice == 5 => {
            let times = input.two_bytes() + 1;
            let count = usize::from(input.byte());
            let piece = input.bytes(count);
            let repeated = piece.repeat(times.min(MAX_REPEATED / piece.len().max(1)));
            let mut content = edited(template, input);
            let middle = content.len() / 2;
            content.splice(middle..middle, repeated);
            encode(&content)
        }
        _ => encode(&edited(template, input)),
    }
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).expect("to be written");
    encoder.finish().expect("a member")
}

fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 1).expect("a frame")
}

/// An id, and a text or the bytes of a fingerprint.
type Row = (String, Option<Vec<u8>>);

/// Reads the documents at a path, and returns them sorted.
async fn read(stores: Stores, path: &str) -> Result<Vec<Row>> {
    let limits = Limits {
        threads: PARTITIONS,
        memory: MEMORY,
        spill: scratch().to_owned(),
    };
    let context = session(&limits, Arc::new(Resources::new(stores)))?;
    let documents = Documents::open(&context, &[path.to_owned()], &Columns::default()).await?;
    documents.spec()?;
    let _ = documents.bytes();
    let _ = documents.known_rows();
    let id_type = documents.id_type().unwrap_or(IdType::String);
    let table = documents.table(&context, id_type, PARTITIONS, Rows::All, None)?;
    let batches = table
        .collect()
        .await
        .map_err(EngineError::query("reading"))?;
    let mut rows: Vec<Row> = batches.iter().flat_map(rows_of).collect();
    rows.sort();
    Ok(rows)
}

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let (ids, contents) = (batch.column(0), batch.column(1));
    let id = |row| match ids.data_type() {
        DataType::Int64 => ids.as_primitive::<Int64Type>().value(row).to_string(),
        _ => ids.as_string::<i32>().value(row).to_owned(),
    };
    let content = |row| match contents.data_type() {
        DataType::BinaryView => contents.as_binary_view().value(row).to_vec(),
        DataType::Int64 => contents
            .as_primitive::<Int64Type>()
            .value(row)
            .to_le_bytes()
            .to_vec(),
        other => panic!("documents of type {other}"),
    };
    let rows = 0..batch.num_rows();
    rows.map(|row| (id(row), contents.is_valid(row).then(|| content(row))))
        .collect()
}
