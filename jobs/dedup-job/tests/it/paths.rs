//! Tests of the files that a path names: a run reads each once, whatever its name, and reads a
//! table by its log. Fault numbers are those of docs/faults.md.

use std::fs;
use std::os::unix::fs::symlink;

use crate::helpers::servers::*;
use crate::helpers::support::*;

const PAGE: &str = "Near duplicate web documents are abundant and differ in a small portion such as advertisements";
const OTHER: &str =
    "Something else entirely was written on this page by somebody about gardens and rivers";

/// A function that runs the program with arguments that may contain spaces.
type Program<'a> = &'a dyn Fn(&[&str]) -> Ran;

fn local(arguments: &[&str]) -> Ran {
    dedup_job(arguments)
}

fn on(storage: &Storage) -> impl Fn(&[&str]) -> Ran + '_ {
    move |arguments: &[&str]| {
        let output = storage.command().args(arguments).output();
        without_secrets(Ran::of(output.unwrap()))
    }
}

/// The result of `sql` over the documents of a path.
fn sql(program: Program<'_>, path: &str, query: &str) -> Ran {
    let table = format!("t={path}");
    program(&["sql", query, "--table", &table, "--json"])
}

fn count(program: Program<'_>, path: &str) -> i64 {
    let counted = sql(program, path, "select count(*) as n from t");
    counted.ok().json()["n"].as_i64().unwrap()
}

fn ids(program: Program<'_>, path: &str) -> Vec<String> {
    let ran = sql(program, path, "select id from t order by id").ok();
    let id = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        row["id"].as_str().unwrap().to_owned()
    };
    ran.stdout.lines().map(id).collect()
}

/// Pairs of names that percent-decoding or form-decoding would confuse.
const NAMES: [&str; 6] = ["x%3Ay", "x:y", "a+b c", "a b c", "中", "100%"];

/// Reads files by name, by directory and by pattern. The id of the one document in each is the
/// file's name.
fn reads_the_very_files(program: Program<'_>, put: &dyn Fn(&str, Vec<u8>), at: &str) {
    let dir = Dir::new();
    let directory = format!("{at}/50% p+q 中");
    let mut all = Vec::new();
    for name in NAMES {
        let (parquet, lines) = (format!("{name}.parquet"), format!("{name}.jsonl"));
        write_documents(dir.join("one.parquet"), &[(&parquet, PAGE)]);
        let bytes = fs::read(dir.join("one.parquet")).unwrap();
        put(&format!("{directory}/{parquet}"), bytes);
        let line = serde_json::json!({ "id": lines, "text": PAGE }).to_string() + "\n";
        put(&format!("{directory}/{lines}"), line.into_bytes());
        all.extend([parquet, lines]);
    }
    all.sort();
    for name in &all {
        let found = ids(program, &format!("{directory}/{name}"));
        assert_eq!(found, [name.as_str()], "{at}");
    }
    for whole in [&directory, &format!("{directory}/*")] {
        assert_eq!(ids(program, whole), all, "{whole}");
    }
    let pattern = format!("{directory}/x%3A*");
    assert_eq!(ids(program, &pattern), ["x%3Ay.jsonl", "x%3Ay.parquet"]);
    // The same names serve as the batch of a run, and as its base.
    let (fingerprints, hits) = (
        format!("{at}/fp 1%.parquet"),
        format!("{at}/a+b %41.parquet"),
    );
    program(&[
        "fingerprint",
        "--input",
        &directory,
        "--output",
        &fingerprints,
    ])
    .ok();
    let run = program(&[
        "run",
        "--new",
        &directory,
        "--base",
        &fingerprints,
        "--output",
        &hits,
        "--json",
    ]);
    assert_eq!(run.ok().json()["new"]["documents"], 12);
    assert_eq!(count(program, &fingerprints), 12);
}

/// Fault 43: unusual names of files.
#[test]
fn odd_names_of_files() {
    let dir = Dir::new();
    let put = |path: &str, bytes: Vec<u8>| {
        fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    reads_the_very_files(&local, &put, &dir.at("names"));
    assert!(dir.join("names/a+b %41.parquet").exists());
    // A path with pattern characters names the file of that name if it exists.
    for (name, other) in [("a?c", "abc"), ("[d]", "d"), ("e*", "ef")] {
        for id in [name, other] {
            write_documents(dir.join(&format!("{id}.parquet")), &[(id, PAGE)]);
        }
        let path = dir.at(&format!("{name}.parquet"));
        assert_eq!(ids(&local, &path), [name]);
    }
}

/// Fault 43: unusual names of objects.
#[test]
fn odd_names_of_objects() {
    let Some(storage) = seaweed() else { return };
    let at = storage.unique("names");
    let put = |url: &str, bytes: Vec<u8>| storage.put(url, bytes);
    reads_the_very_files(&on(&storage), &put, &at);
    assert!(storage.get(&format!("{at}/a+b %41.parquet")).is_some());
}

/// Fault 44: symlinks and hard links to files and directories; one symlink leads in a circle.
#[test]
fn links_are_read_once() {
    let dir = Dir::new();
    let (new, base) = (dir.at("new"), dir.at("base.parquet"));
    fs::create_dir_all(dir.join("new/deep")).unwrap();
    let document = dir.join("new/b.parquet");
    write_documents(&document, &[("n1", PAGE), ("n2", OTHER)]);
    dedup_ok(&format!("fingerprint --input {new} --output {base}"));
    symlink(&document, dir.join("new/a.parquet")).unwrap();
    fs::hard_link(&document, dir.join("new/deep/c.parquet")).unwrap();
    symlink(dir.join("new"), dir.join("new/deep/up")).unwrap();
    symlink(dir.join("new/deep"), dir.join("new/same")).unwrap();
    for paths in [
        new.clone(),
        format!("{new}/*"),
        format!("{new}/**/*.parquet"),
        format!("{new}/a.parquet {new}/b.parquet {new}/deep/*.parquet {new}"),
    ] {
        let run = dedup(&format!(
            "run --new {paths} --base {base} --output {} --json",
            dir.at("hits.parquet")
        ));
        assert_eq!(run.ok().json()["new"]["documents"], 2, "{paths}");
    }
    assert_eq!(count(&local, &new), 2);
    // Files with equal contents are different files.
    fs::copy(&document, dir.join("new/copy.parquet")).unwrap();
    assert_eq!(count(&local, &new), 4);
}

/// Fault 49: an archive is read by its log; its files are not read directly.
fn goes_by_the_log(program: Program<'_>, data: &str, data_files: &dyn Fn() -> Vec<String>) {
    let (dir, archive, day) = (
        Dir::new(),
        format!("{data}/archive"),
        format!("{data}/day.parquet"),
    );
    let line = |line: &str| program(&line.split_whitespace().collect::<Vec<_>>());
    let hits = dir.at("hits.parquet");
    line(&format!(
        "generate fingerprints --output {data} --new 1000 --base 6000 --days 2"
    ))
    .ok();
    line(&format!(
        "run --new {day} --base {archive} --output {hits} --append --day 2026-01-31 --rows-per-file 100"
    ))
    .ok();
    assert_eq!((count(program, &archive), data_files().len()), (7000, 12));
    line(&format!("archive compact {archive}")).ok();
    // The merged files and the files before the merge are both in the directory.
    assert_eq!((count(program, &archive), data_files().len()), (7000, 13));
    assert_eq!(count(program, &format!("{archive}/")), 7000);
    let run = line(&format!(
        "run --new {archive} --base {day} --output {hits} --json"
    ));
    assert_eq!(run.ok().json()["new"]["documents"], 7000);

    for path in [
        format!("{archive}/day=2026-01-31"),
        format!("{archive}/day=2026-01-31/*.parquet"),
        format!("{archive}/day=*/*.parquet"),
        format!("{archive}/*"),
        format!("{data}/*/day=2026-01-31/*.parquet"),
        data_files().swap_remove(0),
    ] {
        let named = format!("lies in the Delta table {archive}");
        sql(program, &path, "select 1 from t").fails(64, &[&named]);
        for (new, base) in [(&path, &day), (&day, &path)] {
            let run = format!("run --new {new} --base {base} --output {hits}");
            line(&run).fails(64, &[&named]);
        }
    }
    let holds = format!("holds the Delta table {archive}");
    sql(program, data, "select 1 from t").fails(64, &[&holds]);
    line(&format!("run --new {data} --base {day} --output {hits}")).fails(64, &[&holds]);
}

#[test]
fn local_archives_go_by_their_logs() {
    let dir = Dir::new();
    let data_files = || {
        let all = contents(dir.join("data/archive")).into_iter();
        let names = all.map(|(path, _)| path.display().to_string());
        names.filter(|name| name.contains("/day=")).collect()
    };
    goes_by_the_log(&local, &dir.at("data"), &data_files);
    // A link into the archive is refused too.
    symlink(
        dir.join("data/archive/day=2026-01-31"),
        dir.join("day-of-it"),
    )
    .unwrap();
    let link = dir.at("day-of-it");
    sql(&local, &link, "select 1 from t").fails(64, &["lies in the Delta table"]);
    // A file that the log names is gone.
    for (path, _) in contents(dir.join("data/archive/day=2026-01-31")) {
        fs::remove_file(path).unwrap();
    }
    let archive = dir.at("data/archive");
    sql(&local, &archive, "select 1 from t").fails(65, &["day=2026-01-31", "missing"]);
}

/// An archive as --new: its data files hold no spec, so the run compares the spec of the archive.
#[test]
fn an_archive_of_another_spec_is_no_new_day() {
    let dir = Dir::new();
    let (day, archive, base) = (
        dir.at("day.parquet"),
        dir.at("archive"),
        dir.at("base.parquet"),
    );
    write_documents(&day, &[("n1", PAGE), ("n2", OTHER)]);
    dedup_ok(&format!("fingerprint --input {day} --output {base}"));
    dedup_ok(&format!(
        "archive create --profile paper {archive} --weight log-tf"
    ));
    dedup_ok(&format!(
        "archive append {archive} --input {day} --day 2026-01-01"
    ));
    let hits = dir.at("hits.parquet");
    dedup(&format!(
        "run --new {archive} --base {base} --output {hits}"
    ))
    .fails(78, &["different specs", "weight"]);
}

#[test]
fn archives_on_s3_go_by_their_logs() {
    let Some(storage) = seaweed() else { return };
    let data = storage.unique("by-the-log");
    let data_files = || {
        let all = storage.list(&format!("{data}/archive")).into_iter();
        all.filter(|name| name.contains("/day=")).collect()
    };
    goes_by_the_log(&on(&storage), &data, &data_files);
}
