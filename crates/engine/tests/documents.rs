//! Files of documents as a table: each document once, whichever partition reads it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use archive::IdType;
use arrow::array::{ArrayRef, AsArray as _, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use datafusion::prelude::SessionContext;
use engine::batch::Id;
use engine::documents::{Columns, Documents};
use engine::resources::Resources;
use engine::session::{Limits, session};
use futures::TryStreamExt as _;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

const PARTITIONS: usize = 3;

fn context(spill: &Path) -> SessionContext {
    let limits = Limits {
        threads: PARTITIONS,
        memory: 1 << 30,
        spill: spill.to_owned(),
    };
    session(&limits, Arc::new(Resources::default())).unwrap()
}

/// One of ten documents has no text, another an empty one; the others are of several lengths.
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

/// The documents that each partition reads, of those with the `wanted` ids.
async fn read(
    context: &SessionContext,
    path: &Path,
    wanted: Option<&[i64]>,
) -> Vec<Vec<(i64, Option<String>)>> {
    let given = [path.to_str().unwrap().to_owned()];
    let documents = Documents::open(context, &given, &Columns::default()).await;
    let wanted = wanted.map(|ids| Arc::new(ids.iter().copied().map(Id::Number).collect()));
    let table = documents
        .unwrap()
        .table_of(context, IdType::Bigint, PARTITIONS, wanted);
    let streams = table.unwrap().execute_stream_partitioned().await.unwrap();
    let mut partitions = Vec::new();
    for stream in streams {
        let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
        let rows = batches.iter().flat_map(|batch| {
            let ids = batch.column(0).as_primitive::<Int64Type>().values();
            let texts = batch.column(1).as_binary_view().iter();
            let text =
                |text: Option<&[u8]>| text.map(|text| String::from_utf8(text.into()).unwrap());
            ids.iter().copied().zip(texts.map(text))
        });
        partitions.push(rows.collect());
    }
    partitions
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
        // One page for all slices.
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
