//! Tests of JSON Lines and CSV: a run reads all of them, from the right file, within the memory
//! limit. Fault numbers are those of docs/faults.md.

use std::fs;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::helpers::crawl_files::{frame, gzip, skippable_frame};
use crate::helpers::servers::*;
use crate::helpers::support::*;

/// A base that no document is close to.
fn base(dir: &Dir) -> String {
    write_fingerprints(dir.join("base.parquet"), &[("old".into(), 7)]);
    dir.at("base.parquet")
}

fn arguments(dir: &Dir, new: &str, base: &str) -> Vec<String> {
    let output = dir.at("hits.parquet");
    ["run", "--new", new, "--base", base, "--output", &output]
        .map(str::to_owned)
        .into()
}

/// A text that is close to no text of another seed.
fn text(seed: usize, words: usize) -> String {
    let word = |n: usize| format!("w{:x}", (seed * 1_000_003 + n).wrapping_mul(2_654_435_761));
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

fn json_lines(numbers: Range<usize>) -> Vec<u8> {
    let line = |n: usize| {
        let line = serde_json::json!({ "id": format!("d{n}"), "text": text(n, 20) });
        format!("{line}\n")
    };
    numbers.map(line).collect::<String>().into_bytes()
}

fn csv_records(numbers: Range<usize>) -> Vec<u8> {
    let record = |n: usize| format!("d{n},\"{}\"\n", text(n, 20));
    numbers.map(record).collect::<String>().into_bytes()
}

/// How many documents a run of the program read.
#[track_caller]
fn documents(ran: Ran) -> u64 {
    ran.ok().json()["new"]["documents"].as_u64().unwrap()
}

/// Runs the program with 3 GB of address space; also returns its peak memory in KiB.
fn run_limited(command: &Command, arguments: &[String]) -> (Ran, u64) {
    let mut limited = Command::new("sh");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    let mut child = limited
        .args(["-c", "ulimit -v 3000000; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_dedup-job"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let peak = status.lines().find_map(|line| {
            let kib = line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?;
            kib.trim().parse().ok()
        });
        most = most.max(peak.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(2));
    }
    (Ran::of(child.wait_with_output().unwrap()), most)
}

/// Makes small compressed files, as JSON Lines and as CSV: `before`, then `piece` repeated `times`
/// times, then `after`.
fn repetitive(
    before: [&str; 2],
    piece: [&[u8]; 2],
    times: usize,
    after: [&str; 2],
) -> Vec<(&'static str, Vec<u8>)> {
    let content = |encode: fn(&[u8]) -> Vec<u8>, format: usize| {
        let (before, after) = (before[format].as_bytes(), after[format].as_bytes());
        let pieces = encode(piece[format]).repeat(times);
        [encode(before), pieces, encode(after)].concat()
    };
    vec![
        ("bomb.jsonl.gz", content(gzip, 0)),
        ("bomb.jsonl.zst", content(frame, 0)),
        ("bomb.csv.gz", content(gzip, 1)),
        ("bomb.csv.zst", content(frame, 1)),
    ]
}

const FIRST_RECORDS: [&str; 2] = ["{\"id\":\"a\",\"text\":\"b\"}\n", "id,text\na,b\n"];

/// Small files in which the second record has 2 GB.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let [json, csv] = FIRST_RECORDS;
    let json = format!("{json}{{\"id\":\"c\",\"text\":\"");
    let csv = format!("{csv}c,\"");
    let piece = vec![b'x'; 16 << 20];
    repetitive(
        [json.as_str(), csv.as_str()],
        [piece.as_slice(); 2],
        128,
        ["\"}\n", "\"\n"],
    )
}

/// Small files that begin with a line of 2 GB.
fn bombs_at_once() -> Vec<(&'static str, Vec<u8>)> {
    let piece = vec![b'x'; 16 << 20];
    repetitive(
        ["{\"id\":\"", "id,"],
        [piece.as_slice(); 2],
        128,
        ["\"}\n", "\n"],
    )
}

/// Bytes of the ids in [`bombs_of_ids`].
const LONG_ID: usize = 4 << 20;

/// Small files of 2 GB in which all records but the first have long ids.
fn bombs_of_ids() -> Vec<(&'static str, Vec<u8>)> {
    let id = "x".repeat(LONG_ID);
    let json = format!("{{\"id\":\"{id}\",\"text\":\"b\"}}\n");
    let csv = format!("{id},b\n");
    let pieces = [json.as_bytes(), csv.as_bytes()];
    repetitive(FIRST_RECORDS, pieces, 512, ["", ""])
}

/// Asserts that a run fails, that its message has these parts, and that it uses little memory.
#[track_caller]
fn refused_within_the_memory(
    command: &Command,
    mut arguments: Vec<String>,
    code: i32,
    parts: &[&str],
) {
    let limit = ["--memory-limit", "64MiB", "--threads", "2"];
    arguments.extend(limit.map(str::to_owned));
    let (ran, most) = run_limited(command, &arguments);
    ran.fails(code, parts);
    assert!(most < 400 << 10, "{parts:?}: {most} KiB");
}

/// The name, in errors, of the second record's line.
fn second_line(name: &str) -> String {
    format!("line {}", if name.contains("csv") { 3 } else { 2 })
}

/// Fault 41: one record of 2 GB in a small compressed file on the disk.
#[test]
fn a_record_of_2_gb_is_refused_within_the_memory() {
    let dir = Dir::new();
    let base = base(&dir);
    for (name, content) in bombs() {
        assert!(content.len() < 64 << 20, "{name}: {}", content.len());
        fs::write(dir.join(name), content).unwrap();
        let arguments = arguments(&dir, &dir.at(name), &base);
        let line = second_line(name);
        let parts = [name, line.as_str(), "--memory-limit"];
        refused_within_the_memory(&command(), arguments, 75, &parts);
        assert!(!dir.join("hits.parquet").exists());
    }
}

/// Fault 41: a run opens many such files, and reads several, at the same time.
#[test]
fn eight_records_of_2_gb_are_refused_within_the_memory() {
    let dir = Dir::new();
    let base = base(&dir);
    for (directory, bombs) in [("second", bombs()), ("first", bombs_at_once())] {
        fs::create_dir(dir.join(directory)).unwrap();
        for (name, content) in bombs {
            for copy in ["a", "b"] {
                fs::write(dir.join(directory).join(format!("{copy}.{name}")), &content).unwrap();
            }
        }
        let arguments = arguments(&dir, &dir.at(directory), &base);
        let parts = ["bomb.", "line ", "2 threads", "--memory-limit"];
        refused_within_the_memory(&command(), arguments, 75, &parts);
    }
}

/// Fault 41: ids have a limit of their own, because they are held in memory by the thousand.
#[test]
fn long_ids_are_refused_within_the_memory() {
    let dir = Dir::new();
    let base = base(&dir);
    let length = LONG_ID.to_string();
    for (name, content) in bombs_of_ids() {
        fs::write(dir.join(name), content).unwrap();
        let arguments = arguments(&dir, &dir.at(name), &base);
        let line = format!("{name}, {}", second_line(name));
        let parts = [line.as_str(), "column \"id\"", length.as_str(), "8192"];
        refused_within_the_memory(&command(), arguments, 65, &parts);
    }
    let longer = "x".repeat((8 << 10) + 1);
    write_documents(dir.join("long.parquet"), &[("a", "b"), (&longer, "c")]);
    let arguments = arguments(&dir, &dir.at("long.parquet"), &base);
    let parts = ["long.parquet", "column \"id\"", "8193", "8192"];
    dedup_job(arguments).fails(65, &parts);
}

/// Faults 22 and 26: an empty file is an empty batch, but a compressed file of 0 bytes is cut off.
#[test]
fn a_compressed_file_of_0_bytes_is_cut_off() {
    let dir = Dir::new();
    let base = base(&dir);
    for name in ["day.jsonl", "day.csv"] {
        for ending in [".gz", ".zst"] {
            let name = format!("{name}{ending}");
            fs::write(dir.join(&name), "").unwrap();
            dedup_job(arguments(&dir, &dir.at(&name), &base)).fails(65, &[&name, "cut off"]);
        }
        fs::write(dir.join(name), "").unwrap();
        let mut arguments = arguments(&dir, &dir.at(name), &base);
        arguments.push("--json".into());
        assert_eq!(documents(dedup_job(arguments)), 0, "{name}");
    }
}

/// Fault 25: the error about a document without an id names its line. Files in which only texts are
/// looked up may have such documents.
#[test]
fn a_null_id_is_named_by_its_line() {
    let dir = Dir::new();
    let base = base(&dir);
    let good = String::from_utf8(json_lines(0..1)).unwrap();
    for (name, content, line) in [
        ("null.jsonl", format!("{good}\n{{\"id\":null}}\n{good}"), 3),
        ("none.jsonl", format!("{good}{{\"text\":\"a\"}}\n"), 2),
        ("first.jsonl", "{\"id\":null,\"text\":\"a\"}\n".into(), 1),
        ("null.csv", "id,text\na,\"b\nc\"\n,d\n".into(), 4),
    ] {
        fs::write(dir.join(name), content).unwrap();
        let expected = format!("{name}, line {line}: no id; every document needs one");
        dedup_job(arguments(&dir, &dir.at(name), &base)).fails(65, &[&expected]);
    }
    let (new, texts) = (dir.at("new.jsonl"), dir.at("texts.jsonl"));
    let (before, after) = (json_lines(0..5), json_lines(5..10));
    fs::write(&new, [&before[..], &after[..]].concat()).unwrap();
    let null = b"{\"id\":null,\"text\":\"a\"}\n";
    fs::write(&texts, [&before[..], &null[..], &after[..]].concat()).unwrap();
    let base = dir.at("made.parquet");
    dedup_ok(&format!("fingerprint --input {new} --output {base}"));
    let hits = dir.at("hits.parquet");
    let line = format!(
        "run --new {new} --base {base} --output {hits} --no-within -k 0 --verify jaccard --base-text {texts} --json"
    );
    let run = dedup_json(&line);
    assert_eq!(run["verified"]["without_text"], 0);
    assert_eq!(run["hits"], 10);
}

/// The first record does not decide the type of ids that are converted to text.
#[test]
fn an_archive_with_text_ids_takes_integers_and_strings() {
    let dir = Dir::new();
    let (archive, output) = (dir.at("archive"), dir.at("hits.csv"));
    dedup_ok(&format!("archive create --profile paper {archive}"));
    let text = text(1, 20);
    let file = |name: &str, ids: &[&str]| {
        let lines = ids
            .iter()
            .map(|id| format!("{{\"text\":\"{text}\",\"id\":{id}}}\n"));
        fs::write(dir.join(name), lines.collect::<String>()).unwrap();
        dir.at(name)
    };
    let run = |new: &str, base: &str| {
        dedup(&format!(
            "run --new {new} {base} --overwrite --output {output}"
        ))
    };
    let base = format!("--base {archive}");
    let above = "18446744073709551615";
    for (name, ids) in [
        ("integer-first.jsonl", ["7", "\"x\"", above, "-8"]),
        ("string-first.jsonl", ["\"x\"", "7", "-8", above]),
        ("above-first.jsonl", [above, "7", "\"x\"", "-8"]),
    ] {
        run(&file(name, &ids), &base).ok();
        let pairs = fs::read_to_string(&output).unwrap();
        let expected = [
            "new_id,base_id,distance,base_day",
            "18446744073709551615,-8,0,",
            "7,-8,0,",
            "7,18446744073709551615,0,",
            "x,-8,0,",
            "x,18446744073709551615,0,",
            "x,7,0,",
        ];
        assert_eq!(pairs.lines().collect::<Vec<_>>(), expected, "{name}");
    }
    // A string that is like an integer keeps its zeros.
    run(&file("zeros.jsonl", &["7", "\"007\""]), &base).ok();
    let pairs = fs::read_to_string(&output).unwrap();
    assert!(pairs.ends_with("7,007,0,\n"), "{pairs}");
    for id in ["1.5", "true", "[7]", "{}", "1e99"] {
        let said = "an_id.jsonl, line 2";
        run(&file("an_id.jsonl", &["\"x\"", id]), &base).fails(65, &[said, "\"id\""]);
    }
    // Without an archive, the ids have the type of the first.
    let said = "line 2: column \"id\": \"x\" is no 64-bit integer, as the first id of the file is";
    run(&file("mixed.jsonl", &["7", "\"x\""]), "").fails(65, &[said]);
    run(&file("mixed.jsonl", &["7", "\"007\""]), "").fails(65, &["\"007\" is no 64-bit integer"]);
}

/// The columns are those of the first objects: the very first may lack the id, which is an error, or the text.
#[test]
fn the_first_object_may_lack_what_others_have() {
    let dir = Dir::new();
    let output = dir.at("hits.csv");
    let file = |name: &str, first: &str| {
        let rest = String::from_utf8(json_lines(0..3)).unwrap();
        fs::write(dir.join(name), format!("{first}\n{rest}")).unwrap();
        dir.at(name)
    };
    let run = |new: &str| dedup(&format!("run {new} --overwrite --output {output} --json"));
    let no_text = file("no_text.jsonl", "{\"id\":\"first\",\"other\":1}");
    let summary = run(&no_text).ok().json();
    assert_eq!(summary["new"]["documents"], 4);
    assert_eq!(summary["new"]["without_fingerprint"], 1);
    let no_id = file("no_id.jsonl", "{\"text\":\"a b c d e\"}");
    run(&no_id).fails(65, &["no_id.jsonl, line 1", "no id", "\"id\""]);
    // What most objects have counts.
    let content = file(
        "content.jsonl",
        "{\"id\":\"first\",\"content\":\"a b c d e\"}",
    );
    let summary = run(&content).ok().json();
    assert_eq!(summary["new"]["without_fingerprint"], 1);
    // A single one has other columns that are known names.
    let lines = |more: &str| {
        let text = |n: usize| format!("{{\"content\":\"{}\"}}\n", text(n, 20));
        (0..4).map(text).collect::<String>() + more
    };
    for more in [
        "{\"content\":\"a b c d e\",\"text\":\"x\"}\n",
        "{\"content\":\"a b c d e\",\"fp\":7}\n",
        "{\"content\":\"a b c d e\",\"url\":\"u\"}\n",
    ] {
        fs::write(dir.join("stray.jsonl"), lines(more)).unwrap();
        let summary = run(&dir.at("stray.jsonl")).ok().json();
        assert_eq!(summary["new"]["without_fingerprint"], 0, "{more}");
    }
    // No object has an id.
    fs::write(dir.join("none.jsonl"), "{\"text\":\"a b c d e\"}\n").unwrap();
    run(&dir.at("none.jsonl")).ok();
}

/// Fault 25: the message about a CSV file without a header quotes only the start of its first
/// record.
#[test]
fn a_csv_file_without_a_header_is_said_to_have_none() {
    let dir = Dir::new();
    let base = base(&dir);
    let page = "private words ".repeat(1_000);
    let fields: Vec<&str> = (0..30).map(|_| page.as_str()).collect();
    fs::write(dir.join("day.csv"), format!("{}\n", fields.join(","))).unwrap();
    let parts = [
        "day.csv",
        "no id column",
        "is the first line a header?",
        "and 10 more",
    ];
    let ran = dedup_job(arguments(&dir, &dir.at("day.csv"), &base)).fails(65, &parts);
    assert!(ran.stderr.len() < 3_000, "{}", ran.stderr);
}

/// Fault 41: a large zstd window is not reported as damage.
#[test]
fn a_zstd_window_beyond_the_limit_is_named() {
    let dir = Dir::new();
    let base = base(&dir);
    // The file declares a window of 256 MiB, and has one empty block.
    let content = [0x28_u8, 0xb5, 0x2f, 0xfd, 0, (28 - 10) << 3, 1, 0, 0];
    fs::write(dir.join("long.jsonl.zst"), content).unwrap();
    let mut arguments = arguments(&dir, &dir.at("long.jsonl.zst"), &base);
    arguments.extend(["--memory-limit", "2GiB", "--threads", "2"].map(str::to_owned));
    dedup_job(arguments).fails(65, &["long.jsonl.zst", "128 MiB", "without --long"]);
}

/// Fault 41: one record of 2 GB, in a store.
#[test]
fn a_record_of_2_gb_in_a_store_is_refused_within_the_memory() {
    let Some(storage) = seaweed() else { return };
    let (dir, at) = (Dir::new(), storage.unique("bombs"));
    let base = base(&dir);
    for (name, content) in bombs() {
        let url = format!("{at}/{name}");
        storage.put(&url, content);
        let arguments = arguments(&dir, &url, &base);
        let line = second_line(name);
        let parts = [name, line.as_str(), "--memory-limit"];
        refused_within_the_memory(&storage.command(), arguments, 75, &parts);
    }
}

/// Fault 41: long records within the limit are read.
#[test]
fn documents_of_several_mb_are_read() {
    let dir = Dir::new();
    let base = base(&dir);
    // Texts that are long but have few words, so that the test is fast.
    let gap = "-".repeat(120) + " ";
    let texts: Vec<String> = (0..4).map(|n| text(n, 30_000).replace(' ', &gap)).collect();
    assert!(texts.iter().all(|text| text.len() > 3_000_000));
    let json = |(n, text): (usize, &String)| {
        let line = serde_json::json!({ "id": n, "text": text });
        format!("{line}\n")
    };
    let json: String = texts.iter().enumerate().map(json).collect();
    let record = |(n, text): (usize, &String)| format!("{n},\"{text}\"\n");
    let records: String = texts.iter().enumerate().map(record).collect();
    let csv = format!("id,text\n{records}");
    for (name, content) in [
        ("long.jsonl", json.clone().into_bytes()),
        ("long.jsonl.gz", gzip(json.as_bytes())),
        ("long.jsonl.zst", frame(json.as_bytes())),
        ("long.csv", csv.clone().into_bytes()),
        ("long.csv.gz", gzip(csv.as_bytes())),
        ("long.csv.zst", frame(csv.as_bytes())),
    ] {
        fs::write(dir.join(name), content).unwrap();
        let mut arguments = arguments(&dir, &dir.at(name), &base);
        let limit = ["--memory-limit", "256MiB", "--threads", "2", "--json"];
        arguments.extend(limit.map(str::to_owned));
        assert_eq!(documents(dedup_job(arguments)), 4, "{name}");
    }
}

#[test]
fn errors_say_the_line() {
    let dir = Dir::new();
    let base = base(&dir);
    let good = "{\"id\":\"a\",\"text\":\"b\"}";
    for (name, content, reason) in [
        (
            "syntax.jsonl",
            format!("{good}\n{good}\n{{\"id\":\"a\",\"text\":}}\n{good}\n"),
            "expected value",
        ),
        (
            "type.jsonl",
            format!("{good}\n\n{{\"id\":\"a\",\"text\":[1]}}\n"),
            "\"text\"",
        ),
        (
            "fields.csv",
            "id,text\na,b\nc,d,e\nf,g\n".to_owned(),
            "3 fields",
        ),
        (
            "fewer.csv",
            "id,text\r\na,b\r\nc\r\n".to_owned(),
            "1 fields",
        ),
        (
            "open.csv",
            "id,text\na,b\nc,\"d\ne,f\n".to_owned(),
            "quoted",
        ),
    ] {
        let (plain, gz, zst) = (name.to_owned(), format!("{name}.gz"), format!("{name}.zst"));
        for (name, content) in [
            (gz, gzip(content.as_bytes())),
            (zst, frame(content.as_bytes())),
            (plain, content.clone().into_bytes()),
        ] {
            fs::write(dir.join(&name), content).unwrap();
            dedup_job(arguments(&dir, &dir.at(&name), &base))
                .fails(65, &[&format!("{name}, line 3"), reason]);
        }
    }
}

/// How a zstd frame starts that decoders skip.
const SKIPPED: u32 = 0x184D_2A50;

/// Files with 90 documents each, in several zstd frames or gzip members.
fn in_parts() -> Vec<(&'static str, Vec<u8>)> {
    let lines = || [json_lines(0..30), json_lines(30..60), json_lines(60..90)];
    let records = || {
        let first = [&b"id,text\n"[..], &csv_records(0..30)].concat();
        [first, csv_records(30..60), csv_records(60..90)]
    };
    let frames = |parts: [Vec<u8>; 3]| parts.map(|part| frame(&part)).concat();
    let members = |parts: [Vec<u8>; 3]| parts.map(|part| gzip(&part)).concat();
    vec![
        ("frames.jsonl.zst", frames(lines())),
        ("frames.csv.zst", frames(records())),
        (
            "skippable.jsonl.zst",
            [skippable_frame(SKIPPED, b"an index"), frames(lines())].concat(),
        ),
        (
            "between.csv.zst",
            [frames(records()), skippable_frame(SKIPPED, b""), frame(b"")].concat(),
        ),
        ("members.jsonl.gz", members(lines())),
        ("members.csv.gz", members(records())),
    ]
}

/// Fault 42: files of several zstd frames or gzip members on the disk, as a batch and for document
/// frequencies.
#[test]
fn all_frames_and_members_are_read() {
    let dir = Dir::new();
    let base = base(&dir);
    for (name, content) in in_parts() {
        let new = dir.at(name);
        fs::write(&new, content).unwrap();
        let mut arguments = arguments(&dir, &new, &base);
        arguments.push("--json".into());
        assert_eq!(documents(dedup_job(arguments)), 90, "{name}");
        let idf = dir.at("idf.parquet");
        let learnt = dedup_ok(&format!("idf {new} --output {idf} --json"));
        assert_eq!(learnt.json()["documents"], 90, "{name}");
    }
}

/// Fault 42: the same from a store, and also as texts of the archive.
#[test]
fn all_frames_and_members_of_an_object_are_read() {
    let Some(storage) = seaweed() else { return };
    let (dir, at) = (Dir::new(), storage.unique("frames"));
    for (name, content) in in_parts() {
        let new = format!("{at}/{name}");
        storage.put(&new, content);
        let base = dir.at(&format!("{name}.base.parquet"));
        storage.dedup_ok(&format!("fingerprint --input {new} --output {base}"));
        // Every document is in the archive, and its text is found there.
        let hits = dir.at("hits.parquet");
        let line = format!(
            "run --new {new} --base {base} --output {hits} --no-within -k 0 --verify jaccard --base-text {new} --json"
        );
        let run = storage.dedup_ok(&line).json();
        assert_eq!(run["new"]["documents"], 90, "{name}");
        assert_eq!(run["verified"]["without_text"], 0, "{name}");
        assert_eq!(run["hits"], 90, "{name}");
        let idf = dir.at("idf.parquet");
        let learnt = storage.dedup(&format!("idf {new} --output {idf} --json"));
        assert_eq!(learnt.ok().json()["documents"], 90, "{name}");
    }
    // A prefix names all files at once.
    let (base, hits) = (base(&dir), dir.at("all.parquet"));
    let all = format!("run --new {at}/ --base {base} --output {hits} --json");
    assert_eq!(documents(storage.dedup(&all)), 6 * 90);
}

/// Names that look percent-encoded or need encoding, and what some of them decode to.
const NAMES: [&str; 7] = [
    "x%3Ay",
    "x:y",
    "x%253Ay",
    "x+y",
    "x y",
    "x%20y",
    "\u{e9}\u{8fd1}",
];

/// Fault 43: each name stands for the file of exactly that name, as JSON Lines and as Parquet.
/// Every file has one document more than the one before.
fn names_are_taken_as_they_are(
    put: impl Fn(&str, Vec<u8>),
    run: impl Fn(&[String]) -> Ran,
    root: &str,
) {
    let dir = Dir::new();
    let base = base(&dir);
    let count = |new: &str| {
        let mut arguments = arguments(&dir, new, &base);
        arguments.push("--json".into());
        documents(run(&arguments))
    };
    let parquet = |count: usize| {
        let texts: Vec<String> = (0..count).map(|n| text(n, 20)).collect();
        let ids: Vec<String> = (0..count).map(|n| format!("d{n}")).collect();
        let rows = ids.iter().zip(&texts);
        let rows: Vec<(&str, &str)> = rows.map(|(id, text)| (&**id, &**text)).collect();
        write_documents(dir.join("made.parquet"), &rows);
        fs::read(dir.join("made.parquet")).unwrap()
    };
    for (number, name) in NAMES.iter().enumerate() {
        put(&format!("lines/{name}.jsonl"), json_lines(0..number + 1));
        put(&format!("tables/{name}.parquet"), parquet(number + 1));
    }
    for (number, name) in NAMES.iter().enumerate() {
        let expected = number as u64 + 1;
        for file in [
            format!("lines/{name}.jsonl"),
            format!("tables/{name}.parquet"),
        ] {
            assert_eq!(count(&format!("{root}/{file}")), expected, "{file}");
        }
    }
    assert_eq!(count(&format!("{root}/lines/")), 28);
    assert_eq!(count(&format!("{root}/tables/*.parquet")), 28);
}

#[test]
fn file_names_are_taken_as_they_are() {
    let files = Dir::new();
    let root = files.at("day");
    let put = |name: &str, bytes: Vec<u8>| {
        let path = files.join("day").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    names_are_taken_as_they_are(
        put,
        |arguments| Ran::of(command().args(arguments).output().unwrap()),
        &root,
    );
}

#[test]
fn keys_are_taken_as_they_are() {
    let Some(storage) = seaweed() else { return };
    let root = storage.unique("names");
    names_are_taken_as_they_are(
        |name, bytes| storage.put(&format!("{root}/{name}"), bytes),
        |arguments| {
            let output = storage.command().args(arguments).output().unwrap();
            without_secrets(Ran::of(output))
        },
        &root,
    );
}

/// The first line that Excel writes and reads: what separates the fields. A copy has it, too.
#[test]
fn a_line_may_say_the_delimiter() {
    let dir = Dir::new();
    let text = "of, several, words, with, commas";
    for mark in ["", "\u{feff}"] {
        let file = format!("{mark}sep=;\r\nid;text\r\n1;{text}\r\n2;{text}\r\n");
        fs::write(dir.join("a.csv"), &file).unwrap();
        let run = format!("run {} --output - --quiet", dir.at("a.csv"));
        let pairs = dedup_ok(&run).stdout;
        assert!(
            pairs.contains("\"new_id\":\"2\",\"base_id\":\"1\""),
            "{pairs}"
        );
        let kept = format!(
            "run {} --kept {} --overwrite --quiet",
            dir.at("a.csv"),
            dir.at("k.csv")
        );
        dedup_ok(&kept);
        let kept = fs::read_to_string(dir.join("k.csv")).unwrap();
        assert_eq!(kept, file.replace(&format!("2;{text}\r\n"), ""));
    }
}

#[test]
fn a_file_of_files_is_refused_with_what_to_do() {
    let dir = Dir::new();
    let run = |name: &str| dedup(&format!("run {} --output -", dir.at(name)));
    let piped = |name: &str, options: &[&str]| {
        let input = fs::File::open(dir.join(name)).unwrap();
        let mut run = command();
        run.args(["run", "-", "--output", "-"]).args(options);
        Ran::of(run.stdin(input).output().unwrap())
    };
    fs::write(dir.join("crawl.wacz"), b"PK\x03\x04").unwrap();
    run("crawl.wacz").fails(65, &["crawl.wacz", "unzip -p", "'*.warc.gz'"]);
    // The first bytes of a file tell its format, and not its name.
    for (name, start, unpack) in [
        (
            "a.csv",
            &b"PK\x03\x04\x14\0\x08\0id,text\n"[..],
            "unpack it",
        ),
        ("b.jsonl", b"BZh91AY&SY\x01;,|\n", "bzip2 -dc"),
        ("c.tsv", b"\xfd7zXZ\0\0\x04,;\t\n", "xz -dc"),
        ("d.json", b"7z\xbc\xaf\x27\x1c\0\x04,", "unpack it"),
        (
            "e.csv.gz",
            &gzip(b"7z\xbc\xaf\x27\x1c\0\x04,")[..],
            "unpack it",
        ),
        ("f.json", b"ORC\n\x06\x12\x04\x08\0\x02P\0", "convert it"),
    ] {
        fs::write(dir.join(name), start).unwrap();
        run(name).fails(65, &[name, unpack]);
        for options in [vec![], vec!["--format", "text"]] {
            piped(name, &options).fails(65, &["standard input", unpack]);
        }
    }
    let columns = vec![("id", strings(["a"])), ("text", strings(["b"]))];
    write_parquet(dir.join("day.parquet"), columns);
    let parquet = fs::read(dir.join("day.parquet")).unwrap();
    for (name, bytes) in [
        ("day.parquet.gz", gzip(&parquet)),
        ("gzip.parquet", gzip(&parquet)),
        ("zstd.parquet", frame(&parquet)),
        ("day.csv.zst", frame(&parquet)),
    ] {
        fs::write(dir.join(name), bytes).unwrap();
        run(name).fails(65, &[name, "Parquet", "decompress it"]);
        for options in [vec![], vec!["--format", "parquet"]] {
            piped(name, &options).fails(65, &["standard input", "Parquet", "decompress it"]);
        }
    }
    // A picture has commas, too.
    fs::write(dir.join("image"), b"GIF89a,\x01;\x01\0\x80\0\0").unwrap();
    piped("image", &[]).fails(64, &["standard input", "--format"]);
}
