//! Benchmarks of dedup-job against other programs and against itself. Each prints a table of its
//! figures and can write them as JSON. `join`, `lookup`, `map`, `scale` and `slow-store` also check
//! their results against known answers; `sharp` checks only the results of random fingerprints.

mod crawl;
mod data;
mod designs;
mod documents;
mod external;
mod features;
mod join;
mod keep;
mod latency;
mod learn_frequencies;
mod lookup;
mod lookup_http;
mod machine;
mod map;
mod parts;
mod peers;
mod program;
mod quality;
mod scale;
mod sharp;
mod slow_store;
mod threads;
mod truth;
mod years;

use std::path::PathBuf;

use clap::Parser;

/// Benchmarks dedup-job, against other programs and against itself
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    bench: Bench,
    /// Also write the results and a description of the machine to this JSON file
    #[arg(long, global = true, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Bench {
    /// Fingerprint the pages of a crawl, and find planted near-duplicates, beside other programs
    Crawl(crawl::Args),
    /// Read the records of a WARC file, for `crawl`
    #[command(hide = true)]
    CrawlRecords(crawl::records::Args),
    /// Join in memory with every design: predicted and measured cost
    Designs(designs::Args),
    /// Find near-duplicates that others have labelled, with no option, beside other programs
    External(external::Args),
    /// Fingerprint texts on one core, with several specs and with other programs
    Features(features::Args),
    /// Join in memory, against other programs and naive methods on the same data
    Join(join::Args),
    /// Decide which documents of real corpora to keep, against other programs
    Keep(keep::Args),
    /// Look fingerprints up in an index, against the paper's code of its tables and other programs
    Lookup(lookup::Args),
    /// Send lookups to `dedup-job serve`
    LookupHttp(lookup_http::Args),
    /// Look fingerprints up with mih-rs, for `lookup`
    #[command(hide = true)]
    LookupMih(lookup::mih::Args),
    /// Run `dedup-job fingerprint` on Parquet files, against its kernel alone
    Map(map::Args),
    /// Run in parts (`split`, `map`, `reduce`), against `run`
    Parts(parts::Args),
    /// Measure precision and recall of many specs and other programs on real documents
    Quality(quality::Args),
    /// Run `dedup-job run` on archives of growing size
    Scale(scale::Args),
    /// Measure false pairs in large archives, precision, recall and speed of many specs and other programs
    Sharp(sharp::Args),
    /// Join an archive in a store whose every request has a latency
    SlowStore(slow_store::Args),
    /// Measure what grows with the nights of an archive and the files of a batch
    Years(years::Args),
}

fn main() {
    let args = Args::parse();
    let (name, rows) = match &args.bench {
        Bench::Crawl(args) => ("crawl", crawl::run(args)),
        Bench::CrawlRecords(args) => ("crawl-records", crawl::records::run(args)),
        Bench::Designs(args) => ("designs", designs::run(args)),
        Bench::External(args) => ("external", external::run(args)),
        Bench::Features(args) => ("features", features::run(args)),
        Bench::Join(args) => ("join", join::run(args)),
        Bench::Keep(args) => ("keep", keep::run(args)),
        Bench::Lookup(args) => ("lookup", lookup::run(args)),
        Bench::LookupHttp(args) => ("lookup-http", lookup_http::run(args)),
        Bench::LookupMih(args) => ("lookup-mih", lookup::mih::run(args)),
        Bench::Map(args) => ("map", map::run(args)),
        Bench::Parts(args) => ("parts", parts::run(args)),
        Bench::Quality(args) => ("quality", quality::run(args)),
        Bench::Scale(args) => ("scale", scale::run(args)),
        Bench::Sharp(args) => ("sharp", sharp::run(args)),
        Bench::SlowStore(args) => ("slow-store", slow_store::run(args)),
        Bench::Years(args) => ("years", years::run(args)),
    };
    if let Some(path) = args.json {
        // A line for each row: a row of `sharp` has hundreds of numbers.
        let rows = rows.into_iter().map(rounded);
        let rows: Vec<String> = rows.map(|row| format!("    {row}")).collect();
        let text = format!(
            "{{\n  \"bench\": \"{name}\",\n  \"arguments\": {},\n  \"machine\": {},\n  \"results\": [\n{}\n  ]\n}}\n",
            serde_json::json!(std::env::args().skip(1).collect::<Vec<_>>()),
            machine::describe(),
            rows.join(",\n")
        );
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// The same with four digits of each number that is not an integer: of what is measured, others say nothing.
fn rounded(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) if number.is_f64() => {
            let digits = format!("{:.3e}", number.as_f64().unwrap_or(0.0));
            digits.parse::<f64>().map_or(Value::Null, Value::from)
        }
        Value::Array(values) => values.into_iter().map(rounded).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Object(fields.map(|(name, value)| (name, rounded(value))).collect())
        }
        other => other,
    }
}
