//! The texts of pages are compared and explained as the run fingerprints them: by the archive's markup.

use std::fs;

use crate::helpers::crawl_files::{gzip, response};
use crate::helpers::support::*;

const PAGES: usize = 12;

/// An article, among links that differ from one `edition` of the site to the next.
fn page(number: usize, edition: usize) -> String {
    let words = |from: usize, count: usize| -> String {
        let word =
            |at: usize| format!("word{} ", (number * 7_919 + (from + at) * 104_729) % 65_537);
        (0..count).map(word).collect()
    };
    let paragraphs: String = (0..6)
        .map(|paragraph| format!("<p>{}.</p>", words(100 * paragraph, 60)))
        .collect();
    let links: String = (0..80)
        .map(|link| {
            format!("<li><a href=/{link}>offer{edition}x{link} of{edition}x{link}</a></li>")
        })
        .collect();
    format!("<html><body><nav><ul>{links}</ul></nav><article>{paragraphs}</article></body></html>")
}

/// Writes an edition of the site as a WARC file and as a directory of HTML.
fn write_edition(dir: &Dir, edition: usize) {
    let site = dir.join(&format!("site{edition}"));
    fs::create_dir(&site).unwrap();
    let mut crawl = Vec::new();
    for number in 0..PAGES {
        let html = page(number, edition);
        fs::write(site.join(format!("{number}.html")), &html).unwrap();
        crawl.extend(gzip(&response(number, "200 OK", &html)));
    }
    fs::write(dir.join(&format!("site{edition}.warc.gz")), crawl).unwrap();
}

#[test]
fn pages_are_verified_and_explained_by_the_texts_of_their_fingerprints() {
    let dir = Dir::new();
    write_edition(&dir, 1);
    write_edition(&dir, 2);
    for markup in ["main", "text"] {
        let archive = dir.at(&format!("archive-{markup}"));
        dedup_ok(&format!(
            "archive create --profile paper {archive} --markup {markup}"
        ));
        dedup_ok(&format!(
            "fingerprint --input {} --append {archive} --day 2026-01-01 --id-from url",
            dir.at("site1.warc.gz")
        ));
        for (old, new) in [
            ("site1.warc.gz", "site2.warc.gz"),
            ("site1.warc.gz", "site1.warc.gz"),
        ] {
            for measure in ["jaccard", "cosine", "edit"] {
                let hits = dir.at("hits.parquet");
                let summary = dedup_json(&format!(
                    "run {} --base {archive} --day 2026-01-02 --no-within --id-from url --verify {measure} --min-similarity 0.99 --base-text {} --output {hits} --overwrite --json",
                    dir.at(new),
                    dir.at(old),
                ));
                // The links are no part of the main text, and of nothing else than the same text.
                let expected = if markup == "main" || old == new {
                    PAGES
                } else {
                    0
                };
                assert_eq!(
                    summary["hits"], expected,
                    "{markup} {measure} {new}: {summary}"
                );
            }
        }
        let pages = [dir.at("site1"), dir.at("site2")];
        for options in [format!("--base {archive}"), format!("--markup {markup}")] {
            let explained = dedup_json(&format!(
                "explain site1/3.html site2/3.html --documents {} --documents {} {options} --json",
                pages[0], pages[1]
            ));
            let is_same = explained["distance"] == 0;
            assert_eq!(is_same, markup == "main", "{options}: {explained}");
            let features = explained["texts"][0]["features"].as_u64().unwrap();
            assert_eq!(features, if markup == "main" { 360 } else { 520 });
        }
    }
}
