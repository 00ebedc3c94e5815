//! Files of documents as a table: each document once, whichever partition reads it.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use archive::IdType;
use arrow::array::{ArrayRef, AsArray as _, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use datafusion::prelude::SessionContext;
use documents::{Columns, DocumentId, Documents, DocumentsError, RowSet, Rows};
use engine::EngineError;
use engine::resources::Resources;
use engine::session::{Limits, session};
use futures::TryStreamExt as _;
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use storage::{ErrorKind, Stores};
use tempfile::TempDir;

const PARTITIONS: usize = 3;

fn context(spill: &Path) -> SessionContext {
    context_of(spill, 1 << 30, Stores::default())
}

/// A directory, a store in memory, and a session that reaches both.
fn with_store() -> (TempDir, Arc<InMemory>, SessionContext) {
    let directory = tempfile::tempdir().unwrap();
    let (store, stores) = in_memory();
    let context = context_of(directory.path(), 1 << 30, stores);
    (directory, store, context)
}

fn context_of(spill: &Path, memory: usize, stores: Stores) -> SessionContext {
    let limits = Limits {
        threads: PARTITIONS,
        memory,
        spill: spill.to_owned(),
    };
    session(&limits, Arc::new(Resources::new(stores))).unwrap()
}

/// One of ten documents has no text, another has an empty one; the others have several lengths.
fn text(number: usize) -> Option<String> {
    match number % 10 {
        3 => None,
        7 => Some(String::new()),
        other => Some(format!("{number} of {other} ").repeat(400 + number % 500)),
    }
}

fn write(path: &Path, documents: usize, properties: WriterProperties) {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..documents as i64));
    let texts: ArrayRef = Arc::new((0..documents).map(text).collect::<StringArray>());
    let batch = RecordBatch::try_from_iter([("id", ids), ("text", texts)]).unwrap();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    assert_eq!(writer.close().unwrap().row_groups().len(), 1);
}

/// The documents that each partition reads: those with `wanted` ids, or all.
async fn read(
    context: &SessionContext,
    path: &Path,
    wanted: Option<&[i64]>,
) -> Vec<Vec<(i64, Option<String>)>> {
    let documents = open(context, path.to_str().unwrap()).await.unwrap();
    let wanted = wanted.map(|ids| Arc::new(ids.iter().copied().map(DocumentId::Number).collect()));
    let wanted = wanted.map_or(Rows::All, Rows::Wanted);
    let table = documents.table(context, IdType::Bigint, PARTITIONS, wanted, None);
    let streams = table.unwrap().execute_stream_partitioned().await.unwrap();
    let mut partitions = Vec::new();
    for stream in streams {
        let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
        partitions.push(rows(&batches));
    }
    partitions
}

type Row = (i64, Option<String>);

fn rows(batches: &[RecordBatch]) -> Vec<Row> {
    let rows = batches.iter().flat_map(|batch| {
        let ids = batch.column(0).as_primitive::<Int64Type>().values();
        let texts = batch.column(1).as_binary_view().iter();
        let text = |text: Option<&[u8]>| text.map(|text| String::from_utf8(text.into()).unwrap());
        ids.iter().copied().zip(texts.map(text))
    });
    rows.collect()
}

async fn open(context: &SessionContext, given: &str) -> Result<Documents, DocumentsError> {
    Documents::open(context, &[given.to_owned()], &Columns::default()).await
}

/// Reads all documents and then, when the file is gone, some of them again.
async fn read_again_without_file(memory: usize) -> Result<[Vec<Row>; 2], EngineError> {
    let directory = tempfile::tempdir().unwrap();
    let context = context_of(directory.path(), memory, Stores::default());
    let path = directory.path().join("documents.parquet");
    write(&path, 300, WriterProperties::default());
    let documents = open(&context, path.to_str().unwrap()).await.unwrap();
    let reopened = documents
        .reopen(&context, &Columns::default())
        .await
        .unwrap();
    documents.hold_texts();
    let (all, counters) = (Rows::WithDecisionColumns, Arc::default());
    let table = documents.table(&context, IdType::Bigint, PARTITIONS, all, Some(&counters));
    let read = table.unwrap().collect().await.unwrap();
    assert_eq!(rows(&read).len(), 300);
    documents.texts_are_read();
    std::fs::remove_file(&path).unwrap();
    let mut found = Vec::new();
    let ids = [7, 3, 299, 500].map(DocumentId::Number);
    // In a single file that is not cut, the numbers of the rows are their positions.
    let mut positions = RowSet::default();
    positions.add(3);
    positions.add(150);
    for some in [
        Rows::Wanted(Arc::new(ids.into())),
        Rows::At(Arc::new(positions)),
    ] {
        let table = reopened.table(&context, IdType::Bigint, PARTITIONS, some, None)?;
        let batches = table.collect().await;
        let mut rows = rows(&batches.map_err(EngineError::query("reading"))?);
        rows.sort_unstable();
        found.push(rows);
    }
    Ok(found.try_into().unwrap())
}

#[tokio::test]
async fn held_texts_are_not_read_again() {
    let rows = |numbers: &[i64]| {
        numbers
            .iter()
            .map(|id| (*id, text(*id as usize)))
            .collect::<Vec<_>>()
    };
    let found = read_again_without_file(1 << 30).await.unwrap();
    assert_eq!(found, [rows(&[3, 7, 299]), rows(&[3, 150])]);
    // An eighth of this has no room for all texts.
    let error = read_again_without_file(4 << 20).await.unwrap_err();
    assert!(error.to_string().contains("documents.parquet"), "{error}");
}

/// The documents below a path, sorted, or why they cannot be read.
async fn try_read(context: &SessionContext, given: &str) -> Result<Vec<Row>, EngineError> {
    read_opened(context, &open(context, given).await?).await
}

async fn read_opened(
    context: &SessionContext,
    documents: &Documents,
) -> Result<Vec<Row>, EngineError> {
    let table = documents.table(context, IdType::Bigint, PARTITIONS, Rows::All, None)?;
    let batches = table.collect().await;
    let mut rows = rows(&batches.map_err(EngineError::query("reading"))?);
    rows.sort_unstable();
    Ok(rows)
}

/// A store in memory, and stores that reach it at `s3://bucket`.
fn in_memory() -> (Arc<InMemory>, Stores) {
    let store = Arc::new(InMemory::new());
    let stores = Stores::default();
    let url = url::Url::parse("s3://bucket").unwrap();
    stores.register(&url, Arc::clone(&store) as _);
    (store, stores)
}

async fn put(store: &InMemory, name: &str, bytes: Vec<u8>) {
    let path = ObjectPath::parse(name).unwrap();
    store.put(&path, bytes.into()).await.unwrap();
}

/// Writes a file to the directory and to the store; returns its names there.
async fn put_both(
    directory: &TempDir,
    store: &InMemory,
    name: &str,
    content: Vec<u8>,
) -> [String; 2] {
    let path = directory.path().join(name);
    std::fs::write(&path, &content).unwrap();
    put(store, name, content).await;
    let path = path.to_str().unwrap().to_owned();
    [path, format!("s3://bucket/{name}")]
}

/// Checks the kind of an error, and that it says these things.
fn check_error(error: &EngineError, kind: ErrorKind, parts: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    let error = error.to_string();
    for part in parts {
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
}

/// Letters that hardly compress.
fn letters() -> impl Iterator<Item = char> {
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'a' + (state >> 33) as u8 % 26)
    })
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 1).unwrap()
}

/// Checks that these are the documents with the `expected` numbers, each once.
fn check(partitions: Vec<Vec<(i64, Option<String>)>>, expected: impl Iterator<Item = usize>) {
    let mut rows = partitions.concat();
    rows.sort_unstable();
    let mut rows = rows.into_iter();
    for number in expected {
        assert_eq!(rows.next(), Some((number as i64, text(number))));
    }
    assert_eq!(rows.next(), None);
}

#[tokio::test]
async fn one_row_group_is_read_by_all_partitions() {
    let directory = tempfile::tempdir().unwrap();
    let context = context(directory.path());
    let path = directory.path().join("day.parquet");
    let documents = 20_000;
    let of_pages = |rows, bytes, dictionary| {
        WriterProperties::builder()
            .set_data_page_row_count_limit(rows)
            .set_data_page_size_limit(bytes)
            .set_write_batch_size(64)
            .set_dictionary_enabled(dictionary)
            .build()
    };
    for properties in [
        // One page for all splits.
        of_pages(documents, usize::MAX, false),
        of_pages(77, 1 << 20, false),
        of_pages(1_000, 1 << 20, true),
    ] {
        write(&path, documents, properties);
        let partitions = read(&context, &path, None).await;
        assert_eq!(partitions.len(), PARTITIONS);
        let each = documents / PARTITIONS;
        for own in &partitions {
            assert!(own.len().abs_diff(each) <= 1, "{}", own.len());
        }
        check(partitions, 0..documents);
        let wanted: Vec<i64> = (0..documents as i64 + 500).step_by(501).collect();
        let partitions = read(&context, &path, Some(&wanted)).await;
        check(partitions, (0..documents).step_by(501));
    }
}

#[tokio::test]
async fn a_small_row_group_is_read_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let context = context(directory.path());
    let path = directory.path().join("day.parquet");
    write(&path, 500, WriterProperties::default());
    let partitions = read(&context, &path, None).await;
    assert_eq!(partitions.len(), 1);
    check(partitions, 0..500);
}

#[tokio::test]
async fn lines_are_read_whoever_parses_them() {
    let directory = tempfile::tempdir().unwrap();
    let context = context(directory.path());
    let line = |number| match text(number) {
        Some(text) => format!("{{\"id\":{number},\"text\":\"{text}\"}}\n"),
        None => format!("{{\"id\":{number}}}\n"),
    };
    // One file, then as many as there are partitions.
    let path = directory.path().join("0.jsonl");
    std::fs::write(&path, (0..9_000).map(line).collect::<String>()).unwrap();
    check(read(&context, &path, None).await, 0..9_000);
    for file in 1..PARTITIONS {
        let numbers = 9_000 * file..9_000 * (file + 1);
        let path = directory.path().join(format!("{file}.jsonl"));
        std::fs::write(path, numbers.map(line).collect::<String>()).unwrap();
    }
    let partitions = read(&context, directory.path(), None).await;
    assert!(partitions.iter().all(|own| own.len() == 9_000));
    check(partitions, 0..9_000 * PARTITIONS);
}

fn json_lines(numbers: std::ops::Range<i64>) -> Vec<u8> {
    let line = |number| format!("{{\"id\":{number},\"text\":\"text of {number}\"}}\n");
    numbers.map(line).collect::<String>().into_bytes()
}

fn csv_records(numbers: std::ops::Range<i64>) -> Vec<u8> {
    let record = |number| format!("\"text of {number}\",,{number}\r\n");
    numbers.map(record).collect::<String>().into_bytes()
}

fn numbered(numbers: std::ops::Range<i64>) -> Vec<Row> {
    let row = |number| (number, Some(format!("text of {number}")));
    numbers.map(row).collect()
}

/// Fault 42 (docs/faults.md).
#[tokio::test]
async fn all_frames_and_members_are_read_from_disk_and_store() {
    let (directory, store, context) = with_store();
    // The index of a seekable file, for example.
    let skipped = [
        &0x184D_2A50_u32.to_le_bytes()[..],
        &5_u32.to_le_bytes()[..],
        b"index",
    ]
    .concat();
    let header = b"text,other,id\r\n";
    let parts = |encode: fn(&[u8]) -> Vec<u8>, all: [Vec<u8>; 3]| all.map(|part| encode(&part));
    let lines = || {
        [
            json_lines(0..9),
            json_lines(9..9_000),
            json_lines(9_000..9_009),
        ]
    };
    let records = || {
        let first = [&header[..], &csv_records(0..9)].concat();
        [first, csv_records(9..9_000), csv_records(9_000..9_009)]
    };
    for (name, content) in [
        ("frames.jsonl.zst", parts(zstd, lines()).concat()),
        (
            "skippable.jsonl.zst",
            [skipped.clone(), zstd(&lines().concat()), skipped].concat(),
        ),
        ("members.jsonl.gz", parts(gzip, lines()).concat()),
        ("frames.csv.zst", parts(zstd, records()).concat()),
        ("members.csv.gz", parts(gzip, records()).concat()),
        ("plain.csv", records().concat()),
    ] {
        for given in put_both(&directory, &store, name, content).await {
            let read = try_read(&context, &given).await;
            assert_eq!(read.unwrap(), numbered(0..9_009), "{given}");
        }
    }
}

/// Fault 43 (docs/faults.md).
#[tokio::test]
async fn a_key_is_the_very_object() {
    let (directory, store, context) = with_store();
    std::fs::create_dir(directory.path().join("p")).unwrap();
    let names = [
        "x%3Ay.jsonl",
        "x:y.jsonl",
        "x%253Ay.jsonl",
        "x+y.jsonl",
        "x y.jsonl",
        "x%20y.jsonl",
        "\u{e9}\u{8fd1}.jsonl",
    ];
    for (number, name) in (0..).zip(names) {
        let lines = json_lines(number..number + 1);
        put_both(&directory, &store, &format!("p/{name}"), lines).await;
    }
    for root in [directory.path().to_str().unwrap(), "s3://bucket"] {
        for (number, name) in (0..).zip(names) {
            let read = try_read(&context, &format!("{root}/p/{name}")).await;
            assert_eq!(
                read.unwrap(),
                numbered(number..number + 1),
                "{root}: {name}"
            );
        }
        let all = try_read(&context, &format!("{root}/p/")).await;
        assert_eq!(all.unwrap(), numbered(0..7), "{root}");
    }
}

/// Fault 41 (docs/faults.md): the memory limits the length of a record, on the disk and in a store.
#[tokio::test]
async fn a_record_is_limited_by_the_memory() {
    let directory = tempfile::tempdir().unwrap();
    let (store, stores) = in_memory();
    let small = context_of(directory.path(), 32 << 20, stores.clone());
    let large = context_of(directory.path(), 256 << 20, stores);
    let long = "x".repeat(6 << 20);
    let json = format!(
        "{{\"id\":1,\"text\":\"a\"}}\n\n{{\"id\":2,\"text\":\"{long}\"}}\n{{\"id\":3,\"text\":\"b\"}}\n"
    );
    let csv = format!("id,text\n1,\"a\"\n2,\"{long}\"\n3,b");
    let expected = [
        (1, Some("a".to_owned())),
        (2, Some(long)),
        (3, Some("b".to_owned())),
    ];
    for (name, content) in [
        ("long.jsonl", json.clone().into_bytes()),
        ("long.jsonl.gz", gzip(json.as_bytes())),
        ("long.jsonl.zst", zstd(json.as_bytes())),
        ("long.csv", csv.clone().into_bytes()),
        ("long.csv.gz", gzip(csv.as_bytes())),
        ("long.csv.zst", zstd(csv.as_bytes())),
    ] {
        for given in put_both(&directory, &store, name, content).await {
            let error = try_read(&small, &given).await.unwrap_err();
            let parts = [name, "line 3", "--memory-limit"];
            check_error(&error, ErrorKind::TryAgain, &parts);
            let read = try_read(&large, &given).await;
            assert!(read.unwrap() == expected, "{given}");
        }
    }
}

/// A first record that is longer than what is fetched first is found all the same, or refused within the limit.
#[tokio::test]
async fn a_long_first_record_of_an_object() {
    let directory = tempfile::tempdir().unwrap();
    let (store, stores) = in_memory();
    let small = context_of(directory.path(), 32 << 20, stores.clone());
    let large = context_of(directory.path(), 256 << 20, stores);
    let long: String = letters().take(12 << 20).collect();
    let line = format!("{{\"text\":\"{long}\",\"id\":1}}\n");
    for (name, content) in [
        ("first.jsonl", line.clone().into_bytes()),
        ("first.jsonl.gz", gzip(line.as_bytes())),
        ("first.jsonl.zst", zstd(line.as_bytes())),
    ] {
        put(&store, name, content).await;
        let given = format!("s3://bucket/{name}");
        let read = try_read(&large, &given).await.unwrap();
        assert!(read == [(1, Some(long.clone()))], "{name}");
        let error = try_read(&small, &given).await.unwrap_err();
        check_error(&error, ErrorKind::TryAgain, &["line 1"]);
    }
}

/// An error names its line, whatever comes before it.
#[tokio::test]
async fn errors_name_the_line() {
    let (directory, store, context) = with_store();
    let good = "{\"id\":1,\"text\":\"a\"}";
    let json = |bad: &str| format!("\u{feff}{good}\r\n\n \n{good}\n{bad}\n{good}\n");
    let csv = |bad: &str| format!("\u{feff}id,text\r\n1,\"a\nb\"\r\n\r\n{bad}\r\n1,a\r\n");
    for (name, content, part) in [
        (
            "syntax.jsonl",
            json("{\"id\":1,\"text\":a}"),
            "line 5, column 16",
        ),
        ("list.jsonl", json("[1]"), "a JSON object"),
        ("two.jsonl", json(&good.repeat(2)), "a line of its own"),
        ("id.jsonl", json("{\"id\":1.5}"), "\"id\""),
        ("text.jsonl", json("{\"id\":1,\"text\":2}"), "\"text\""),
        ("few.csv", csv("1"), "1 fields, but the header has 2"),
        ("many.csv", csv("1,a,b"), "3 fields, but the header has 2"),
        ("more.csv", csv("1,a,b,c"), "more than 2 fields"),
        ("open.csv", csv("1,\"a"), "inside a quoted field"),
    ] {
        for given in put_both(&directory, &store, name, content.into_bytes()).await {
            let error = try_read(&context, &given).await.unwrap_err();
            check_error(&error, ErrorKind::Data, &[name, "line 5", part]);
        }
    }
}

/// A listed file that is gone or cut off is never read as an empty or a short one.
#[tokio::test]
async fn files_gone_or_cut_off_are_errors() {
    let (directory, store, context) = with_store();
    let path = directory.path().join("gone.jsonl");
    std::fs::write(&path, json_lines(0..9)).unwrap();
    let here = open(&context, path.to_str().unwrap()).await.unwrap();
    std::fs::remove_file(path).unwrap();
    // A small object would be in memory.
    put(&store, "gone.jsonl", json_lines(0..90_000)).await;
    let there = open(&context, "s3://bucket/gone.jsonl").await.unwrap();
    store.delete(&ObjectPath::from("gone.jsonl")).await.unwrap();
    for documents in [here, there] {
        let error = read_opened(&context, &documents).await.unwrap_err();
        assert!(error.to_string().contains("gone.jsonl"), "{error}");
    }
    for (name, mut content) in [
        ("cut.jsonl.gz", gzip(&json_lines(0..9_000))),
        ("cut.jsonl.zst", zstd(&json_lines(0..9_000))),
    ] {
        content.pop();
        for given in put_both(&directory, &store, name, content).await {
            let error = try_read(&context, &given).await.unwrap_err();
            check_error(&error, ErrorKind::Data, &[name, "line"]);
        }
    }
}

/// Fields in any order, other fields of any kind, and text that is not UTF-8.
#[tokio::test]
async fn other_fields_of_a_record_are_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let context = context(directory.path());
    let json = r#"{"tags":[{"id":9}],"text":"a\n\u00e9","id":1,"n":null}
{"id":2}
{"text":null,"id":3}
{"id":"4","text":""}"#;
    let csv = "x,id,text\n,1,\"a\n\u{e9}\"\n\"\"\"\",2,\n,3,\"\"\n,4,\n";
    let path = directory.path().join("day.jsonl");
    std::fs::write(&path, json).unwrap();
    let first = (1, Some("a\n\u{e9}".to_owned()));
    let read = try_read(&context, path.to_str().unwrap()).await;
    let empty = Some(String::new());
    assert_eq!(
        read.unwrap(),
        [first.clone(), (2, None), (3, None), (4, empty)]
    );
    let path = directory.path().join("day.csv");
    std::fs::write(&path, csv).unwrap();
    let read = try_read(&context, path.to_str().unwrap()).await;
    assert_eq!(read.unwrap(), [first, (2, None), (3, None), (4, None)]);
    // Invalid UTF-8 is counted and replaced where the text is used.
    for (name, content) in [
        ("bytes.jsonl", &b"{\"id\":1,\"text\":\"a\xff\"}\n"[..]),
        ("bytes.csv", &b"id,text\n1,a\xff\n"[..]),
    ] {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        let opened = open(&context, path.to_str().unwrap()).await.unwrap();
        let table = opened.table(&context, IdType::Bigint, PARTITIONS, Rows::All, None);
        let batches = table.unwrap().collect().await.unwrap();
        assert_eq!(batches[0].column(1).as_binary_view().value(0), b"a\xff");
    }
}

/// The records of a crawl: a request and a page for each number, of several thousand bytes that hardly compress.
fn crawl(pages: usize) -> Vec<Vec<u8>> {
    let mut letters = letters();
    let record = |kind: &str, number: usize, content_type: &str, block: &str| {
        let head = format!(
            "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:{kind}:{number}>\r\n\
             Content-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            block.len()
        );
        format!("{head}{block}\r\n\r\n").into_bytes()
    };
    let mut records = Vec::new();
    for number in 0..pages {
        records.push(record(
            "request",
            number,
            "application/http",
            "GET / HTTP/1.1\r\n\r\n",
        ));
        let text: String = letters.by_ref().take(9_000).collect();
        records.push(record("resource", number, "text/plain", &text));
    }
    records
}

/// The ids that each partition reads of the documents.
async fn crawl_ids(context: &SessionContext, documents: &Documents) -> Vec<Vec<String>> {
    let table = documents.table(context, IdType::String, PARTITIONS, Rows::All, None);
    let streams = table.unwrap().execute_stream_partitioned().await.unwrap();
    let mut partitions = Vec::new();
    for stream in streams {
        let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
        let ids = batches
            .iter()
            .flat_map(|batch| batch.column(0).as_string::<i32>());
        partitions.push(ids.map(|id| id.unwrap().to_owned()).collect());
    }
    partitions
}

/// A file with a frame for each record, which needs the dictionary of 1 MiB that the file starts with.
fn with_dictionary(records: &[Vec<u8>]) -> Vec<u8> {
    let trained = include_bytes!("../../warc/tests/crawl.dict");
    let words = b"words of many pages ".repeat(1 << 16);
    // The text behind the tables comes last, where the records begin.
    let dictionary = [&trained[..], &words[..1 << 20], &trained[200..]].concat();
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
    let frames = records
        .iter()
        .flat_map(|record| compressor.compress(record).unwrap());
    let mut file = 0x184D_2A5D_u32.to_le_bytes().to_vec();
    file.extend_from_slice(&(dictionary.len() as u32).to_le_bytes());
    file.extend_from_slice(&dictionary);
    file.extend(frames);
    file
}

#[tokio::test]
async fn large_crawls_are_cut_into_parts() {
    const PAGES: usize = 5_500;
    let (directory, store, context) = with_store();
    let records = crawl(PAGES);
    let members: Vec<u8> = records.iter().flat_map(|record| gzip(record)).collect();
    let mut expected: Vec<String> = (0..PAGES).map(|n| format!("urn:resource:{n}")).collect();
    expected.sort_unstable();
    for (name, bytes, is_cut_here, is_cut_there) in [
        ("members.warc.gz", members, true, true),
        ("dictionary.warc.zst", with_dictionary(&records), true, true),
        ("plain.warc", records.concat(), true, false),
        ("whole.warc.gz", gzip(&records.concat()), false, false),
    ] {
        let both = put_both(&directory, &store, name, bytes).await;
        for (given, is_cut) in both.iter().zip([is_cut_here, is_cut_there]) {
            let mut documents = open(&context, given).await.unwrap();
            assert!(documents.can_be_cut(), "{given}");
            documents.cut(&context, PARTITIONS).await.unwrap();
            let mut partitions = crawl_ids(&context, &documents).await;
            let parts = documents.split_plans(u64::MAX).len();
            assert_eq!(parts > 1, is_cut, "{given}");
            partitions.iter_mut().for_each(|ids| ids.sort_unstable());
            let mut all = partitions.concat();
            all.sort_unstable();
            assert!(all == expected, "{given}: {}", all.len());
        }
    }
}
