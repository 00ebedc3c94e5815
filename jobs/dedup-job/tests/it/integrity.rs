//! Tests that no pair is lost or wrong if files of an archive are damaged, or other programs change
//! it. Fault numbers are those of docs/faults.md.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use crate::helpers::days::*;
use crate::helpers::foreign_writer::*;
use crate::helpers::support::*;

/// Writes a file that is ten days old.
fn write_old(path: impl AsRef<Path>) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "somebody's").unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    let then = SystemTime::now() - Duration::from_secs(10 * 24 * 3600);
    file.set_modified(then).unwrap();
}

/// Fault 36: `archive create` refuses a directory with files in it.
#[test]
fn an_archive_is_not_made_beside_other_files() {
    let dir = Dir::new();
    let t = dir.at("t");
    write_old(dir.join("t/pages/day.parquet"));
    let before = contents(&t);
    dedup(&format!("archive create --profile paper {t}")).fails(64, &["not empty", "pages"]);
    assert!(contents(&t) == before);
    assert_eq!(fs::read_dir(&t).unwrap().count(), 1);
}

/// Fault 36: `archive vacuum` leaves the files of others alone.
#[test]
fn vacuum_takes_only_what_the_archive_wrote() {
    const NAME: &str = "part-00000-6f9619ff-8b86-4d01-b42d-00cf4fc964ff";
    let (days, committed) = Days::three();
    let engine = OtherEngine::new(&days.archive);
    let archive = |path: &str| Path::new(&days.archive).join(path);
    let mut expected: BTreeSet<String> = engine.paths().into_iter().collect();
    assert!(expected.len() > 6);
    days.maintain("compact", "");
    for live in engine.paths() {
        expected.remove(&live);
    }
    assert!(expected.len() > 6);
    // Files as killed runs leave them.
    for own in [
        format!("day=2026-01-01/{NAME}.parquet"),
        format!("day=2026-01-01/{NAME}.parquet#123000001"),
        format!("_dedup-job/idf-{}.parquet", "0a".repeat(32)),
        format!("_dedup-job/stop-words-{}.txt", "0a".repeat(32)),
        "_dedup-job/rulings/00000000000000ff.parquet".into(),
        "_dedup-job/rulings/00000000000000fe.json".into(),
        "_dedup-job/templates/00000000000000ff.bin".into(),
        "_dedup-job/days/conditional-create-12-34".into(),
        "_delta_log/conditional-create-12-34".into(),
    ] {
        write_old(archive(&own));
        expected.insert(own);
    }
    let others = [
        "pages/day.parquet".to_owned(),
        "day=2026-01-01/notes.parquet".into(),
        "x.txt".into(),
        "x.txt#123000001".into(),
        format!("pages/{NAME}.parquet"),
        "_dedup-job/idf-of-mine.parquet".into(),
        "_delta_log/conditional-create-of-mine".into(),
        format!("day=2026-01-01/{NAME}.c000.snappy.parquet"),
    ];
    for other in &others {
        write_old(archive(other));
    }
    let all = contents(&days.archive);
    let vacuum = |options: &str| {
        let vacuumed = days.maintain("vacuum", &format!("--older-than 0s {options}"));
        let files = vacuumed["files"].as_array().unwrap().clone();
        let files: BTreeSet<String> = files
            .iter()
            .map(|file| file.as_str().unwrap().to_owned())
            .collect();
        files
    };
    assert_eq!(vacuum("--dry-run"), expected);
    assert!(contents(&days.archive) == all);
    assert_eq!(vacuum("--nothing-runs"), expected);
    let mut rest = all;
    rest.retain(|(path, _)| {
        let below = path.strip_prefix(&days.archive).unwrap();
        !expected.contains(below.to_str().unwrap())
    });
    assert!(contents(&days.archive) == rest);
    for other in &others {
        assert!(archive(other).exists(), "{other}");
    }
    assert!(vacuum("--nothing-runs").is_empty());
    days.info();
    for day in &committed {
        days.same_again(day);
    }
}

/// Asserts that every command refuses the archive, and that nothing changes.
#[track_caller]
fn is_refused(days: &Days, code: i32, says: &str) {
    let (archive, before) = (&days.archive, contents(&days.archive));
    let input = days.write("new", &[("n1", far(1))]);
    for line in [
        format!("archive info {archive}"),
        days.line(&input, ""),
        days.line(&input, "--append --day 2026-01-09"),
        days.line(&input, "--append --replace-day --day 2026-01-01"),
        format!("archive append {archive} --input {input} --day 2026-01-09"),
        format!("archive compact {archive}"),
        format!("archive remove {archive} --day 2026-01-01"),
        format!("archive vacuum {archive} --older-than 0s --nothing-runs"),
    ] {
        dedup(&line).fails(code, &[says, archive]);
        assert!(contents(archive) == before, "{says}: {line}");
    }
    assert!(!days.dir.join("hits.parquet").exists());
}

/// Fault 37: table features that this version cannot read correctly.
#[test]
fn features_that_change_what_files_mean_are_refused() {
    let days = Days::new();
    let committed = days.commit(DAYS[0], &[("a1", far(1)), ("a2", far(2)), ("a3", far(3))]);
    let engine = OtherEngine::new(&days.archive);
    let files = engine.files();
    assert_eq!(files.len(), 2);
    let mut with_vector = files[0].clone();
    with_vector["deletionVector"] = json!({
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 1,
    });
    let mapped = engine.metadata(|metadata, fields| {
        metadata["configuration"]["delta.columnMapping.mode"] = "name".into();
        for (at, field) in fields.iter_mut().enumerate() {
            let name = field["name"].clone();
            field["metadata"] = json!({
                "delta.columnMapping.id": at + 1,
                "delta.columnMapping.physicalName": name,
            });
        }
    });
    let mut partitioned: Vec<_> = files.iter().map(|add| remove(add, true)).collect();
    partitioned.push(engine.metadata(|metadata, _| metadata["partitionColumns"] = json!(["id"])));
    let cases = [
        (
            "deletionVectors",
            vec![
                protocol(3, 7, &["deletionVectors"]),
                remove(&files[0], true),
                json!({ "add": with_vector }),
            ],
        ),
        ("columnMapping", vec![protocol(2, 5, &[]), mapped]),
        ("typeWidening", vec![protocol(3, 7, &["typeWidening"])]),
        // A feature that no version of the protocol names yet.
        ("quantumRows", vec![protocol(3, 7, &["quantumRows"])]),
        ("partitioned by id", partitioned),
        (
            "partitioned by nothing",
            vec![engine.metadata(|metadata, _| metadata["partitionColumns"] = json!([]))],
        ),
        (
            "column fp is integer",
            vec![engine.metadata(|_, fields| fields[0]["type"] = "integer".into())],
        ),
        (
            "column id is double",
            vec![engine.metadata(|_, fields| fields[1]["type"] = "double".into())],
        ),
        (
            "another column, lang",
            vec![engine.metadata(|_, fields| {
                let lang =
                    json!({"name": "lang", "type": "string", "nullable": true, "metadata": {}});
                fields.push(lang);
            })],
        ),
    ];
    fs::remove_file(days.dir.join("hits.parquet")).unwrap();
    for (says, actions) in cases {
        let entry = engine.commit("ALTER TABLE", &actions);
        is_refused(&days, 78, says);
        fs::remove_file(entry).unwrap();
    }
    // Without these features it is a valid archive again.
    days.same_again(&committed);
    // A feature that no file uses is accepted.
    engine.commit("ALTER TABLE", &[protocol(3, 7, &["deletionVectors"])]);
    days.same_again(&committed);
}

/// Fault 52: paths in the log that lead out of the table.
#[test]
fn data_files_outside_the_table_are_refused() {
    let days = Days::new();
    days.commit(DAYS[0], &[("a1", far(1))]);
    fs::remove_file(days.dir.join("hits.parquet")).unwrap();
    let engine = OtherEngine::new(&days.archive);
    let inside = engine.files().remove(0);
    // The file exists, so that a missing file is not the reason for the refusal.
    let elsewhere = days.write("elsewhere", &[("x1", far(1))]);
    let elsewhere_url = format!("file://{elsewhere}");
    for (path, says) in [
        ("s3://other/x.parquet", "s3://other/x.parquet"),
        (elsewhere_url.as_str(), elsewhere_url.as_str()),
        (elsewhere.as_str(), elsewhere.as_str()),
        ("../elsewhere.parquet", "../elsewhere.parquet"),
        (
            "day=2026-01-01/%2E%2E/%2E%2E/elsewhere.parquet",
            "day=2026-01-01/../../elsewhere.parquet",
        ),
    ] {
        let mut add = inside.clone();
        add["path"] = path.into();
        add["tags"] = json!({});
        let entry = engine.commit("WRITE", &[json!({ "add": add })]);
        is_refused(&days, 65, says);
        fs::remove_file(entry).unwrap();
    }
    days.info();
}

/// Makes a UUID from a number.
fn uuid(number: u64) -> String {
    let (high, low) = (far(number << 1), far(!number));
    format!(
        "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        low >> 52,
        low & 0xffff_ffff_ffff
    )
}

/// Fault 40: one bit is flipped, in turn in each of many bytes all over a data file.
#[test]
fn every_byte_of_a_data_file_is_covered() {
    let dir = Dir::new();
    let archive = dir.at("archive");
    let mut history: Vec<(String, u64)> = (0..4000).map(|n| (uuid(n), far(n))).collect();
    history.sort_by_key(|row| row.1.cast_signed());
    let (past, day) = (dir.at("history.parquet"), dir.at("day.parquet"));
    write_fingerprints(&past, &history);
    // The pairs are spread over the file, so that a run reads every page of ids.
    let near = history.iter().step_by(40).enumerate();
    let near: Vec<_> = near.map(|(n, row)| (format!("n{n}"), row.1 ^ 1)).collect();
    write_fingerprints(&day, &near);
    dedup_ok(&format!("archive create --profile paper {archive}"));
    dedup_ok(&format!(
        "archive append {archive} --input {past} --day 2026-01-01"
    ));
    let run = |archive: &str, output: &str| {
        dedup(&format!(
            "run --new {day} --base {archive} --output {output} --threads 1"
        ))
    };
    let output = dir.at("hits.parquet");
    run(&archive, &output).ok();
    assert_eq!(read_hits(&output).len(), near.len());
    let expected = fs::read(&output).unwrap();

    // The parts of the file: fingerprints, ids, checksums of blocks with the offset index, and the
    // footer.
    let add = OtherEngine::new(&archive).files().remove(0);
    let path = add["path"].as_str().unwrap();
    let tail = add["tags"]["dedup-job.tail"].as_str().unwrap();
    let mut tail = tail.split(':').skip(1);
    let mut offset = || tail.next().unwrap().parse::<usize>().unwrap();
    let (sums, footer) = (offset(), offset());
    let file = fs::File::open(Path::new(&archive).join(path)).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let group = reader.metadata().row_group(0);
    assert_eq!(group.column(1).column_path().string(), "id");
    let ids = group.column(1).data_page_offset() as usize;
    let bytes = fs::read(Path::new(&archive).join(path)).unwrap();
    let end = bytes.len();
    assert!(ids < sums && sums < footer && footer < end);
    let flipped: BTreeSet<usize> = (0..end)
        .step_by(end / 240)
        .chain(sums..footer)
        .chain(end.saturating_sub(300)..end)
        .collect();
    let of_ids = flipped.range(ids..sums).count();
    assert!(of_ids > 50, "{of_ids} bytes of ids");

    let flipped: Vec<usize> = flipped.into_iter().collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let unnoticed: usize = std::thread::scope(|scope| {
        let shares = flipped.chunks(flipped.len().div_ceil(workers)).enumerate();
        let running: Vec<_> = shares
            .map(|(worker, share)| {
                let (copy, output) = (
                    dir.at(&format!("archive-{worker}")),
                    dir.at(&format!("hits-{worker}.parquet")),
                );
                copy_all(&archive, &copy);
                let file = Path::new(&copy).join(path);
                let (bytes, expected, run) = (&bytes, &expected, &run);
                scope.spawn(move || {
                    let mut unnoticed = 0;
                    for &at in share {
                        let mut damaged = bytes.clone();
                        damaged[at] ^= 1 << (at % 8);
                        fs::write(&file, damaged).unwrap();
                        let ran = run(&copy, &output);
                        if ran.code == 0 {
                            // Only damage in bytes that are not read may stay unnoticed.
                            assert!(at < ids, "byte {at} of {end} is not covered");
                            assert!(fs::read(&output).unwrap() == *expected, "byte {at}");
                            unnoticed += 1;
                            continue;
                        }
                        assert_eq!(ran.code, 65, "byte {at}: {}", ran.stderr);
                        ran.fails(65, &[path]);
                    }
                    unnoticed
                })
            })
            .collect();
        let shares = running.into_iter();
        shares.map(|worker| worker.join().unwrap()).sum()
    });
    // The magic number at the start of the file, and padding, stay unnoticed.
    assert!(unnoticed < 10, "{unnoticed} of {}", flipped.len());
}

/// Copies all files of an archive.
fn copy_all(archive: &str, to: &str) {
    for (path, bytes) in contents(archive) {
        let copy = Path::new(to).join(path.strip_prefix(archive).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(copy, bytes).unwrap();
    }
}

/// Fault 45: a run died after it made `_delta_log` and before it wrote the first entry.
#[test]
fn an_archive_is_made_where_a_run_died_before_the_first_entry() {
    for leftover in [None, Some("00000000000000000000.json#123000001")] {
        let dir = Dir::new();
        let archive = dir.at("archive");
        let log = dir.join("archive/_delta_log");
        fs::create_dir_all(&log).unwrap();
        if let Some(name) = leftover {
            fs::write(log.join(name), "{\"protocol\":").unwrap();
        }
        dedup(&format!("archive info {archive}")).fails(78, &["not an archive"]);
        let created = dedup_ok(&format!("archive create --profile paper {archive} --json"));
        assert_eq!(created.json()["version"], 0);
        let input = dir.at("day.parquet");
        write_fingerprints(&input, &[("a1".to_owned(), far(1))]);
        dedup_ok(&format!(
            "archive append {archive} --input {input} --day 2026-01-01"
        ));
        let info = dedup_ok(&format!("archive info {archive} --verify --json"));
        assert_eq!(info.json()["fingerprints"], 1);
        dedup(&format!("archive create --profile paper {archive}")).fails(64, &["already"]);
    }
}

/// Fault 48: a committed day is run again without `--day`; the run recognises it by its digest.
#[test]
fn a_committed_day_is_recognised_without_its_date() {
    let (days, committed) = Days::three();
    let engine = OtherEngine::new(&days.archive);
    let is_recognised = |day: &Committed| {
        let before = contents(&days.archive);
        let again = days.run(&day.input, "");
        assert_eq!(again.summary["day"], day.date);
        assert_eq!(again.summary["commit"], "not_asked");
        assert_eq!(again.hits, day.first.hits);
        assert!(again.bytes == day.first.bytes && contents(&days.archive) == before);
    };
    committed.iter().for_each(is_recognised);
    let line = days.line(&committed[1].input, "").replace("--json", "");
    let said = dedup_ok(&line).stdout;
    assert!(said.contains("day 2026-01-02 of the archive"), "{said}");

    // The day is still recognised after another day, after a second day of the same documents, and
    // after its files lost their tags.
    days.commit(DAYS[3], &[("d1", far(1)), ("d2", far(5))]);
    committed.iter().for_each(is_recognised);
    let line = days.line(&committed[1].input, &format!("--append --day {}", DAYS[4]));
    assert!(dedup_json(&line)["commit"]["committed"].is_u64());
    committed.iter().for_each(is_recognised);
    engine.optimize(Some(DAYS[1]));
    committed.iter().for_each(is_recognised);

    // Other documents are no day of the archive, so the run compares them with all of it.
    let other = days.write("other", &[("b1", far(1) ^ 1), ("n1", far(7))]);
    let found = days.run(&other, "");
    assert!(found.summary["day"].is_null());
    let bases: Vec<&str> = found.hits.iter().map(|hit| hit.1.as_str()).collect();
    assert!(bases.contains(&"b1") && bases.contains(&"d1"), "{bases:?}");
}

/// An empty entry, which the Delta library takes for one that changes nothing, one that is cut off, within a line or behind one, one with
/// another letter, the whole content of another entry, and one that is missing.
#[test]
fn a_damaged_entry_of_the_log_is_named() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate pages --output {data} --new 20 --base 30"
    ));
    let entry = format!("{data}/archive/_delta_log/00000000000000000002.json");
    let whole = fs::read(&entry).unwrap();
    let half = whole[..whole.len() / 2].to_vec();
    let ends = || whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let first_line = whole[..ends().next().unwrap().0].to_vec();
    let without_last = whole[..=ends().next_back().unwrap().0].to_vec();
    let text = String::from_utf8(whole.clone()).unwrap();
    let other_path = text.replacen("\"path\":\"day=", "\"path\":\"dax=", 1);
    assert_ne!(other_path, text);
    let other_entry = fs::read(entry.replace("2.json", "1.json")).unwrap();
    for (left, says) in [
        (Some(Vec::new()), "is empty"),
        (Some(half), "is not JSON"),
        (Some(first_line), "is damaged"),
        (Some(without_last), "is damaged"),
        (Some(other_path.into_bytes()), "is damaged"),
        (Some(other_entry), "is damaged"),
        (None, "is missing"),
    ] {
        match left {
            Some(bytes) => fs::write(&entry, bytes).unwrap(),
            None => fs::remove_file(&entry).unwrap(),
        }
        let said = ["archive/_delta_log/00000000000000000002.json", says];
        let output = dir.at("hits.csv");
        for line in [
            format!("archive info {data}/archive"),
            format!("run {data}/day.parquet --base {data}/archive --output {output}"),
        ] {
            let ran = dedup(&line).fails(65, &said);
            assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{}", ran.stderr);
        }
    }
}
