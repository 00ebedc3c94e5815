//! The functions `simhash(text)` and `hamming_distance(a, b)` of a session.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::execution::FunctionRegistry as _;
use datafusion::prelude::{col, lit};
use engine::resources::Resources;
use engine::session::{Limits, session};
use simhash::{Fingerprinter, Model, Spec};

#[tokio::test]
async fn functions_take_every_kind_of_text() {
    let scratch = tempfile::tempdir().unwrap();
    let limits = Limits {
        threads: 2,
        memory: 64 << 20,
        spill: scratch.path().to_owned(),
    };
    let context = session(&limits, Arc::new(Resources::default())).unwrap();
    let texts = StringArray::from(vec![
        Some("the quick brown fox jumps over the lazy dog"),
        Some("近似重复的网页非常多"),
        Some("404"),
        None,
    ]);
    let mut fingerprinter = Fingerprinter::new(Model::plain(Spec::default()).unwrap());
    let expected: Vec<Option<i64>> = texts
        .iter()
        .map(|text| fingerprinter.fingerprint(text?).map(u64::cast_signed))
        .collect();
    assert!(expected[0].is_some() && expected[1].is_some() && expected[2].is_none());
    let texts: ArrayRef = Arc::new(texts);
    for kind in [
        DataType::Utf8,
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::Binary,
        DataType::LargeBinary,
        DataType::BinaryView,
    ] {
        let column = arrow::compute::cast(&texts, &kind).unwrap();
        let batch = RecordBatch::try_from_iter([("t", column)]).unwrap();
        let simhash = context.udf("simhash").unwrap();
        let distance = context.udf("hamming_distance").unwrap();
        let first = lit(expected[0].unwrap());
        let fingerprint = simhash.call(vec![col("t")]);
        let found = context
            .read_batch(batch)
            .and_then(|rows| {
                let apart = distance.call(vec![fingerprint.clone(), first]);
                rows.select(vec![fingerprint.alias("fp"), apart.alias("d")])
            })
            .unwrap()
            .collect()
            .await
            .unwrap();
        let bits: Vec<_> = found[0]
            .column(0)
            .as_primitive::<Int64Type>()
            .iter()
            .collect();
        assert_eq!(bits, expected, "{kind}");
        let distances = found[0].column(1).as_primitive::<Int32Type>();
        let second = (expected[0].unwrap() ^ expected[1].unwrap()).count_ones();
        assert_eq!(distances.value(0), 0);
        assert_eq!(distances.value(1).cast_unsigned(), second);
        assert!(distances.is_null(2) && distances.is_null(3));
    }
}
