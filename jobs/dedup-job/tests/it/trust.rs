//! Tests of what is not believed: a store's list, a checkpoint, the rows of a day that another engine wrote over; and of outputs that
//! stay as their owner made them. Fault numbers are those of docs/faults.md.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use testkit::proxy::Fault;

use crate::helpers::days::*;
use crate::helpers::foreign_writer::*;
use crate::helpers::servers::*;
use crate::helpers::support::*;

const TEXT: &str = "The quick brown fox jumps over the lazy dog near the river bank.";

fn document(id: &str) -> String {
    format!("{{\"id\":\"{id}\",\"text\":\"{TEXT}\"}}\n")
}

/// Fault 53: an answer to a list with status 200 and no list in it.
#[test]
fn a_list_that_is_no_list_is_asked_again() {
    let Some(storage) = seaweed() else { return };
    let at = storage.unique("lists");
    for name in ["1", "2", "3"] {
        storage.put(&format!("{at}/day/{name}.jsonl"), document(name).into());
    }
    for (wrong, code) in [(2, 0), (u64::MAX, 69)] {
        let lists = AtomicU64::new(0);
        let (through, _proxy) = storage.through(move |request| {
            let is_list = request.target.contains("list-type=2");
            if is_list && lists.fetch_add(1, Ordering::Relaxed) < wrong {
                Fault::ReplaceBody(b"<html>Sign in</html>".to_vec())
            } else {
                Fault::Pass
            }
        });
        let ran = through.dedup(&format!(
            "run --new {at}/day/ --output {at}/hits.csv --json --retry-deadline 60s"
        ));
        match code {
            0 => assert_eq!(ran.ok().json()["new"]["documents"], 3),
            _ => drop(ran.fails(code, &["NoList", "a proxy's page"])),
        }
    }
}

/// Fault 53: a list that leaves out an entry of the log, whichever it is.
#[test]
fn a_list_without_an_entry_of_the_log_is_the_stores_fault() {
    let Some(storage) = seaweed() else { return };
    let at = storage.unique("short-lists");
    storage.dedup_ok(&format!(
        "generate pages --output {at} --new 20 --base 30 --days 2"
    ));
    let log = storage.log(&format!("{at}/archive"));
    let listed = |(url, bytes): &(String, Vec<u8>)| {
        format!(
            "<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>{}</Size></Contents>",
            url.strip_prefix("s3://crawl/").unwrap(),
            bytes.len()
        )
    };
    let list = |entries: String| {
        format!("<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>")
    };
    for (url, _) in &log {
        let others = log.iter().filter(|(other, _)| other != url);
        let short = list(others.map(listed).collect());
        let (through, _proxy) = storage.through(move |request| {
            let is_list = request.target.contains("list-type=2");
            if is_list && request.target.contains("_delta_log") {
                Fault::ReplaceBody(short.clone().into())
            } else {
                Fault::Pass
            }
        });
        let (_, name) = url.rsplit_once('/').unwrap();
        let ran = through.dedup(&format!("archive info {at}/archive"));
        ran.fails(69, &[name, "the store's list of it is wrong"]);
    }
}

/// Fault 53: no list of a log, be it the first or a later one, makes plain files of a table or lets something be written into it.
#[test]
fn a_list_without_any_entry_of_the_log_makes_no_plain_files_of_a_table() {
    let Some(storage) = seaweed() else { return };
    let at = storage.unique("empty-lists");
    let other = storage.unique("other-archive");
    storage.dedup_ok(&format!(
        "generate pages --output {at} --new 20 --base 30 --days 2"
    ));
    storage.dedup_ok(&format!("archive create --profile paper {other}"));
    let log = storage.log(&other);
    let run = format!("run --new {at}/day.parquet --output");
    let append = format!("archive append {other} --input {at}/archive --day 2026-03-01");
    let into = format!("{run} {at}/archive/hits.parquet");
    let with_base = format!("{run} {at}/hits.parquet --base {at}/archive");
    let of_archive = format!("run --new {at}/archive --output {at}/hits.parquet");
    for (line, numbers) in [
        (append, vec![1, u64::MAX]),
        (into, vec![1, u64::MAX]),
        (with_base, vec![u64::MAX]),
        (of_archive, vec![u64::MAX]),
    ] {
        for wrong in numbers {
            let lists = AtomicU64::new(0);
            let (through, _proxy) = storage.through(move |request| {
                let is_list = request.target.contains("list-type=2");
                let is_of_log = is_list && request.target.contains("archive%2F_delta_log");
                if is_of_log && lists.fetch_add(1, Ordering::Relaxed) < wrong {
                    let none =
                        "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>";
                    Fault::ReplaceBody(none.into())
                } else {
                    Fault::Pass
                }
            });
            let ran = through.dedup(&line);
            ran.fails(
                69,
                &["archive/_delta_log", "the store's list of it is wrong"],
            );
        }
    }
    assert_eq!(storage.log(&other), log);
    assert!(storage.get(&format!("{at}/archive/hits.parquet")).is_none());
}

/// An object that a list or an answer showed is missing when it is read: it is no mistake of the user.
#[test]
fn an_input_that_goes_missing_is_worth_another_try() {
    let Some(storage) = seaweed() else { return };
    let at = storage.unique("missing");
    for name in ["1", "2"] {
        storage.put(&format!("{at}/day/{name}.jsonl"), document(name).into());
    }
    storage.dedup_ok(&format!(
        "generate pages --output {at}/pages --new 20 --base 30"
    ));
    for (input, name) in [("day/", "/2.jsonl"), ("pages/day.parquet", "/day.parquet")] {
        let (through, _proxy) = storage.through(move |request| {
            if request.method == "GET" && request.path().ends_with(name) {
                Fault::Status {
                    code: 404,
                    body: "<Error><Code>NoSuchKey</Code></Error>".into(),
                }
            } else {
                Fault::Pass
            }
        });
        let ran = through.dedup(&format!("run --new {at}/{input} --output {at}/hits.csv"));
        ran.fails(75, &[name, "removed meanwhile"]);
    }
    let never = storage.dedup(&format!("run --new {at}/3.jsonl --output {at}/hits.csv"));
    never.fails(64, &["3.jsonl"]);
}

/// Fault 107: a small file in a store is fetched once, however often a run reads its documents.
#[test]
fn small_files_in_a_store_are_fetched_once() {
    let Some(storage) = seaweed() else { return };
    let at = storage.unique("small");
    let names: Vec<String> = (0..40).map(|number| format!("{number:02}.txt")).collect();
    for name in &names {
        storage.put(&format!("{at}/day/{name}"), TEXT.into());
    }
    let (through, proxy) = storage.through(|_| Fault::Pass);
    let ran = through.dedup(&format!(
        "run --new {at}/day/ --output {at}/hits.csv --json"
    ));
    assert_eq!(ran.ok().json()["new"]["documents"], 40);
    let requests = proxy.requests();
    for name in names {
        let fetched = requests
            .iter()
            .filter(|request| request.method == "GET" && request.path().ends_with(&name));
        assert_eq!(fetched.count(), 1, "{name}");
    }
}

/// Fault 63: the hint names a checkpoint that is missing, or the checkpoint is cut off; all entries of the log are there.
#[test]
fn a_log_is_read_by_its_entries_where_its_checkpoint_is_wrong() {
    let (days, _) = Days::three();
    let rows = days.info()["fingerprints"].clone();
    let log = format!("{}/_delta_log", days.archive);
    fs::write(
        format!("{log}/_last_checkpoint"),
        r#"{"version":2,"size":9}"#,
    )
    .unwrap();
    let info = dedup_ok(&format!("archive info {} --json", days.archive));
    assert_eq!(info.json()["fingerprints"], rows);
    assert!(
        info.stderr
            .contains("_last_checkpoint is missing or damaged")
    );
    let checkpoint = format!("{log}/{:020}.checkpoint.parquet", 2);
    fs::write(&checkpoint, "PAR1 cut off").unwrap();
    let info = dedup_ok(&format!("archive info {} --json", days.archive));
    assert_eq!(info.json()["fingerprints"], rows);
    assert!(
        info.stderr
            .contains("checkpoint.parquet is missing or damaged")
    );
    let next = days.commit(DAYS[3], &[("d1", far(1) ^ 32)]);
    assert!(!next.first.hits.is_empty());
    // Without the entries before the checkpoint, nothing says what the table has.
    fs::remove_file(&checkpoint).unwrap();
    fs::remove_file(format!("{log}/{:020}.json", 1)).unwrap();
    dedup(&format!("archive info {}", days.archive)).fails(65, &["_last_checkpoint"]);
}

/// Fault 64: a feature that writers must know, which another engine set.
#[test]
fn a_table_that_cannot_be_written_is_refused_before_the_comparison() {
    let (days, _) = Days::three();
    let input = days.write("new", &[("d1", far(1) ^ 32)]);
    let protocol = json!({"protocol": {
        "minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["checkConstraints", "rowTracking"],
    }});
    OtherEngine::new(&days.archive).commit("SET TBLPROPERTIES", &[protocol]);
    let before = contents(&days.archive);
    let append = format!("--append --day {}", DAYS[3]);
    dedup(&days.line(&input, &append)).fails(78, &["rowTracking"]);
    assert!(contents(&days.archive) == before);
    dedup_ok(&days.line(&input, ""));
    let info = dedup_ok(&format!("archive info {}", days.archive));
    assert!(info.stdout.contains("nothing can be committed"));
    assert!(info.stdout.contains("rowTracking"));
    let plan = format!("plan --new {input} --base {}", days.archive);
    assert!(dedup_ok(&plan).stderr.contains("rowTracking"));
}

/// Fault 67: another engine overwrites the rows of a day, in one commit or in two.
#[test]
fn a_day_that_was_overwritten_is_not_committed_already() {
    for at_once in [true, false] {
        let (days, committed) = Days::three();
        let engine = OtherEngine::new(&days.archive);
        let name = DAYS[1];
        let of_day = |add: &&serde_json::Value| add["partitionValues"]["day"] == name;
        let removed: Vec<_> = engine
            .files()
            .iter()
            .filter(of_day)
            .map(|add| remove(add, true))
            .collect();
        if at_once {
            engine.append(Some(name), &[("x", far(40))]);
            let added = engine.log().pop().unwrap().pop().unwrap();
            let entry = engine.log().len() - 1;
            let path = format!("{}/_delta_log/{entry:020}.json", days.archive);
            fs::remove_file(path).unwrap();
            engine.commit("WRITE", &[&removed[..], &[added]].concat());
        } else {
            engine.commit("DELETE", &removed);
            engine.append(Some(name), &[("x", far(40))]);
        }
        let append = format!("--append --day {name}");
        dedup(&days.line(&committed[1].input, &append)).fails(78, &[name, "--replace-day"]);
        days.run(&committed[1].input, &format!("{append} --replace-day"));
        let rows = &committed[1].first.summary["new"]["documents"];
        assert_eq!(&days.info()["days"][name]["fingerprints"], rows);
    }
}

/// Fault 66: RESTORE brings back a file that an engine had rewritten before.
#[test]
fn a_file_that_comes_back_is_as_old_as_before() {
    let (days, _) = Days::three();
    let engine = OtherEngine::new(&days.archive);
    engine.optimize(Some(DAYS[0]));
    let last = days.commit(DAYS[3], &[("d1", far(1) ^ 32)]);
    let of_day = |add: &serde_json::Value| add["partitionValues"]["day"] == DAYS[0];
    let file = engine.files().into_iter().find(of_day).unwrap();
    engine.commit("DELETE", &[remove(&file, true)]);
    let mut restored = file;
    restored["dataChange"] = json!(true);
    engine.commit("RESTORE", &[json!({ "add": restored })]);
    days.same_again(&last);
}

/// Fault 74: the mode of an output and the link to it stay.
#[test]
fn an_output_stays_private_and_a_link_is_followed() {
    let dir = Dir::new();
    fs::write(dir.join("1.jsonl"), document("a")).unwrap();
    fs::write(dir.join("2.jsonl"), [document("a"), document("b")].concat()).unwrap();
    fs::create_dir(dir.join("real")).unwrap();
    symlink("real/o.csv", dir.join("o.csv")).unwrap();
    let run = |input: &str| {
        let (input, output) = (dir.at(input), dir.at("o.csv"));
        dedup_ok(&format!("run {input} --output {output}"));
        fs::read_to_string(dir.join("real/o.csv")).unwrap()
    };
    // The link leads to nothing yet.
    assert_eq!(run("1.jsonl").lines().count(), 1);
    fs::set_permissions(dir.join("real/o.csv"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(run("2.jsonl").lines().count(), 2);
    assert!(dir.join("o.csv").is_symlink());
    let mode = dir
        .join("real/o.csv")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Fault 65: the summary cannot be written, after all else was.
#[test]
fn a_summary_that_cannot_be_written_says_what_is_done() {
    let (days, _) = Days::three();
    let input = days.write("new", &[("d1", far(1) ^ 32)]);
    let metrics = days.dir.at("m.prom");
    let line = days.line(
        &input,
        &format!("--append --day {} --metrics {metrics}", DAYS[3]),
    );
    let mut command = command();
    command.args(line.split_whitespace());
    command.stdout(File::create("/dev/full").unwrap());
    let ran = Ran::of(command.stderr(Stdio::piped()).output().unwrap());
    ran.fails(74, &["committed as version 4", "standard output"]);
    let metrics = fs::read_to_string(metrics).unwrap();
    assert!(metrics.contains("dedup_job_exit_code 74"), "{metrics}");
    assert!(days.info()["days"][DAYS[3]].is_object());
}

/// Fault 90: a flipped bit of a manifest; fault 89: a manifest that names a file elsewhere.
#[test]
fn a_manifest_is_checked_before_it_is_believed() {
    let (days, _) = Days::three();
    let index = days.dir.at("index");
    dedup_ok(&format!(
        "index build --base {} --output {index}",
        days.archive
    ));
    let manifest = format!("{index}/manifest-{:020}.json", 1);
    let whole = fs::read(&manifest).unwrap();
    let ask = format!("lookup --index {index} {:016x}", far(1));
    let right = dedup_ok(&ask).stdout;
    let text = String::from_utf8(whole.clone()).unwrap();
    let elsewhere = text.replace("segment-", "../segment-");
    fs::write(&manifest, elsewhere).unwrap();
    dedup(&ask).fails(65, &["manifest"]);
    // A bit of every 37th byte: a different answer is never given.
    for at in (0..whole.len()).step_by(37) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        fs::write(&manifest, flipped).unwrap();
        let ran = dedup(&ask);
        match ran.code {
            0 => assert_eq!(ran.stdout, right, "byte {at}"),
            code => assert!([65, 78].contains(&code), "byte {at}: {code} {}", ran.stderr),
        }
    }
}

/// Fault 91: files that are no lines of text are no queries.
#[test]
fn queries_are_lines_of_text() {
    let (days, _) = Days::three();
    let index = days.dir.at("index");
    dedup_ok(&format!(
        "index build --base {} --output {index}",
        days.archive
    ));
    let file = days.dir.at("queries");
    for (start, kind) in [
        (&b"PAR1\x15\0"[..], "Parquet"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"a\0b\n", "binary"),
    ] {
        fs::write(&file, start).unwrap();
        dedup(&format!("lookup --index {index} {file}")).fails(65, &["queries", kind]);
    }
    // A mark of UTF-8 is no part of the first query; unsigned and signed numbers are the same.
    let unsigned = far(1) | 1 << 63;
    let queries = format!(
        "\u{feff}{{\"fp\":{unsigned}}}\n{{\"fp\":{}}}\n",
        unsigned.cast_signed()
    );
    fs::write(&file, queries).unwrap();
    let answers = dedup_ok(&format!("lookup --index {index} --json {file}")).stdout;
    let answers: Vec<serde_json::Value> = answers
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 2);
    assert_eq!(answers[0]["hits"], answers[1]["hits"]);
}

/// Fault 80: two columns that may be that of the texts, and a column `fp` of small numbers.
#[test]
fn what_may_be_meant_is_asked_for() {
    let dir = Dir::new();
    let run = |name: &str, options: &str| {
        let (input, output) = (dir.at(name), dir.at("o.csv"));
        dedup(&format!("run {input} --output {output} {options}"))
    };
    let both = format!("{{\"id\":\"a\",\"text\":\"label\",\"content\":\"{TEXT}\"}}\n");
    fs::write(dir.join("both.jsonl"), both).unwrap();
    run("both.jsonl", "").fails(65, &["text", "content", "--text-column"]);
    run("both.jsonl", "--text-column content").ok();
    fs::write(
        dir.join("numbers.csv"),
        "id,fp,title\na,1,x\nb,2,y\nc,-3,z\n",
    )
    .unwrap();
    run("numbers.csv", "").fails(65, &["fp", "--text-column", "--fingerprint-column"]);
    run("numbers.csv", "--fingerprint-column fp").ok();
    let times = (0..9).map(|n| format!("{{\"id\":{n},\"fp\":170000000000{n},\"html\":\"{n}\"}}\n"));
    fs::write(dir.join("times.jsonl"), times.collect::<String>()).unwrap();
    // Near-duplicates are near each other.
    fs::write(dir.join("near.jsonl"), "{\"id\":1,\"fp\":-6148914691236517206,\"html\":\"\"}\n{\"id\":2,\"fp\":-6148914691236517205,\"html\":\"\"}\n").unwrap();
    run("near.jsonl", "").ok();
    run("times.jsonl", "").fails(65, &["fp", "or times", "--text-column"]);
    fs::write(
        dir.join("fingerprints.csv"),
        "id,fp\na,1\nb,-6148914691236517206\n",
    )
    .unwrap();
    run("fingerprints.csv", "").ok();
}

/// Fault 83: damaged records are named as what is not compared.
#[test]
fn a_strict_run_refuses_damaged_records() {
    let dir = Dir::new();
    let record = |length: usize| {
        let page = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{TEXT}</p>");
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{length}>\r\n\
             WARC-Target-URI: http://a.example/{length}\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n\
             Content-Type: application/http;msgtype=response\r\nContent-Length: {}\r\n\r\n{page}\r\n\r\n",
            page.len() + length
        )
    };
    fs::write(dir.join("whole.warc"), record(0)).unwrap();
    fs::write(dir.join("damaged.warc"), [record(0), record(9999)].concat()).unwrap();
    let run = |name: &str| {
        dedup(&format!(
            "run {} --output {} --strict --overwrite",
            dir.at(name),
            dir.at("o.csv")
        ))
    };
    run("whole.warc").ok();
    run("damaged.warc").fails(65, &["damaged records: 1", "damaged.warc", "--strict"]);
    // Its continuation may be anywhere.
    let first = "WARC-Segment-Number: 1\r\nContent-Length";
    let split = record(0).replacen("Content-Length", first, 1);
    fs::write(dir.join("split.warc"), [record(0), split].concat()).unwrap();
    run("split.warc").fails(65, &["first segment", "damaged records: 1", "split.warc"]);
}
