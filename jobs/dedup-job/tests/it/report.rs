//! Tests of `dedup-job report`. `.ci/browser` opens its pages in a browser.

use std::fs;

use crate::helpers::support::*;

const HOSTILE: &str =
    "<script>window.hostile = 1</script><img src=x onerror=alert(1)> </article> \" ' & \u{202e}";

/// Writes documents, some of them near-copies with hostile texts and ids; then their decisions and
/// pairs.
fn prepared() -> Dir {
    let dir = Dir::new();
    let page = |number: usize, copy: usize| {
        let words: Vec<String> = (0..150)
            .map(|at| format!("word{}", (at * 31 + number * 977) % 5003))
            .collect();
        format!("{} {HOSTILE} copy{copy}", words.join(" "))
    };
    let documents: Vec<(String, String)> = (0..120)
        .map(|number| {
            let site = [
                "https://www.one.example",
                "https://two.example",
                "</script><b>",
            ][number % 3];
            (format!("{site}/{number}"), page(number % 40, number / 40))
        })
        .collect();
    let documents: Vec<(&str, &str)> = documents
        .iter()
        .map(|(id, text)| (id.as_str(), text.as_str()))
        .collect();
    write_documents(dir.join("d.parquet"), &documents);
    let (new, decisions, pairs) = (
        dir.at("d.parquet"),
        dir.at("decisions.parquet"),
        dir.at("pairs.csv"),
    );
    dedup_ok(&format!(
        "run {new} -k 8 --verify none --sketch 128 --day 2026-01-05 --decisions {decisions} -o {pairs}"
    ));
    dir
}

#[test]
fn a_report_is_one_page_with_escaped_texts() {
    let dir = prepared();
    let new = dir.at("d.parquet");
    for rows in ["decisions.parquet", "pairs.csv"] {
        let page = dir.at("report.html");
        let report = format!("report {} --documents {new} -o {page}", dir.at(rows));
        let summary = dedup_json(&format!("{report} --json"));
        let html = fs::read_to_string(&page).unwrap();
        assert_eq!(summary["bytes"], html.len());
        assert!(summary["samples"].as_u64().unwrap() > 5, "{summary}");
        // Only the page itself has tags of these names.
        for (tag, times) in [
            ("<script", 1),
            ("<img", 0),
            ("<b>", 0),
            ("<link", 1),
            ("</main>", 1),
        ] {
            assert_eq!(html.matches(tag).count(), times, "{tag}");
        }
        assert_eq!(
            html.matches("<article").count(),
            html.matches("</article>").count()
        );
        assert!(
            html.contains("&lt;script&gt;window.hostile"),
            "texts are shown"
        );
        assert!(!html.contains('\u{202e}'));
        assert!(!html.contains("src=\"") && !html.contains("url(") && !html.contains("@import"));
        // The same bytes for the same input.
        dedup_ok(&report);
        assert!(fs::read_to_string(&page).unwrap() == html);
        // --no-text leaves out the texts, but the page still says how many words differ.
        dedup_ok(&format!("{report} --no-text"));
        let without = fs::read_to_string(&page).unwrap();
        assert!(!without.contains("window.hostile") && without.contains("words differ"));
        dedup_ok(&format!("report {} -o {page}", dir.at(rows)));
        let bare = fs::read_to_string(&page).unwrap();
        assert!(!bare.contains("words differ") && bare.contains("one.example"));
    }
}

#[test]
fn a_report_counts_what_the_output_says() {
    let dir = Dir::new();
    let header = "id,kept,duplicate_of,duplicate_day,distance,similarity,group_size\n";
    // A group of three in the batch, a group of an old document with two new duplicates, and a
    // single document.
    let rows = "a/1,true,,,,,3\na/2,false,a/1,2026-01-05,1,0.95,3\na/3,false,a/1,2026-01-05,3,0.4,3\n\
                b/1,false,old/1,2025-12-31,2,0.8,3\nb/2,false,old/1,2025-12-31,2,,3\nc/1,true,,,,,1\n";
    let decisions = dir.at("decisions.csv");
    fs::write(&decisions, format!("{header}{rows}")).unwrap();
    let page = dir.at("report.html");
    let ran = dedup_ok(&format!("report {decisions} -o {page}"));
    assert!(
        ran.stdout.contains("6 documents, 2 kept, 4 samples"),
        "{}",
        ran.stdout
    );
    let html = fs::read_to_string(&page).unwrap();
    for part in [
        "<strong>6</strong><span>documents</span>",
        "<strong>2</strong><span>kept, 33.3 %</span>",
        "<strong>2</strong><span>duplicates of documents of the archive</span>",
        "<strong>2</strong><span>duplicates within the batch</span>",
        "data-counts=\"0,1,2,1\"",
        // Two groups of three to four documents, one of one.
        "<th scope=\"row\">3 to 4</th><td>2</td>",
        "<th scope=\"row\">1</th><td>1</td>",
        // Days back from the newest day: two pairs within the batch, two pairs of five days before.
        "<th scope=\"row\">0</th><td>2</td>",
        "<th scope=\"row\">≤7</th><td>2</td>",
        "<th scope=\"row\">0.95 to 1.00</th><td>1</td>",
        "The fingerprints differ in 3 bits; the similarity is 0.40.",
        // Source `a` repeats itself, and `b` repeats `old`.
        "<th scope=\"col\">old</th>",
    ] {
        assert!(html.contains(part), "{part}\n{html}");
    }
    assert!(!html.contains("class=\"warnings\""));
}

#[test]
fn what_looks_wrong_is_warned_of() {
    let dir = Dir::new();
    // The lowest bit of all fingerprints is 0, and one group has most of the documents.
    let rows: Vec<(String, u64)> = (0..2000_u64)
        .map(|number| {
            let value = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & !1;
            (
                format!("{number}"),
                if number < 1500 {
                    2 << (number % 60)
                } else {
                    value
                },
            )
        })
        .collect();
    let (new, archive, decisions) = (dir.at("new.parquet"), dir.at("archive"), dir.at("d.jsonl"));
    write_fingerprints(&new, &rows);
    dedup_ok(&format!("archive create --profile paper {archive}"));
    dedup_ok(&format!(
        "run {new} --base {archive} --append --day 2026-01-01 --decisions {decisions}"
    ));
    let page = dir.at("report.html");
    dedup_ok(&format!("report {decisions} --archive {archive} -o {page}"));
    let html = fs::read_to_string(&page).unwrap();
    assert!(
        html.contains("The largest group has 1,500 documents, 75 % of all"),
        "{html}"
    );
    assert!(html.contains("Bit 0 is 1 in 0.0 %"));
    assert!(html.contains("Balance of the bits"));
}

#[test]
fn nothing_else_is_replaced() {
    let dir = prepared();
    let (pairs, page) = (dir.at("pairs.csv"), dir.at("report.html"));
    fs::write(&page, "<!doctype html>my own page").unwrap();
    dedup(&format!("report {pairs} -o {page}")).fails(64, &["did not write"]);
    dedup_ok(&format!("report {pairs} -o {page} --overwrite"));
    dedup_ok(&format!("report {pairs} -o {page}"));
    dedup(&format!("report {pairs} -o {}", dir.at("report.pdf"))).fails(64, &[".html"]);
    dedup(&format!("report {pairs}")).fails(64, &["--output"]);
    dedup(&format!("report -o {page}")).fails(64, &["PAIRS or DECISIONS"]);
    dedup(&format!("report {pairs} -o {page} --near 2")).fails(64, &["--near"]);
    dedup(&format!("report {} -o {page}", dir.at("d.parquet")))
        .fails(65, &["neither pairs nor decisions"]);
    // `report` accepts an output without pairs.
    fs::write(dir.join("none.csv"), "new_id,base_id,distance,base_day\n").unwrap();
    dedup_ok(&format!("report {} -o {page}", dir.at("none.csv")));
    assert!(
        fs::read_to_string(&page)
            .unwrap()
            .contains("There are no pairs.")
    );
}
