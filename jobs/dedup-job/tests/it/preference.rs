//! Tests of `--prefer`: lists of rules against a plain comparison by them, on random documents.

use std::cmp::Ordering;
use std::fs;

use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::helpers::support::*;

const HOSTS: [&str; 4] = ["a.example", "b.example", "c.example", "d.example"];

/// A document, as the rules see it.
struct Document {
    id: String,
    quality: Option<i64>,
    /// As it is written, and in seconds since 1970.
    fetched: Option<(String, i64)>,
    host: usize,
    /// The number of its file, then its own in the file.
    place: (usize, usize),
    words: usize,
}

impl Document {
    fn random(rng: &mut ChaCha8Rng, number: usize, place: (usize, usize)) -> Self {
        let seconds = 1_767_323_045 + 3600 * rng.random_range(0..4);
        let utc = chrono::DateTime::from_timestamp(seconds, 0).unwrap();
        let offset = chrono::FixedOffset::east_opt(7200).unwrap();
        let text = match rng.random_range(0..4) {
            0 => utc.to_rfc3339(),
            1 => utc.with_timezone(&offset).to_rfc3339(),
            2 => utc.to_rfc2822(),
            _ => (1000 * seconds).to_string(),
        };
        Self {
            id: format!("{:03}-{number}", rng.random_range(0..1000)),
            quality: rng.random_bool(0.8).then(|| rng.random_range(-2..3)),
            fetched: rng.random_bool(0.8).then_some((text, seconds)),
            host: rng.random_range(0..4),
            place,
            words: rng.random_range(0..3),
        }
    }

    fn json(&self, group: usize) -> Value {
        let words: Vec<String> = (0..150 + self.words)
            .map(|word| format!("g{group}w{word}"))
            .collect();
        let mut document = json!({
            "id": self.id,
            "url": format!("https://{}/{}", HOSTS[self.host], self.id),
            "text": words.join(" "),
        });
        if let Some(quality) = self.quality {
            document["quality"] = quality.into();
        }
        if let Some((text, _)) = &self.fetched {
            document["fetched"] = text.clone().into();
        }
        document
    }

    /// Compares by one rule.
    fn by(&self, other: &Self, rule: &str) -> Ordering {
        /// A missing value comes last.
        fn missing_last<T: Ord>(a: Option<T>, b: Option<T>) -> Ordering {
            a.is_none().cmp(&b.is_none()).then_with(|| a.cmp(&b))
        }
        let time = |document: &Self| document.fetched.as_ref().map(|(_, seconds)| *seconds);
        let rank = |document: &Self| [2, 0].iter().position(|&host| host == document.host);
        match rule {
            "quality" => missing_last(self.quality, other.quality),
            "quality:desc" => missing_last(self.quality.map(|q| -q), other.quality.map(|q| -q)),
            "earliest" => missing_last(time(self), time(other)),
            "latest=fetched" => {
                missing_last(time(self).map(|time| -time), time(other).map(|time| -time))
            }
            "path" => self.place.0.cmp(&other.place.0),
            "first" => self.place.cmp(&other.place),
            "longest" => other.words.cmp(&self.words),
            "source=c.example,https://a.example/" => missing_last(rank(self), rank(other)),
            other => unreachable!("{other}"),
        }
    }
}

#[test]
fn rules_decide_in_their_order() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let dir = Dir::new();
    let (folders, output) = ([dir.at("second"), dir.at("a-first")], dir.at("d.csv"));
    for folder in &folders {
        fs::create_dir(folder).unwrap();
    }
    // The files in the order in which they are read: that of the folders, then by name.
    let files = [
        format!("{}/1.jsonl", folders[0]),
        format!("{}/2.jsonl", folders[0]),
        format!("{}/0.jsonl", folders[1]),
    ];
    let mut number = 0;
    let mut groups: Vec<Vec<Document>> = Vec::new();
    let mut lines = [const { String::new() }; 3];
    let mut rows = [0; 3];
    for group in 0..40 {
        let mut documents = Vec::new();
        for _ in 0..rng.random_range(1..6) {
            let file = rng.random_range(0..3);
            let document = Document::random(&mut rng, number, (file, rows[file]));
            lines[file] += &format!("{}\n", document.json(group));
            rows[file] += 1;
            number += 1;
            documents.push(document);
        }
        groups.push(documents);
    }
    for (file, lines) in files.iter().zip(lines) {
        fs::write(file, lines).unwrap();
    }
    let mut rules = [
        "quality",
        "quality:desc",
        "earliest",
        "latest=fetched",
        "path",
        "first",
        "longest",
    ];
    let run = format!(
        "run {} {} --decisions {output} --overwrite --template off -k 16 --verify none",
        folders[0], folders[1]
    );
    for round in 0..12 {
        rules.shuffle(&mut rng);
        let mut rules = rules[..rng.random_range(1..4)].to_vec();
        if round % 3 == 0 {
            rules.push("source=c.example,https://a.example/");
        }
        // Rules may be in one option, or in several.
        let separator = if round % 2 == 0 { "," } else { " --prefer " };
        let threads = 1 + round % 2;
        let prefer = rules.join(separator);
        dedup_ok(&format!("{run} --prefer {prefer} --threads {threads}"));
        let mut expected: Vec<&str> = Vec::new();
        for group in &groups {
            let best = group.iter().min_by(|a, b| {
                let by_rules = rules
                    .iter()
                    .map(|rule| a.by(b, rule))
                    .find(|order| order.is_ne());
                by_rules.unwrap_or(a.id.cmp(&b.id))
            });
            expected.push(&best.unwrap().id);
        }
        expected.sort_unstable();
        let mut kept = Vec::new();
        for line in fs::read_to_string(&output).unwrap().lines().skip(1) {
            let mut fields = line.split(',');
            let (id, is_kept) = (fields.next().unwrap(), fields.next().unwrap());
            if is_kept == "true" {
                kept.push(id.to_owned());
            }
        }
        assert_eq!(kept, expected, "{rules:?}");
    }
}

#[test]
fn sources_may_be_ranked_in_a_file() {
    let dir = Dir::new();
    let (new, output, ranks) = (dir.at("d.jsonl"), dir.at("d.csv"), dir.at("ranks.txt"));
    let words: Vec<String> = (0..50).map(|word| format!("word{word}")).collect();
    let line = |host: &str| {
        let url = format!("https://{host}/x");
        json!({ "id": host, "url": url, "text": words.join(" ") }).to_string()
    };
    fs::write(&new, HOSTS.map(line).join("\n")).unwrap();
    fs::write(&ranks, "# the best first\nb.example\nd.example\n").unwrap();
    let run = format!("run {new} --decisions {output} --overwrite");
    dedup_ok(&format!("{run} --prefer source=@{ranks}"));
    let decisions = fs::read_to_string(&output).unwrap();
    assert!(decisions.contains("b.example,true"), "{decisions}");
    // The summary of a day's settings names few sources, and the digest of many.
    dedup(&format!("{run} --prefer source=@{}", dir.at("none"))).fails(64, &["none"]);
    // A file of the ranking is no output.
    dedup(&format!(
        "run {new} --decisions {ranks} --overwrite --prefer source=@{ranks}"
    ))
    .fails(64, &["ranks.txt"]);
    dedup(&format!("{run} --prefer latest")).fails(65, &["time", "WARC-Date", "id, text, url"]);
    dedup(&format!("{run} --prefer a,,b")).fails(64, &["--prefer"]);
    dedup(&format!("{run} --prefer earliest=")).fails(64, &["--prefer", "column is missing"]);
    // A job has the whole path: its next command may run in another directory.
    let job = dir.at("JOB");
    let split = format!("split {job} {new} --decisions d2.csv --prefer longest,source=@ranks.txt");
    let split = command()
        .args(split.split_whitespace())
        .current_dir(dir.at(""))
        .output();
    Ran::of(split.unwrap()).ok();
    dedup(&format!("split {job}")).fails(75, &["is incomplete"]);
}

#[test]
fn what_may_be_a_column_is_one() {
    let dir = Dir::new();
    let (csv, json, output) = (dir.at("d.csv"), dir.at("d.jsonl"), dir.at("decisions.csv"));
    let words: Vec<String> = (0..50).map(|word| format!("word{word}")).collect();
    let text = words.join(" ");
    let run = |input: &str, prefer: &str| {
        let options = [
            "--prefer",
            prefer,
            "--decisions",
            output.as_str(),
            "--overwrite",
        ];
        dedup_job(["run", input].into_iter().chain(options))
    };
    for column in [
        "product desc",
        "source:id",
        "latest:version",
        "desc:score",
        "path:depth",
        "score=desc",
        "longest=text",
        "score:descending",
    ] {
        fs::write(&csv, format!("id,{column},text\na,2,{text}\nb,1,{text}\n")).unwrap();
        run(&csv, column).ok();
        let decisions = fs::read_to_string(&output).unwrap();
        assert!(decisions.contains("b,true"), "{column}: {decisions}");
    }
    // Without such a column, an error says which rule is meant.
    let line = |id: usize| format!("{}\n", json!({ "id": id, "text": text, "score": null }));
    let lines: String = (0..2).map(line).collect();
    for (column, rule) in [
        ("earliest:date", "(if a rule is meant: earliest=date)"),
        ("product desc", "(if a rule is meant: product:desc)"),
    ] {
        run(&csv, column).fails(65, &[column, rule, "id, score:descending, text"]);
        fs::write(&json, &lines).unwrap();
        run(&json, column).fails(65, &[column, rule, "id, "]);
        // Whose first document alone has it.
        let first = json!({ "id": 9, "text": "other", column: null });
        fs::write(&json, format!("{first}\n{lines}")).unwrap();
        let log = run(&json, column).ok().stderr;
        assert!(
            log.contains("no document has a value") && log.contains(rule),
            "{log}"
        );
    }
    run(&json, "score: desc").ok();
}

#[test]
fn parts_of_a_job_know_the_order_of_the_files() {
    let dir = Dir::new();
    let words: Vec<String> = (0..60).map(|word| format!("word{word}")).collect();
    let files = ["c", "a", "b"].map(|name| {
        let file = dir.at(&format!("{name}.jsonl"));
        let line = json!({ "id": name, "text": words.join(" ") }).to_string();
        fs::write(&file, line).unwrap();
        file
    });
    let ranks = dir.at("ranks.txt");
    fs::write(&ranks, "x\n").unwrap();
    let (job, output, expected) = (dir.at("job"), dir.at("job.csv"), dir.at("run.csv"));
    let options = format!(
        "{} --prefer path,source=@{ranks} --verify none",
        files.join(" ")
    );
    dedup_ok(&format!("run {options} --decisions {expected}"));
    let decisions = fs::read_to_string(&expected).unwrap();
    assert!(decisions.contains("c,true"), "{decisions}");
    let mut line = format!("split {job} {options} --decisions {output} --parts 3 --json");
    loop {
        let split = dedup_json(&line);
        if split["ready"] == true {
            break;
        }
        for part in 0..split["parts"].as_u64().unwrap() {
            dedup_ok(&format!("map {job} --part {part}"));
        }
        line = format!("split {job} --json");
    }
    // The file of the ranking must stay as it is.
    fs::write(&ranks, "y\n").unwrap();
    dedup(&format!("reduce {job}")).fails(78, &["--prefer"]);
    fs::write(&ranks, "x\n").unwrap();
    dedup_ok(&format!("reduce {job}"));
    assert_eq!(fs::read_to_string(&output).unwrap(), decisions);
}
