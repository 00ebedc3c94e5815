//! Texts in lists of Parquet and arrays of JSON: documents give the same results in them as with strings.

use std::fs;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, BinaryBuilder, FixedSizeListBuilder, LargeListBuilder, ListArray,
    ListBuilder, StringArray, StringBuilder, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Int64Type};
use serde_json::{Value, json};

use crate::helpers::support::*;

const COUNT: i64 = 400;

/// The strings of a document. Some are null, and so is the list of some documents.
type Strings = Option<[Option<String>; 3]>;

fn id(number: i64) -> String {
    format!("{:03}", number * 7 % 401)
}

/// Words that the documents of each four have in common, with a word more in one of them.
fn words(number: i64, at: i64) -> String {
    let word = |word: i64| format!("word{}", (word * 31 + at * 1009 + number / 4 * 977) % 5003);
    let more = (number % 4 == 2).then(|| "more".to_owned());
    let words: Vec<String> = (0..30).map(word).chain(more).collect();
    words.join(" ")
}

fn strings_of(number: i64) -> Strings {
    let string = |at: i64| {
        let is_there = number % 7 != 3 && (number + at) % 5 != 0;
        is_there.then(|| words(number, at))
    };
    (number % 11 != 5).then(|| [0, 1, 2].map(string))
}

/// The text that the strings become.
fn text_of(strings: &Strings) -> Option<String> {
    let strings = strings.as_ref()?.iter().flatten();
    let strings: Vec<&str> = strings.map(String::as_str).collect();
    Some(strings.join("\n"))
}

/// The strings as a list of any length: an empty one if all are null.
fn list_of(strings: &Strings) -> Option<Vec<Option<String>>> {
    let list = strings.as_ref()?.to_vec();
    let is_empty = list.iter().all(Option::is_none);
    Some(if is_empty { Vec::new() } else { list })
}

/// The strings as the contents of structures. A null is the content of a structure, or a null structure.
fn messages_of(all: &[Strings]) -> ListArray {
    let items: Vec<&Option<String>> = all.iter().flatten().flatten().collect();
    let roles: StringArray = (0..items.len())
        .map(|at| Some(["user", "assistant"][at % 2]))
        .collect();
    let contents: StringArray = items.iter().map(|item| item.as_deref()).collect();
    let is_there = |(at, item): (usize, &&Option<String>)| item.is_some() || at % 2 == 0;
    let are_there: NullBuffer = items.iter().enumerate().map(is_there).collect();
    let fields = vec![
        Field::new("role", DataType::Utf8, true),
        Field::new("content", DataType::Utf8, true),
    ];
    let columns: Vec<ArrayRef> = vec![Arc::new(roles), Arc::new(contents)];
    let structures = StructArray::new(fields.into(), columns, Some(are_there));
    let field = Field::new("item", structures.data_type().clone(), true);
    let lengths = all
        .iter()
        .map(|strings| if strings.is_some() { 3 } else { 0 });
    ListArray::new(
        Arc::new(field),
        OffsetBuffer::from_lengths(lengths),
        Arc::new(structures),
        Some(all.iter().map(Option::is_some).collect()),
    )
}

/// Writes the documents as Parquet: `strings.parquet` with their texts, `lists.parquet` with lists of several types.
fn write_as_parquet(dir: &Dir) {
    let all: Vec<Strings> = (0..COUNT).map(strings_of).collect();
    let ids = strings((0..COUNT).map(id));
    let texts: StringArray = all.iter().map(text_of).collect();
    let columns: Vec<(&str, ArrayRef)> = vec![("id", Arc::clone(&ids)), ("text", Arc::new(texts))];
    write_parquet_in_groups(dir.join("strings.parquet"), columns, 150);
    let mut lists = ListBuilder::new(StringBuilder::new());
    let mut large = LargeListBuilder::new(StringBuilder::new());
    let mut fixed = FixedSizeListBuilder::new(StringBuilder::new(), 3);
    let mut nested = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    for strings in &all {
        lists.append_option(list_of(strings));
        large.append_option(list_of(strings));
        for item in strings.clone().unwrap_or_default() {
            fixed.values().append_option(item);
        }
        fixed.append(strings.is_some());
        if let Some([first, rest @ ..]) = strings {
            nested.values().append_value([first.clone()]);
            nested.values().append_null();
            nested.values().append_value(rest.to_vec());
        }
        nested.append(strings.is_some());
    }
    let nested: ArrayRef = Arc::new(nested.finish());
    let field = Field::new("parts", nested.data_type().clone(), true);
    let are_there: NullBuffer = all.iter().map(Option::is_some).collect();
    let meta = StructArray::new(
        vec![field].into(),
        vec![Arc::clone(&nested)],
        Some(are_there),
    );
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("messages", Arc::new(messages_of(&all))),
        ("text", Arc::new(lists.finish())),
        ("large", Arc::new(large.finish())),
        ("fixed", Arc::new(fixed.finish())),
        ("nested", nested),
        ("meta", Arc::new(meta)),
        ("id", ids),
    ];
    write_parquet_in_groups(dir.join("lists.parquet"), columns, 150);
}

/// A document as an object.
fn object(number: i64) -> Value {
    let strings = strings_of(number);
    let message = |(at, item): (usize, &Option<String>)| match item {
        Some(content) => json!({ "role": "user", "content": content }),
        None if at % 2 == 0 => json!({ "role": "user" }),
        None => Value::Null,
    };
    let messages = strings.as_ref();
    let messages = messages.map(|items| Value::from_iter(items.iter().enumerate().map(message)));
    let parts = strings.as_ref();
    let parts = parts.map(|[first, rest @ ..]| json!([[first], null, rest]));
    json!({
        "messages": messages,
        "text": list_of(&strings),
        "meta": { "parts": parts },
        "id": id(number),
    })
}

/// Writes the documents as JSON: `lists.jsonl` and `lists.json`.
fn write_as_json(dir: &Dir) {
    let lines: Vec<String> = (0..COUNT)
        .map(|number| object(number).to_string())
        .collect();
    fs::write(dir.join("lists.jsonl"), lines.join("\n")).unwrap();
    fs::write(dir.join("lists.json"), format!("[{}]", lines.join(",\n"))).unwrap();
}

/// The files with lists, and their columns.
const LISTS: [(&str, &str); 12] = [
    ("lists.parquet", "text"),
    ("lists.parquet", "large"),
    ("lists.parquet", "fixed"),
    ("lists.parquet", "nested"),
    ("lists.parquet", "messages.content"),
    ("lists.parquet", "meta.parts"),
    ("lists.jsonl", "text"),
    ("lists.jsonl", "messages.content"),
    ("lists.jsonl", "meta.parts"),
    ("lists.json", "text"),
    ("lists.json", "messages.content"),
    ("lists.json", "meta.parts"),
];

#[test]
fn a_run_finds_the_same_in_lists_as_in_strings() {
    let dir = Dir::new();
    write_as_parquet(&dir);
    write_as_json(&dir);
    let (pairs, decisions) = (dir.at("pairs.parquet"), dir.at("decisions.csv"));
    let run = |new: &str, options: &str| {
        let new = dir.at(new);
        let run = format!("run {new} --output {pairs} --decisions {decisions} -k 8 {options}");
        let counts = dedup_json(&format!("{run} --json"));
        let outputs = [&pairs, &decisions].map(|path| fs::read(path).unwrap());
        (outputs, counts["new"].clone())
    };
    for options in ["", "--verify jaccard --threads 3", "--threads 1"] {
        let (expected, counts) = run("strings.parquet", options);
        let found = read_parquet(&pairs);
        let found: usize = found.iter().map(|rows| rows.num_rows()).sum();
        assert!(found > 5, "{found}");
        for (new, column) in LISTS {
            let (outputs, of_lists) = run(new, &format!("{options} --text-column {column}"));
            assert!(outputs == expected, "{new} {column} {options}");
            for count in ["documents", "without_fingerprint"] {
                assert_eq!(of_lists[count], counts[count], "{new} {column} {count}");
            }
        }
        // The column is found by its name.
        assert!(run("lists.parquet", options).0 == expected, "{options}");
    }
}

#[test]
fn other_commands_find_the_same_in_lists_as_in_strings() {
    let dir = Dir::new();
    write_as_parquet(&dir);
    write_as_json(&dir);
    let text = dir.at("strings.parquet");
    let (base, pairs, output) = (dir.at("base.parquet"), dir.at("p.csv"), dir.at("o.parquet"));
    dedup_ok(&format!("fingerprint --input {text} --output {base}"));
    dedup_ok(&format!("run {text} -k 8 --output {pairs}"));
    let verify = format!("run {text} --base {base} --no-within -k 8 --verify jaccard");
    let outputs = |documents: &str, options: &str| {
        let shown = dedup(&format!("show {pairs} --documents {documents} {options}"));
        let explained = dedup(&format!(
            "explain {} {} --documents {documents} {options} --json",
            id(6),
            id(7)
        ));
        dedup_ok(&format!(
            "fingerprint --input {documents} {options} --output {output} --overwrite"
        ));
        let fingerprints = fs::read(&output).unwrap();
        dedup_ok(&format!(
            "idf {documents} {options} --output {output} --overwrite"
        ));
        let frequencies = fs::read(&output).unwrap();
        (
            shown.ok().stdout,
            explained.ok().stdout,
            fingerprints,
            frequencies,
        )
    };
    let expected = outputs(&text, "");
    assert!(expected.0.starts_with("1. "), "{}", expected.0);
    for (documents, column) in LISTS {
        let options = format!("--text-column {column}");
        let found = outputs(&dir.at(documents), &options);
        assert!(found == expected, "{documents} {column}");
    }
    // Texts of the archive. Their column has the name of that of the batch.
    let verified = |texts: &str| {
        let texts = dir.at(texts);
        let run = format!("{verify} --base-text {texts} --output {output} --overwrite --json");
        let summary = dedup_json(&run);
        assert_eq!(summary["verified"]["without_text"], 0, "{texts}");
        fs::read(&output).unwrap()
    };
    let expected = verified("strings.parquet");
    for texts in ["lists.parquet", "lists.jsonl", "lists.json"] {
        assert!(verified(texts) == expected, "{texts}");
    }
}

#[test]
fn a_query_sees_texts_of_lists() {
    let dir = Dir::new();
    write_as_parquet(&dir);
    write_as_json(&dir);
    let query = "select id, text, simhash(text) from d order by id";
    let answer = |name: &str| {
        let table = format!("d={}", dir.at(name));
        dedup_job(["sql", query, "--table", &table, "--json"])
            .ok()
            .stdout
    };
    let expected = answer("strings.parquet");
    assert_eq!(expected.lines().count(), COUNT as usize);
    for name in ["lists.parquet", "lists.jsonl", "lists.json"] {
        assert_eq!(answer(name), expected, "{name}");
    }
}

#[test]
fn kept_documents_keep_their_lists() {
    let dir = Dir::new();
    write_as_parquet(&dir);
    write_as_json(&dir);
    let text = dir.at("strings.parquet");
    let ran = dedup(&format!(
        "run {text} -k 8 --kept {} --json",
        dir.at("k.parquet")
    ));
    let count = ran.ok().json()["decisions"]["kept"].as_u64().unwrap();
    assert!(count < COUNT as u64 - 10, "{count}");
    let kept = |name: &str| {
        let (new, kept) = (dir.at(name), dir.at(&format!("kept-{name}")));
        dedup_ok(&format!(
            "run {new} -k 8 --text-column messages.content --kept {kept}"
        ));
        kept
    };
    let lines = fs::read_to_string(kept("lists.jsonl")).unwrap();
    assert_eq!(lines.lines().count() as u64, count);
    let all = fs::read_to_string(dir.join("lists.jsonl")).unwrap();
    let all: Vec<&str> = all.lines().collect();
    assert!(lines.lines().all(|line| all.contains(&line)));
    let array: Value = serde_json::from_slice(&fs::read(kept("lists.json")).unwrap()).unwrap();
    let of_lines = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert_eq!(array, Value::from_iter(of_lines));
    let of_parquet = kept("lists.parquet");
    // The kept documents are near to no other.
    let pairs = dir.at("pairs.csv");
    let run = format!("run {of_parquet} -k 8 --text-column fixed --output {pairs}");
    let ran = dedup(&format!("{run} --json"));
    let summary = ran.ok().json();
    assert_eq!(summary["new"]["documents"], count);
    assert_eq!(summary["hits"], 0);
}

#[test]
fn other_items_and_other_columns_in_lists_are_refused() {
    let dir = Dir::new();
    let (parquet, jsonl, output) = (dir.at("d.parquet"), dir.at("d.jsonl"), dir.at("o.csv"));
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1), Some(2)])]);
    let lists: ArrayRef = Arc::new(lists);
    let mut tags = ListBuilder::new(StringBuilder::new());
    tags.append_value([Some("x")]);
    let field = Field::new("ranks", lists.data_type().clone(), true);
    let meta = StructArray::from(vec![(Arc::new(field), Arc::clone(&lists))]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", strings(["a"])),
        ("text", strings(["b"])),
        ("numbers", lists),
        ("tags", Arc::new(tags.finish())),
        ("meta", Arc::new(meta)),
    ];
    write_parquet(&parquet, columns);
    let run =
        |new: &str, options: &str| dedup(&format!("run {new} --decisions {output} {options}"));
    for column in ["numbers", "meta.ranks"] {
        let object = format!("d.parquet, row group 0, column {column:?}");
        run(&parquet, &format!("--text-column {column}"))
            .fails(65, &[&object, "texts are strings, this is Int64"]);
    }
    for (options, column) in [
        ("--id-column tags", "tags"),
        ("--fingerprint-column numbers", "numbers"),
        ("--fingerprint-column meta.ranks", "meta.ranks"),
        ("--prefer numbers", "numbers"),
        ("--prefer meta.ranks:desc", "meta.ranks"),
        ("--columns tags", "tags"),
        ("--columns text,meta.ranks", "meta.ranks"),
        ("--text-column tags --columns tags", "tags"),
    ] {
        let object = format!("d.parquet, column {column:?}");
        run(&parquet, options).fails(65, &[&object, "only texts can be in lists"]);
    }

    let lines = r#"{"id":"a","text":["x"],"tags":["x"],"messages":[{"content":"x","rank":1}]}
{"id":"b","text":["y",7],"messages":[{"content":{"parts":["z"]}}]}"#;
    fs::write(&jsonl, lines).unwrap();
    let string = |column: &str| format!("a string in column {column:?}");
    for (options, line, part) in [
        ("", 2, string("text")),
        (
            "--text-column messages.content",
            2,
            string("messages.content"),
        ),
        ("--text-column messages", 1, string("messages")),
        ("--text-column messages.rank", 1, string("messages.rank")),
    ] {
        let line = format!("d.jsonl, line {line}, column ");
        run(&jsonl, options).fails(65, &[&line, &part]);
    }
    fs::write(&jsonl, lines.lines().next().unwrap()).unwrap();
    let in_list = "column \"messages.rank\" is in a list; only texts can be in lists";
    for options in [
        "--fingerprint-column messages.rank",
        "--prefer messages.rank",
    ] {
        run(&jsonl, options).fails(65, &["d.jsonl, line 1", in_list]);
    }
    for column in ["tags", "messages.rank"] {
        let object = format!("d.jsonl, line 1, column {column:?}");
        run(&jsonl, &format!("--id-column {column}")).fails(65, &[&object, "ids are text"]);
    }
    // What is in an array does not go along to decisions.
    run(&jsonl, "--columns messages.rank").ok();
    let decisions = fs::read_to_string(&output).unwrap();
    assert!(decisions.ends_with(",\n"), "{decisions}");
    // The decisions copy the JSON of an array, also if its strings are the text.
    run(&jsonl, "--columns messages,text").ok();
    let decisions = fs::read_to_string(&output).unwrap();
    assert!(decisions.ends_with(",\"[\"\"x\"\"]\"\n"), "{decisions}");
}

#[test]
fn the_first_object_may_have_an_empty_array() {
    let dir = Dir::new();
    let (new, output) = (dir.at("d.jsonl"), dir.at("o.csv"));
    let run = |messages: [&str; 2]| {
        let line = |(id, messages)| format!("{{\"id\":\"{id}\",\"messages\":{messages}}}\n");
        let lines: String = ["a", "b"].into_iter().zip(messages).map(line).collect();
        fs::write(&new, lines).unwrap();
        dedup(&format!(
            "run {new} --text-column messages.content --decisions {output}"
        ))
    };
    let with_text = "[{\"content\":\"x\"}]";
    run(["[]", "null"]).ok();
    run(["[{\"content\":null}]", "null"]).ok();
    for missing in ["null", "[{\"role\":\"user\"}]"] {
        // The second object may have what the first lacks.
        run([missing, with_text]).ok();
        run([missing, missing]).fails(65, &["no text or fingerprint column (messages.content"]);
    }
}

#[test]
fn strings_in_lists_need_not_be_unicode() {
    let dir = Dir::new();
    let expected = "one two three four\n\u{fffd}\u{fffd}";
    let invalid = |new: &str| {
        let (new, output) = (dir.at(new), dir.at("h.csv"));
        let ran = dedup(&format!("run {new} -k 0 --output {output} --json"));
        let summary = ran.ok().json();
        assert_eq!(summary["hits"], 1, "{new}");
        summary["new"]["invalid_utf8"].as_u64().unwrap()
    };
    let mut lists = ListBuilder::new(BinaryBuilder::new());
    lists.append_value([
        Some(b"one two three four".as_slice()),
        Some(b"\xff\xfe".as_slice()),
    ]);
    lists.append_value([Some(expected.as_bytes())]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", strings(["a", "b"])),
        ("text", Arc::new(lists.finish())),
    ];
    write_parquet(dir.join("bytes.parquet"), columns);
    assert_eq!(invalid("bytes.parquet"), 1);
    let line = b"{\"id\":\"a\",\"text\":[\"one two three four\",\"\xff\xfe\"]}\n";
    let valid = json!({ "id": "b", "text": [expected] }).to_string();
    fs::write(
        dir.join("bytes.jsonl"),
        [&line[..], valid.as_bytes()].concat(),
    )
    .unwrap();
    assert_eq!(invalid("bytes.jsonl"), 1);

    // A column is declared as lists of texts, but the bytes of one are not UTF-8.
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("one two three four"), Some("#~")]);
    lists.append_value([Some(expected)]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", strings(["a", "b"])),
        ("text", Arc::new(lists.finish())),
    ];
    let path = dir.join("liar.parquet");
    write_parquet(&path, columns);
    let mut bytes = fs::read(&path).unwrap();
    let length_and_bytes = b"\x02\0\0\0#~";
    let is_there = |at: &usize| bytes[*at..].starts_with(length_and_bytes);
    let places: Vec<usize> = (0..bytes.len()).filter(is_there).collect();
    assert_eq!(places.len(), 1);
    bytes[places[0] + 4..places[0] + 6].copy_from_slice(b"\xff\xfe");
    fs::write(&path, bytes).unwrap();
    assert_eq!(invalid("liar.parquet"), 1);
}

/// Several threads read one row group, because its lists have many items.
#[test]
fn several_threads_read_a_row_group_of_lists() {
    let dir = Dir::new();
    let (rows, items) = (2000, 2000);
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..rows {
        let at = row as usize * 7 % items;
        lists.values().append_nulls(at);
        lists.values().append_value(words(row, 0));
        lists.values().append_nulls(items - 1 - at);
        lists.append(true);
    }
    let ids = numbers((0..rows).map(|row| row * 7 % 2003));
    let texts = strings((0..rows).map(|row| words(row, 0)));
    let columns = vec![("id", Arc::clone(&ids)), ("text", texts)];
    write_parquet(dir.join("strings.parquet"), columns);
    let columns: Vec<(&str, ArrayRef)> = vec![("id", ids), ("text", Arc::new(lists.finish()))];
    write_parquet(dir.join("lists.parquet"), columns);
    let output = dir.at("o.csv");
    let decide = |new: &str, threads: usize| {
        let new = dir.at(new);
        dedup_ok(&format!(
            "run {new} --decisions {output} --threads {threads}"
        ));
        fs::read_to_string(&output).unwrap()
    };
    let expected = decide("strings.parquet", 1);
    assert!(expected.contains(",false,"));
    for threads in [1, 2, 5] {
        assert!(decide("lists.parquet", threads) == expected, "{threads}");
    }
}

/// Fault 24: a small file whose lists have the same string many times.
#[test]
fn a_text_that_does_not_fit_into_the_memory_is_refused() {
    let dir = Dir::new();
    let (new, output) = (dir.at("d.parquet"), dir.at("o.csv"));
    let long = "x".repeat(512 << 10);
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value(vec![Some(long.as_str()); 200]);
    let columns: Vec<(&str, ArrayRef)> =
        vec![("id", strings(["a"])), ("text", Arc::new(lists.finish()))];
    write_parquet(&new, columns);
    assert!(fs::metadata(&new).unwrap().len() < 8 << 20);
    let run = format!("run {new} --decisions {output} --memory-limit 64MiB --threads 2");
    let object = "d.parquet, row group 0, column \"text\": a text of more than";
    dedup(&run).fails(75, &[object, "raise --memory-limit"]);
}
