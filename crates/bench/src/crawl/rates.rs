//! Seconds, MB/s and memory of each program for the files of a crawl.

use std::path::Path;

use serde_json::{Value, json};

use super::{Args, Crawl, dedup_job, one_core, script};
use crate::program;

/// Methods of `crawl_peers.py` for WARC files, and for WET files.
const WARC_PEERS: [&str; 6] = [
    "records",
    "records-http",
    "payloads",
    "plain",
    "main",
    "trafilatura",
];
const WET_PEERS: [&str; 4] = ["inflate-zlib", "inflate-gzip", "inflate-fastwarc", "wet"];
/// Those for the HTML of Debian packages.
const DEBIAN_PEERS: [&str; 3] = ["payloads", "plain", "main"];

const WARC: &str = "pages.warc.gz";
const ZSTD: &str = "pages.warc.zst";
const WET: &str = "pages.wet.gz";

/// Measures all programs on generated pages.
pub fn of_crawl(args: &Args, crawl: &Crawl) -> Vec<Value> {
    let mut table = Table::new(args, "crawl", crawl);
    for file in [WARC, ZSTD] {
        table.add_peer(file, "records");
        table.add_records(file);
    }
    for method in WARC_PEERS.into_iter().skip(1) {
        table.add_peer(WARC, method);
    }
    for markup in &args.markups {
        table.add_fingerprints(WARC, Some(markup.as_str()));
    }
    for method in WET_PEERS {
        table.add_peer(WET, method);
    }
    table.add_fingerprints(WET, None);
    table.add_ratios();
    table.rows
}

/// Measures the extraction of text from HTML of Debian packages.
pub fn of_debian(args: &Args, crawl: &Crawl) -> Vec<Value> {
    let mut table = Table::new(args, "debian", crawl);
    for method in DEBIAN_PEERS {
        table.add_peer(WARC, method);
    }
    for markup in &args.markups {
        table.add_fingerprints(WARC, Some(markup.as_str()));
    }
    table.add_ratios();
    table.rows
}

/// The rows of a crawl, which are printed as they come.
struct Table<'a> {
    args: &'a Args,
    part: &'static str,
    crawl: &'a Crawl,
    rows: Vec<Value>,
}

impl<'a> Table<'a> {
    fn new(args: &'a Args, part: &'static str, crawl: &'a Crawl) -> Self {
        println!(
            "\n{part}: {} pages, {:.0} MB of HTML; best of {}, one core\n",
            crawl.count("page"),
            crawl.count("html_bytes") / 1e6,
            args.times
        );
        println!("| file | program | what | seconds | MB/s compressed | MB/s decompressed | MiB |");
        println!("|---|---|---|---:|---:|---:|---:|");
        Self {
            args,
            part,
            crawl,
            rows: Vec::new(),
        }
    }

    /// Measures a method of `crawl_peers.py`.
    fn add_peer(&mut self, file: &str, method: &str) {
        let output = program::output(
            script(self.args, "crawl_peers.py")
                .arg(method)
                .arg(self.crawl.file(file))
                .args(["--runs", &self.args.times.to_string()])
                .args(["--pages", &self.args.trafilatura_pages.to_string()]),
        );
        let facts: Value = serde_json::from_slice(&output).expect("a line of JSON");
        let version = facts["version"].as_str().unwrap_or("Python");
        // Of trafilatura, the time for all pages.
        let seconds = facts["seconds_of_all"].as_f64();
        let seconds = seconds.or(facts["seconds"].as_f64()).unwrap_or(f64::NAN);
        let peak_memory = facts["peak_memory_bytes"].as_u64().unwrap_or_default();
        self.add(file, version, method, seconds, peak_memory, &facts);
    }

    /// Measures our reader alone, if this build has it.
    fn add_records(&mut self, file: &str) {
        let own = std::env::current_exe().expect("the path of this program");
        let best = one_core::best_of(self.args.times, || {
            let mut command = one_core::command(&own);
            command.arg("crawl-records").arg(self.crawl.file(file));
            command
        });
        let best = best.unwrap_or_else(|error| panic!("crawl-records: {error}"));
        let facts: Value = serde_json::from_str(&best.output).expect("a line of JSON");
        if facts.is_null() {
            eprintln!("{file}: this build has no reader of WARC files alone");
            return;
        }
        let expected = self
            .row("records", file)
            .map(|row| &row["facts"]["records"]);
        assert!(
            expected.is_none_or(|expected| *expected == facts["records"]),
            "{file}: another number of records than fastwarc reads"
        );
        self.add(
            file,
            "dedup-job",
            "our records",
            best.seconds,
            best.peak_memory,
            &facts,
        );
    }

    /// Measures `dedup-job fingerprint`.
    fn add_fingerprints(&mut self, file: &str, markup: Option<&str>) {
        let program = dedup_job(self.args);
        let scratch = tempfile::tempdir().expect("a directory");
        let output = scratch.path().join("fingerprints.parquet");
        let best = one_core::best_of(self.args.times, || {
            let mut command = one_core::command(&program);
            command
                .args(["fingerprint", "--quiet", "--json", "--overwrite"])
                .args(["--threads", "1", "--id-from", "url", "--input"])
                .arg(self.crawl.file(file))
                .arg("--output")
                .arg(&output);
            if let Some(markup) = markup {
                command.args(["--markup", markup]);
            }
            command
        });
        let what = match markup {
            Some(markup) => format!("fingerprints, --markup {markup}"),
            None => "fingerprints".to_owned(),
        };
        let best = match best {
            Ok(best) => best,
            Err(error) => {
                eprintln!("{file}: {what} is left out: {error}");
                return;
            }
        };
        let summary: Value = serde_json::from_str(&best.output).expect("a summary");
        let documents = summary["documents"].as_f64().unwrap_or_default();
        let pages = self.crawl.count("page");
        // Whether robots.txt, which is plain text, is a document is not this benchmark's business.
        assert!(
            (pages..=pages + self.crawl.count("robots")).contains(&documents),
            "{file}: {documents} documents of {pages} pages"
        );
        self.add(
            file,
            "dedup-job",
            &what,
            best.seconds,
            best.peak_memory,
            &summary,
        );
    }

    /// Prints and keeps a row.
    fn add(
        &mut self,
        file: &str,
        program: &str,
        what: &str,
        seconds: f64,
        peak_memory: u64,
        facts: &Value,
    ) {
        let compressed = size(&self.crawl.file(file)) / 1e6 / seconds;
        let decompressed = self.decompressed(file) / 1e6 / seconds;
        println!(
            "| {file} | {program} | {what} | {seconds:.2} | {compressed:.1} | {decompressed:.0} | {:.0} |",
            peak_memory as f64 / 1048576.0
        );
        self.rows.push(json!({
            "part": self.part, "file": file, "program": program, "what": what, "seconds": seconds,
            "compressed_megabytes_per_second": compressed, "decompressed_megabytes_per_second": decompressed,
            "peak_memory_bytes": peak_memory, "pages": self.crawl.counts["page"], "facts": facts,
        }));
    }

    /// Bytes of a file when it is decompressed: of WET, those of its texts.
    fn decompressed(&self, file: &str) -> f64 {
        self.crawl.count(if file == WET {
            "wet_text_bytes"
        } else {
            "warc_bytes"
        })
    }

    fn row(&self, what: &str, file: &str) -> Option<&Value> {
        self.rows
            .iter()
            .find(|row| row["what"] == what && row["file"] == file)
    }

    fn seconds(&self, what: &str, file: &str) -> Option<f64> {
        self.row(what, file)?["seconds"].as_f64()
    }

    /// Prints and keeps the ratios of rates for which there are targets.
    fn add_ratios(&mut self) {
        let inflate = ["inflate-zlib", "inflate-gzip", "inflate-fastwarc"]
            .into_iter()
            .filter_map(|method| self.seconds(method, WET))
            .reduce(f64::min);
        let text = self.seconds("fingerprints, --markup text", WARC);
        let main = self.seconds("fingerprints, --markup main", WARC);
        let ratios = [
            (
                "records of .warc.gz, of fastwarc's",
                self.seconds("records", WARC),
                self.seconds("our records", WARC),
            ),
            (
                "text to fingerprints, of resiliparse's plain text",
                self.seconds("plain", WARC),
                text,
            ),
            (
                "main to fingerprints, of resiliparse's main content",
                self.seconds("main", WARC),
                main,
            ),
            ("main, of text", text, main),
            (
                "WET to fingerprints, of the fastest decompression",
                inflate,
                self.seconds("fingerprints", WET),
            ),
        ];
        println!();
        for (name, theirs, ours) in ratios {
            let (Some(theirs), Some(ours)) = (theirs, ours) else {
                continue;
            };
            println!("{name}: {:.2}", theirs / ours);
            self.rows
                .push(json!({ "part": self.part, "ratio": name, "value": theirs / ours }));
        }
    }
}

/// Bytes of a file.
fn size(path: &Path) -> f64 {
    path.metadata().map_or(f64::NAN, |about| about.len() as f64)
}
