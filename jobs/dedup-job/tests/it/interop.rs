//! Tests that independent readers see the same rows: the Python packages `deltalake`, `pyarrow` and
//! `duckdb`.

use std::path::PathBuf;
use std::process::Command;

use crate::helpers::support::*;

pub fn python() -> Option<String> {
    python_with("deltalake, pyarrow, duckdb")
}

#[test]
fn delta_lake_and_duckdb_read_what_is_written() {
    let Some(python) = python() else { return };
    let dir = Dir::new();
    for ids in ["string", "bigint"] {
        let data = dir.at(ids);
        dedup_ok(&format!(
            "generate fingerprints --output {data} --new 2000 --base 30000 --id-type {ids}"
        ));
        let hits = dir.at(&format!("{ids}-hits.parquet"));
        let run = format!(
            "run --new {data}/day.parquet --base {data}/archive --append --day 2026-01-31 --output {hits} --json"
        );
        let summary = dedup_json(&run);
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/interop.py");
        let output = Command::new(&python)
            .arg(script)
            .args([&data, &hits])
            .output()
            .unwrap();
        let ran = Ran::of(output).ok();
        say(&ran.stdout);
        assert!(
            ran.stdout.contains(&format!("{} hits", summary["hits"])),
            "{}",
            ran.stdout
        );
    }
}
