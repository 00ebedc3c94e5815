//! Tests of outputs: formats by the ending, standard output, and files that a run never replaces
//! without --overwrite. Fault 50 of docs/faults.md, and fault 46 for temporary files beside
//! outputs.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::helpers::servers::seaweed;
use crate::helpers::support::*;

/// Ids that need quotes in CSV, or escapes in JSON.
const IDS: [&str; 8] = [
    "plain",
    "a,b",
    "say \"so\"",
    "two\nlines",
    "carriage\r\nreturn\r",
    "nul\0",
    " spaces ",
    "",
];

/// Writes a batch of equal fingerprints with unusual ids, and a base of two files, one of which has
/// a day. Returns the command line of a run without its outputs.
fn awkward(dir: &Dir) -> String {
    write_parquet(
        dir.join("day.parquet"),
        vec![("id", strings(IDS)), ("fp", numbers([7; IDS.len()]))],
    );
    fs::create_dir_all(dir.join("base/day=1970-01-11")).unwrap();
    write_fingerprints(
        dir.join("base/day=1970-01-11/x.parquet"),
        &[("old".into(), 6)],
    );
    write_fingerprints(dir.join("base/y.parquet"), &[("older, still".into(), 5)]);
    format!(
        "run --new {} --base {} --day 1970-01-12",
        dir.at("day.parquet"),
        dir.at("base")
    )
}

/// The pairs as text: a date for a day, nothing for null.
fn as_text(hits: Vec<Hit>) -> Vec<Vec<String>> {
    let date = |day: i32| {
        let first = "1970-01-01".parse::<chrono::NaiveDate>().unwrap();
        (first + chrono::Days::new(day as u64)).to_string()
    };
    hits.into_iter()
        .map(|hit| {
            let day = hit.3.map(date).unwrap_or_default();
            vec![hit.0, hit.1, hit.2.to_string(), day]
        })
        .collect()
}

/// Parses CSV by RFC 4180.
fn csv(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut is_quoted = false;
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '"' if is_quoted && rest.peek() == Some(&'"') => {
                rest.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            other => field.push(other),
        }
    }
    assert!(field.is_empty() && record.is_empty() && !is_quoted);
    records
}

/// Parses JSON Lines, and asserts that the keys have the order of an output's columns.
fn json_lines(text: &str) -> Vec<Vec<String>> {
    let row = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let keys = ["new_id", "base_id", "distance", "base_day"];
        let places = keys.map(|key| line.find(&format!("\"{key}\":")).unwrap());
        assert!(places.is_sorted(), "{line}");
        assert_eq!(value.as_object().unwrap().len(), keys.len());
        let text = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => String::new(),
            number => number.to_string(),
        };
        keys.map(|key| text(&value[key])).to_vec()
    };
    text.lines().map(row).collect()
}

#[test]
fn every_format_has_the_same_rows() {
    let dir = Dir::new();
    let run = awkward(&dir);
    let parquet = dir.at("hits.parquet");
    dedup_ok(&format!("{run} --output {parquet}"));
    let expected = as_text(read_hits(&parquet));
    assert_eq!(expected.len(), 2 * IDS.len() + 8 * 7 / 2);
    let mut outputs = Vec::new();
    for threads in [1, 2, 7] {
        let (comma, json) = (dir.at("hits.csv"), dir.at("hits.jsonl"));
        dedup_ok(&format!("{run} --output {comma} --threads {threads}"));
        dedup_ok(&format!("{run} --output {json} --threads {threads}"));
        let ran = dedup_ok(&format!("{run} -o - --threads {threads}"));
        let (comma, json) = (
            fs::read_to_string(comma).unwrap(),
            fs::read_to_string(json).unwrap(),
        );
        assert!(ran.stdout == json, "standard output is JSON Lines");
        assert!(comma.starts_with("new_id,base_id,distance,base_day\n"));
        assert_eq!(csv(&comma)[1..], expected);
        assert_eq!(json_lines(&json), expected);
        assert!(json.contains("\"base_day\":null") && json.contains("\"base_day\":\"1970-01-11\""));
        outputs.push((comma, json));
    }
    assert!(outputs.iter().all(|output| *output == outputs[0]));
}

#[test]
fn verified_pairs_have_their_similarity_in_every_format() {
    let dir = Dir::new();
    let page = "the same six words on every page";
    write_documents(dir.join("day.parquet"), &[("a", page), ("b", page)]);
    dedup_ok(&format!(
        "archive create --profile paper {}",
        dir.at("archive")
    ));
    let run = format!(
        "run --new {} --base {} --verify edit",
        dir.at("day.parquet"),
        dir.at("archive")
    );
    let comma = dir.at("hits.csv");
    // A second run replaces its own output.
    for _ in 0..2 {
        dedup_ok(&format!("{run} --output {comma}"));
    }
    assert_eq!(
        fs::read_to_string(&comma).unwrap(),
        "new_id,base_id,distance,base_day,similarity\nb,a,0,,1.0\n"
    );
    assert_eq!(
        dedup_ok(&format!("{run} --output -")).stdout,
        "{\"new_id\":\"b\",\"base_id\":\"a\",\"distance\":0,\"base_day\":null,\"similarity\":1.0}\n"
    );
}

#[test]
fn numbers_stay_numbers_and_no_rows_are_an_output() {
    let dir = Dir::new();
    write_parquet(
        dir.join("day.parquet"),
        vec![("id", numbers([-5, i64::MAX])), ("fp", numbers([1, 1]))],
    );
    fs::create_dir(dir.join("base")).unwrap();
    let run = format!(
        "run --new {} --base {}",
        dir.at("day.parquet"),
        dir.at("base")
    );
    let row = "{\"new_id\":9223372036854775807,\"base_id\":-5,\"distance\":0,\"base_day\":null}\n";
    assert_eq!(dedup_ok(&format!("{run} -o -")).stdout, row);
    // Each run replaces the output of the one before, whatever its rows.
    for (name, full, empty) in [
        (
            "hits.csv",
            "new_id,base_id,distance,base_day\n9223372036854775807,-5,0,\n",
            "new_id,base_id,distance,base_day\n",
        ),
        ("hits.jsonl", row, ""),
    ] {
        let read = || fs::read_to_string(dir.join(name)).unwrap();
        for _ in 0..2 {
            dedup_ok(&format!("{run} -o {}", dir.at(name)));
            assert_eq!(read(), full);
            dedup_ok(&format!("{run} -o {} --no-within", dir.at(name)));
            assert_eq!(read(), empty);
        }
    }
}

/// Fault 50: a run refuses an ending that names no format, or one that it cannot write.
#[test]
fn other_endings_are_refused_before_any_work() {
    let dir = Dir::new();
    let (archive, docs) = (dir.at("archive"), dir.at("docs.parquet"));
    dedup_ok(&format!("archive create --profile paper {archive}"));
    write_documents(&docs, &[("a", "some words that are a document")]);
    let (before, archived) = (dir.names(), contents(&archive));
    let run = format!("run --new {docs} --base {archive} --append --day 2026-01-01");
    for name in ["hits", "hits.txt", "hits.json", "hits.csv.gz", "parquet"] {
        dedup(&format!("{run} --output {}", dir.at(name))).fails(
            64,
            &["--output", &dir.at(name), ".parquet", ".csv", ".jsonl"],
        );
    }
    let hits = dir.at("hits.parquet");
    for line in [
        format!(
            "{run} --output {hits} --fingerprints {}",
            dir.at("made.csv")
        ),
        format!("fingerprint --input {docs} --output {}", dir.at("made.csv")),
        format!("fingerprint --input {docs} --output {}", dir.at("made")),
        format!("fingerprint --input {docs} --output -"),
        format!("idf {docs} --output {}", dir.at("made.jsonl")),
    ] {
        dedup(&line).fails(64, &[".parquet"]);
    }
    assert!(dir.names() == before && contents(&archive) == archived);
}

/// Fault 50: documents, and all files that are not outputs of the program, are replaced only with
/// --overwrite.
#[test]
fn files_of_other_programs_are_not_replaced() {
    let dir = Dir::new();
    let run = awkward(&dir);
    let documents = "{\"id\":\"a\",\"text\":\"b\"}\n";
    let foreign = dir.at("foreign.parquet");
    write_documents(&foreign, &[("a", "b")]);
    let parquet = fs::read(&foreign).unwrap();
    for (name, bytes) in [
        ("docs.jsonl", documents.as_bytes()),
        ("docs.csv", b"id,text\na,b\n".as_slice()),
        ("docs.parquet", parquet.as_slice()),
        ("cut.parquet", &parquet[..parquet.len() - 5]),
        ("bytes.csv", [0xff; 9000].as_slice()),
    ] {
        let path = dir.at(name);
        fs::write(&path, bytes).unwrap();
        for _ in 0..2 {
            dedup(&format!("{run} --output {path}")).fails(64, &[&path, "--overwrite"]);
        }
        assert!(fs::read(&path).unwrap() == bytes, "{name}");
        // After --overwrite, the file is an output of the program.
        for option in ["--overwrite", ""] {
            dedup_ok(&format!("{run} --output {path} {option}"));
            assert!(fs::read(&path).unwrap() != bytes, "{name}");
        }
    }
    // Outputs that are always Parquet files.
    let fingerprints = format!("fingerprint --input {}", dir.at("day.parquet"));
    let words = dir.at("words.jsonl");
    let rows = (0..5).map(|n| format!("{{\"id\":\"{n}\",\"text\":\"some word{n} here\"}}\n"));
    fs::write(&words, rows.collect::<String>()).unwrap();
    let frequencies = format!("idf {words}");
    for line in [
        format!("{fingerprints} --output"),
        format!("{frequencies} --output"),
        format!("{run} --output {} --fingerprints", dir.at("hits.parquet")),
    ] {
        let line = format!("{line} {foreign}");
        fs::write(&foreign, &parquet).unwrap();
        dedup(&line).fails(64, &["foreign.parquet", "--overwrite"]);
        assert!(fs::read(&foreign).unwrap() == parquet);
        dedup_ok(&format!("{line} --overwrite"));
        let made = fs::read(&foreign).unwrap();
        dedup_ok(&line);
        assert!(fs::read(&foreign).unwrap() == made && made != parquet);
    }
    // A run recognises outputs of older versions, which can have any name.
    fs::copy(dir.join("hits.parquet"), dir.join("old.csv")).unwrap();
    dedup_ok(&format!("{run} --output {}", dir.at("old.csv")));
    assert!(
        fs::read(dir.join("old.csv"))
            .unwrap()
            .starts_with(b"new_id,")
    );
}

/// Fault 50: an output of one kind does not replace one of another kind.
#[test]
fn other_kinds_of_outputs_are_not_replaced() {
    let dir = Dir::new();
    let run = awkward(&dir);
    let words = dir.at("words.jsonl");
    let rows = (0..5).map(|n| format!("{{\"id\":\"{n}\",\"text\":\"some word{n} here\"}}\n"));
    fs::write(&words, rows.collect::<String>()).unwrap();
    let (hits, day, idf, metrics) = (
        dir.at("hits.parquet"),
        dir.at("kept.parquet"),
        dir.at("idf.parquet"),
        dir.at("metrics.csv"),
    );
    let spare = dir.at("spare.parquet");
    let lines = [
        (format!("{run} --output"), &hits),
        (format!("{run} --output {spare} --fingerprints"), &day),
        (format!("idf {words} --output"), &idf),
        (format!("{run} --output {spare} --metrics"), &metrics),
    ];
    for (line, own) in &lines {
        dedup_ok(&format!("{line} {own}"));
    }
    for (line, own) in &lines {
        for (_, other) in lines.iter().filter(|(_, other)| other != own) {
            if *other == &metrics && !line.starts_with("run") {
                continue;
            }
            let before = fs::read(other).unwrap();
            let ran = dedup(&format!("{line} {other}"));
            assert_eq!(ran.code, 64, "{line} {other}: {}", ran.stderr);
            assert!(fs::read(other).unwrap() == before, "{line} {other}");
        }
        dedup_ok(&format!("{line} {own}"));
    }
    dedup(&format!("{run} --output {idf}")).fails(64, &["another kind", "--overwrite"]);
}

/// Fault 50: outputs never go into a table, nor over files that options name, not even with
/// `--overwrite`.
#[test]
fn tables_and_named_files_are_not_replaced() {
    let dir = Dir::new();
    let run = awkward(&dir);
    let (archive, docs) = (dir.at("archive"), dir.at("docs.parquet"));
    write_documents(&docs, &[("a", "some words that are a document")]);
    dedup_ok(&format!("archive create --profile paper {archive}"));
    dedup_ok(&format!(
        "archive append {archive} --input {docs} --day 2026-01-01"
    ));
    let before = contents(&archive);
    let files = before.iter().map(|(path, _)| path.to_str().unwrap());
    let data = files
        .clone()
        .find(|path| path.ends_with(".parquet") && path.contains("day="));
    let (data, hits) = (data.unwrap(), dir.at("hits.parquet"));
    for place in [data, &format!("{archive}/new.parquet")] {
        for line in [
            format!("{run} --output {place}"),
            format!("{run} --output {hits} --fingerprints {place}"),
            format!("{run} --output {hits} --metrics {place}"),
            format!("fingerprint --input {docs} --output {place}"),
            format!("idf {docs} --output {place}"),
        ] {
            for option in ["", "--overwrite"] {
                let line = format!("{line} {option}");
                dedup(&line).fails(64, &["lies in the Delta table", &archive]);
            }
        }
    }
    assert!(contents(&archive) == before);
    let (idf, words) = (dir.at("idf.parquet"), dir.at("words.parquet"));
    dedup_ok(&format!("idf {docs} --output {idf}"));
    fs::write(&words, "the\n").unwrap();
    let kept = [fs::read(&idf).unwrap(), fs::read(&words).unwrap()];
    for line in [
        format!("{run} --idf {idf} --output {idf}"),
        format!("{run} --idf {idf} --output {hits} --metrics {idf}"),
        format!("{run} --stop-words {words} --output {words}"),
        format!("fingerprint --input {docs} --idf {idf} --output {idf}"),
        format!("idf {docs} --stop-words {words} --output {words}"),
    ] {
        dedup(&format!("{line} --overwrite")).fails(64, &["which is read"]);
        assert!([fs::read(&idf).unwrap(), fs::read(&words).unwrap()] == kept);
    }
}

/// An output can have the longest name that the file system allows.
#[test]
fn long_names_are_written() {
    let dir = Dir::new();
    let run = awkward(&dir);
    let name = format!("{}.jsonl", "n".repeat(249));
    dedup_ok(&format!("{run} --output {}", dir.at(&name)));
    assert_eq!(
        fs::read_to_string(dir.join(&name)).unwrap().lines().count(),
        44
    );
}

/// Fault 50: metrics replace metrics, and nothing else, however the run ends.
#[test]
fn metrics_do_not_replace_documents() {
    let dir = Dir::new();
    let run = awkward(&dir);
    let (hits, docs) = (dir.at("hits.parquet"), dir.at("docs.jsonl"));
    fs::write(&docs, "{\"id\":\"a\"}\n").unwrap();
    let day = fs::read(dir.join("day.parquet")).unwrap();
    let line = format!("{run} --output {hits} --metrics");
    dedup(&format!("{line} {docs}")).fails(64, &["--metrics", "docs.jsonl", "--overwrite"]);
    assert_eq!(fs::read(&docs).unwrap(), b"{\"id\":\"a\"}\n");
    for option in ["", "--overwrite"] {
        dedup(&format!("{line} {} {option}", dir.at("day.parquet"))).fails(64, &["is read"]);
        assert!(fs::read(dir.join("day.parquet")).unwrap() == day);
    }
    assert!(!Path::new(&hits).exists());
    dedup_ok(&format!("{run} --output {hits}"));
    let bytes = fs::read(&hits).unwrap();
    dedup(&format!("{line} {hits} --overwrite")).fails(64, &["--metrics", "same file"]);
    assert!(fs::read(&hits).unwrap() == bytes);
    for option in ["--overwrite", ""] {
        dedup_ok(&format!("{line} {docs} {option}"));
        assert!(fs::read(&docs).unwrap().starts_with(b"# HELP dedup_job_"));
    }
}

/// Standard output gets the rows and nothing else, and only after the run has succeeded.
#[test]
fn standard_output_has_rows_alone() {
    let dir = Dir::new();
    let run = awkward(&dir);
    let json = dedup_ok(&format!("{run} --output - --json"));
    assert_eq!(json_lines(&json.stdout).len(), 44);
    let summary: serde_json::Value = serde_json::from_str(&json.stderr).unwrap();
    assert_eq!(summary["hits"], 44);
    assert_eq!(summary["output_bytes"], json.stdout.len());
    let people = dedup_ok(&format!("{run} --output -"));
    assert!(people.stdout == json.stdout);
    assert!(
        people.stderr.contains("44 pairs within"),
        "{}",
        people.stderr
    );
    let quiet = dedup_ok(&format!("{run} --output - --quiet"));
    assert!(quiet.stdout == json.stdout && quiet.stderr.is_empty());
    // The base cannot be read to its end.
    let broken = dir.at("base/z.parquet");
    write_fingerprints(&broken, &[("late".into(), 7)]);
    let whole = fs::read(&broken).unwrap();
    fs::write(&broken, &whole[..whole.len() / 2]).unwrap();
    let ran = dedup(&format!("{run} --output -")).fails(65, &["z.parquet"]);
    assert_eq!(ran.stdout, "");
}

/// A closed pipe is a success, unless the day was committed in the same run: then the error asks
/// for a second run, which gives the pairs.
#[test]
fn a_closed_pipe_ends_well() {
    let dir = Dir::new();
    let (archive, docs, kept) = (
        dir.at("archive"),
        dir.at("docs.parquet"),
        dir.at("kept.parquet"),
    );
    dedup_ok(&format!("archive create --profile paper {archive}"));
    // The output has more rows than a pipe holds.
    let page = "the same six words on every page";
    let ids: Vec<String> = (0..300).map(|n| format!("page-{n}")).collect();
    let documents: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), page)).collect();
    write_documents(&docs, &documents);
    let read_nothing = |line: &str| {
        let mut child = start(command(), line);
        drop(child.stdout.take());
        Ran::of(child.wait_with_output().unwrap())
    };
    let line = format!(
        "run --new {docs} --base {archive} --day 2026-01-01 --output - --fingerprints {kept}"
    );
    let metrics = dir.at("run.prom");
    read_nothing(&format!("{line} --metrics {metrics}")).ok();
    assert!(Path::new(&kept).exists());
    let metrics = fs::read_to_string(metrics).unwrap();
    assert!(metrics.contains("dedup_job_exit_code 0.0\n"), "{metrics}");
    assert!(metrics.contains("dedup_job_last_success_timestamp_seconds "));
    let line = format!("{line} --append");
    read_nothing(&line).fails(74, &["2026-01-01 is committed", "same command again"]);
    // The day was not committed in this run.
    read_nothing(&line).ok();
    let rows = dedup_ok(&line).stdout;
    assert_eq!(rows.lines().count(), 300 * 299 / 2);
    let info = dedup_ok(&format!("archive info {archive} --json"));
    assert_eq!(info.json()["fingerprints"], 300);
    // A full standard output is an error.
    if fs::metadata("/dev/full").is_ok() {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let ran = command()
            .args(line.split_whitespace())
            .stdout(full)
            .output()
            .unwrap();
        Ran::of(ran).fails(74, &["standard output"]);
    }
}

/// Fault 50: outputs in a store.
#[test]
fn objects_of_other_programs_are_not_replaced() {
    let Some(storage) = seaweed() else { return };
    let (dir, at) = (Dir::new(), storage.unique("outputs"));
    let run = awkward(&dir);
    let foreign = dir.at("foreign.parquet");
    write_documents(&foreign, &[("a", "b")]);
    for (name, bytes) in [
        ("docs.csv", b"id,text\na,b\n".to_vec()),
        ("docs.jsonl", vec![b'x'; 100_000]),
        ("docs.parquet", fs::read(&foreign).unwrap()),
    ] {
        let (here, there) = (dir.at(&format!("here-{name}")), format!("{at}/{name}"));
        dedup_ok(&format!("{run} --output {here}"));
        storage.put(&there, bytes.clone());
        let line = format!("{run} --output {there}");
        storage.dedup(&line).fails(64, &[&there, "--overwrite"]);
        assert!(storage.get(&there).unwrap() == bytes);
        for option in ["--overwrite", ""] {
            storage.dedup_ok(&format!("{line} {option}"));
            assert!(storage.get(&there).unwrap() == fs::read(&here).unwrap());
        }
    }
    storage
        .dedup(&format!("{run} --output {at}/hits"))
        .fails(64, &[".jsonl"]);
}

/// The temporary files beside an output.
fn temporary(dir: &Dir) -> Vec<String> {
    let names = dir.names().into_iter();
    names.filter(|name| name.ends_with(".tmp")).collect()
}

/// Fault 46: the next run with the same output removes the temporary files of a killed run, and not
/// those of a living one.
#[test]
fn leftovers_of_killed_runs_are_swept() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate fingerprints --output {data} --new 30000 --base 1000000 --days 1"
    ));
    let scratch = dir.at("scratch");
    fs::create_dir(&scratch).unwrap();
    let run = format!(
        "run --new {data}/day.parquet --base {data}/archive --day 2026-01-31 --scratch {scratch} --output {}",
        dir.at("hits.parquet")
    );
    // The exhaustive design compares all pairs, so the run takes long.
    let start = |others: &[String]| -> (Child, String) {
        let line = format!("{run} --design exhaustive --threads 1");
        let child = start_unheard(command(), &line);
        let begin = Instant::now();
        let name = loop {
            let mut found = temporary(&dir);
            found.retain(|name| !others.contains(name));
            if !found.is_empty() || begin.elapsed() > Duration::from_secs(60) {
                break found.pop();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        (child, name.unwrap_or_default())
    };
    let (mut killed, left) = start(&[]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(temporary(&dir), [left.as_str()]);
    // Files that stay: of another output, of another host, and without a tag.
    let stays = [
        left.replace("hits", "other"),
        ".hits.parquet.0a1b2c3d-4e5f6071-abcdef.tmp".to_owned(),
        ".hits.parquet.abcdef.tmp".to_owned(),
    ];
    for name in &stays {
        fs::write(dir.join(name), "").unwrap();
    }
    let known: Vec<String> = stays.iter().chain([&left]).cloned().collect();
    let (mut living, held) = start(&known);
    assert!(!temporary(&dir).contains(&left));
    dedup_ok(&run);
    let now = temporary(&dir);
    assert!(
        now.contains(&held) && now.len() == stays.len() + 1,
        "{now:?}"
    );
    assert!(living.try_wait().unwrap().is_none(), "it is at work still");
    living.kill().unwrap();
    living.wait().unwrap();
    dedup_ok(&run);
    let mut stays = stays.to_vec();
    stays.sort();
    assert_eq!(temporary(&dir), stays);
    let expected = fs::read(format!("{data}/expected.parquet")).unwrap();
    assert!(fs::read(dir.join("hits.parquet")).unwrap() == expected);
}
