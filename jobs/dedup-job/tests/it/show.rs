//! Tests of `dedup-job show`.

use std::fs;

use crate::helpers::support::*;

const DOCUMENTS: [(&str, &str); 4] = [
    (
        "a",
        "the quick brown fox jumps over the lazy dog near the bank",
    ),
    (
        "b",
        "the quick brown fox jumps over the lazy dog near the river",
    ),
    (
        "c",
        "the quick red fox jumps over the lazy cat near the bank",
    ),
    ("d", "\u{1b}[2J近似文書 <b>the</b> quick brown fox\u{202e}"),
];

/// Makes documents, and pairs of them in all formats.
fn prepared() -> Dir {
    let dir = Dir::new();
    write_documents(dir.join("d.parquet"), &DOCUMENTS);
    let pairs = "new_id,base_id,distance,base_day,similarity\n\
                 b,a,2,,0.9\nc,a,3,2026-01-31,0.6\nc,x,1,,\nd,a,0,,0.75\n";
    fs::write(dir.join("pairs.csv"), pairs).unwrap();
    let decisions = "id,kept,duplicate_of,duplicate_day,distance,similarity,group_size\n\
                     a,true,,,,,2\nb,false,a,2026-01-30,2,,2\n";
    fs::write(dir.join("decisions.csv"), decisions).unwrap();
    dir
}

#[test]
fn pairs_are_shown_in_the_order_asked_for() {
    let dir = prepared();
    let pairs = dir.at("pairs.csv");
    let order = |options: &str| -> Vec<String> {
        let ran = dedup_ok(&format!("show {pairs} {options} --json"));
        let lines = ran.stdout.lines();
        let value = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
        let name = |line| {
            let value = value(line);
            [&value["new_id"], &value["base_id"]]
                .map(|id| id.as_str().unwrap().to_owned())
                .concat()
        };
        lines.map(name).collect()
    };
    assert_eq!(order(""), ["ba", "ca", "cx", "da"]);
    assert_eq!(order("--sort similarity"), ["ba", "da", "ca", "cx"]);
    assert_eq!(order("--sort distance"), ["da", "cx", "ba", "ca"]);
    assert_eq!(order("--near 0.7"), ["da", "ca", "ba", "cx"]);
    assert_eq!(order("--near 0.7 -n 1"), ["da"]);
    let shown = dedup_ok(&format!("show {pairs} -n 2"));
    assert!(
        shown.stdout.ends_with("2 of 4 pairs; -n shows more\n"),
        "{}",
        shown.stdout
    );
}

#[test]
fn words_that_differ_are_marked_and_nothing_steers_the_terminal() {
    let dir = prepared();
    let (pairs, documents) = (dir.at("pairs.csv"), dir.at("d.parquet"));
    let shown = dedup_ok(&format!("show {pairs} --documents {documents}")).stdout;
    let expected = "1. b and a: distance 2, similarity 0.90\n";
    assert!(shown.starts_with(expected), "{shown}");
    assert!(
        shown.contains("[river]") && shown.contains("[bank]"),
        "{shown}"
    );
    assert!(
        shown.contains("2. c and a (2026-01-31): distance 3, similarity 0.60"),
        "{shown}"
    );
    assert!(
        shown.contains("the text of x is not in --documents"),
        "{shown}"
    );
    assert!(shown.contains("近似文書"), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    // `show` also reads decisions, and the other formats.
    let decided = dedup(&format!(
        "show {} --documents {documents}",
        dir.at("decisions.csv")
    ));
    let decided = decided.ok().stdout;
    assert!(
        decided.starts_with("1. b and a (2026-01-30): distance 2\n"),
        "{decided}"
    );
    let shown_by = |output: &str| {
        let output = dir.at(output);
        dedup_ok(&format!("run {documents} -k 16 -o {output}"));
        dedup_ok(&format!(
            "show {output} --documents {documents} --sort distance"
        ))
        .stdout
    };
    let parquet = shown_by("own.parquet");
    assert!(parquet.contains("1. "), "{parquet}");
    assert_eq!(shown_by("own.csv"), parquet);
    assert_eq!(shown_by("own.jsonl"), parquet);
}

#[test]
fn other_files_are_refused() {
    let dir = prepared();
    dedup("show").fails(64, &["the pairs are missing"]);
    dedup(&format!("show {}", dir.at("d.parquet")))
        .fails(65, &["d.parquet", "neither pairs nor decisions"]);
    dedup(&format!("show {}", dir.at("none.csv"))).fails(64, &["none.csv"]);
    fs::write(dir.join("pairs.txt"), "x").unwrap();
    dedup(&format!("show {}", dir.at("pairs.txt"))).fails(65, &["pairs.txt"]);
    fs::write(
        dir.join("bad.csv"),
        "new_id,base_id,distance,base_day\na,b,x,\n",
    )
    .unwrap();
    dedup(&format!("show {}", dir.at("bad.csv"))).fails(65, &["bad.csv"]);
    fs::write(dir.join("bad.parquet"), "PAR1").unwrap();
    dedup(&format!("show {}", dir.at("bad.parquet"))).fails(65, &["bad.parquet"]);
    fs::write(dir.join("empty.jsonl"), "").unwrap();
    assert_eq!(
        dedup_ok(&format!("show {}", dir.at("empty.jsonl"))).stdout,
        "no pairs\n"
    );
}

#[test]
fn the_text_of_pages_is_the_part_that_is_asked_for() {
    let dir = Dir::new();
    let words = "The committee met on Tuesday and agreed on a plan that the council will read. ";
    let page = |link: &str| {
        format!(
            "<html><body><nav><ul><li><a href=/>{link}</a></li></ul></nav><main><p>{}</p></main></body></html>",
            words.repeat(8)
        )
    };
    let pages = dir.at("pages");
    fs::create_dir(&pages).unwrap();
    fs::write(format!("{pages}/a.html"), page("Startpage")).unwrap();
    fs::write(format!("{pages}/b.html"), page("Frontpage")).unwrap();
    let pairs = dir.at("pairs.csv");
    fs::write(
        &pairs,
        "new_id,base_id,distance,base_day,similarity\nb.html,a.html,2,,\n",
    )
    .unwrap();
    let shown = |options: &str| {
        let line = format!("show {pairs} --documents {pages} {options} --json");
        let value = dedup_json(&line);
        ["new_text", "base_text"].map(|text| value[text].as_str().unwrap().to_owned())
    };
    for options in ["", "--markup text"] {
        let [new, base] = shown(options);
        assert!(
            new.contains("Frontpage") && base.contains("Startpage"),
            "{options}"
        );
        assert!(!new.contains('<'), "{options}");
    }
    let [new, base] = shown("--markup main");
    assert_eq!(new, base);
    assert_eq!(new.trim(), words.repeat(8).trim());
    let [new, _] = shown("--markup none");
    assert_eq!(new, page("Frontpage"));

    let report = dir.at("report.html");
    for (options, differ) in [("", true), ("--markup main", false)] {
        dedup_ok(&format!(
            "report {pairs} --documents {pages} -o {report} --overwrite {options}"
        ));
        let html = fs::read_to_string(&report).unwrap();
        assert_eq!(html.contains("Frontpage"), differ, "{options}");
    }
}
