//! Files of documents as a table: each document once, whichever partition reads it.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use archive::IdType;
use arrow::array::{ArrayRef, AsArray as _, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use datafusion::prelude::SessionContext;
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
        other => Some(format!("{number} of {other} ").repeat(200 + number % 500)),
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

/// The documents that each partition reads.
async fn read(context: &SessionContext, path: &Path) -> Vec<HashMap<i64, Option<String>>> {
    let given = [path.to_str().unwrap().to_owned()];
    let documents = Documents::open(context, &given, &Columns::default()).await;
    let documents = documents.unwrap();
    let table = documents.table(context, IdType::Bigint, PARTITIONS);
    let streams = table.unwrap().execute_stream_partitioned().await.unwrap();
    let mut partitions = Vec::new();
    for stream in streams {
        let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
        let mut rows = HashMap::new();
        for batch in batches {
            let ids = batch.column(0).as_primitive::<Int64Type>();
            let texts = batch.column(1).as_binary_view();
            for (id, text) in ids.values().iter().zip(texts) {
                let text = text.map(|text| String::from_utf8(text.to_vec()).unwrap());
                assert!(rows.insert(*id, text).is_none(), "{id} is read twice");
            }
        }
        partitions.push(rows);
    }
    partitions
}

#[tokio::test]
async fn one_row_group_is_read_by_all_partitions() {
    let directory = tempfile::tempdir().unwrap();
    let context = context(directory.path());
    let path = directory.path().join("day.parquet");
    let documents = 20_000;
    let of_pages = |rows, dictionary| {
        WriterProperties::builder()
            .set_data_page_row_count_limit(rows)
            .set_write_batch_size(64)
            .set_dictionary_enabled(dictionary)
            .build()
    };
    for properties in [
        of_pages(20_000, false),
        of_pages(77, false),
        of_pages(1_000, true),
    ] {
        write(&path, documents, properties);
        let partitions = read(&context, &path).await;
        assert_eq!(partitions.len(), PARTITIONS);
        let each = documents / PARTITIONS;
        for own in &partitions {
            assert!((each / 2..each * 2).contains(&own.len()), "{}", own.len());
        }
        let all: HashMap<_, _> = partitions.into_iter().flatten().collect();
        assert_eq!(all.len(), documents);
        for number in 0..documents {
            assert_eq!(all[&(number as i64)], text(number), "{number}");
        }
    }
}

#[tokio::test]
async fn a_small_row_group_is_read_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let context = context(directory.path());
    let path = directory.path().join("day.parquet");
    write(&path, 500, WriterProperties::default());
    let partitions = read(&context, &path).await;
    assert_eq!(partitions.len(), 1);
    assert_eq!(partitions[0].len(), 500);
}
