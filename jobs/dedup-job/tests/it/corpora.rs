//! Real documents: the last revision of each is in the batch, the earlier ones are in the archive.

use std::collections::HashSet;
use std::path::PathBuf;

use arrow::array::AsArray as _;
use arrow::datatypes::{
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
};
use testkit::oracle;

use crate::helpers::support::*;

struct Revision {
    id: String,
    doc: String,
    revised: i64,
    text: String,
}

fn corpus(name: &str) -> Option<Vec<Revision>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/corpora")
        .join(name);
    if !path.exists() {
        say(&format!(
            "SKIPPED: the corpus {name} is not here ({})",
            path.display()
        ));
        return None;
    }
    let mut revisions = Vec::new();
    for batch in read_parquet(&path) {
        let text = |name: &str| {
            let column = arrow::compute::cast(
                batch.column_by_name(name).unwrap(),
                &arrow::datatypes::DataType::Utf8,
            );
            texts(&column.unwrap())
        };
        let revised = batch.column_by_name("revised").unwrap();
        let revised: Vec<i64> =
            if let Some(times) = revised.as_primitive_opt::<TimestampMicrosecondType>() {
                times.values().to_vec()
            } else if let Some(times) = revised.as_primitive_opt::<TimestampMillisecondType>() {
                times.values().to_vec()
            } else {
                revised
                    .as_primitive::<TimestampNanosecondType>()
                    .values()
                    .to_vec()
            };
        let columns = text("id")
            .into_iter()
            .zip(text("doc"))
            .zip(revised)
            .zip(text("text"));
        revisions.extend(columns.map(|(((id, doc), revised), text)| Revision {
            id,
            doc,
            revised,
            text,
        }));
    }
    Some(revisions)
}

/// The fingerprints that the program computes: id and bits.
fn fingerprints(path: &str) -> Vec<(String, u64)> {
    let mut rows = Vec::new();
    for batch in read_parquet(path) {
        let values = batch.column(0).as_primitive::<Int64Type>();
        let ids = texts(batch.column(1));
        rows.extend(
            values
                .iter()
                .zip(ids)
                .filter_map(|(value, id)| Some((id, value?.cast_unsigned()))),
        );
    }
    rows
}

fn check(name: &str) {
    let Some(mut revisions) = corpus(name) else {
        return;
    };
    revisions.sort_by(|a, b| (&a.doc, a.revised, &a.id).cmp(&(&b.doc, b.revised, &b.id)));
    let last: HashSet<&str> = revisions
        .chunk_by(|a, b| a.doc == b.doc)
        .map(|of| of.last().unwrap().id.as_str())
        .collect();
    let dir = Dir::new();
    let side = |new: bool| -> Vec<(&str, &str)> {
        let of = revisions
            .iter()
            .filter(|revision| last.contains(revision.id.as_str()) == new);
        of.map(|revision| (revision.id.as_str(), revision.text.as_str()))
            .collect()
    };
    let (new, old) = (dir.at("new.parquet"), dir.at("old.parquet"));
    write_documents(&new, &side(true));
    write_documents(&old, &side(false));
    let archive = dir.archive("archive", "--profile paper");
    dedup_ok(&format!(
        "archive append {archive} --input {old} --day 2026-01-01"
    ));
    for side in ["new", "old"] {
        dedup_ok(&format!(
            "fingerprint --input {} --output {}",
            dir.at(&format!("{side}.parquet")),
            dir.at(&format!("{side}-fp.parquet"))
        ));
    }
    let (new_prints, old_prints) = (
        fingerprints(&dir.at("new-fp.parquet")),
        fingerprints(&dir.at("old-fp.parquet")),
    );
    let bits = |rows: &[(String, u64)]| rows.iter().map(|row| row.1).collect::<Vec<_>>();
    for k in [0, 3, 6, 12] {
        let hits = dir.at("hits.parquet");
        dedup_ok(&format!(
            "run --new {new} --base {archive} -k {k} --day 2026-01-02 --output {hits}"
        ));
        let found = read_pairs(&hits);
        let across = oracle::pairs_within(&bits(&new_prints), &bits(&old_prints), k)
            .into_iter()
            .map(|(i, j, d)| {
                (
                    new_prints[i].0.clone(),
                    old_prints[j].0.clone(),
                    d.cast_signed(),
                )
            });
        let inside = oracle::pairs_inside(&bits(&new_prints), k)
            .into_iter()
            .map(|(i, j, d)| {
                let (a, b) = (&new_prints[i].0, &new_prints[j].0);
                (a.max(b).clone(), a.min(b).clone(), d.cast_signed())
            });
        let mut expected: Vec<_> = across.chain(inside).collect();
        expected.sort_by(|a, b| (&a.0, a.2, &a.1).cmp(&(&b.0, b.2, &b.1)));
        assert!(
            found == expected,
            "{name}, k = {k}: {} hits, {} by brute force",
            found.len(),
            expected.len()
        );
        let doc = |id: &str| {
            revisions
                .iter()
                .find(|revision| revision.id == id)
                .map(|revision| revision.doc.clone())
        };
        let own: HashSet<_> = found
            .iter()
            .filter(|hit| doc(&hit.0) == doc(&hit.1))
            .map(|hit| &hit.0)
            .collect();
        let with_history = revisions
            .chunk_by(|a, b| a.doc == b.doc)
            .filter(|of| of.len() > 1)
            .count();
        say(&format!(
            "{name}, k = {k}: {} of {with_history} documents found their own earlier revision; {} hits",
            own.len(),
            found.len()
        ));
        // Larger edits are farther apart; `bench quality` measures how many each k finds.
        assert!(
            k < 6 || own.len() * 10 > with_history * 6,
            "revisions are not found"
        );
    }
}

#[test]
fn python_enhancement_proposals() {
    check("peps.parquet");
}

#[test]
fn a_chinese_book() {
    check("rust-book-zh.parquet");
}
