//! Which planted near-duplicates are found in the texts that several programs extract from the same pages.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::{Args, Crawl, dedup_job, script};
use crate::{documents, program};

/// Options of the runs.
const SETTINGS: [&str; 3] = ["--profile paper", "-k 8 --sketch 256 --verify sketch", ""];
/// Methods of `crawl_texts.py`.
const PEERS: [&str; 3] = ["resiliparse", "resiliparse-main", "trafilatura"];
/// Reasons of planted pairs, in the order of the table. Two copies of one page are a `combined` pair.
const REASONS: [&str; 8] = [
    "advertisement",
    "counter",
    "date",
    "navigation",
    "recrawl",
    "edit",
    "mirror",
    "combined",
];

/// Those whose pages can be of two sites, or have several differences.
const OF_SEVERAL: [&str; 2] = ["mirror", "combined"];

/// The addresses of two pages, the smaller first.
type Pair = (String, String);

/// Texts from which fingerprints are made.
struct Texts {
    name: String,
    file: PathBuf,
    /// Options that say how the file is read.
    options: Vec<String>,
}

/// Measures all extractions with all settings; prints and returns the rows.
pub fn measure(args: &Args, crawl: &Crawl) -> Vec<Value> {
    let truth = read_truth(&crawl.file("truth.jsonl"));
    let mut planted: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in truth.values() {
        *planted.entry(reason.as_str()).or_default() += 1;
    }
    println!("\nquality: recall of planted pairs by reason, and precision\n");
    println!(
        "| text | settings | {} | precision | pairs |",
        REASONS.join(" | ")
    );
    println!("|---|---|{}---:|---:|", REASONS.map(|_| "---:|").concat());
    let counts = REASONS.map(|reason| planted.get(reason).copied().unwrap_or(0).to_string());
    println!(
        "| planted pairs | | {} | | {} |",
        counts.join(" | "),
        truth.len()
    );
    let texts = texts(args, crawl);
    let mut rows = Vec::new();
    for settings in SETTINGS {
        for texts in &texts {
            match find_pairs(args, texts, settings) {
                Ok(found) => rows.push(compare(&texts.name, settings, &found, &truth, &planted)),
                Err(error) => eprintln!("{} is left out: {error}", texts.name),
            }
        }
    }
    rows
}

/// The texts of all extractions: the articles without a page around them, ours, and those of other programs.
fn texts(args: &Args, crawl: &Crawl) -> Vec<Texts> {
    let mut texts = vec![Texts {
        name: "article alone".to_owned(),
        file: crawl.file("articles.jsonl"),
        options: Vec::new(),
    }];
    texts.extend(args.markups.iter().map(|markup| {
        let options = [
            "--markup",
            markup.as_str(),
            "--text-column",
            "html",
            "--id-column",
            "url",
        ];
        Texts {
            name: format!("dedup-job {markup}"),
            file: crawl.file("pages.parquet"),
            options: options.map(str::to_owned).to_vec(),
        }
    }));
    texts.extend(PEERS.map(|method| {
        let file = crawl.file(&format!("{method}.jsonl"));
        if !file.exists() {
            // A file that is not complete is not reused.
            let draft = crawl.file(&format!("{method}.jsonl.draft"));
            let output = program::output(
                script(args, "crawl_texts.py")
                    .arg(method)
                    .arg(crawl.file("pages.parquet"))
                    .arg(&draft),
            );
            eprint!("{}", String::from_utf8_lossy(&output));
            std::fs::rename(&draft, &file).expect("the texts, renamed");
        }
        Texts {
            name: method.to_owned(),
            file,
            options: Vec::new(),
        }
    }));
    texts
}

/// Reads the planted pairs and their reasons.
fn read_truth(path: &Path) -> HashMap<Pair, String> {
    let text = std::fs::read_to_string(path).expect("the truth");
    let lines = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("a line of JSON");
        let field = |name: &str| line[name].as_str().expect("a string").to_owned();
        (pair(field("url_a"), field("url_b")), field("reason"))
    });
    lines.collect()
}

fn host(address: &str) -> &str {
    address.split('/').nth(2).unwrap_or_default()
}

fn pair(a: String, b: String) -> Pair {
    if a <= b { (a, b) } else { (b, a) }
}

/// Finds the pairs among texts; the error is what the program said.
fn find_pairs(args: &Args, texts: &Texts, settings: &str) -> Result<HashSet<Pair>, String> {
    let scratch = tempfile::tempdir().expect("a directory");
    let hits = scratch.path().join("hits.parquet");
    let output = Command::new(dedup_job(args))
        .args(["run", "--quiet"])
        .arg(&texts.file)
        .args(settings.split_whitespace())
        .args(&texts.options)
        .arg("--output")
        .arg(&hits)
        .output()
        .expect("the program");
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(errors.lines().next().unwrap_or("it failed").to_owned());
    }
    let [new, base] = ["new_id", "base_id"].map(|column| documents::strings(&hits, column));
    Ok(new.into_iter().zip(base).map(|(a, b)| pair(a, b)).collect())
}

/// Compares found pairs with the planted ones; prints and returns the row.
fn compare(
    name: &str,
    settings: &str,
    found: &HashSet<Pair>,
    truth: &HashMap<Pair, String>,
    planted: &BTreeMap<&str, usize>,
) -> Value {
    let mut right: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in found.iter().filter_map(|pair| truth.get(pair)) {
        *right.entry(reason.as_str()).or_default() += 1;
    }
    let recalls: BTreeMap<&str, f64> = planted
        .iter()
        .map(|(reason, planted)| {
            let right = right.get(reason).copied().unwrap_or(0);
            (*reason, right as f64 / *planted as f64)
        })
        .collect();
    let mut by_site: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    let within_site = truth
        .iter()
        .filter(|(_, reason)| !OF_SEVERAL.contains(&reason.as_str()));
    for (pair, _) in within_site {
        let [found_here, planted_here] = by_site.entry(host(&pair.0)).or_default();
        *found_here += usize::from(found.contains(pair));
        *planted_here += 1;
    }
    let precision = right.values().sum::<usize>() as f64 / found.len() as f64;
    let cells = REASONS.map(|reason| {
        let recall = recalls.get(reason);
        recall.map_or_else(String::new, |recall| format!("{recall:.3}"))
    });
    println!(
        "| {name} | `{settings}` | {} | {precision:.3} | {} |",
        cells.join(" | "),
        found.len()
    );
    json!({
        "part": "quality", "text": name, "settings": settings, "recall": recalls, "planted": planted,
        "precision": precision, "pairs": found.len(), "found_and_planted_by_site": by_site,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_and_precision_are_counted() {
        let at = |a: &str, b: &str| pair(format!("https://site/{a}"), format!("https://site/{b}"));
        let truth = HashMap::from([
            (at("a", "b"), "date".to_owned()),
            (at("a", "c"), "date".to_owned()),
            (at("b", "c"), "combined".to_owned()),
        ]);
        let planted = BTreeMap::from([("date", 2), ("combined", 1)]);
        // A pair counts whichever of its documents is the base; one pair is false.
        let found = HashSet::from([at("b", "a"), at("c", "b"), at("a", "d")]);
        let row = compare("text", "-k 3", &found, &truth, &planted);
        assert_eq!(row["recall"], json!({ "combined": 1.0, "date": 0.5 }));
        assert_eq!(row["precision"], json!(2.0 / 3.0));
        assert_eq!(row["found_and_planted_by_site"], json!({ "site": [1, 2] }));
    }
}
