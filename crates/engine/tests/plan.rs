//! The plan of a probe: its shape is part of the design, so it must change only on purpose.

use std::sync::Arc;

use archive::{ColumnNames, FingerprintFile, IdType};
use datafusion::physical_plan::displayable;
use engine::pairs::Similarities;
use engine::probe::Probe;
use engine::resources::Resources;
use engine::work_items::WorkItem;
use engine::{Limits, reduce, session};
use simhash::Spec;

fn probe() -> Probe {
    Probe {
        batch: FingerprintFile {
            path: "day.parquet".into(),
            digest: "0".into(),
            day_digest: String::new(),
            bytes: 0,
            rows: 0,
            without_fingerprint: 0,
            id_type: IdType::String,
            spec: Spec::default(),
        },
        max_distance: 3,
        design: "halves".into(),
        parts: 1,
        max_hits: None,
        day: None,
        columns: ColumnNames::given_or_standard(None, None),
        sketches: None,
        answer: engine::probe::Answer::Pairs,
        kept_base: false,
    }
}

fn row_group(number: u32) -> WorkItem {
    WorkItem::RowGroup {
        file: "a.parquet".into(),
        size: 1,
        row_group: number,
        rows: 1,
        day: None,
        part: 0,
        bytes: 0,
        tail: None,
    }
}

#[tokio::test]
async fn work_items_are_probed_in_partitions_and_reduced_by_stock_operators() {
    let spill = tempfile::tempdir().unwrap();
    let limits = Limits {
        threads: 2,
        memory: 1 << 30,
        spill: spill.path().to_owned(),
    };
    let context = session::session(&limits, Arc::new(Resources::default())).unwrap();
    let items: Vec<WorkItem> = (0..5).map(row_group).collect();
    let pairs = probe().table(&context, items).unwrap();
    let plan = reduce::reduce(pairs).unwrap();
    insta::assert_snapshot!("logical", plan.logical_plan().display_indent());
    let plan = plan.create_physical_plan().await.unwrap();
    insta::assert_snapshot!("physical", displayable(plan.as_ref()).indent(false));
}

#[tokio::test]
async fn our_functions_resolve_beside_the_built_in_ones() {
    let spill = tempfile::tempdir().unwrap();
    let limits = Limits {
        threads: 1,
        memory: 1 << 30,
        spill: spill.path().to_owned(),
    };
    let context = session::session(&limits, Arc::new(Resources::default())).unwrap();
    let state = context.state();
    for name in ["simhash", "hamming_distance", "coalesce"] {
        assert!(state.scalar_functions().contains_key(name), "{name}");
    }
    assert!(state.aggregate_functions().contains_key("min"));
}

#[test]
fn pairs_have_the_columns_of_the_contract() {
    for (id_type, name) in [(IdType::String, "Utf8"), (IdType::Bigint, "Int64")] {
        let schema = engine::pairs::schema(id_type, Similarities::Unknown);
        let columns: Vec<String> = schema
            .fields()
            .iter()
            .map(|field| format!("{} {}", field.name(), field.data_type()))
            .collect();
        let id = |column: &str| format!("{column} {name}");
        assert_eq!(
            columns,
            [
                id("new_id"),
                id("base_id"),
                "distance Int32".into(),
                "base_day Date32".into()
            ]
        );
    }
}
