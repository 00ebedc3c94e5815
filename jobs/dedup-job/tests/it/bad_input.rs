//! Bad input gives one clear error and the right exit code, and loses nothing. Fault numbers are
//! those of docs/faults.md.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{ArrayRef, BinaryArray, Float64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::helpers::support::*;

fn base(dir: &Dir) -> String {
    write_fingerprints(
        dir.join("base.parquet"),
        &[("old".into(), 7), ("older".into(), 70)],
    );
    dir.at("base.parquet")
}

fn run(dir: &Dir, new: &str, base: &str) -> Ran {
    dedup_job([
        "run",
        "--new",
        new,
        "--base",
        base,
        "--output",
        &dir.at("hits.parquet"),
    ])
}

/// Fault 22: the error names the truncated file.
#[test]
fn truncated_files_are_named() {
    let dir = Dir::new();
    let base = base(&dir);
    fs::write(dir.join("hits.parquet"), EARLIER_OUTPUT).unwrap();
    let rows: Vec<(String, u64)> = (0..50_000).map(|n| (format!("id-{n}"), n)).collect();
    write_fingerprints(dir.join("day.parquet"), &rows);
    let whole = fs::read(dir.join("day.parquet")).unwrap();
    let day = dir.at("day.parquet");
    for keep in [0, 3, 11, whole.len() / 2, whole.len() - 1] {
        fs::write(&day, &whole[..keep]).unwrap();
        run(&dir, &day, &base).fails(65, &["day.parquet"]);
    }
    // The footer is intact, the pages are damaged.
    let mut damaged = whole.clone();
    damaged[4..2000].fill(0x55);
    fs::write(&day, damaged).unwrap();
    run(&dir, &day, &base).fails(65, &["day.parquet", "row group 0"]);
    for (name, content) in [
        (
            "day.jsonl",
            "{\"id\":\"a\",\"text\":\"b\"}\n{\"id\":\"c\",\"te",
        ),
        ("day.csv", "id,text\na,b\nc,\"d"),
        ("day.csv.gz", "\u{1f}no gzip"),
        ("day.jsonl.zst", "no zstd"),
    ] {
        fs::write(dir.join(name), content).unwrap();
        run(&dir, &dir.at(name), &base).fails(65, &[name]);
    }
    fs::write(dir.join("base.parquet"), &whole[..whole.len() / 2]).unwrap();
    fs::write(&day, &whole).unwrap();
    run(&dir, &day, &base).fails(65, &["base.parquet"]);
    assert!(
        !dir.names().iter().any(|name| name.ends_with(".tmp")),
        "{:?}",
        dir.names()
    );
}

/// Fault 23: one flipped bit, which `archive info --verify` finds; and fault 17: a data file that
/// is missing.
#[test]
fn a_damaged_archive_is_noticed() {
    let dir = Dir::new();
    let archive = dir.archive("archive", "--profile paper");
    let rows: Vec<(String, u64)> = (0..5000).map(|n| (format!("id-{n}"), n * n)).collect();
    write_fingerprints(dir.join("day.parquet"), &rows);
    dedup_ok(&format!(
        "archive append {archive} --input {} --day 2026-01-01",
        dir.at("day.parquet")
    ));
    dedup_ok(&format!("archive info {archive} --verify"));
    let (path, bytes) = contents(&archive)
        .into_iter()
        .find(|(path, _)| path.extension() == Some("parquet".as_ref()))
        .unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 4;
    fs::write(&path, flipped).unwrap();
    dedup(&format!("archive info {archive} --verify")).fails(65, &[name, "SHA-256"]);
    fs::remove_file(&path).unwrap();
    dedup(&format!("archive info {archive} --verify")).fails(65, &[name, "missing"]);
    let line = format!(
        "run --new {} --base {archive} --day 2026-02-01 --output {}",
        dir.at("day.parquet"),
        dir.at("hits.parquet")
    );
    dedup(&line).fails(65, &[name, "missing"]);
}

/// Fault 25: wrong columns, and documents without an id.
#[test]
fn wrong_columns_and_null_ids_are_named() {
    let dir = Dir::new();
    let base = base(&dir);
    let day = dir.at("day.parquet");
    let texts = || strings(["a b c d e", "f g h i j"]);
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    type Case = (Vec<(&'static str, ArrayRef)>, Vec<&'static str>);
    let cases: Vec<Case> = vec![
        (
            vec![("name", texts()), ("text", texts())],
            vec!["no id column", "name, text"],
        ),
        (
            vec![("id", texts()), ("title", texts())],
            vec!["no text or fingerprint column", "id, title"],
        ),
        (
            vec![("id", floats.clone()), ("text", texts())],
            vec!["\"id\"", "DOUBLE"],
        ),
        (
            vec![("id", texts()), ("text", numbers([1, 2]))],
            vec!["\"text\"", "Int64"],
        ),
        (
            vec![("id", texts()), ("fp", floats)],
            vec!["\"fp\"", "Float64"],
        ),
        (
            vec![
                ("id", Arc::new(StringArray::from(vec![Some("a"), None]))),
                ("text", texts()),
            ],
            vec!["\"id\"", "null", "row group 0"],
        ),
    ];
    for (columns, parts) in cases {
        write_parquet(&day, columns);
        run(&dir, &day, &base)
            .fails(65, &parts)
            .fails(65, &["day.parquet"]);
    }
    for (name, content, part) in [
        (
            "a.jsonl",
            "{\"id\":\"a\",\"text\":\"b\"}\n{\"text\":\"b\"}\n",
            "line 2: no id",
        ),
        ("b.jsonl", "{\"id\":[1],\"text\":\"b\"}\n", "\"id\""),
        ("c.jsonl", "[1,2]\n", "object"),
        ("d.csv", "key,text\n1,b\n", "key"),
        ("e.csv", "id,text\n,b\n", "line 2: no id"),
    ] {
        fs::write(dir.join(name), content).unwrap();
        run(&dir, &dir.at(name), &base).fails(65, &[name, part]);
    }
    fs::write(dir.join("day.pdf"), "text").unwrap();
    run(&dir, &dir.at("day.pdf"), &base).fails(65, &["day.pdf", "JSON Lines"]);
    write_parquet(
        dir.join("base.parquet"),
        vec![("id", texts()), ("fp", texts())],
    );
    write_fingerprints(&day, &[("a".into(), 1)]);
    run(&dir, &day, &base).fails(65, &["base.parquet", "fp"]);
}

/// Fault 26: a batch without documents, and an archive without days.
#[test]
fn an_empty_day_and_an_empty_archive_give_an_empty_output() {
    let dir = Dir::new();
    let base = base(&dir);
    let archive = dir.archive("archive", "--profile paper");
    write_fingerprints(dir.join("empty.parquet"), &[]);
    write_fingerprints(
        dir.join("day.parquet"),
        &[("a".into(), 1), ("b".into(), u64::MAX)],
    );
    fs::write(dir.join("empty.jsonl"), "").unwrap();
    fs::write(dir.join("empty.csv"), "id,text\n").unwrap();
    fs::create_dir(dir.join("nothing")).unwrap();
    for (new, base) in [
        (dir.at("empty.parquet"), &base),
        (dir.at("empty.jsonl"), &base),
        (dir.at("empty.csv"), &base),
        (dir.at("nothing"), &base),
        (dir.at("day.parquet"), &archive),
        (dir.at("empty.parquet"), &archive),
        (dir.at("day.parquet"), &dir.at("nothing")),
    ] {
        let _ = fs::remove_file(dir.join("hits.parquet"));
        run(&dir, &new, base).ok();
        let output = fs::File::open(dir.join("hits.parquet")).unwrap();
        let schema =
            parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(output).unwrap();
        assert_eq!(schema.schema().fields().len(), 4);
        assert!(
            read_hits(dir.join("hits.parquet")).is_empty(),
            "{new} {base}"
        );
    }
    // An empty day is committed if that is meant.
    let append = format!(
        "run --new {} --base {archive} --append --allow-empty --day 2026-01-01 --output {} --json",
        dir.at("empty.parquet"),
        dir.at("h.parquet")
    );
    assert_eq!(dedup_json(&append)["commit"]["committed"], 1);
    assert_eq!(dedup_json(&append)["commit"], "already_there");
}

/// Fault 28: a memory limit that is too small.
#[test]
fn too_little_memory_names_the_setting() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate fingerprints --output {data} --new 400000 --base 1000"
    ));
    let line = format!(
        "run --new {data}/day.parquet --base {data}/archive --output {}",
        dir.at("hits.parquet")
    );
    dedup(&format!("{line} --memory-limit 8MiB")).fails(75, &["--memory-limit"]);
    assert_eq!(dir.names(), ["data"]);
    dedup_ok(&format!("{line} --memory-limit 200MiB"));
}

/// Fault 33: fingerprints that were made under another spec.
#[test]
fn fingerprints_of_another_spec_are_refused_field_by_field() {
    let dir = Dir::new();
    let archive = dir.archive("archive", "--profile paper --weight log-tf");
    write_documents(
        dir.join("docs.parquet"),
        &[("a", "one two three four five")],
    );
    let (docs, made) = (dir.at("docs.parquet"), dir.at("made.parquet"));
    dedup_ok(&format!(
        "fingerprint --input {docs} --output {made} --min-features 2"
    ));
    let parts = [
        "weight",
        "log-tf",
        "\"sqrt-tf\"",
        "min_features: 4 against 2",
    ];
    run(&dir, &made, &archive).fails(78, &parts);
    dedup(&format!(
        "archive append {archive} --input {made} --day 2026-01-01"
    ))
    .fails(78, &parts);
    // Texts are fingerprinted under the archive's spec.
    run(&dir, &docs, &archive).ok();
    // A batch cannot be compared with plain files of two specs.
    fs::create_dir(dir.join("mixed")).unwrap();
    fs::copy(&made, dir.join("mixed/a.parquet")).unwrap();
    dedup_ok(&format!(
        "fingerprint --input {docs} --output {}",
        dir.at("mixed/b.parquet")
    ));
    run(&dir, &docs, &dir.at("mixed")).fails(78, &["a.parquet", "b.parquet", "min_features"]);
}

/// Fault 34: `--new` and `--base` name the same path, an output lies inside the archive, and other
/// usage errors.
#[test]
fn usage_errors() {
    let dir = Dir::new();
    let base = base(&dir);
    let archive = dir.archive("archive", "--profile paper");
    write_fingerprints(dir.join("day.parquet"), &[("a".into(), 1)]);
    let day = dir.at("day.parquet");
    let before = contents(&archive);
    for (line, parts) in [
        (format!("run --new {base} --base {base}"), vec!["same"]),
        (
            format!(
                "run --new {} --base {base}",
                base.replace("base.parquet", "./base.parquet")
            ),
            vec!["same"],
        ),
        (
            format!("run --new {day} --base {archive} --output {archive}/hits.parquet"),
            vec!["--output", "lies in"],
        ),
        (
            format!(
                "run --new {day} --base {archive} --output {archive}/day=2026-01-01/hits.parquet"
            ),
            vec!["lies in"],
        ),
        (
            format!("run --new {day} --base {archive} --output {day}"),
            vec!["lies in"],
        ),
        (
            format!("run --new {day} --base {archive} --fingerprints {archive}/f.parquet"),
            vec!["--fingerprints"],
        ),
        (
            format!("run --new {day} --base {archive} --append"),
            vec!["--day"],
        ),
        (
            format!("run --new {day} --base {base} --append --day 2026-01-01"),
            vec!["archive create"],
        ),
        (
            format!("run --new {day} --base {archive} -k 17"),
            vec!["17"],
        ),
        (
            format!("run --new {day} --base {archive} --design blocks-9"),
            vec!["blocks-9"],
        ),
        (
            format!("run --new {day} --base {archive} --day 2026-13-01"),
            vec!["2026-13-01"],
        ),
        (
            format!("run --new {day} --append --day 2026-01-01"),
            vec!["--base"],
        ),
        (format!("run --base {base}"), vec!["--new"]),
        (
            format!("run --new {day} --base {}/none", dir.at("")),
            vec!["none"],
        ),
        (
            format!("run --new {}/none.parquet --base {base}", dir.at("")),
            vec!["none.parquet"],
        ),
        (
            format!("run --new {day} --base ftp://host/archive"),
            vec!["ftp://host/archive", "s3://"],
        ),
        (
            format!("archive create --profile paper {archive}"),
            vec!["already"],
        ),
        ("frobnicate".to_owned(), vec!["frobnicate"]),
    ] {
        let ran = command()
            .current_dir(dir.join(""))
            .args(line.split_whitespace())
            .output()
            .unwrap();
        Ran::of(ran).fails(64, &parts);
    }
    assert_eq!(contents(&archive), before);
    assert!(!dir.join("hits.parquet").exists());
    dedup(&format!("archive info {}", dir.at(""))).fails(78, &["not an archive"]);
    fs::create_dir_all(dir.join("foreign/_delta_log")).unwrap();
    dedup(&format!("archive info {}", dir.at("foreign"))).fails(78, &["foreign"]);
}

#[test]
fn an_output_that_cannot_be_written() {
    let dir = Dir::new();
    let base = base(&dir);
    write_fingerprints(dir.join("day.parquet"), &[("a".into(), 1)]);
    let day = dir.at("day.parquet");
    dedup(&format!(
        "run --new {day} --base {base} --output {}",
        dir.at("no/such/hits.parquet")
    ))
    .fails(74, &["no/such"]);
    // Root may write anywhere.
    if !fs::metadata("/proc/self").is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0) {
        fs::create_dir(dir.join("locked")).unwrap();
        fs::set_permissions(dir.join("locked"), fs::Permissions::from_mode(0o500)).unwrap();
        dedup(&format!(
            "run --new {day} --base {base} --output {}",
            dir.at("locked/hits.parquet")
        ))
        .fails(77, &["locked"]);
    }
    // A device that is always full.
    if fs::metadata("/dev/full").is_ok() {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let line = format!(
            "run --new {day} --base {base} --output {}",
            dir.at("hits.parquet")
        );
        let ran = command()
            .args(line.split_whitespace())
            .stdout(full)
            .output()
            .unwrap();
        Ran::of(ran).fails(74, &["standard output"]);
    }
}

/// Fault 35: SIGINT and SIGTERM.
#[test]
fn signals_stop_a_run_at_once() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate fingerprints --output {data} --new 30000 --base 2000000 --days 1 -k 3"
    ));
    fs::write(dir.join("hits.parquet"), EARLIER_OUTPUT).unwrap();
    let before = contents(format!("{data}/archive"));
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        // Every pair is compared: this takes minutes.
        let line = format!(
            "run --new {data}/day.parquet --base {data}/archive --design exhaustive --append --day 2026-01-31 --output {} --scratch {}",
            dir.at("hits.parquet"),
            dir.at("")
        );
        let child = start(command(), &line);
        std::thread::sleep(Duration::from_millis(700));
        let sent = Instant::now();
        signal(&child, name);
        Ran::of(child.wait_with_output().unwrap()).fails(code, &[name]);
        assert!(sent.elapsed() < Duration::from_secs(2));
        assert_eq!(fs::read(dir.join("hits.parquet")).unwrap(), EARLIER_OUTPUT);
        assert_eq!(
            dir.names(),
            ["data", "hits.parquet"],
            "nothing half-written"
        );
        assert_eq!(contents(format!("{data}/archive")), before);
    }
}

/// Fault 35, when all is done and only the answer is still printed, into a pipe that nobody empties.
#[test]
fn signals_stop_a_command_that_prints() {
    let dir = Dir::new();
    let lines = |n: usize| format!("{{\"id\":\"{n}\",\"text\":\"the quick brown fox jumps\"}}\n");
    fs::write(dir.join("d.jsonl"), (0..400).map(lines).collect::<String>()).unwrap();
    let table = format!("d={}", dir.at("d.jsonl"));
    let query = "select a.id, b.text from d a, d b";
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let mut child = command()
            .args(["sql", query, "--json", "--table", &table])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut [0]).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let sent = Instant::now();
        signal(&child, name);
        Ran::of(child.wait_with_output().unwrap()).fails(code, &[name, "cut off"]);
        assert!(sent.elapsed() < Duration::from_secs(2));
    }
}

/// Fault 23: one bit flipped in an archive's data file. A run finds it, without `--verify`.
#[test]
fn a_flipped_bit_in_the_archive_gives_no_wrong_hits() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate fingerprints --output {data} --new 500 --base 20000 --days 1"
    ));
    let (file, bytes) = contents(format!("{data}/archive"))
        .into_iter()
        .find(|(path, _)| {
            path.extension()
                .is_some_and(|extension| extension == "parquet")
        })
        .unwrap();
    let run = format!(
        "run --new {data}/day.parquet --base {data}/archive --day 2026-01-31 --output {}",
        dir.at("hits.parquet")
    );
    let expected = fs::read(format!("{data}/expected.parquet")).unwrap();
    let mut found = 0;
    // The fingerprints are about the first 100 kB of the file.
    for at in (200..90_000).step_by(997) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&file, &damaged).unwrap();
        let _ = fs::remove_file(dir.join("hits.parquet"));
        let ran = dedup(&run);
        if ran.code == 0 {
            // The bit means nothing: it is padding, or statistics in a page header.
            assert!(
                fs::read(dir.join("hits.parquet")).unwrap() == expected,
                "byte {at}"
            );
        } else {
            found += 1;
            ran.fails(65, &["row group 0", "fingerprint column"]);
            assert!(!dir.join("hits.parquet").exists());
        }
    }
    assert!(found >= 85, "{found} of 91 were found");
}

/// Fault 24: a text that is small in the file but large in memory, and a page header that claims a
/// larger size still. A limit on the address space stands in for the machine's memory.
#[test]
fn bombs_and_forged_sizes_stay_within_the_memory() {
    let dir = Dir::new();
    let archive = dir.archive("archive", "--profile paper");
    let bomb = dir.at("bomb.parquet");
    let length = 140_000_000;
    let texts: ArrayRef = Arc::new(BinaryArray::from_iter_values([vec![b'x'; length]]));
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Utf8, false),
        Field::new("text", DataType::Binary, false),
    ]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![strings(["a"]), texts]).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let file = fs::File::create(&bomb).unwrap();
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    let metadata = writer.close().unwrap();
    assert!(fs::metadata(&bomb).unwrap().len() < 100_000);
    let run = |day: &str, limit: &str| {
        let line = format!(
            "run --new {day} --base {archive} --output {} --memory-limit {limit} --threads 2",
            dir.at("hits.parquet")
        );
        // `ulimit -v` counts KiB: 3,000,000 KiB are about 3 GB.
        let script = format!("ulimit -v 3000000; exec \"$0\" {line}");
        let output = std::process::Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_dedup-job")])
            .output()
            .unwrap();
        Ran::of(output)
    };
    run(&bomb, "64MiB").fails(75, &["bomb.parquet, row group 0", "--memory-limit"]);
    run(&bomb, "2GiB").ok();

    // The page header encodes numbers as varints: first the page type, then the uncompressed size.
    let mut bytes = fs::read(&bomb).unwrap();
    let page = metadata.row_group(0).column(1).data_page_offset() as usize;
    assert_eq!(bytes[page..page + 3], [0x15, 0x00, 0x15]);
    let claimed = bytes[page + 3..page + 8].to_vec();
    assert!(claimed[..4].iter().all(|byte| byte & 0x80 != 0) && claimed[4] & 0x80 == 0);
    bytes[page + 3..page + 8].copy_from_slice(&[0xfe, 0xff, 0xff, 0xff, 0x0f]);
    let forged = dir.at("forged.parquet");
    fs::write(&forged, bytes).unwrap();
    run(&forged, "2GiB").fails(65, &["forged.parquet, row group 0"]);
}

/// Fault 24: a page of delta-encoded text that claims 2⁵⁰ values. The Parquet library would
/// allocate memory for all of them and so abort the process.
#[test]
fn a_text_page_that_claims_too_many_values_is_refused() {
    let dir = Dir::new();
    let archive = dir.archive("archive", "--profile paper");
    let text = "the same words in the batch and in the archive ".repeat(5);
    let write = |name: &str, encoded: &str| {
        let columns = ["id", "text"].map(|column| {
            let value = if column == "text" { &text } else { "document" };
            (column, strings([value]))
        });
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_column_encoding(encoded.into(), Encoding::DELTA_LENGTH_BYTE_ARRAY)
            .build();
        let mut writer =
            ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        let bytes = writer.into_inner().unwrap();
        fs::write(dir.join(name), &bytes).unwrap();
        bytes
    };
    let run = |new: &str, more: &str| {
        let output = dir.at("pairs.parquet");
        dedup(&format!(
            "run --new {new} --base {archive} --output {output} --day 2026-01-01 {more}"
        ))
    };
    for column in ["id", "text"] {
        let mut bytes = write("whole.parquet", column);
        let whole = dir.at("whole.parquet");
        run(&whole, "").ok();
        // The header of the lengths: block size 128, 4 miniblocks, 1 value. The last is
        // overwritten.
        let header = [0x80, 0x01, 0x04, 0x01];
        let mut windows = bytes.windows(4);
        let at = windows.position(|window| window == header).unwrap() + 3;
        bytes[at..at + 8].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        let name = format!("forged-{column}.parquet");
        fs::write(dir.join(&name), &bytes).unwrap();
        let forged = dir.at(&name);
        run(&forged, "").fails(65, &[&format!("{name}, row group 0"), "claims more values"]);
        // The forged file as --base-text: a run reads its ids first, then the texts of documents in
        // pairs.
        let _ = fs::remove_dir_all(&archive);
        dedup_ok(&format!("archive create --profile paper {archive}"));
        run(&whole, "--append").ok();
        let verify = format!("--verify jaccard --base-text {forged} --day 2026-01-02");
        let output = dir.at("pairs.parquet");
        dedup(&format!(
            "run --new {whole} --base {archive} --output {output} {verify}"
        ))
        .fails(65, &[&format!("{name}, row group 0"), "claims more values"]);
    }
}

/// Fault 72: an error of a configuration file has no line of it, which may have a password; and fault 76: years that other engines
/// do not read.
#[test]
fn errors_of_options_show_no_secret_and_no_year_is_out_of_range() {
    let dir = Dir::new();
    let base = base(&dir);
    for (line, place) in [
        ("metrics = \"https://u:s3cret@gw.example/x\n", "line 2"),
        (
            "metrics = \"https://u:s3cret@gw.example/x\" oops\n",
            "line 2",
        ),
        (
            "metrics = { url = \"https://u:s3cret@gw.example/\" }\n",
            "table",
        ),
    ] {
        let config = dir.at("c.toml");
        fs::write(&config, format!("[run]\n{line}")).unwrap();
        let ran = dedup(&format!("run x.jsonl --base {base} --config {config}"));
        assert!(!ran.stderr.contains("s3cret"), "{}", ran.stderr);
        ran.fails(78, &["c.toml", place]);
    }
    let archive = dir.at("archive");
    for day in ["+12026-11-20", "0000-01-01", "-0001-01-01", "10000-01-01"] {
        dedup(&format!(
            "archive append {archive} --input {base} --day={day}"
        ))
        .fails(64, &["--day"]);
    }
}
