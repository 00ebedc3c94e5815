//! Sites with templates: which documents are dropped, and which are kept, over three days in an archive.
//!
//! `crawl_sites.py` invents the sites, in 25 scenarios: shops, mirrors, forums, redesigns, and what is hostile. It knows which pages
//! have the same content, whatever is around it. `crawl_sites_score.py` compares the decisions with that.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Args, dedup_job, make, script};
use crate::program;

/// Options of `archive create`.
const ARCHIVES: [&str; 3] = ["--profile paper --decisions", "--template off", ""];
const DAYS: usize = 3;
const COLUMNS: [&str; 7] = [
    "pages", "copies", "dropped", "rightly", "wrongly", "lost", "missed",
];

/// Measures all archives; prints and returns a row for each scenario.
pub fn measure(args: &Args, directory: &Path) -> Vec<Value> {
    let sites = make(directory, || {
        let mut command = script(args, "crawl_sites.py");
        command
            .arg("--out")
            .arg(directory)
            .args(["--days", &DAYS.to_string()])
            .args(["--seed", &args.seed.to_string()]);
        command.stdout(Stdio::null());
        command
    });
    println!("\nsites: what is decided about invented pages over {DAYS} days\n");
    println!("| archive | scenario | {} |", COLUMNS.join(" | "));
    println!("|---|---|{}", "---:|".repeat(COLUMNS.len()));
    let mut rows = Vec::new();
    for options in ARCHIVES {
        let scratch = tempfile::tempdir().expect("a directory");
        let archive = scratch.path().join("archive");
        let mut create = Command::new(dedup_job(args));
        create.args(["archive", "create", "--quiet"]).arg(&archive);
        program::output(create.args(options.split_whitespace()));
        let mut score = script(args, "crawl_sites_score.py");
        score.arg(&sites.directory).args(["--json", "--decisions"]);
        for day in 1..=DAYS {
            let decisions = scratch.path().join(format!("{day}.parquet"));
            let mut night = Command::new(dedup_job(args));
            night
                .args(["run", "--quiet", "--append"])
                .args(["--text-column", "text", "--new"])
                .arg(sites.file(&format!("day-{day}.parquet")))
                .arg("--base")
                .arg(&archive)
                .args(["--day", &format!("2026-01-0{day}")])
                .arg("--decisions")
                .arg(&decisions);
            program::output(&mut night);
            score.arg(decisions);
        }
        let scores: Value = serde_json::from_slice(&program::output(&mut score)).expect("scores");
        for (scenario, score) in scores.as_object().into_iter().flatten() {
            let cells = COLUMNS.map(|column| match &score[column] {
                Value::Null => String::new(),
                number => number.to_string(),
            });
            println!("| `{options}` | {scenario} | {} |", cells.join(" | "));
            rows.push(json!({
                "part": "sites", "archive": options, "scenario": scenario, "score": score,
            }));
        }
    }
    rows
}
