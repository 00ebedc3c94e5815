//! Tests of rows 68 and 69 of docs/faults.md: long values of columns and long ids stay within the memory limit.

use std::fs;

use crate::helpers::support::*;

const TEXT: &str = "the quick brown fox jumps over the lazy dog near the river bank";

/// Documents whose column `extra` has the values.
fn write_extra(dir: &Dir, values: impl Iterator<Item = String>) {
    let mut lines = String::new();
    for (at, extra) in values.enumerate() {
        let line = serde_json::json!({"id": format!("{at:05}"), "text": format!("{TEXT} {at}"), "extra": extra});
        lines += &format!("{line}\n");
    }
    fs::write(dir.join("x.jsonl"), lines).unwrap();
}

#[test]
fn long_values_of_columns_are_bounded_together() {
    let dir = Dir::new();
    let run = |more: &str| {
        dedup(&format!(
            "run {} --decisions {} --overwrite --memory-limit 256MiB --threads 2 {more}",
            dir.at("x.jsonl"),
            dir.at("d.parquet")
        ))
    };
    // One long value among many short ones.
    let long = |at: usize, bytes: usize| "y".repeat(if at == 7 { bytes } else { 3 });
    write_extra(&dir, (0..3000).map(|at| long(at, 3_000_000)));
    run("--columns extra").ok();
    let batches = read_parquet(dir.join("d.parquet"));
    let extra = batches
        .iter()
        .flat_map(|batch| texts(batch.column_by_name("extra").unwrap()));
    let lengths: Vec<usize> = extra.map(|text| text.len()).collect();
    assert_eq!(lengths.len(), 3000);
    assert_eq!(lengths[7], 3_000_000);
    run("--prefer extra").fails(65, &["extra", "3000000 bytes", "8192"]);
    // Many of them.
    write_extra(
        &dir,
        (0..3000).map(|at| "y".repeat(if at % 75 == 7 { 1 << 20 } else { 3 })),
    );
    run("--columns extra").fails(75, &["--columns", "--memory-limit"]);
}

/// A data file of more than 64 MiB of ids is written again without some of its documents.
#[test]
fn documents_are_removed_from_a_file_of_long_ids() {
    let dir = Dir::new();
    let id = |at: usize| format!("{at:06}{}", "i".repeat(8000));
    let rows: Vec<(String, u64)> = (0..10_000)
        .map(|at| (id(at), at as u64 * 0x9e37_79b9))
        .collect();
    write_fingerprints(dir.join("x.parquet"), &rows);
    let archive = dir.archive("a", "--profile paper");
    dedup_ok(&format!(
        "archive append {archive} --input {} --day 2026-01-01",
        dir.at("x.parquet")
    ));
    fs::write(dir.join("ids"), format!("{}\n{}\n", id(17), id(9000))).unwrap();
    dedup_ok(&format!("archive remove {archive} --ids {}", dir.at("ids")));
    let info = dedup_json(&format!("archive info {archive} --verify --json"));
    assert_eq!(info["fingerprints"], 9998);
}
