//! The rows that are sent, checked against the definition by brute force.

use archive::{FingerprintWriter, IdType};
use arrow::array::{AsArray as _, Int64Array, StringArray};
use arrow::datatypes::Int32Type;
use datafusion::execution::memory_pool::{MemoryPool, UnboundedMemoryPool};
use hamming::Match;

use super::*;
use crate::pairs::Similarities;

/// A batch of rows that are sorted as a batch's file is.
fn batch_of(rows: &[(i64, String)]) -> Arc<Batch> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("day.parquet");
    let spec = simhash::Spec::default();
    let mut writer = FingerprintWriter::create(&path, IdType::String, &spec).unwrap();
    let fingerprints: Int64Array = rows.iter().map(|row| Some(row.0)).collect();
    let ids: StringArray = rows.iter().map(|row| Some(row.1.as_str())).collect();
    let columns: Vec<ArrayRef> = vec![Arc::new(fingerprints), Arc::new(ids)];
    let schema = archive::schema::fingerprint_schema(IdType::String, spec.sketch, true);
    writer
        .write(RecordBatch::try_new(schema, columns).unwrap())
        .unwrap();
    let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
    Arc::new(Batch::load(&writer.finish().unwrap(), &pool).unwrap())
}

/// Every match of the batch's distinct fingerprints with each other.
fn all_matches(batch: &Batch) -> Vec<Match> {
    let values = batch.distinct.values();
    let entries = 0..values.len() as u32;
    let pairs = entries.clone().flat_map(|query| {
        let entries = entries.clone();
        entries.map(move |entry| (query, entry))
    });
    pairs
        .map(|(query, entry)| Match {
            query,
            entry,
            distance: (values[query as usize] ^ values[entry as usize]).count_ones(),
        })
        .collect()
}

type Row = (String, i32, String);

fn rows_of(batch: &RecordBatch) -> Vec<Row> {
    let (new, base) = (
        batch.column(0).as_string::<i32>(),
        batch.column(1).as_string::<i32>(),
    );
    let distance = batch.column(2).as_primitive::<Int32Type>();
    (0..batch.num_rows())
        .map(|row| {
            let ids = (new.value(row).to_owned(), base.value(row).to_owned());
            (ids.0, distance.value(row), ids.1)
        })
        .collect()
}

/// The rows that are sent, before the reduce.
async fn sent(batch: &Arc<Batch>, limit: Option<usize>) -> Vec<Row> {
    let schema = pairs::schema(IdType::String, Similarities::Unknown);
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1000);
    let source = PairSource {
        batch: Arc::clone(batch),
        schema,
        sketches: None,
        day: None,
        classes: None,
        sender,
    };
    let builder = PairBuilder::new(&source);
    let matches = all_matches(batch);
    let count = match limit {
        None => builder.send_pairs_within(&matches).await.unwrap(),
        Some(limit) => {
            let sent = builder.send_nearest_within(&matches, limit).await;
            sent.unwrap().0
        }
    };
    drop(source);
    let mut rows = Vec::new();
    while let Some(batch) = receiver.recv().await {
        rows.extend(rows_of(&batch.unwrap()));
    }
    assert_eq!(count.pairs, rows.len() as u64);
    rows
}

/// The nearest pair of documents for each pair of ids, by the definition.
fn brute_force(rows: &[(i64, String)]) -> Vec<Row> {
    let mut nearest = std::collections::BTreeMap::new();
    for (at, a) in rows.iter().enumerate() {
        for b in &rows[..at] {
            let ids = (a.1.clone().max(b.1.clone()), a.1.clone().min(b.1.clone()));
            let distance = (a.0 ^ b.0).count_ones().cast_signed();
            let least = nearest.entry(ids).or_insert(distance);
            *least = distance.min(*least);
        }
    }
    let rows = nearest.into_iter();
    let mut rows: Vec<Row> = rows.map(|((new, base), d)| (new, d, base)).collect();
    rows.sort();
    rows
}

/// The nearest row for each pair of ids, as the reduce keeps it.
fn reduced(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by(|a, b| (&a.0, &a.2, a.1).cmp(&(&b.0, &b.2, b.1)));
    rows.dedup_by(|next, kept| (&next.0, &next.2) == (&kept.0, &kept.2));
    rows.sort();
    rows
}

/// Fault 51 (docs/faults.md): one row for each match and pair of ids, however many documents have
/// the ids.
#[tokio::test]
async fn copies_with_one_id_are_a_row_each() {
    let copies = 20_000;
    let copy = |fingerprint: i64, id: &str| vec![(fingerprint, id.to_owned()); copies];
    let row = |new: &str, distance, base: &str| (new.to_owned(), distance, base.to_owned());
    let batch = batch_of(&copy(7, "a"));
    for limit in [None, Some(1), Some(9)] {
        assert_eq!(sent(&batch, limit).await, [row("a", 0, "a")]);
    }
    let rows = [copy(6, "a"), copy(6, "b"), copy(7, "a")].concat();
    let batch = batch_of(&rows);
    let all = [
        row("a", 0, "a"),
        row("b", 0, "a"),
        row("b", 0, "b"),
        row("a", 1, "a"),
        row("b", 1, "a"),
        row("a", 0, "a"),
    ];
    let found = sent(&batch, None).await;
    assert_eq!(found.len(), all.len(), "{found:?}");
    assert!(all.iter().all(|row| found.contains(row)), "{found:?}");
    assert_eq!(
        reduced(sent(&batch, Some(1)).await),
        [row("a", 0, "a"), row("b", 0, "a")]
    );
}

/// Fault 51 (docs/faults.md): the reduce gives what the definition says.
#[tokio::test]
async fn repeated_ids_equal_brute_force() {
    for ids in [1, 2, 5, 40] {
        let mut rows: Vec<(i64, String)> = (0..120)
            .map(|n: i64| (n * n % 7, format!("id-{}", n * 11 % 83 % ids)))
            .collect();
        rows.sort();
        let batch = batch_of(&rows);
        let expected = brute_force(&rows);
        let found = sent(&batch, None).await;
        assert_eq!(reduced(found), expected, "{ids}");
        for limit in [1, 3, 1000] {
            let nearest: Vec<Row> = expected
                .chunk_by(|a, b| a.0 == b.0)
                .flat_map(|of_id| of_id.iter().take(limit).cloned())
                .collect();
            let found = reduced(sent(&batch, Some(limit)).await);
            let kept: Vec<Row> = found
                .chunk_by(|a, b| a.0 == b.0)
                .flat_map(|of_id| of_id.iter().take(limit).cloned())
                .collect();
            assert_eq!(kept, nearest, "{ids}, {limit}");
        }
    }
}
