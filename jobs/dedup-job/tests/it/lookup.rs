//! The index of an archive, and `lookup`: every answer equals brute force, after every kind of change to the archive.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::helpers::days::*;
use crate::helpers::servers::*;
use crate::helpers::support::*;

/// The documents of each day: ids and fingerprints.
type Documents<'a> = BTreeMap<&'a str, Vec<(String, u64)>>;

/// An index, and how the program reaches it.
struct IndexAt<'a> {
    /// Its directory or URL.
    index: String,
    /// The store that holds the index, and the directory for copies of segments; `None` for a local index.
    store: Option<(&'a Storage, String)>,
}

impl IndexAt<'_> {
    fn local(index: &str) -> Self {
        Self {
            index: index.to_owned(),
            store: None,
        }
    }

    /// The program with a line of arguments, which names the index.
    fn command(&self, line: &str) -> Command {
        let mut ready = match &self.store {
            None => command(),
            Some((storage, _)) => storage.command(),
        };
        ready.args(line.split_whitespace());
        if let Some((_, cache)) = &self.store {
            ready.args(["--cache", cache]);
        }
        ready
    }

    fn run(&self, line: &str) -> Ran {
        without_secrets(Ran::of(self.command(line).output().unwrap()))
    }

    /// The line of arguments of a build.
    fn build_line(&self, archive: &str, options: &str) -> String {
        let index = &self.index;
        format!("index build --base {archive} --output {index} --json {options}")
    }

    /// What `index build` says.
    #[track_caller]
    fn build(&self, archive: &str, options: &str) -> Value {
        self.run(&self.build_line(archive, options)).ok().json()
    }

    /// Starts a build.
    fn start_build(&self, archive: &str, options: &str) -> Child {
        self.command(&self.build_line(archive, options))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    #[track_caller]
    fn verify(&self) -> Value {
        let line = format!("index info {} --verify --json", self.index);
        self.run(&line).ok().json()
    }

    /// Looks up lines of standard input.
    fn look_up(&self, options: &str, lines: &[String]) -> Ran {
        let line = format!("lookup --index {} --json {options} -", self.index);
        let mut child = self
            .command(&line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        let lines = lines.join("\n");
        let writing = std::thread::spawn(move || {
            // The program may stop reading at a bad line.
            let _ = input.write_all(lines.as_bytes());
        });
        let ran = Ran::of(child.wait_with_output().unwrap());
        writing.join().unwrap();
        ran
    }

    /// Asserts that the index answers as brute force over `documents`, by day.
    #[track_caller]
    fn same_as_brute_force(&self, documents: &Documents<'_>) {
        self.verify();
        let queries: Vec<u64> = (0..9)
            .flat_map(|number| {
                [
                    far(number),
                    far(number) ^ 3,
                    far(number) ^ 1 << 63 ^ 1 << 31,
                ]
            })
            .collect();
        let lines: Vec<String> = queries
            .iter()
            .map(|query| format!("{query:016x}"))
            .collect();
        for k in [0, 1, 3, 4, 8] {
            let found = hits(self.look_up(&format!("-k {k}"), &lines));
            assert_eq!(found.len(), queries.len());
            for (query, found) in queries.iter().zip(found) {
                let all = documents
                    .iter()
                    .flat_map(|(day, rows)| rows.iter().map(move |row| (*day, row)));
                let mut expected: Vec<_> = all
                    .map(|(day, (id, fp))| {
                        (
                            id.clone(),
                            u64::from((fp ^ query).count_ones()),
                            Some(day.to_owned()),
                        )
                    })
                    .filter(|(_, distance, _)| *distance <= k)
                    .collect();
                expected.sort_by(|a, b| (a.1, &a.0, &a.2).cmp(&(b.1, &b.0, &b.2)));
                let mut found = found;
                // Documents with one id on several days.
                found.sort_by(|a, b| (a.1, &a.0, &a.2).cmp(&(b.1, &b.0, &b.2)));
                assert_eq!(found, expected, "{query:016x}, k = {k}");
            }
        }
    }
}

#[track_caller]
fn build(archive: &str, index: &str, options: &str) -> Value {
    IndexAt::local(index).build(archive, options)
}

#[track_caller]
fn verify(index: &str) -> Value {
    IndexAt::local(index).verify()
}

fn look_up(index: &str, options: &str, lines: &[String]) -> Ran {
    IndexAt::local(index).look_up(options, lines)
}

#[track_caller]
fn same_as_brute_force(index: &str, documents: &Documents<'_>) {
    IndexAt::local(index).same_as_brute_force(documents);
}

/// Each line's hits as (id, distance, day).
fn hits(ran: Ran) -> Vec<Vec<(String, u64, Option<String>)>> {
    let answers = ran.ok().stdout;
    let answers = answers
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    answers
        .map(|answer| {
            let hits = answer["hits"].as_array().unwrap().iter();
            hits.map(|hit| {
                let id = hit["id"]
                    .as_str()
                    .map_or_else(|| hit["id"].to_string(), str::to_owned);
                (
                    id,
                    hit["distance"].as_u64().unwrap(),
                    hit["day"].as_str().map(str::to_owned),
                )
            })
            .collect()
        })
        .collect()
}

#[test]
fn the_index_follows_its_archive() {
    let days = Days::new();
    let index = days.dir.at("index");
    let archive = &days.archive;
    let mut documents: Documents<'_> = BTreeMap::new();
    let empty = build(archive, &index, "");
    assert_eq!((&empty["rows"], &empty["version"]), (&json!(0), &json!(1)));
    same_as_brute_force(&index, &documents);
    for (number, day) in DAYS.into_iter().enumerate() {
        let number = number as u64;
        let rows = [
            (format!("{number}-a"), far(number)),
            (format!("{number}-b"), far(number) ^ 1),
            (format!("{number}-c"), far(number)),
            ("everywhere".to_owned(), far(8) ^ 1 << (number + 40)),
        ];
        let named: Vec<(&str, u64)> = rows.iter().map(|(id, fp)| (id.as_str(), *fp)).collect();
        days.commit(day, &named);
        documents.insert(day, rows.to_vec());
        let built = build(archive, &index, "");
        assert_eq!(built["added_rows"], 4);
        assert!(built["segments"].as_u64().unwrap() <= 4, "{built}");
        same_as_brute_force(&index, &documents);
    }
    let again = build(archive, &index, "");
    assert_eq!(
        (&again["added_rows"], &again["merged"]),
        (&json!(0), &json!(0))
    );

    // A removed day, and removed ids, also of a merged segment.
    days.maintain("remove", &format!("--day {}", DAYS[1]));
    documents.remove(DAYS[1]);
    let built = build(archive, &index, "");
    assert_eq!(
        (&built["removed_rows"], &built["rows"]),
        (&json!(4), &json!(20))
    );
    same_as_brute_force(&index, &documents);
    let ids = days.dir.at("ids");
    std::fs::write(&ids, "everywhere\n3-b\n").unwrap();
    days.maintain("remove", &format!("--ids {ids}"));
    for rows in documents.values_mut() {
        rows.retain(|(id, _)| id != "everywhere" && id != "3-b");
    }
    build(archive, &index, "");
    same_as_brute_force(&index, &documents);
    days.maintain("compact", "");
    let built = build(archive, &index, "--merge-all");
    assert_eq!(
        (&built["segments"], &built["rows"]),
        (&json!(1), &json!(14))
    );
    same_as_brute_force(&index, &documents);
    // The versions before the last two are gone.
    let names = std::fs::read_dir(&index)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let manifests = names.filter(|name| name.starts_with("manifest-")).count();
    assert_eq!(manifests, 2);
}

#[test]
fn lookups_find_the_pairs_of_a_run() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate fingerprints --output {data} --new 3000 --base 30000 --days 3 --id-type bigint -k 8"
    ));
    let (archive, index) = (format!("{data}/archive"), dir.at("index"));
    build(&archive, &index, "");
    let new: Vec<(String, i64)> = read_parquet(format!("{data}/day.parquet"))
        .iter()
        .flat_map(|batch| {
            use arrow::array::AsArray as _;
            let fps = batch
                .column_by_name("fp")
                .unwrap()
                .as_primitive::<arrow::datatypes::Int64Type>()
                .values()
                .to_vec();
            texts(batch.column_by_name("id").unwrap())
                .into_iter()
                .zip(fps)
                .collect::<Vec<_>>()
        })
        .collect();
    let file = dir.at("queries.jsonl");
    let lines: Vec<String> = new
        .iter()
        .map(|(_, fp)| json!({ "fp": fp }).to_string())
        .collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    for k in [0, 3, 8] {
        let output = dir.at("hits.parquet");
        dedup_ok(&format!(
            "run --new {data}/day.parquet --base {archive} --no-within -k {k} --output {output} --quiet"
        ));
        let expected = read_pairs(&output);
        assert!(expected.len() > 20);
        for threads in [1, 3] {
            let ran = dedup(&format!(
                "lookup --index {index} -k {k} --json --threads {threads} {file}"
            ));
            let mut found: Vec<(String, String, i32)> = Vec::new();
            for ((id, _), hits) in new.iter().zip(hits(ran)) {
                found.extend(
                    hits.into_iter()
                        .map(|(base, distance, _)| (id.clone(), base, distance as i32)),
                );
            }
            found.sort();
            let mut expected = expected.clone();
            expected.sort();
            assert_eq!(found, expected, "k = {k}");
        }
    }
}

/// Texts of 60 words; `changed` of them differ from those of `number` alone.
fn text(number: u64, changed: u64) -> String {
    let word = |at: u64| {
        if at < changed {
            format!("other{}", far(number * 1000 + at))
        } else {
            format!("word{}", far(number * 1000 + at) % 100_000)
        }
    };
    (0..60).map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn texts_are_looked_up_by_the_spec_of_the_archive() {
    let dir = Dir::new();
    let (archive, index) = (dir.at("archive"), dir.at("index"));
    let old = dir.at("old.parquet");
    let texts: Vec<(String, String)> = (0..20)
        .map(|number| (format!("doc {number}\u{1b}[31m"), text(number, 0)))
        .collect();
    let documents: Vec<(&str, &str)> = texts
        .iter()
        .map(|(id, text)| (id.as_str(), text.as_str()))
        .collect();
    write_documents(&old, &documents);
    dedup_ok(&format!(
        "archive create --profile paper {archive} --learn {old} --sketch 256"
    ));
    dedup_ok(&format!(
        "archive append {archive} --input {old} --day 2026-03-04"
    ));
    build(&archive, &index, "");
    let queries = [text(7, 0), text(7, 1), text(99, 0), "two words".into()];
    let lines: Vec<String> = queries
        .iter()
        .map(|text| json!({ "text": text }).to_string())
        .collect();
    let answers = look_up(&index, "-k 8", &lines).ok().stdout;
    let answers: Vec<Value> = answers
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers[0]["query"]["text"], queries[0]);
    let fingerprints = answers.iter().map(|answer| answer["fp"].as_str());
    let digits: Vec<usize> = fingerprints.map(|fp| fp.map_or(0, str::len)).collect();
    assert_eq!(digits, [16, 16, 16, 0]);
    let first = |answer: &Value| answer["hits"][0].clone();
    assert_eq!(
        first(&answers[0]),
        json!({ "id": "doc 7\u{1b}[31m", "distance": 0, "day": "2026-03-04", "similarity": 1.0 })
    );
    assert_eq!(first(&answers[1])["id"], "doc 7\u{1b}[31m");
    let similarity = first(&answers[1])["similarity"].as_f64().unwrap();
    assert!((0.6..1.0).contains(&similarity), "{similarity}");
    assert_eq!(
        (&answers[2]["hits"], &answers[3]["hits"]),
        (&json!([]), &json!([]))
    );
    let strict = look_up(&index, "-k 8 --min-similarity 0.99", &lines[1..2]);
    assert_eq!(hits(strict), [[]]);

    // For people, and nothing in an id steers the terminal.
    let shown = dedup_job([
        "lookup",
        "--index",
        &index,
        "-k",
        "8",
        &queries[0],
        "two words",
        "0000000000000000",
    ])
    .ok()
    .stdout;
    for part in [
        "distance  similarity  day         id",
        "2026-03-04  doc 7\u{fffd}[31m",
        "too few features",
        "nothing within 8 bits",
    ] {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
    assert!(!shown.contains('\u{1b}'));
    // The index is whole without the archive.
    std::fs::remove_dir_all(&archive).unwrap();
    assert_eq!(hits(look_up(&index, "", &lines[..1]))[0].len(), 1);
}

#[test]
fn equal_fingerprints_and_long_ids_are_limited_by_request_only() {
    let days = Days::new();
    let index = days.dir.at("index");
    let long = "x".repeat((8 << 10) - 10);
    let ids: Vec<String> = (0..500)
        .map(|number| {
            format!(
                "{number:03}\t\u{0}{}",
                if number == 77 { &long } else { "" }
            )
        })
        .collect();
    let rows: Vec<(&str, u64)> = ids.iter().map(|id| (id.as_str(), far(1))).collect();
    days.commit(DAYS[0], &rows);
    build(&days.archive, &index, "");
    let line = [format!("{:016x}", far(1) ^ 5)];
    let found = hits(look_up(&index, "", &line)).remove(0);
    let found: Vec<&str> = found.iter().map(|hit| hit.0.as_str()).collect();
    assert_eq!(found, ids);
    let some = look_up(&index, "--limit 3", &line).ok().json();
    assert_eq!(
        (some["hits"].as_array().unwrap().len(), &some["more"]),
        (3, &json!(true))
    );
}

#[test]
fn bad_requests_are_refused() {
    let (days, _) = Days::three();
    let index = days.dir.at("index");
    let archive = &days.archive;
    dedup(&format!("lookup --index {index} 0000000000000000")).fails(64, &["index", "index build"]);
    dedup(&format!(
        "index build --base {archive}/index --output {index}"
    ))
    .fails(64, &["index"]);
    dedup(&format!(
        "index build --base {archive} --output {archive}/index"
    ))
    .fails(64, &["its own directory"]);
    let full = days.dir.at("full");
    std::fs::create_dir(&full).unwrap();
    std::fs::write(format!("{full}/file"), "x").unwrap();
    dedup(&format!("index build --base {archive} --output {full}"))
        .fails(64, &["no file of an index", "file"]);
    build(archive, &index, "");
    dedup(&format!("lookup --index {index}")).fails(64, &["standard input"]);
    dedup(&format!("lookup --index {index} -k 9 a")).fails(64, &["0..=8"]);
    // The name of a file that is not there is no text without hits, and a URL is no directory.
    for missing in ["queries.txt", "s3://bucket/queries.txt"] {
        dedup(&format!("lookup --index {index} {missing}")).fails(64, &["no file", missing]);
    }
    for option in ["--cache", "--remember", "--token-file"] {
        dedup(&format!("serve --index {index} {option} s3://bucket/x"))
            .fails(64, &[option, "on this machine"]);
    }
    dedup(&format!("lookup --index {index} --min-similarity 2 a")).fails(64, &["--min-similarity"]);
    for (line, reason) in [
        ("{\"fp\": 1.5}", "integer of 64 bits"),
        ("{}", "neither"),
        ("{\"fp\": \"xyz\"}", "16 hexadecimal"),
    ] {
        let lines = ["0000000000000000".to_owned(), line.to_owned()];
        let ran = look_up(&index, "", &lines).fails(65, &["standard input, line 2", reason]);
        // The lines before were answered.
        assert_eq!(ran.stdout.lines().count(), 1);
    }
    // Another archive, of another spec or of the same.
    let other = days
        .dir
        .archive("other", "--profile paper --tokenizer chars-3");
    dedup(&format!("index build --base {other} --output {index}"))
        .fails(78, &["tokenizer", "chars-3"]);
    let same = days.dir.archive("same", "--profile paper");
    dedup(&format!("index build --base {same} --output {index}")).fails(78, &["another archive"]);
}

/// The files of an index that its latest manifest names.
fn segment_files(index: &str) -> Vec<std::path::PathBuf> {
    let info = verify(index);
    let segments = info["segments"].as_array().unwrap().clone();
    let names = segments
        .iter()
        .map(|segment| segment["name"].as_str().unwrap().to_owned());
    names
        .flat_map(|name| {
            ["tables", "rows"]
                .map(|ending| std::path::Path::new(index).join(format!("{name}.{ending}")))
        })
        .collect()
}

#[test]
fn damaged_files_are_errors_that_name_them() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate fingerprints --output {data} --new 100 --base 5000 --days 1"
    ));
    let index = dir.at("index");
    build(&format!("{data}/archive"), &index, "");
    let lines: Vec<String> = (0..200)
        .map(|number| format!("{:016x}", far(number)))
        .collect();
    let whole = hits(look_up(&index, "-k 8", &lines));
    for path in segment_files(&index) {
        let bytes = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        for at in (0..bytes.len()).step_by(bytes.len() / 23) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(&path, &flipped).unwrap();
            dedup(&format!("index info {index} --verify")).fails(65, &[&name]);
            let ran = look_up(&index, "-k 8", &lines);
            match ran.code {
                // The page was not needed.
                0 => assert_eq!(hits(ran), whole, "{name}, byte {at}"),
                _ => drop(ran.fails(65, &[&name])),
            }
        }
        for length in [0, 10, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..length]).unwrap();
            look_up(&index, "", &lines).fails(65, &[&name]);
        }
        std::fs::remove_file(&path).unwrap();
        look_up(&index, "", &lines).fails(65, &[&name, "missing"]);
        std::fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(hits(look_up(&index, "-k 8", &lines)), whole);
    // A manifest of a later release.
    let manifest = std::path::Path::new(&index).join("manifest-00000000000000000001.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(
        &manifest,
        text.replacen("\"format\": 2", "\"format\": 3", 1),
    )
    .unwrap();
    look_up(&index, "", &lines).fails(78, &["manifest-", "format 3", "build the index again"]);
}

/// Commits forty documents near the queries of `same_as_brute_force`. Their ids begin with `number`. Returns them.
fn commit(days: &Days, day: &'static str, number: u64) -> Vec<(String, u64)> {
    let rows: Vec<(String, u64)> = (0..40_u64)
        .map(|row| {
            let fp = far(row % 9) ^ row << (8 * (number % 6));
            (format!("{number}-{row}"), fp)
        })
        .collect();
    let named: Vec<(&str, u64)> = rows.iter().map(|(id, fp)| (id.as_str(), *fp)).collect();
    days.commit(day, &named);
    rows
}

/// An archive of six days, and their documents.
fn six_days() -> (Days, Documents<'static>) {
    let days = Days::new();
    let documents = DAYS
        .into_iter()
        .enumerate()
        .map(|(number, day)| (day, commit(&days, day, number as u64)))
        .collect();
    (days, documents)
}

/// The number of builds to kill.
fn crashes() -> u64 {
    std::env::var("DEDUP_JOB_CRASHES").map_or(200, |number| number.parse().unwrap())
}

/// Kills builds, each after another part of the time that a whole one takes. Asserts that what they publish is whole, and
/// that after every fifth the next build completes the index. `new_index` has the number of an index.
fn kill_builds<'a>(
    test: &str,
    days: &Days,
    documents: &Documents<'_>,
    crashes: u64,
    new_index: impl Fn(u64) -> IndexAt<'a>,
) {
    let whole_build = |number| {
        let index = new_index(number);
        let begin = Instant::now();
        index.build(&days.archive, "");
        begin.elapsed()
    };
    let takes = whole_build(0).min(whole_build(1));
    let mut index = new_index(2);
    let (mut killed, mut seed) = (0, 7);
    for round in 0..crashes {
        let mut child = index
            .command(&index.build_line(&days.archive, ""))
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        seed = far(seed);
        std::thread::sleep(takes.mul_f64((seed % 1000) as f64 / 1000.0));
        child.kill().unwrap();
        killed += u64::from(child.wait().unwrap().code().is_none());
        let info = index.run(&format!("index info {}", index.index));
        match info.code {
            // What was published is whole.
            0 => drop(index.verify()),
            _ => drop(info.fails(64, &["not an index"])),
        }
        // A finished index would have nothing left to do.
        if round % 5 == 4 {
            let options = if round % 10 == 9 { "--merge-all" } else { "" };
            index.build(&days.archive, options);
            index.same_as_brute_force(documents);
            index = new_index(3 + round / 5);
        }
    }
    say(&format!(
        "{test}: {killed} of {crashes} builds were killed at work"
    ));
    assert!(
        crashes < 8 || killed > crashes / 4,
        "{killed} of {crashes} builds were killed"
    );
}

#[test]
fn builds_that_are_killed_go_on() {
    let (days, documents) = six_days();
    let new_index = |number: u64| IndexAt::local(&days.dir.at(&format!("index-{number}")));
    kill_builds(
        "builds_that_are_killed_go_on",
        &days,
        &documents,
        crashes(),
        new_index,
    );
    // A build removes what a stopped one left a day ago.
    let index = days.dir.at("index");
    let left: Vec<_> = [
        "segment-00000000000000000000000000000000.rows",
        ".segment-00000000000000000000000000000001.tables.x.tmp",
    ]
    .iter()
    .map(|name| std::path::Path::new(&index).join(name))
    .collect();
    build(&days.archive, &index, "");
    for path in &left {
        let file = std::fs::File::create(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(100_000))
            .unwrap();
    }
    days.maintain("remove", &format!("--day {}", DAYS[0]));
    build(&days.archive, &index, "");
    assert!(left.iter().all(|path| !path.exists()));
}

#[test]
fn builds_in_a_store_that_are_killed_go_on() {
    let Some(storage) = seaweed() else { return };
    let (days, documents) = six_days();
    // The killed builds leave copies, too: all indexes share one cache.
    let new_index = |_: u64| IndexAt {
        index: storage.unique("index"),
        store: Some((&storage, days.dir.at("cache"))),
    };
    kill_builds(
        "builds_in_a_store_that_are_killed_go_on",
        &days,
        &documents,
        crashes() / 10,
        new_index,
    );
}

/// Starts two builds of one index in each round, the second at another moment of the first. Asserts that each succeeds or
/// says that the other came first, that one succeeds, and that the next build completes the index. Returns how many said
/// that the other came first.
fn build_twice_at_once(days: &Days, index: &IndexAt<'_>, rounds: u64) -> u64 {
    let archive = &days.archive;
    let mut documents = BTreeMap::from([(DAYS[0], commit(days, DAYS[0], 0))]);
    let begin = Instant::now();
    index.build(archive, "");
    let takes = begin.elapsed();
    let mut overtaken = 0;
    for round in 1..=rounds {
        let day = DAYS[round as usize % DAYS.len()];
        if documents.remove(day).is_some() {
            days.maintain("remove", &format!("--day {day}"));
        }
        documents.insert(day, commit(days, day, round));
        // In every third round, another day is removed while the builds run.
        let mut others = documents.keys().copied().filter(|other| *other != day);
        let removed = others.next().filter(|_| round % 3 == 0);
        let first = index.start_build(archive, "");
        std::thread::sleep(takes.mul_f64((round % 4) as f64 / 4.0));
        let removing = removed.map(|day| {
            let line = format!("archive remove {archive} --day {day} --json");
            start(command(), &line)
        });
        let merge = if round / 4 % 2 == 1 {
            "--merge-all"
        } else {
            ""
        };
        let second = index.start_build(archive, merge);
        if let (Some(day), Some(removing)) = (removed, removing) {
            Ran::of(removing.wait_with_output().unwrap()).ok();
            documents.remove(day);
        }
        let mut succeeded = 0;
        for build in [first, second] {
            let ran = without_secrets(Ran::of(build.wait_with_output().unwrap()));
            match ran.code {
                0 => {
                    ran.ok();
                    succeeded += 1;
                }
                _ => {
                    ran.fails(75, &["another build published version", "again"]);
                    overtaken += 1;
                }
            }
        }
        assert!(succeeded > 0, "round {round}: neither build succeeded");
        index.build(archive, "");
        index.same_as_brute_force(&documents);
    }
    overtaken
}

#[test]
fn two_builds_at_once_publish_one_after_the_other() {
    let days = Days::new();
    let index = IndexAt::local(&days.dir.at("index"));
    let overtaken = build_twice_at_once(&days, &index, 12);
    say(&format!(
        "two_builds_at_once_publish_one_after_the_other: {overtaken} of 24 builds were overtaken"
    ));
    assert!(overtaken > 0, "the builds did not meet");
}

#[test]
fn two_builds_at_once_in_a_store_publish_one_after_the_other() {
    let Some(storage) = seaweed() else { return };
    let days = Days::new();
    let index = IndexAt {
        index: storage.unique("index"),
        store: Some((&storage, days.dir.at("cache"))),
    };
    // Perhaps none: in a store, two builds that publish the same bytes both succeed.
    let overtaken = build_twice_at_once(&days, &index, 6);
    say(&format!(
        "two_builds_at_once_in_a_store_publish_one_after_the_other: {overtaken} of 12 builds were overtaken"
    ));
}

#[test]
fn an_index_in_a_store_is_used_from_copies() {
    let Some(storage) = seaweed() else { return };
    let (days, _) = Days::three();
    let index = storage.unique("index");
    let (cache, other) = (days.dir.at("cache"), days.dir.at("other-cache"));
    let line = format!(
        "index build --base {} --output {index} --json",
        days.archive
    );
    let built = storage.dedup_ok(&format!("{line} --cache {cache}")).json();
    assert_eq!(
        (&built["rows"], &built["added_rows"]),
        (&json!(13), &json!(13))
    );
    let info = format!("index info {index} --verify --json --cache");
    for cache in [&cache, &other] {
        assert_eq!(
            storage.dedup_ok(&format!("{info} {cache}")).json()["rows"],
            13
        );
    }
    let query = format!(
        "lookup --index {index} --json --cache {other} {:016x}",
        far(1)
    );
    let ids: Vec<String> = hits(storage.dedup(&query))
        .remove(0)
        .into_iter()
        .map(|hit| hit.0)
        .collect();
    assert_eq!(ids, ["a1", "b1", "c1"]);
    // A damaged copy that is found at opening, or a missing one, is fetched again.
    let mut copies = std::fs::read_dir(&other)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let copy = copies.find(|path| path.extension().is_some_and(|ending| ending == "tables"));
    let copy = copy.unwrap();
    let whole = std::fs::read(&copy).unwrap();
    let mut bytes = whole.clone();
    bytes[100] ^= 1;
    std::fs::write(&copy, bytes).unwrap();
    storage.dedup_ok(&format!("{info} {other}"));
    assert!(std::fs::read(&copy).unwrap() == whole);
    std::fs::remove_file(&copy).unwrap();
    storage.dedup_ok(&format!("{info} {other}"));
    days.commit(DAYS[3], &[("d1", far(1) ^ 2)]);
    storage.dedup_ok(&format!("{line} --cache {cache}"));
    let ids: Vec<String> = hits(storage.dedup(&query))
        .remove(0)
        .into_iter()
        .map(|hit| hit.0)
        .collect();
    assert_eq!(ids, ["a1", "b1", "c1", "d1"]);
}
