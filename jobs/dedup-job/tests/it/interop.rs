//! Tests that independent readers see the same rows: the Python packages `deltalake`, `pyarrow` and
//! `duckdb`.

use std::path::PathBuf;
use std::process::Command;

use crate::helpers::support::*;

/// `PYTHON` names an interpreter that has the packages; without it, `python3` is tried.
pub fn python() -> Option<String> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".into());
    let has = Command::new(&python)
        .args(["-c", "import deltalake, pyarrow, duckdb"])
        .output();
    if has.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    assert!(
        std::env::var("CI").is_err(),
        "{python} lacks deltalake, pyarrow or duckdb"
    );
    say(&format!(
        "SKIPPED: {python} lacks deltalake, pyarrow or duckdb"
    ));
    None
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
