//! Every input format gives the same pairs; unusual ids and texts are valid data.

use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, NullArray, UInt64Array};

use crate::helpers::crawl_files::{frame, gzip};
use crate::helpers::support::*;

const TEXTS: [&str; 4] = [
    "A page, \"quoted\", with commas\nand lines; near duplicates of it are planted below",
    "A page, \"quoted\", with commas\nand lines; near duplicates of it are planted below",
    "近似重复的网页非常多，它们只在广告、计数器和日期上不同",
    "An unrelated page about the growing of tomatoes on balconies",
];
const IDS: [&str; 4] = ["tab\there", "line\nbreak, comma", "quote\"s", "plain"];

fn base(dir: &Dir) -> String {
    let documents: Vec<(&str, &str)> = ["x", "y", "z", "w"].into_iter().zip(TEXTS).collect();
    write_documents(dir.join("old.parquet"), &documents[1..3]);
    dedup_ok(&format!(
        "fingerprint --input {} --output {}",
        dir.at("old.parquet"),
        dir.at("base.parquet")
    ));
    dir.at("base.parquet")
}

fn hits_of(dir: &Dir, new: &str, base: &str) -> Vec<Hit> {
    let hits = dir.at("hits.parquet");
    dedup_job([
        "run", "--new", new, "--base", base, "--verify", "none", "--output", &hits,
    ])
    .ok();
    read_hits(&hits)
}

#[test]
fn parquet_json_lines_and_csv_plain_and_compressed() {
    let dir = Dir::new();
    let base = base(&dir);
    let documents: Vec<(&str, &str)> = IDS.into_iter().zip(TEXTS).collect();
    write_documents(dir.join("day.parquet"), &documents);
    let expected = hits_of(&dir, &dir.at("day.parquet"), &base);
    assert_eq!(expected.len(), 4);
    let mut json = String::new();
    let mut csv = String::from("text,extra,id\n");
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    for (id, text) in &documents {
        json +=
            &serde_json::json!({ "nested": {"a": [1, "b"]}, "text": text, "id": id }).to_string();
        json += "\n";
        csv += &format!("{},,{}\n", quoted(text), quoted(id));
    }
    for (name, content) in [
        ("day.jsonl", &json),
        ("day.ndjson", &json),
        ("day.json", &json),
        ("day.csv", &csv),
    ] {
        let path = dir.at(name);
        fs::write(&path, content).unwrap();
        assert_eq!(hits_of(&dir, &path, &base), expected, "{name}");
        // The build's own libraries make gzip and zstd streams, without external tools.
        fs::write(format!("{path}.gz"), gzip(content.as_bytes())).unwrap();
        assert_eq!(
            hits_of(&dir, &format!("{path}.gz"), &base),
            expected,
            "{name}.gz"
        );
        fs::write(format!("{path}.zst"), frame(content.as_bytes())).unwrap();
        assert_eq!(
            hits_of(&dir, &format!("{path}.zst"), &base),
            expected,
            "{name}.zst"
        );
    }
}

#[test]
fn a_file_without_rows_may_have_columns_without_types() {
    let dir = Dir::new();
    let base = base(&dir);
    let documents: Vec<(&str, &str)> = IDS.into_iter().zip(TEXTS).collect();
    fs::create_dir(dir.join("day")).unwrap();
    write_documents(dir.join("day/b.parquet"), &documents);
    let untyped = || Arc::new(NullArray::new(0)) as ArrayRef;
    for name in ["a", "c"] {
        let columns = vec![("id", untyped()), ("text", untyped())];
        write_parquet(dir.join(&format!("day/{name}.parquet")), columns);
    }
    assert_eq!(hits_of(&dir, &dir.at("day"), &base).len(), 4);
}

#[test]
fn usual_column_names_need_no_options_and_others_do() {
    let dir = Dir::new();
    let base = base(&dir);
    let columns = |id: &'static str, text: &'static str| {
        vec![
            (text, strings(TEXTS)),
            (id, strings(IDS)),
            ("dump", strings(["CC"; 4])),
        ]
    };
    write_parquet(dir.join("fineweb.parquet"), columns("id", "text"));
    let expected = hits_of(&dir, &dir.at("fineweb.parquet"), &base);
    write_parquet(
        dir.join("crawl.parquet"),
        columns("warc_record_id", "content"),
    );
    assert_eq!(hits_of(&dir, &dir.at("crawl.parquet"), &base), expected);
    write_parquet(dir.join("own.parquet"), columns("key", "words"));
    let run = format!(
        "run --new {} --base {base} --output {}",
        dir.at("own.parquet"),
        dir.at("own-hits.parquet")
    );
    dedup(&run).fails(65, &["own.parquet", "no id column", "key, dump"]);
    dedup_ok(&format!("{run} --id-column key --text-column words"));
    assert_eq!(read_hits(dir.join("own-hits.parquet")), expected);
}

#[test]
fn ready_fingerprints_signed_unsigned_and_as_text() {
    let dir = Dir::new();
    let values = [u64::MAX, 1 << 63, 5];
    write_fingerprints(
        dir.join("base.parquet"),
        &[("m".into(), u64::MAX ^ 1), ("z".into(), 4)],
    );
    let base = dir.at("base.parquet");
    let ids = || strings(["a", "b", "c"]);
    write_parquet(
        dir.join("signed.parquet"),
        vec![("id", ids()), ("fp", numbers(values.map(u64::cast_signed)))],
    );
    let expected = hits_of(&dir, &dir.at("signed.parquet"), &base);
    let found: Vec<_> = expected
        .iter()
        .map(|hit| (hit.0.as_str(), hit.1.as_str(), hit.2))
        .collect();
    // 5 differs from 4 in one bit, and from the sign bit alone in three.
    assert_eq!(
        found,
        [("a", "m", 1), ("b", "z", 2), ("c", "z", 1), ("c", "b", 3)]
    );
    let unsigned: ArrayRef = Arc::new(UInt64Array::from(values.to_vec()));
    write_parquet(
        dir.join("unsigned.parquet"),
        vec![("id", ids()), ("fp", unsigned)],
    );
    assert_eq!(hits_of(&dir, &dir.at("unsigned.parquet"), &base), expected);
    fs::write(dir.join("f.jsonl"), "{\"id\":\"a\",\"fp\":18446744073709551615}\n{\"id\":\"b\",\"fp\":-9223372036854775808}\n{\"id\":\"c\",\"fp\":5}\n").unwrap();
    assert_eq!(hits_of(&dir, &dir.at("f.jsonl"), &base), expected);
    fs::write(
        dir.join("f.csv"),
        "id,fp\na,18446744073709551615\nb,-9223372036854775808\nc,5\n",
    )
    .unwrap();
    assert_eq!(hits_of(&dir, &dir.at("f.csv"), &base), expected);
    fs::write(dir.join("bad.csv"), "id,fp\na,5\nb,12ab\n").unwrap();
    dedup(&format!(
        "run --new {} --base {base} --output {}",
        dir.at("bad.csv"),
        dir.at("x.parquet")
    ))
    .fails(65, &["bad.csv", "fp", "12ab"]);
}

/// Fault 32: strange ids and texts are data. Bytes that are not UTF-8 are replaced, and texts with
/// such bytes counted.
#[test]
fn awkward_ids_and_texts() {
    let dir = Dir::new();
    let huge = "x".repeat(8 << 10);
    let ids = ["tab\t", "line\n", "comma,", "nul\0", "", &huge];
    let page = "the same six words on every page";
    write_parquet(
        dir.join("day.parquet"),
        vec![("id", strings(ids)), ("text", strings([page; 6]))],
    );
    fs::create_dir(dir.join("base")).unwrap();
    let hits = hits_of(&dir, &dir.at("day.parquet"), &dir.at("base"));
    assert_eq!(hits.len(), 15);
    let found: std::collections::BTreeSet<&str> = hits
        .iter()
        .flat_map(|hit| [hit.0.as_str(), hit.1.as_str()])
        .collect();
    assert_eq!(found, ids.into_iter().collect());

    let texts: ArrayRef = Arc::new(BinaryArray::from(vec![
        Some(b"one two three four \xff\xfe".as_slice()),
        Some("one two three four \u{fffd}\u{fffd}".as_bytes()),
        None,
    ]));
    write_parquet(
        dir.join("bytes.parquet"),
        vec![("id", strings(["a", "b", "c"])), ("text", texts)],
    );
    let ran = dedup_json(&format!(
        "run --new {} --base {} --verify none --output {} --json",
        dir.at("bytes.parquet"),
        dir.at("base"),
        dir.at("h.parquet")
    ));
    assert_eq!(
        (
            &ran["new"]["invalid_utf8"],
            &ran["new"]["without_fingerprint"],
            &ran["hits"]
        ),
        (&1.into(), &1.into(), &1.into())
    );

    // A column is declared as text, but its bytes are not UTF-8.
    let path = dir.join("liar.parquet");
    write_parquet(
        &path,
        vec![
            ("id", strings(["a", "b"])),
            (
                "text",
                strings(["one two three four QQQQ", "five six seven eight"]),
            ),
        ],
    );
    let mut bytes = fs::read(&path).unwrap();
    let mut changed = 0;
    for at in 0..bytes.len() - 4 {
        if bytes[at..].starts_with(b"QQQQ") {
            bytes[at] = 0xff;
            changed += 1;
        }
    }
    assert!(changed > 0);
    fs::write(&path, bytes).unwrap();
    let ran = dedup_json(&format!(
        "run --new {} --base {} --verify none --output {} --json",
        path.display(),
        dir.at("base"),
        dir.at("h.parquet")
    ));
    assert_eq!(ran["new"]["invalid_utf8"], 1);
}

#[test]
fn file_names_with_every_character() {
    let dir = Dir::new();
    let base = base(&dir);
    write_documents(
        dir.join("day.parquet"),
        &IDS.into_iter().zip(TEXTS).collect::<Vec<_>>(),
    );
    let expected = hits_of(&dir, &dir.at("day.parquet"), &base);
    for name in ["a b#?%20é.parquet", "[x]*.parquet"] {
        fs::copy(dir.join("day.parquet"), dir.join(name)).unwrap();
        assert_eq!(hits_of(&dir, &dir.at(name), &base), expected, "{name}");
    }
    fs::write(dir.join("ä ö%25.jsonl"), "{\"id\":\"q\",\"text\":\"x\"}").unwrap();
    assert!(hits_of(&dir, &dir.at("ä ö%25.jsonl"), &base).is_empty());
}
