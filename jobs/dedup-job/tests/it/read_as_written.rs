//! Documents are read as they are written: their encoding, their columns, their rows. A text that is read wrongly looks like others
//! of its kind, and all but one would be dropped. Fault numbers are those of docs/faults.md.

use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use arrow::array::{ArrayRef, AsArray as _, BinaryArray, UInt64Array};
use arrow::datatypes::{Int32Type, Int64Type};
use encoding_rs::{
    BIG5, EUC_KR, Encoding, GBK, ISO_2022_JP, KOI8_R, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252,
};

use crate::helpers::crawl_files::{frame, gzip, response};
use crate::helpers::support::*;

const RUSSIAN: &str = "Вчера вечером мы долго сидели на берегу реки и говорили о том, как изменился наш город за двадцать лет. \
    Старые дома на площади снесли, построили магазины, и только библиотека стоит на прежнем месте.";
const CHINESE: &str = "昨天晚上我们在河边坐了很久，谈论我们的城市在过去二十年里发生的变化。广场上的老房子都拆了，只有图书馆还在原来的地方。";
const TAIWANESE: &str = "昨天晚上我們在河邊坐了很久，談論我們的城市在過去二十年裡發生的變化。廣場上的老房子都拆了，只有圖書館還在原來的地方。";
const JAPANESE: &str = "昨日の夕方、私たちは川岸に長いあいだ座って、この二十年で町がどのように変わったかを話しました。図書館だけがもとの場所に残っています。";
const KOREAN: &str = "어제 저녁 우리는 강가에 오랫동안 앉아서 지난 이십 년 동안 우리 도시가 어떻게 변했는지 이야기했습니다.";
const FRENCH: &str = "Hier soir, nous sommes restés assis au bord de la rivière ; les élèves étaient très fatigués après la fête, mais \
    ils y allaient déjà, là-bas, où l'été commence.";

const ENCODED: [(&Encoding, &str); 9] = [
    (WINDOWS_1251, RUSSIAN),
    (KOI8_R, RUSSIAN),
    (GBK, CHINESE),
    (BIG5, TAIWANESE),
    (SHIFT_JIS, JAPANESE),
    (ISO_2022_JP, JAPANESE),
    (EUC_KR, KOREAN),
    (WINDOWS_1252, FRENCH),
    (encoding_rs::UTF_8, FRENCH),
];

/// A text that is close to no text of another seed.
fn text(seed: usize) -> String {
    let word = |n: usize| format!("w{:x}", (seed * 1_000_003 + n).wrapping_mul(2_654_435_761));
    (0..60).map(word).collect::<Vec<_>>().join(" ")
}

/// Runs a batch of the files, with more options.
fn run(dir: &Dir, files: &[&str], options: &[&str]) -> Ran {
    let mut arguments = vec!["run".to_owned()];
    arguments.extend(files.iter().map(|file| dir.at(file)));
    arguments.extend([
        "--output".to_owned(),
        dir.at("pairs.parquet"),
        "--json".into(),
    ]);
    arguments.extend(options.iter().map(|option| (*option).to_owned()));
    dedup_job(arguments)
}

/// The pairs of the last run, each with its distance.
fn pairs(dir: &Dir) -> Vec<(String, String, i32)> {
    let mut pairs = Vec::new();
    for batch in read_parquet(dir.join("pairs.parquet")) {
        let (new, base) = (texts(batch.column(0)), texts(batch.column(1)));
        let distances = batch.column(2).as_primitive::<Int32Type>().values();
        let rows = base.into_iter().zip(new).zip(distances);
        pairs.extend(rows.map(|((base, new), distance)| (base, new, *distance)));
    }
    pairs
}

/// Row 79: each encoding, in each format, undeclared and declared as UTF-8.
#[test]
fn every_encoding_gives_the_pairs_of_utf_8() {
    for (encoding, text) in ENCODED {
        let dir = Dir::new();
        let name = encoding.name();
        let encoded = |content: &str| encoding.encode(content).0.into_owned();
        fs::write(dir.join("a.txt"), text).unwrap();
        fs::write(dir.join("b.txt"), encoded(text)).unwrap();
        let page = format!("<meta charset=utf-8><title>x</title><p>{text}</p>");
        fs::write(dir.join("c.html"), encoded(&page)).unwrap();
        let ran = run(&dir, &["a.txt", "b.txt", "c.html"], &[]).ok();
        let summary = ran.json();
        let found = pairs(&dir);
        assert_eq!(found.len(), 3, "{name}: {found:?}");
        assert!(
            found.iter().all(|(.., distance)| *distance == 0),
            "{name}: {found:?}"
        );
        let malformed = u64::from(encoding != encoding_rs::UTF_8);
        assert_eq!(summary["new"]["invalid_utf8"], malformed, "{name}");
        // Records: two texts that differ, each in UTF-8 and not.
        let half = text.chars().count() / 2;
        let other: String = text
            .chars()
            .skip(half)
            .chain(text.chars().take(half / 2))
            .collect();
        let csv = format!("id,text\na,\"{text}\"\nb,\"{other}\"\n");
        let tsv = format!("id\ttext\nc\t{text}\nd\t{other}\n");
        let line = |id, text| format!("{}\n", serde_json::json!({ "id": id, "text": text }));
        let json = line("e", text) + &line("f", &other);
        fs::write(dir.join("a.csv"), encoded(&csv)).unwrap();
        fs::write(dir.join("b.tsv"), encoded(&tsv)).unwrap();
        fs::write(dir.join("c.jsonl"), encoded(&json)).unwrap();
        fs::write(dir.join("d.jsonl"), line("g", text) + &line("h", &other)).unwrap();
        let files = ["a.csv", "b.tsv", "c.jsonl", "d.jsonl"];
        let ran = run(&dir, &files, &["--overwrite", "-k", "0"]).ok();
        assert_eq!(pairs(&dir).len(), 12, "{name}");
        let noted = u64::from(encoding != encoding_rs::UTF_8) * 3;
        let notes = &ran.json()["new"]["notes"]["other_charset"];
        assert_eq!(notes["number"].as_u64().unwrap_or(0), noted, "{name}");
        assert_eq!(noted > 0, ran.stderr.contains("a.csv: not UTF-8"), "{name}");
    }
}

#[test]
fn utf_16_is_read_with_and_without_a_mark() {
    let dir = Dir::new();
    let csv = format!("id,text\na,\"{RUSSIAN}\"\nb,\"{RUSSIAN}\"\nc,{}\n", text(1));
    let units = || csv.encode_utf16();
    let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
    let marked = [&b"\xff\xfe"[..], &little].concat();
    for bytes in [&little, &big, &marked] {
        fs::write(dir.join("day.csv"), bytes).unwrap();
        let kept = dir.at("kept.csv");
        run(&dir, &["day.csv"], &["--overwrite", "--kept", &kept]).ok();
        assert_eq!(pairs(&dir), [("a".into(), "b".into(), 0)]);
        // A copy is in UTF-8.
        let copy = fs::read_to_string(&kept).unwrap();
        let copy = copy.trim_start_matches('\u{feff}');
        assert_eq!(copy, csv.replacen(&format!("b,\"{RUSSIAN}\"\n"), "", 1));
    }
}

#[test]
fn kept_rows_of_csv_stay_in_their_encoding() {
    let dir = Dir::new();
    let csv = format!(
        "id,text\na,\"{RUSSIAN}\"\nb,\"{RUSSIAN}\"\nc,\"{}\"\n",
        text(1)
    );
    let bytes = WINDOWS_1251.encode(&csv).0.into_owned();
    fs::write(dir.join("day.csv"), bytes).unwrap();
    run(&dir, &["day.csv"], &["--kept", &dir.at("kept.csv")]).ok();
    let kept = fs::read(dir.join("kept.csv")).unwrap();
    let expected = csv.replacen(&format!("b,\"{RUSSIAN}\"\n"), "", 1);
    assert_eq!(WINDOWS_1251.decode(&kept).0, expected);
}

/// In Shift_JIS, the second byte of ポ is that of a bar: the quote behind it would open a field.
#[test]
fn kept_rows_of_csv_whose_bytes_look_like_ascii_are_in_utf_8() {
    let japanese = "昨日の夕方、私たちは川岸に長いあいだ座って、町の話をしました。";
    for (encoding, long) in [(SHIFT_JIS, japanese), (GBK, CHINESE)] {
        let dir = Dir::new();
        let row = |n: usize, word: &str| format!("{n}|{long} {} {word}\"|z\n", text(n));
        let rows: String = (0..8)
            .map(|n| row(if n == 3 { 0 } else { n }, "誠ポ"))
            .collect();
        let csv = format!("id|text|x\n{rows}");
        fs::write(dir.join("day.csv"), encoding.encode(&csv).0).unwrap();
        run(&dir, &["day.csv"], &["--kept", &dir.at("kept.csv")]).ok();
        let kept = fs::read_to_string(dir.join("kept.csv")).unwrap();
        let mut rows: Vec<&str> = csv.lines().collect();
        rows.remove(4);
        assert_eq!(kept.lines().collect::<Vec<_>>(), rows);
    }
}

/// One file of kept rows has one encoding, whatever those of the inputs.
#[test]
fn kept_rows_of_several_files_are_in_utf_8() {
    let dir = Dir::new();
    let line = |id: &str, text: &str| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n");
    let (first, second) = (
        line("a", RUSSIAN),
        line("b", &text(1)) + &line("c", CHINESE),
    );
    fs::write(dir.join("a.jsonl"), WINDOWS_1251.encode(&first).0).unwrap();
    fs::write(dir.join("b.jsonl"), format!("\u{feff}{second}")).unwrap();
    let files = ["a.jsonl", "b.jsonl"];
    run(&dir, &files, &["--kept", &dir.at("kept.jsonl")]).ok();
    assert_eq!(
        fs::read_to_string(dir.join("kept.jsonl")).unwrap(),
        first + &second
    );
}

#[test]
fn a_charset_that_is_named_counts_more() {
    let dir = Dir::new();
    // Few letters: nothing says which they are.
    let words = "раз two three four five six";
    fs::write(dir.join("a.txt"), KOI8_R.encode(words).0).unwrap();
    fs::write(dir.join("b.txt"), words).unwrap();
    let fingerprint = |name: &str, charset: &str| {
        let file = dir.at("f.parquet");
        dedup_ok(&format!(
            "fingerprint {} --charset {charset} --output {file} --overwrite",
            dir.at(name)
        ));
        let rows = read_parquet(&file);
        rows[0].column(0).as_primitive::<Int64Type>().value(0)
    };
    assert_eq!(
        fingerprint("a.txt", "KOI8-R"),
        fingerprint("b.txt", "utf-8")
    );
    assert_ne!(
        fingerprint("a.txt", "koi8"),
        fingerprint("a.txt", "macintosh")
    );
    run(&dir, &["a.txt"], &["--charset", "none"]).fails(64, &["--charset", "windows-1251"]);
}

/// A text of replacement characters has no fingerprint, and is counted.
#[test]
fn a_text_that_was_read_wrongly_before_is_not_compared() {
    let dir = Dir::new();
    let words = "www example com 2026 USD";
    let line = |id: usize| {
        let text = format!("{} {words}", "\u{fffd}".repeat(20 + id));
        format!("{}\n", serde_json::json!({ "id": id, "text": text }))
    };
    let lines: String = (0..3).map(line).collect();
    fs::write(dir.join("day.jsonl"), lines).unwrap();
    let summary = run(&dir, &["day.jsonl"], &[]).ok().json();
    assert_eq!(summary["new"]["without_fingerprint"], 3);
    assert_eq!(summary["new"]["notes"]["garbled"]["number"], 3);
    let ran = run(&dir, &["day.jsonl"], &["--strict"]);
    ran.fails(
        65,
        &[
            "documents of replacement characters: 3",
            "day.jsonl",
            "--strict",
        ],
    );
    assert_eq!(pairs(&dir), []);
}

/// A file that is no text has no fingerprint, whatever it is called.
#[test]
fn a_binary_file_is_no_text() {
    let dir = Dir::new();
    let bytes: Vec<u8> = (0..3_000_u32)
        .map(|n| (n.wrapping_mul(n) >> 3) as u8)
        .collect();
    fs::write(dir.join("a.txt"), bytes).unwrap();
    fs::write(dir.join("b.html"), b"%PDF-1.7\n1 0 obj").unwrap();
    fs::write(dir.join("c.txt"), text(1)).unwrap();
    let summary = run(&dir, &["a.txt", "b.html", "c.txt"], &[]).ok().json();
    assert_eq!(summary["new"]["without_fingerprint"], 2);
    assert_eq!(summary["new"]["notes"]["without_text"]["number"], 2);
}

/// Row 80.
#[test]
fn columns_are_those_of_most_objects() {
    let dir = Dir::new();
    let foot = "all rights reserved this page may be printed for private use only";
    let mut lines = format!("{}\n", serde_json::json!({ "id": "0", "body": foot }));
    for id in 1..9 {
        let object = serde_json::json!({ "id": id.to_string(), "text": text(id), "body": foot });
        lines += &format!("{object}\n");
    }
    fs::write(dir.join("day.jsonl"), &lines).unwrap();
    run(&dir, &["day.jsonl"], &[]).fails(65, &["text", "body", "--text-column"]);
    let only_text = lines.replace(&format!("\"body\":\"{foot}\",\"id\":\""), "\"id\":\"");
    let first = serde_json::json!({ "id": "0", "body": foot });
    let (_, others) = only_text.split_once('\n').unwrap();
    fs::write(dir.join("most.jsonl"), format!("{first}\n{others}")).unwrap();
    for (file, options) in [
        ("day.jsonl", &["--text-column", "text", "--overwrite"][..]),
        ("most.jsonl", &["--overwrite"]),
    ] {
        let ran = run(&dir, &[file], options).ok();
        assert_eq!(pairs(&dir), []);
        let new = &ran.json()["new"];
        assert_eq!(new["columns"][0]["text"], "text");
        assert_eq!(new["notes"]["without_text"]["number"], 1);
        assert!(ran.stderr.contains("1 of 9 documents have no text"));
    }
    // A column that is only called like one of fingerprints.
    let line = |id: usize| serde_json::json!({ "id": id, "fp": id % 3, "text": text(id) });
    let lines: String = (0..8).map(|id| format!("{}\n", line(id))).collect();
    fs::write(dir.join("fp.jsonl"), &lines).unwrap();
    let summary = run(&dir, &["fp.jsonl"], &["--overwrite"]).ok().json();
    assert_eq!(summary["new"]["columns"][0]["text"], "text");
    assert_eq!(pairs(&dir), []);
    let options = ["--overwrite", "--fingerprint-column", "fp"];
    let summary = run(&dir, &["fp.jsonl"], &options).ok().json();
    assert_eq!(summary["new"]["columns"][0]["fingerprint"], "fp");
}

#[test]
fn the_first_line_says_which_columns_are_read() {
    let dir = Dir::new();
    let line = |id: usize| {
        let page = serde_json::json!({ "body": text(id) });
        serde_json::json!({ "url": format!("http://a.example/{id}"), "page": page })
    };
    let lines: String = (0..3).map(|id| format!("{}\n", line(id))).collect();
    fs::write(dir.join("day.jsonl"), lines).unwrap();
    let said = dedup_ok(&format!(
        "run {} --text-column page.body --output {}",
        dir.at("day.jsonl"),
        dir.at("out.parquet")
    ));
    let first = said.stdout.lines().next().unwrap_or_default();
    assert_eq!(first, "read: id: url, text: page.body, source: host of url");
}

/// Row 81: rows are rows, in each dialect.
#[test]
fn quotes_join_no_rows() {
    let dir = Dir::new();
    let rows = |header: &str, rows: &[String]| header.to_owned() + &rows.concat();
    let literal: Vec<String> = (0..6)
        .map(|id| match id {
            0 => format!("{id}\t\"Hello\" she said {}\n", text(id)),
            1 | 4 => format!("{id}\t\"{}\n", text(id)),
            _ => format!("{id}\t{}\n", text(id.min(2))),
        })
        .collect();
    fs::write(dir.join("day.tsv"), rows("id\ttext\n", &literal)).unwrap();
    let summary = run(&dir, &["day.tsv"], &[]).ok().json();
    assert_eq!(summary["new"]["documents"], 6);
    for (name, csv, documents) in [
        (
            "spans",
            format!("id,text\na,\"{}\n{}\"\nb,x\n", text(1), text(2)),
            2,
        ),
        (
            "escaped",
            format!("id,text\na,\"he said \\\"{}\\\" x\"\nb,x\n", text(1)),
            2,
        ),
        (
            "semicolons",
            format!("id;text\na;\"{}; x\"\nb;5\" pipe\n", text(1)),
            2,
        ),
        (
            "returns",
            format!("id,text\ra,{}\rb,{}\r", text(1), text(2)),
            2,
        ),
        (
            "blank lines",
            format!("id,text\n\na,{}\n\n\nb,x", text(1)),
            2,
        ),
    ] {
        fs::write(dir.join("day.csv"), csv).unwrap();
        let summary = run(&dir, &["day.csv"], &["--overwrite"]).ok().json();
        assert_eq!(summary["new"]["documents"], documents, "{name}");
    }
    let joined = format!("id,text\na,\"{}\" she said, {}\nb,x\n", text(1), text(2));
    fs::write(dir.join("day.csv"), &joined).unwrap();
    run(&dir, &["day.csv"], &["--overwrite"]).fails(65, &["line 2", "--quote none"]);
    let returns = format!("id,text\ra,{}\rb,{}\rc\rd,x\r", text(1), text(2));
    fs::write(dir.join("day.csv"), returns).unwrap();
    run(&dir, &["day.csv"], &["--overwrite"]).fails(65, &["line 4"]);
    let single = format!("id,text\na,'{}, x'\n", text(1));
    fs::write(dir.join("day.csv"), single).unwrap();
    run(&dir, &["day.csv"], &["--overwrite"]).fails(65, &["line 2"]);
    run(&dir, &["day.csv"], &["--overwrite", "--quote", "'"]).ok();
    // Behind the bytes by which the dialect is found. Between commas, such lines may be a right field.
    for (delimiter, is_refused) in [(",", false), ("\t", true)] {
        let mut file = format!("id{delimiter}text\n");
        let mut rows = 0;
        while file.len() <= 256 << 10 {
            file += &format!("{rows}{delimiter}\"{}\"\n", text(rows));
            rows += 1;
        }
        file += &format!("a{delimiter}\"one\nb{delimiter}two\"\nc{delimiter}x\n");
        fs::write(dir.join("day.csv"), file).unwrap();
        let line = format!("line {}", rows + 2);
        if is_refused {
            run(&dir, &["day.csv"], &["--overwrite"]).fails(65, &[&line, "--quote none"]);
        } else {
            run(&dir, &["day.csv"], &["--overwrite"]).ok();
        }
        for (quote, documents) in [("none", rows + 3), ("\"", rows + 2)] {
            let ran = run(&dir, &["day.csv"], &["--overwrite", "--quote", quote]);
            assert_eq!(ran.ok().json()["new"]["documents"], documents, "{quote}");
        }
    }
}

/// Row 88, and what Python writes.
#[test]
fn json_that_others_write_is_read() {
    let dir = Dir::new();
    let line = |more: &str| {
        format!(
            "{{\"id\": \"{}\", {more}, \"text\": \"{}\"}}\n",
            more.len(),
            text(1)
        )
    };
    let lines = line(r#""\ud83d": 1"#)
        + &line(r#""score": NaN"#)
        + &line(r#""s": [-Infinity, {"NaN": 1}]"#);
    fs::write(dir.join("day.jsonl"), &lines).unwrap();
    let kept = dir.at("kept.jsonl");
    run(&dir, &["day.jsonl"], &["--kept", &kept]).ok();
    assert_eq!(pairs(&dir).len(), 3);
    let kept = fs::read_to_string(kept).unwrap();
    assert!(lines.contains(&kept) && kept.lines().count() == 1);
    // A message that was cut within a character has a fingerprint.
    let cut = "{\"id\":\"x\",\"text\":\"great day out with all of you \\ud83d\"}\n";
    fs::write(dir.join("day.jsonl"), cut).unwrap();
    let new = run(&dir, &["day.jsonl"], &["--overwrite"]).ok().json()["new"].clone();
    assert_eq!(new["without_fingerprint"], 0);
    assert_eq!(new["invalid_utf8"], 1);
    fs::write(
        dir.join("day.jsonl"),
        "{\"id\":1,\"text\":\"a\"}{\"id\":2,\"text\":\"b\"}\n",
    )
    .unwrap();
    run(&dir, &["day.jsonl"], &["--overwrite"]).fails(65, &["line 1", "a line of its own"]);
}

#[test]
fn halves_of_characters_and_large_numbers_go_along() {
    let dir = Dir::new();
    let (input, decisions) = (dir.at("day.jsonl"), dir.at("d.jsonl"));
    for meta in [r#""x\ud800y""#, r#"["\ud83d"]"#, "1e400"] {
        let first = format!(
            r#"{{"id":"a","meta":{meta},"s":1e400,"text":"{} \ud800"}}"#,
            text(1)
        );
        let second = format!(
            r#"{{"id":"b","meta":{{"key":"k"}},"s":1,"text":"{}"}}"#,
            text(1)
        );
        fs::write(&input, format!("{first}\n{second}\n")).unwrap();
        let run = format!("run {input} --decisions {decisions} --overwrite");
        for options in ["--prefer meta.key", "--source meta.key", "--prefer s"] {
            dedup_ok(&format!("{run} {options} --columns meta.key,s,text"));
            let decided = fs::read_to_string(&decisions).unwrap();
            let decided: Vec<serde_json::Value> = decided
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            let a = decided.iter().find(|row| row["id"] == "a").unwrap();
            assert_eq!(a["kept"], options.starts_with("--source"), "{options}");
            assert!(a["meta.key"].is_null(), "{a}");
            assert_eq!(a["s"], "1e400");
            assert_eq!(a["text"].as_str().unwrap().matches('\u{fffd}').count(), 1);
        }
    }
}

/// Row 82.
#[test]
fn xhtml_is_read_as_xml() {
    let dir = Dir::new();
    let start = "<?xml version=\"1.0\"?><html xmlns=\"http://www.w3.org/1999/xhtml\"><head>";
    fs::write(dir.join("plain.txt"), text(1)).unwrap();
    for head in [
        "<title/>",
        "<script src='x.js'/>",
        "<style/>",
        "<title>t</title>",
    ] {
        let page = format!("{start}{head}</head><body><p>{}</p></body></html>", text(1));
        fs::write(dir.join("page.xhtml"), page).unwrap();
        run(&dir, &["plain.txt", "page.xhtml"], &["--overwrite"]).ok();
        assert_eq!(pairs(&dir).len(), 1, "{head}");
    }
    let page = format!(
        "{start}</head><body><p><![CDATA[{}]]></p></body></html>",
        text(1)
    );
    fs::write(dir.join("page.xhtml"), page).unwrap();
    run(&dir, &["plain.txt", "page.xhtml"], &["--overwrite"]).ok();
    assert_eq!(pairs(&dir).len(), 1);
}

/// Row 84.
#[test]
fn columns_of_parquet_are_what_they_say() {
    let dir = Dir::new();
    let texts = || strings([text(1), text(1)]);
    let large: ArrayRef = std::sync::Arc::new(UInt64Array::from(vec![(1 << 63) + 5, 7]));
    write_parquet(
        dir.join("day.parquet"),
        vec![("id", large), ("text", texts())],
    );
    run(&dir, &["day.parquet"], &[]).ok();
    let found = pairs(&dir);
    assert_eq!(found, [("7".into(), "9223372036854775813".into(), 0)]);
    let bytes: ArrayRef =
        std::sync::Arc::new(BinaryArray::from_vec(vec![b"\x80\x01", b"\x81\x01"]));
    write_parquet(
        dir.join("day.parquet"),
        vec![("id", bytes), ("text", texts())],
    );
    run(&dir, &["day.parquet"], &["--overwrite"])
        .fails(65, &["day.parquet", "\"id\"", "not UTF-8"]);
    // The footer says another number of rows than its row groups have: two is 4 there, behind the schema.
    write_parquet(
        dir.join("day.parquet"),
        vec![("id", strings(["a", "b"])), ("text", texts())],
    );
    let mut bytes = fs::read(dir.join("day.parquet")).unwrap();
    let rows = bytes
        .windows(4)
        .rposition(|bytes| bytes == b"\x16\x04\x19\x1c")
        .unwrap();
    bytes[rows + 1] = 6;
    fs::write(dir.join("day.parquet"), &bytes).unwrap();
    run(&dir, &["day.parquet"], &["--overwrite"])
        .fails(65, &["its footer says 3 rows, but its row groups have 2"]);
    let end = bytes.len() - 4;
    bytes[end..].copy_from_slice(b"PARE");
    fs::write(dir.join("day.parquet"), bytes).unwrap();
    run(&dir, &["day.parquet"], &["--overwrite"]).fails(65, &["day.parquet", "encrypted"]);
    let ids = strings(["a", "b"]);
    write_parquet(
        dir.join("day.parquet"),
        vec![("id", ids), ("text", texts()), ("text", texts())],
    );
    run(&dir, &["day.parquet"], &["--overwrite"])
        .fails(65, &["day.parquet", "\"text\"", "several"]);
}

/// Row 85, and what is not compared.
#[test]
fn files_that_are_not_read_are_counted() {
    let dir = Dir::new();
    for name in ["site/_modules", "site/.git", "site/_temporary"] {
        fs::create_dir_all(dir.join(name)).unwrap();
    }
    let page = |seed| format!("<p>{}</p>", text(seed));
    for (name, seed) in [
        ("index.html", 1),
        ("_modules/index.html", 2),
        ("_posts.html", 1),
        (".git/x.html", 3),
        ("_temporary/y.html", 4),
        ("_SUCCESS", 5),
    ] {
        fs::write(dir.join("site").join(name), page(seed)).unwrap();
    }
    let summary = run(&dir, &["site"], &["--strict"]).ok().json();
    assert_eq!(summary["new"]["documents"], 3);
    assert_eq!(summary["new"]["notes"]["hidden_files"]["number"], 3);
    let odd = std::ffi::OsStr::from_bytes(b"caf\xe9.html");
    fs::write(dir.join("site").join(odd), page(6)).unwrap();
    fs::write(dir.join("site/movie.mp4"), "x").unwrap();
    let pipe = Command::new("mkfifo")
        .arg(dir.join("site/pipe.html"))
        .status();
    assert!(pipe.unwrap().success());
    let ran = run(&dir, &["site"], &["--overwrite"]).ok();
    let notes = &ran.json()["new"]["notes"];
    assert_eq!(notes["unreadable_names"]["number"], 1);
    assert_eq!(notes["no_files"]["number"], 1);
    assert_eq!(notes["other_endings"]["first"], "movie.mp4");
    assert!(ran.stderr.contains("caf\u{fffd}.html"), "{}", ran.stderr);
    run(&dir, &["site"], &["--overwrite", "--strict"])
        .fails(65, &["movie.mp4", "names are not UTF-8"]);
}

/// Row 78: a script shows the article.
#[test]
fn an_article_that_a_script_shows_counts() {
    let dir = Dir::new();
    for (name, seed) in [("a.html", 1), ("b.html", 2)] {
        let article = (0..10)
            .map(|part| text(10 * seed + part))
            .collect::<String>();
        let page = format!(
            "<body><div>{}</div><div style='visibility: hidden; opacity: 0'><p>{article}</p></div>",
            text(9)
        );
        fs::write(dir.join(name), page).unwrap();
    }
    run(&dir, &["a.html", "b.html"], &[]).ok();
    assert_eq!(pairs(&dir), []);
}

/// Standard input, named pipes and descriptors of pipes are kept in scratch; their format is that of their first bytes.
#[test]
fn standard_input_and_pipes_are_read() {
    let dir = Dir::new();
    let line = |id: usize| {
        let object = serde_json::json!({ "id": id, "text": text(id / 2) });
        format!("{object}\n")
    };
    let lines: String = (0..6).map(line).collect();
    let csv: String = (0..6)
        .map(|id| format!("{id},{}\n", text(id / 2)))
        .collect();
    let csv = format!("id,text\n{csv}");
    let ids = strings((0..6).map(|id| id.to_string()));
    let columns = vec![
        ("id", ids),
        ("text", strings((0..6).map(|id| text(id / 2)))),
    ];
    write_parquet(dir.join("day.parquet"), columns);
    let parquet = fs::read(dir.join("day.parquet")).unwrap();
    let kept = dir.at("kept.jsonl");
    for (input, options) in [
        (lines.clone().into_bytes(), ["--kept", &kept]),
        (gzip(lines.as_bytes()), ["--format", "jsonl"]),
        (frame(csv.as_bytes()), ["-k", "3"]),
        (csv.into_bytes(), ["--format", "csv"]),
        (parquet, ["-k", "3"]),
    ] {
        let pairs_path = dir.at("pairs.parquet");
        let arguments = ["run", "-", "--overwrite", "--output", &pairs_path];
        let mut child = command()
            .args(arguments)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&input).unwrap();
        assert!(child.wait().unwrap().success(), "{options:?}");
        let pairs = pairs(&dir);
        let expected = [("0", "1"), ("2", "3"), ("4", "5")];
        let expected = expected.map(|(base, new)| (base.to_owned(), new.to_owned(), 0));
        assert_eq!(pairs, expected, "{options:?}");
    }
    assert_eq!(fs::read_to_string(&kept).unwrap().lines().count(), 3);
    // What is wrong is wrong in standard input, not in a copy that is gone.
    let broken = command()
        .args(["run", "-", "--format", "jsonl"])
        .stdin(fs::File::open(dir.join("day.parquet")).unwrap())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&broken.stderr).into_owned();
    assert!(error.contains("standard input, line 1"), "{error}");
    // Documents without ids are called by what they came from.
    let one_text = format!("{}\n", text(7));
    let mut child = command()
        .args([
            "run",
            "-",
            &dir.at("day.parquet"),
            "--overwrite",
            "--format",
            "text",
            "--decisions",
            &dir.at("d.csv"),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(one_text.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    let decided = fs::read_to_string(dir.join("d.csv")).unwrap();
    assert!(
        decided
            .lines()
            .any(|line| line.starts_with("standard-input.txt,")),
        "{decided}"
    );
    // As a shell gives it for <(command).
    let run = format!(
        "{} run <(cat {kept}) <(cat {kept} | gzip) --overwrite -o {}",
        env!("CARGO_BIN_EXE_dedup-job"),
        dir.at("pairs.parquet")
    );
    let ran = Command::new("bash").args(["-c", &run]).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(pairs(&dir).len(), 3);
    dedup("run - - -o x.csv").fails(64, &["standard input", "once"]);
}

#[test]
fn what_is_piped_is_read_as_its_file_is() {
    let dir = Dir::new();
    let out = dir.at("out.csv");
    let run = |input: &str, piped: Option<&str>, options: &[&str]| {
        let mut run = command();
        run.args(["run", input, "--overwrite", "--json", "-o", &out]);
        if let Some(name) = piped {
            run.stdin(fs::File::open(dir.join(name)).unwrap());
        }
        Ran::of(run.args(options).output().unwrap())
    };
    let words = text(1);
    let page = format!("<head><title/></head><body><p>{words}</p></body></html>");
    let xhtml = "xmlns='http://www.w3.org/1999/xhtml'";
    let crawl = [&b"\r\n"[..], &response(1, "200 OK", &words)[..]].concat();
    let files = [
        (
            "declared.xhtml",
            format!("<?xml version='1.0'?>\n<html>{page}").into_bytes(),
        ),
        ("named.xhtml", format!("<html {xhtml}>{page}").into_bytes()),
        (
            "header.csv",
            format!("\"the\nid\",id,\"text\"\n,a,{words}\n").into_bytes(),
        ),
        ("blank.warc", crawl),
    ];
    for (name, content) in files {
        fs::write(dir.join(name), content).unwrap();
        let named = run(&dir.at(name), None, &[]).ok().json();
        let piped = run("-", Some(name), &[]).ok().json();
        for count in ["documents", "without_fingerprint"] {
            assert_eq!(piped["new"][count], named["new"][count], "{name}: {count}");
        }
        assert_eq!(piped["new"]["without_fingerprint"], 0, "{name}");
    }
    let feed = format!("<rss version='2.0'><title>{words}</title></rss>");
    fs::write(dir.join("feed.xml"), feed).unwrap();
    run(&dir.at("feed.xml"), None, &[]).fails(65, &["feed.xml"]);
    run("-", Some("feed.xml"), &[]).fails(65, &["standard input: it is XML"]);
    run("-", Some("feed.xml"), &["--format", "text"]).ok();
    for empty in [&b"\n\n"[..], b"\xef\xbb\xbf", &gzip(b"")[..]] {
        fs::write(dir.join("empty"), empty).unwrap();
        run("-", Some("empty"), &[]).fails(65, &["standard input: it is empty"]);
    }
    // A text whose first line has a comma.
    fs::write(dir.join("text"), format!("Hello, you\n{words}\n")).unwrap();
    run("-", Some("text"), &[]).fails(65, &["standard input: no text", "--format text"]);
    run("-", Some("text"), &["--format", "text"]).ok();
    // The name given to `--kept` ends as files in the format of the input do.
    let object = serde_json::json!([{ "id": 1, "text": words }]).to_string();
    for (name, content, kept) in [
        ("array", object, "kept.json"),
        ("table", format!("id\ttext\na\t{words}\n"), "kept.tsv"),
    ] {
        fs::write(dir.join(name), &content).unwrap();
        run("-", Some(name), &["--kept", &dir.at(kept)]).ok();
        let kept = fs::read_to_string(dir.join(kept)).unwrap();
        assert!(kept.starts_with(&content[..1]), "{kept}");
        assert!(kept.contains(&words), "{kept}");
    }
}

#[test]
fn commands_name_no_option_that_they_lack() {
    let dir = Dir::new();
    let table = format!("text\n{}\n{}\n", text(1), text(1));
    fs::write(dir.join("a.csv"), table).unwrap();
    let pairs = dir.at("pairs.csv");
    dedup_ok(&format!("run {} -o {pairs}", dir.at("a.csv")));
    let shown = command()
        .args(["show", &pairs, "--documents", "-"])
        .stdin(fs::File::open(dir.join("a.csv")).unwrap())
        .output()
        .unwrap();
    let shown = Ran::of(shown).fails(64, &["standard input", "give a file"]);
    assert!(!shown.stderr.contains("--format"), "{}", shown.stderr);
}

/// A data set as hubs of models have it: a folder of Parquet with splits, and cards beside them.
#[test]
fn a_data_set_of_splits_is_read_without_options() {
    let dir = Dir::new();
    fs::create_dir_all(dir.join("set/data")).unwrap();
    for (name, seeds) in [
        ("train-00000-of-00002", [1, 2]),
        ("train-00001-of-00002", [3, 1]),
        ("test-00000-of-00001", [4, 2]),
    ] {
        let columns = vec![("text", strings(seeds.map(text)))];
        write_parquet(dir.join(&format!("set/data/{name}.parquet")), columns);
    }
    fs::write(dir.join("set/README.md"), "---\nlicense: mit\n---\n").unwrap();
    fs::write(dir.join("set/dataset_infos.json"), "{\"default\": {}}").unwrap();
    fs::write(dir.join("set/.gitattributes"), "*.parquet\n").unwrap();
    let summary = run(&dir, &["set"], &[]).ok().json();
    assert_eq!(summary["new"]["documents"], 6);
    let found = pairs(&dir);
    let train = |part: usize, row: usize| format!("train-0000{part}-of-00002.parquet:{row}");
    let test = "test-00000-of-00001.parquet:2".to_owned();
    assert_eq!(
        found,
        [(test, train(0, 2), 0), (train(0, 1), train(1, 2), 0)]
    );
}

/// A zero byte in a text is one character, wherever it stands.
#[test]
fn a_zero_byte_makes_no_utf_16() {
    let dir = Dir::new();
    let plain = text(3);
    for at in [0, 1, 20, 21, plain.len()] {
        let mut with = plain.clone();
        with.insert(at, '\0');
        fs::write(dir.join("a.txt"), &plain).unwrap();
        fs::write(dir.join("b.txt"), &with).unwrap();
        fs::write(dir.join("c.html"), format!("<p>{with}")).unwrap();
        run(&dir, &["a.txt", "b.txt", "c.html"], &["--overwrite"]).ok();
        assert_eq!(pairs(&dir).len(), 3, "{at}");
    }
}

/// Chinese, Japanese and Korean texts in UTF-16 have few zeros.
#[test]
fn utf_16_of_cjk_is_read_in_pages_and_crawls() {
    use crate::helpers::crawl_files::record;
    let chinese = "昨天晚上我们在海边散步了很长时间，谈论了这个冬天读过的书。后来开始下雨，我们不得不比预想的更早回家。";
    let japanese = "昨日の夜、私たちは海辺を長い間散歩し、この冬に読んだ本について話しました。その後雨が降り始めました。";
    let korean = "어제 저녁 우리는 바닷가를 오랫동안 걸으며 이번 겨울에 읽은 책에 대해 이야기했다. 그 뒤에 비가 왔다.";
    for text in [chinese, japanese, korean] {
        let page = format!("<!doctype html><p>{text}</p>");
        for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            let bytes: Vec<u8> = page.encode_utf16().flat_map(to_bytes).collect();
            let dir = Dir::new();
            fs::write(dir.join("a.html"), &page).unwrap();
            fs::write(dir.join("b.html"), &bytes).unwrap();
            fs::write(
                dir.join("c.txt"),
                text.encode_utf16().flat_map(to_bytes).collect::<Vec<_>>(),
            )
            .unwrap();
            let http = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &bytes].concat();
            let block = record(
                "response",
                "r1",
                "http://a.example/",
                "application/http; msgtype=response",
                &http,
            );
            fs::write(dir.join("d.warc"), block).unwrap();
            run(&dir, &["a.html", "b.html", "c.txt", "d.warc"], &[]).ok();
            let found = pairs(&dir);
            assert_eq!(found.len(), 6, "{text}: {found:?}");
        }
    }
}

/// Stores have no names with control characters: such files are counted, and the others are read.
#[test]
fn control_characters_in_names_end_no_run() {
    let dir = Dir::new();
    fs::create_dir(dir.join("day")).unwrap();
    for name in ["good.csv", "a\tb.csv", "c\nd.csv"] {
        fs::write(
            dir.join("day").join(name),
            "id,text\n1,one two three four\n",
        )
        .unwrap();
    }
    let summary = run(&dir, &["day"], &[]).ok().json();
    assert_eq!(summary["new"]["documents"], 1);
    assert_eq!(summary["new"]["notes"]["unreadable_names"]["number"], 2);
}

/// Partitions share a file: each row is read once, by each reader of a plan.
#[test]
fn a_table_is_read_twice_by_one_plan() {
    let dir = Dir::new();
    let rows = 20_000;
    let lines = (0..rows).map(|n| format!("{{\"id\":\"{n}\",\"text\":\"{}\"}}\n", text(n % 7)));
    fs::write(dir.join("a.jsonl"), lines.collect::<String>()).unwrap();
    let csv = (0..rows).map(|n| format!("{n},{}\n", text(n % 7)));
    fs::write(
        dir.join("b.csv"),
        format!("id,text\n{}", csv.collect::<String>()),
    )
    .unwrap();
    for file in ["a.jsonl", "b.csv"] {
        let table = format!("t={}", dir.at(file));
        for (query, expected) in [
            ("select count(*) as n from t", rows),
            ("select count(distinct id) as n from t", rows),
            (
                "select count(*) as n from t a join t b on a.id = b.id",
                rows,
            ),
            (
                "select count(*) as n from t where id not in (select id from t limit 100)",
                rows - 100,
            ),
        ] {
            for threads in ["1", "2", "5"] {
                let arguments = [
                    "sql",
                    "--json",
                    "--threads",
                    threads,
                    "--table",
                    &table,
                    query,
                ];
                let ran = dedup_job(arguments).ok();
                assert!(
                    ran.stdout.contains(&format!("{expected}")),
                    "{file}, {query}, {threads}: {}",
                    ran.stdout
                );
            }
        }
    }
}

#[test]
fn independent_readers_see_the_same_documents() {
    let (Some(python), Some(_)) = (crate::warc::python(), crate::interop::python()) else {
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/readers_agree.py");
    let read = Command::new(python)
        .args([script, env!("CARGO_BIN_EXE_dedup-job"), "--files", "150"])
        .output();
    Ran::of(read.unwrap()).ok();
}
