//! Tests of help, configuration, summaries and completions.

use std::fs;

use crate::helpers::support::*;

/// The options that other programs rely on exist.
#[test]
fn help_names_the_options_of_the_contract() {
    let help = dedup_ok("run --help").stdout;
    for option in [
        "--new",
        "--base",
        "--output",
        "--max-distance",
        "-k",
        "--within",
        "--no-within",
        "--append",
        "--day",
        "--fingerprints",
        "--id-column",
        "--text-column",
        "--fingerprint-column",
        "--design",
        "--threads",
        "--memory-limit",
        "--config",
        "--json",
        "--quiet",
        "-v",
    ] {
        assert!(help.contains(option), "{option}");
    }
    for command in [
        "run",
        "fingerprint",
        "archive create",
        "archive info",
        "archive append",
        "plan",
        "generate pages",
        "generate fingerprints",
    ] {
        dedup_ok(&format!("{command} --help"));
    }
    assert!(dedup_ok("--version").stdout.starts_with("dedup-job "));
    insta::assert_snapshot!("help", dedup_ok("--help").stdout);
    insta::assert_snapshot!("run_help", help);
    let brief = dedup_ok("run -h").stdout;
    assert!(
        brief.lines().count() <= 45 && brief.matches("\n  dedup-job run ").count() == 3,
        "{brief}"
    );
}

fn day_and_base(dir: &Dir) -> (String, String) {
    write_fingerprints(
        dir.join("day.parquet"),
        &[("a".into(), 1), ("b".into(), 31)],
    );
    write_fingerprints(
        dir.join("base.parquet"),
        &[("c".into(), 3), ("d".into(), 0xff)],
    );
    (dir.at("day.parquet"), dir.at("base.parquet"))
}

#[test]
fn the_configuration_file_gives_options_and_flags_win() {
    let dir = Dir::new();
    let (day, base) = day_and_base(&dir);
    let config = dir.at("job.toml");
    let hits = dir.at("hits.parquet");
    fs::write(&config, format!("threads = 1\nmemory-limit = \"1GiB\"\n[run]\nnew = \"{day}\"\nbase = \"{base}\"\noutput = \"{hits}\"\nmax-distance = 5\nwithin = false\n[plan]\nmax-distance = 9\n")).unwrap();
    let count = |line: &str| dedup_json(line)["hits"].as_u64().unwrap();
    assert_eq!(count(&format!("run --config {config} --json")), 3);
    assert_eq!(count(&format!("run --config {config} --json -k 1")), 1);
    assert_eq!(
        count(&format!(
            "--config {config} run --json --max-distance 5 --within"
        )),
        4
    );
    let other = dir.at("other.parquet");
    write_fingerprints(&other, &[("z".into(), u64::MAX)]);
    assert_eq!(
        count(&format!("run --config {config} --json --new {other}")),
        0,
        "a list is replaced, not extended"
    );
    for (text, parts) in [
        ("[run]\nmax-distanse = 3", ["max-distanse", "job.toml"]),
        ("[run]\nmax-distance = 99", ["99", "job.toml"]),
        ("[walk]\nnew = 3", ["walk", "job.toml"]),
        ("new = 3", ["`new` belongs under `[run]`", "job.toml"]),
        (
            "[run]\nthreads = 3",
            ["`threads` belongs at the top", "job.toml"],
        ),
        (
            "[plan]\nappend = true",
            ["`append` belongs under `[run]`", "job.toml"],
        ),
        ("threads = [", ["TOML", "job.toml"]),
    ] {
        fs::write(&config, text).unwrap();
        dedup(&format!("run --config {config} --new {day} --base {base}")).fails(78, &parts);
    }
    dedup(&format!(
        "run --config {} --new {day} --base {base}",
        dir.at("none.toml")
    ))
    .fails(78, &["none.toml"]);
}

#[test]
fn the_summary_is_one_object_for_programs_and_a_few_lines_for_people() {
    let dir = Dir::new();
    let (day, base) = day_and_base(&dir);
    let hits = dir.at("hits.parquet");
    let line = format!("run --new {day} --base {base} --output {hits}");
    let summary = dedup_json(&format!("{line} --json"));
    for pointer in [
        "/new/documents",
        "/new/without_fingerprint",
        "/new/duplicate_ids",
        "/new/invalid_utf8",
        "/new/distinct_fingerprints",
        "/new/digest",
        "/base/fingerprints",
        "/base/files",
        "/base/bytes_read",
        "/hits",
        "/output",
        "/output_bytes",
        "/commit",
        "/design",
        "/kernel",
        "/spec_digest",
        "/max_distance",
        "/seconds/open",
        "/seconds/fingerprint",
        "/seconds/build",
        "/seconds/probe",
        "/seconds/commit",
        "/seconds/total",
        "/peak_memory_bytes",
        "/version",
    ] {
        assert!(
            summary
                .pointer(pointer)
                .is_some_and(|value| !value.is_null()),
            "{pointer}"
        );
    }
    let text = dedup_ok(&line);
    assert!(
        text.stdout.contains("hits.parquet: 3 pairs within 3 bits") && text.stderr.is_empty(),
        "{text:?}"
    );
    let quiet = dedup_ok(&format!("{line} --quiet"));
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    let verbose = dedup_ok(&format!("{line} -vv"));
    assert!(verbose.stderr.contains("building tables"));
}

#[test]
fn the_files_of_a_day_are_planned_as_one_sorted_run() {
    let dir = Dir::new();
    let hits = dir.at("hits.parquet");
    let [whole, cut] = [("whole", 20_000), ("cut", 1000)].map(|(name, rows)| {
        let data = dir.at(name);
        dedup_ok(&format!(
            "generate fingerprints --output {data} --new 20000 --base 1000 --days 1 -k 3"
        ));
        dedup_ok(&format!("run --new {data}/day.parquet --base {data}/archive --append --day 2026-06-01 --rows-per-file {rows} --output {hits} --overwrite"));
        data
    });
    let plan = |base: &str| {
        let plan = dedup_json(&format!(
            "plan --new {whole}/day.parquet --base {base} -k 7 --design trie --json"
        ));
        let files = plan["base"]["files"].as_u64().unwrap();
        (
            files,
            plan["designs"][0]["ns_per_fingerprint"].as_f64().unwrap(),
        )
    };
    let (one, sorted) = plan(&format!("{whole}/archive"));
    let (twenty, cut) = plan(&format!("{cut}/archive"));
    assert_eq!((one, twenty, sorted), (2, 21, cut));
    // Nothing says that other files are sorted.
    let other = dir.at("other.parquet");
    fs::copy(format!("{whole}/day.parquet"), &other).unwrap();
    let (_, plain) = plan(&other);
    assert!(plain > 10.0 * sorted, "{plain} {sorted}");
}

#[test]
fn plan_shows_what_would_be_read_and_built() {
    let dir = Dir::new();
    let (day, base) = day_and_base(&dir);
    let plan = dedup_json(&format!("plan --new {day} --base {base} --json"));
    assert_eq!(
        (&plan["new"]["documents"], &plan["base"]["fingerprints"]),
        (&2.into(), &2.into())
    );
    assert!(plan["base"]["fingerprint_bytes"].as_u64().unwrap() > 0);
    let names: Vec<&str> = plan["designs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|design| design["design"].as_str().unwrap())
        .collect();
    for name in [
        "blocks-4",
        "nested-4",
        "choose-5-2",
        "choose-6-3",
        "blocks-2",
        "exhaustive",
    ] {
        assert!(names.contains(&name), "{name}");
    }
    fs::write(
        dir.join("day.jsonl"),
        "{\"id\":\"a\",\"text\":\"b\"}\n{\"id\":\"c\",\"text\":\"d\"}\n",
    )
    .unwrap();
    let text = dedup_ok(&format!(
        "plan --new {} --base {base} -k 8 --design blocks-4",
        dir.at("day.jsonl")
    ))
    .stdout;
    assert!(
        text.contains("batch: 2 documents")
            && text.contains("blocks-4")
            && !text.contains("exhaustive"),
        "{text}"
    );
    assert_eq!(dir.names(), ["base.parquet", "day.jsonl", "day.parquet"]);
}

/// With a weight that lets common words decide, and a large k, even a small archive has unrelated
/// documents within k bits.
#[test]
fn plan_warns_of_unrelated_documents() {
    let testdata = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
    let plan = format!("plan --new {testdata}/day.parquet --base {testdata}/archive");
    let few = dedup_ok(&plan).stdout;
    assert!(!few.contains("unrelated"), "{few}");
    let json = dedup_json(&format!("{plan} --json"));
    assert!(json["unrelated_per_document"].as_f64().unwrap() < 1.0);
    let many = dedup_ok(&format!("{plan} -k 16")).stdout;
    assert!(
        many.contains("unrelated documents within 16 bits"),
        "{many}"
    );
}

#[test]
fn completions_and_manual_pages() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(
            dedup_ok(&format!("completions {shell}"))
                .stdout
                .contains("max-distance"),
            "{shell}"
        );
    }
    assert!(dedup_ok("man").stdout.starts_with(".ie"));
    let dir = Dir::new();
    dedup_ok(&format!("man --output {}", dir.at("man1")));
    for page in [
        "dedup-job.1",
        "dedup-job-run.1",
        "dedup-job-archive-create.1",
    ] {
        assert!(
            fs::read_to_string(dir.join("man1").join(page))
                .unwrap()
                .contains(".SH OPTIONS"),
            "{page}"
        );
    }
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = command()
        .args(["completions", "zsh"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
