//! Tests of `run --columns`, whose columns go along to decisions; and of columns in structures and objects, by their paths.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray as _, BooleanArray, Date32Array, ListArray, RecordBatch,
    StringArray, StructArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Date32Type, Field, Fields, Int64Type};

use crate::helpers::support::*;

/// The columns that decisions have without --columns.
const OWN: usize = 7;

/// The rows of a Parquet file, in one piece.
fn rows(path: impl AsRef<Path>) -> RecordBatch {
    let batches = read_parquet(path);
    arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap()
}

/// Fingerprints that are far from each other, but for every tenth, which is that of the one before.
fn fingerprint(number: i64) -> i64 {
    let number = number - i64::from(number % 10 == 9);
    number.wrapping_mul(0x1e37_79b9_7f4a_7c15)
}

/// Ids whose order is not that of the numbers below 3001.
fn id(number: i64) -> String {
    format!("{:04}", number * 7 % 3001)
}

fn url(number: i64) -> Option<String> {
    (number % 11 > 0).then(|| format!("https://{}.example/{number}", number % 7))
}

/// Documents `numbers` with ready fingerprints, and columns of several types.
fn write_typed(path: impl AsRef<Path>, numbers: std::ops::Range<i64>) {
    let urls: StringArray = numbers.clone().map(url).collect();
    let days: Date32Array = numbers.clone().map(|number| Some(number as i32)).collect();
    let flags = numbers.clone().map(|number| Some(number % 3 == 0));
    let flags: BooleanArray = flags.collect();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("url", Arc::new(urls)),
        ("id", strings(numbers.clone().map(id))),
        ("number", self::numbers(numbers.clone())),
        ("fp", self::numbers(numbers.clone().map(fingerprint))),
        ("day", Arc::new(days)),
        ("flag", Arc::new(flags)),
    ];
    write_parquet_in_groups(path, columns, 700);
}

/// Checks that the columns of each row of decisions are those of its document; returns the numbers of the documents.
fn check_rows(found: &RecordBatch) -> Vec<i64> {
    let column = |name: &str| found.column_by_name(name).unwrap();
    let ids = column("id").as_string::<i32>();
    assert!(ids.iter().is_sorted());
    let numbers = column("number").as_primitive::<Int64Type>();
    let days = column("day").as_primitive::<Date32Type>();
    let (urls, flags) = (
        column("url").as_string::<i32>(),
        column("flag").as_boolean(),
    );
    for row in 0..found.num_rows() {
        let number = numbers.value(row);
        assert_eq!(ids.value(row), id(number));
        let found = urls.is_valid(row).then(|| urls.value(row).to_owned());
        assert_eq!(found, url(number));
        assert_eq!(i64::from(days.value(row)), number);
        assert_eq!(flags.value(row), number % 3 == 0);
    }
    numbers.values().to_vec()
}

#[test]
fn columns_of_parquet_keep_their_types() {
    let dir = Dir::new();
    fs::create_dir(dir.join("in")).unwrap();
    write_typed(dir.join("in/a.parquet"), 0..2000);
    write_typed(dir.join("in/b.parquet"), 2000..3000);
    let (new, output, plain) = (dir.at("in"), dir.at("o.parquet"), dir.at("plain.parquet"));
    dedup_ok(&format!("run {new} --decisions {plain} --threads 3"));
    let columns = "--columns url,number --columns flag,day";
    let run = format!("run {new} --decisions {output} {columns}");
    dedup_ok(&format!("{run} --threads 3"));
    let found = rows(&output);
    let schema = found.schema();
    let fields = schema.fields().iter().skip(OWN);
    let types: Vec<_> = fields
        .map(|field| (field.name().as_str(), field.data_type()))
        .collect();
    assert_eq!(
        types,
        [
            ("url", &DataType::Utf8),
            ("number", &DataType::Int64),
            ("flag", &DataType::Boolean),
            ("day", &DataType::Date32),
        ]
    );
    assert_eq!(check_rows(&found).len(), 3000);
    let plain = rows(&plain);
    assert_eq!(plain.num_columns(), OWN);
    assert!(found.columns()[..OWN] == *plain.columns());
    assert!(found.column(1).as_boolean().false_count() >= 300);
    // The same bytes for any number of threads; and the program knows its output, to replace and to read it.
    let bytes = fs::read(&output).unwrap();
    dedup_ok(&format!("{run} --threads 1"));
    assert!(fs::read(&output).unwrap() == bytes);
    let groups = dedup_json(&format!("groups {output} --json"));
    assert_eq!(groups["documents"], 3000);
}

#[test]
fn columns_of_text_files_are_text() {
    let dir = Dir::new();
    let lines = [
        r#"{"id":"c","fp":3,"meta.lang":"own","meta":{"lang":"de"},"n":"7"}"#,
        r#"{"id":"a","fp":1,"url":"u\"1","n":1.50,"ok":true,"tags":["x"]}"#,
        r#"{"id":"b","fp":2,"url":null,"meta":{"lang":"en"},"title":"\ud83d"}"#,
    ];
    let (jsonl, csv) = (dir.at("d.jsonl"), dir.at("o.csv"));
    fs::write(&jsonl, lines.join("\n")).unwrap();
    let columns = "url,n,ok,tags,meta.lang,title";
    dedup_ok(&format!(
        "run {jsonl} -k 0 --fingerprint-column fp --decisions {csv} --columns {columns}"
    ));
    let own = "id,kept,duplicate_of,duplicate_day,distance,similarity,group_size";
    let expected = [
        format!("{own},{columns}\n").as_str(),
        "a,true,,,,,1,\"u\"\"1\",1.50,true,\"[\"\"x\"\"]\",,\n",
        "b,true,,,,,1,,,,,en,\u{fffd}\n",
        "c,true,,,,,1,,7,,,own,\n",
    ]
    .concat();
    assert_eq!(fs::read_to_string(&csv).unwrap(), expected);
    let (input, output) = (dir.at("d.csv"), dir.at("o.jsonl"));
    fs::write(&input, "n,id,fp,\"the url\"\n1,a,1,u\n,b,2,\n").unwrap();
    let (from, to) = (input.as_str(), output.as_str());
    let arguments = ["run", from, "-k", "0", "--decisions", to];
    dedup_job(arguments.into_iter().chain(["--columns", "the url,n"])).ok();
    let nulls = r#""duplicate_of":null,"duplicate_day":null,"distance":null,"similarity":null"#;
    let line = |id: &str, url: &str, n: &str| {
        format!(
            "{{\"id\":\"{id}\",\"kept\":true,{nulls},\"group_size\":1,\"the url\":{url},\"n\":{n}}}\n"
        )
    };
    let expected = [line("a", "\"u\"", "\"1\""), line("b", "null", "null")].concat();
    assert_eq!(fs::read_to_string(&output).unwrap(), expected);
    // Where the files differ, a column is text.
    fs::create_dir(dir.join("in")).unwrap();
    write_typed(dir.join("in/a.parquet"), 0..2);
    let line = r#"{"id":"z","fp":9,"number":"x","day":5}"#;
    fs::write(dir.join("in/b.jsonl"), line).unwrap();
    let output = dir.at("o.parquet");
    let new = dir.at("in");
    dedup_ok(&format!(
        "run {new} --decisions {output} --columns day,number"
    ));
    let found = rows(&output);
    let text = |name: &str| texts(found.column_by_name(name).unwrap());
    assert_eq!(text("number"), ["0", "1", "x"]);
    assert_eq!(text("day"), ["1970-01-01", "1970-01-02", "5"]);
}

#[test]
fn columns_that_cannot_go_along_are_refused() {
    let dir = Dir::new();
    let (csv, parquet, output) = (dir.at("d.csv"), dir.at("d.parquet"), dir.at("o.parquet"));
    fs::write(&csv, "id,fp,url,twice,twice\na,1,u,x,y\n").unwrap();
    let tags = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1)])]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", strings(["a"])),
        ("fp", numbers([1])),
        ("tags", Arc::new(tags)),
    ];
    write_parquet(&parquet, columns);
    for (options, part) in [
        ("--columns url", "--columns needs --decisions"),
        ("--kept k.csv --columns url", "--columns needs --decisions"),
        ("--decisions o.csv --columns kept", "--columns kept"),
        ("--decisions o.csv --columns url,id", "--columns id"),
        ("--decisions o.csv --columns url,url", "names url twice"),
        ("--decisions o.csv --columns url,", "column is missing"),
    ] {
        dedup(&format!("run {csv} {options}")).fails(64, &[part]);
    }
    for (new, column, parts) in [
        (
            &csv,
            "nope",
            ["d.csv: no column \"nope\", which --columns names", "url"],
        ),
        (&csv, "twice", ["d.csv", "several columns"]),
        (
            &parquet,
            "nope",
            [
                "d.parquet: no column \"nope\", which --columns names",
                "tags",
            ],
        ),
        (
            &parquet,
            "tags",
            ["column \"tags\"", "only texts can be in lists"],
        ),
    ] {
        let run = format!("run {new} --decisions {output} --columns {column}");
        dedup(&run).fails(65, &parts);
    }
    assert_eq!(dir.names(), ["d.csv", "d.parquet"]);
}

/// A column that cannot go along is refused when the files are opened: no document behind the first of a file is read.
#[test]
fn columns_that_cannot_go_along_cost_no_work() {
    let dir = Dir::new();
    fs::create_dir(dir.join("in")).unwrap();
    let line = "{\"id\":\"a\",\"text\":\"one two three four\",\"source\":\"x\"}\n";
    fs::write(dir.join("in/a.jsonl"), line).unwrap();
    let name = Arc::new(Field::new("name", DataType::Utf8, true));
    let source = StructArray::from(vec![(name, strings(["y"]))]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", strings(["b"])),
        ("text", strings(["five six seven eight"])),
        ("source", Arc::new(source)),
    ];
    write_parquet(dir.join("in/b.parquet"), columns);
    // Whoever reads this file to its end finds an error in its second line.
    fs::write(dir.join("in/c.jsonl"), format!("{line}{{\"id\":\"c\",\"te")).unwrap();
    let (new, archive) = (dir.at("in"), dir.at("archive"));
    dedup_ok(&format!("archive create --profile paper {archive}"));
    let before = contents(&archive);
    let (output, decisions) = (dir.at("o.parquet"), dir.at("d.parquet"));
    let run = format!(
        "run {new} --base {archive} --append --day 2026-01-01 --output {output} --decisions {decisions}"
    );
    let parts = ["b.parquet, column \"source\"", "nested or repeated"];
    dedup(&format!("{run} --columns source")).fails(65, &parts);
    assert_eq!(dir.names(), ["archive", "in"]);
    assert!(contents(&archive) == before);
    dedup(&run).fails(65, &["c.jsonl"]);
}

/// The sort of the columns takes more memory than there is.
#[test]
fn columns_need_little_memory() {
    let dir = Dir::new();
    let (new, output) = (dir.at("d.parquet"), dir.at("o.parquet"));
    let count = 60_000;
    let id = |number: i64| number * 7919 % 60_013;
    let long = |number: i64| format!("{number} {}", "x".repeat(700));
    let columns = vec![
        ("id", numbers((0..count).map(id))),
        ("fp", numbers((0..count).map(fingerprint))),
        ("long", strings((0..count).map(long))),
        ("number", numbers(0..count)),
    ];
    write_parquet_in_groups(&new, columns, 5000);
    for threads in [1, 2, 8] {
        dedup_ok(&format!(
            "run {new} -k 0 --decisions {output} --columns long,number --memory-limit 40MiB --threads {threads}"
        ));
        let mut last = -1;
        let mut rows = 0;
        for batch in read_parquet(&output) {
            let column = |name: &str| batch.column_by_name(name).unwrap();
            let (ids, found) = (texts(column("id")), column("long").as_string::<i32>());
            let numbers = column("number").as_primitive::<Int64Type>();
            for (row, own) in ids.iter().enumerate() {
                let (own, number) = (own.parse::<i64>().unwrap(), numbers.value(row));
                assert!(own > last && own == id(number));
                assert!(found.value(row) == long(number), "{number}");
                last = own;
            }
            rows += batch.num_rows() as i64;
        }
        assert_eq!(rows, count);
    }
}

#[test]
fn removed_documents_have_no_columns() {
    let dir = Dir::new();
    let (new, archive, output) = (dir.at("d.parquet"), dir.at("archive"), dir.at("o.parquet"));
    write_typed(&new, 0..50);
    dedup_ok(&format!("archive create --profile paper {archive}"));
    let run = format!("run {new} --base {archive} -k 0 --append --day 2026-01-01");
    dedup_ok(&format!("{run} --decisions {output}"));
    let ids = dir.at("ids.txt");
    fs::write(&ids, format!("{}\n{}\n", id(3), id(40))).unwrap();
    dedup_ok(&format!("archive remove {archive} --ids {ids}"));
    dedup_ok(&format!(
        "{run} --decisions {output} --columns url,number,flag,day"
    ));
    let mut found = check_rows(&rows(&output));
    found.sort_unstable();
    let expected: Vec<i64> = (0..50).filter(|number| ![3, 40].contains(number)).collect();
    assert_eq!(found, expected);
}

#[test]
fn columns_beside_texts_in_lists() {
    let dir = Dir::new();
    let lines: String = (0..40)
        .map(|number| {
            let words: Vec<String> = (0..30)
                .map(|at| format!("word{}", (at * 31 + number / 2 * 977) % 5003))
                .collect();
            let (first, rest) = words.split_at(10);
            let (first, rest, score) = (first.join(" "), rest.join(" "), number % 5);
            format!(
                "{{\"meta\":{{\"key\":\"{number}\",\"text\":[\"{first}\",\"{rest}\"],\"score\":{score}}},\"url\":\"u{number}\"}}\n"
            )
        })
        .collect();
    let (new, output) = (dir.at("d.jsonl"), dir.at("o.parquet"));
    fs::write(&new, lines).unwrap();
    let archive = dir.archive("archive", "--profile paper");
    dedup_ok(&format!(
        "run {new} --base {archive} --id-column meta.key --text-column meta.text --prefer meta.score:desc \
         --columns url,meta.score --decisions {output}"
    ));
    let found = rows(&output);
    let urls = texts(found.column_by_name("url").unwrap());
    let ids = texts(found.column(0));
    assert_eq!(ids.len(), 40);
    assert!(
        ids.iter()
            .zip(&urls)
            .all(|(id, url)| format!("u{id}") == *url)
    );
}

/// A text of its own for each four documents, with a word more in some.
fn text(number: i64) -> String {
    let words: Vec<String> = (0..80)
        .map(|at| format!("word{}", (at * 31 + number / 4 * 977) % 5003))
        .collect();
    format!(
        "{} {}",
        words.join(" "),
        "more".repeat(usize::from(number % 4 == 2))
    )
}

/// Every thirteenth document has no structure, and no text in it.
fn has_structure(number: i64) -> bool {
    number % 13 > 0
}

/// Writes the same documents three times: with columns, with the columns in a structure, and as objects in objects of JSON.
fn write_nested(dir: &Dir, count: i64) {
    let (all, is_there) = (0..count, |number: &i64| has_structure(*number));
    let present = |number: i64| Some(number).filter(is_there);
    let texts: StringArray = all
        .clone()
        .map(|number| present(number).map(text))
        .collect();
    let urls: StringArray = all
        .clone()
        .map(|number| present(number).and_then(url))
        .collect();
    let scores = all
        .clone()
        .map(|number| present(number).map(|number| number % 5));
    let scores: arrow::array::Int64Array = scores.collect();
    let (texts, urls): (ArrayRef, ArrayRef) = (Arc::new(texts), Arc::new(urls));
    let scores: ArrayRef = Arc::new(scores);
    let ids = strings(all.clone().map(id));
    let flat = vec![
        ("id", Arc::clone(&ids)),
        ("text", Arc::clone(&texts)),
        ("url", Arc::clone(&urls)),
        ("score", Arc::clone(&scores)),
    ];
    write_parquet_in_groups(dir.join("flat.parquet"), flat, 100);
    let field = |name: &str, column: &ArrayRef| Field::new(name, column.data_type().clone(), true);
    let inner = StructArray::from(vec![(Arc::new(field("url", &urls)), urls)]);
    let inner: ArrayRef = Arc::new(inner);
    let fields = Fields::from(vec![
        field("score", &scores),
        field("text", &texts),
        field("inner", &inner),
    ]);
    let nulls = NullBuffer::from(all.clone().map(has_structure).collect::<Vec<bool>>());
    let meta = StructArray::new(fields, vec![scores, texts, inner], Some(nulls));
    let nested: Vec<(&str, ArrayRef)> = vec![("meta", Arc::new(meta)), ("id", ids)];
    write_parquet_in_groups(dir.join("nested.parquet"), nested, 100);
    let line = |number: i64| {
        let mut line = serde_json::json!({ "id": id(number) });
        if has_structure(number) {
            line["meta"] = serde_json::json!({
                "text": text(number), "score": number % 5, "inner": { "url": url(number) },
            });
        }
        format!("{line}\n")
    };
    let lines: String = (1..count).chain([0]).map(line).collect();
    fs::write(dir.join("nested.jsonl"), lines).unwrap();
}

#[test]
fn columns_in_structures_have_paths() {
    let dir = Dir::new();
    write_nested(&dir, 400);
    let output = dir.at("o.parquet");
    let decide = |new: &str, options: &str| {
        let new = dir.at(new);
        dedup_ok(&format!("run {new} --decisions {output} {options}"));
        rows(&output)
    };
    for options in ["", "-k 8 --verify jaccard", "--threads 1"] {
        let expected = decide(
            "flat.parquet",
            &format!("{options} --prefer score:desc --columns url"),
        );
        let paths = "--text-column meta.text --prefer meta.score:desc --columns meta.inner.url";
        for new in ["nested.parquet", "nested.jsonl"] {
            let found = decide(new, &format!("{options} {paths}"));
            assert_eq!(found.schema().field(OWN).name(), "meta.inner.url");
            assert!(found.columns() == expected.columns(), "{new} {options}");
        }
        let kept = expected.column(1).as_boolean().true_count();
        assert!((100..300).contains(&kept), "{kept}");
    }
    // An id at a path may not be missing.
    let key = |new: &str| {
        let new = dir.at(new);
        let fingerprints = dir.at("fp.parquet");
        dedup(&format!(
            "fingerprint --input {new} --output {fingerprints} --overwrite --id-column meta.inner.url --text-column meta.text"
        ))
    };
    key("nested.parquet").fails(65, &["nested.parquet", "\"meta.inner.url\"", "null ids"]);
    key("nested.jsonl").fails(65, &["nested.jsonl", "line", "meta.inner.url"]);
    let keyed = dir.at("keyed.jsonl");
    let lines = r#"{"a":{"key":7,"fp":1},"a.fp":2}
{"a":{"key":8,"fp":4}}"#;
    fs::write(&keyed, lines).unwrap();
    let run = "--id-column a.key --fingerprint-column a.fp -k 0 --columns a,a.fp";
    let found = decide("keyed.jsonl", run);
    assert_eq!(texts(found.column(0)), ["7", "8"]);
    assert_eq!(
        texts(found.column(OWN)),
        [r#"{"key":7,"fp":1}"#, r#"{"key":8,"fp":4}"#]
    );
    // A column whose own name has a dot comes first.
    assert_eq!(texts(found.column(OWN + 1)), ["2", "4"]);
    for (new, column, parts) in [
        ("nested.parquet", "meta", ["\"meta\"", "nested or repeated"]),
        (
            "nested.parquet",
            "meta.none",
            ["(meta.none, or fp)", "meta.inner.url"],
        ),
        (
            "nested.jsonl",
            "meta.none",
            ["(meta.none, or fp)", "--text-column"],
        ),
    ] {
        let new = dir.at(new);
        dedup(&format!(
            "run {new} --text-column {column} --decisions {output}"
        ))
        .fails(65, &parts);
    }
}

/// A column whose name has a dot, beside a structure: of two that are written the same, the column counts.
#[test]
fn names_of_columns_may_have_dots() {
    let dir = Dir::new();
    let same = || strings([text(8), text(8)]);
    let in_structure = |name: &str| -> ArrayRef {
        let field = Field::new(name, DataType::Utf8, true);
        Arc::new(StructArray::from(vec![(Arc::new(field), same())]))
    };
    let write = |name: &str| {
        let columns = vec![
            ("id", strings(["a", "b"])),
            ("m", in_structure(name)),
            ("m.t", strings([text(0), text(4)])),
        ];
        write_parquet(dir.join("day.parquet"), columns);
    };
    let kept = |column: &str| {
        let (new, output) = (dir.at("day.parquet"), dir.at("o.parquet"));
        dedup_ok(&format!(
            "run {new} --text-column {column} --columns m.t --decisions {output} --overwrite"
        ));
        let decided = rows(&output);
        assert_eq!(texts(decided.column(OWN)), [text(0), text(4)]);
        decided.column(1).as_boolean().true_count()
    };
    write("t");
    assert_eq!(kept("m.t"), 2);
    write("u.v");
    assert_eq!((kept("m.t"), kept("m.u.v")), (2, 1));
}

#[test]
fn texts_with_control_characters_have_columns() {
    let dir = Dir::new();
    let (new, output) = (dir.at("d.jsonl"), dir.at("o.jsonl"));
    fs::write(
        &new,
        "{\"id\":\"a\",\"text\":\"one two three four five\",\"url\":\"u\"}\n\
         {\"id\":\"b\",\"text\":\"six\tseven eight nine ten\",\"url\":\"v\"}\n",
    )
    .unwrap();
    dedup_ok(&format!("run {new} --decisions {output} --columns url"));
    let decisions = fs::read_to_string(&output).unwrap();
    assert!(decisions.contains("\"url\":\"v\""), "{decisions}");
}

#[test]
fn long_values_of_columns_are_sorted_on_the_disk() {
    let dir = Dir::new();
    let (new, output) = (dir.at("d.parquet"), dir.at("o.parquet"));
    let count = 160;
    let id = |number: i64| number * 79 % 161;
    let long = |number: i64| format!("{number} {}", "x".repeat(1 << 20));
    let columns = vec![
        ("id", numbers((0..count).map(id))),
        ("fp", numbers((0..count).map(fingerprint))),
        ("long", strings((0..count).map(long))),
    ];
    write_parquet_in_groups(&new, columns, 10);
    dedup_ok(&format!(
        "run {new} -k 0 --decisions {output} --columns long --memory-limit 150MiB --threads 2"
    ));
    let mut lengths = Vec::new();
    for batch in read_parquet(&output) {
        let long = batch.column_by_name("long").unwrap().as_string::<i32>();
        lengths.extend(long.iter().map(|long| long.unwrap().len()));
    }
    assert_eq!(lengths.len(), count as usize);
    assert!(lengths.iter().all(|length| *length > 1 << 20));
}

#[test]
fn several_text_columns_are_joined() {
    let dir = Dir::new();
    let rows = [
        ("a", "a title", "one two three four five six"),
        ("b", "a title", "one two three four five six"),
        ("c", "another", "one two three four five six"),
    ];
    let column = |of: fn(&(&'static str, &'static str, &'static str)) -> &'static str| {
        strings(rows.iter().map(of))
    };
    write_parquet(
        dir.join("d.parquet"),
        vec![
            ("id", column(|row| row.0)),
            ("title", column(|row| row.1)),
            ("body", column(|row| row.2)),
            (
                "joined",
                strings(rows.map(|row| format!("{}\n{}", row.1, row.2))),
            ),
        ],
    );
    let lines = rows.map(|(id, title, body)| {
        let of_page = serde_json::json!({ "title": title, "body": body });
        serde_json::json!({ "id": id, "page": of_page, "title": title, "body": body }).to_string()
    });
    std::fs::write(dir.join("d.jsonl"), lines.join("\n")).unwrap();
    let csv: Vec<String> = rows
        .iter()
        .map(|(id, title, body)| format!("{id},{title},{body}"))
        .collect();
    std::fs::write(
        dir.join("d.csv"),
        format!("id,title,body\n{}\n", csv.join("\n")),
    )
    .unwrap();
    let fingerprints = |file: &str, columns: &str| {
        let output = dir.at("fp.parquet");
        let file = dir.at(file);
        dedup_ok(&format!(
            "fingerprint {file} --text-column {columns} -o {output}"
        ));
        std::fs::read(&output).unwrap()
    };
    let expected = fingerprints("d.parquet", "joined");
    assert_ne!(expected, fingerprints("d.parquet", "body"));
    for (file, columns) in [
        ("d.parquet", "title,body"),
        ("d.jsonl", "title,body"),
        ("d.jsonl", "page.title,page.body"),
        ("d.csv", "title,body"),
    ] {
        assert_eq!(fingerprints(file, columns), expected, "{file} {columns}");
    }
    // Also where texts decide.
    let decided = |columns: &str| {
        let (day, output) = (dir.at("d.jsonl"), dir.at("decisions.csv"));
        let run = format!("run {day} --decisions {output} --text-column {columns} --json");
        dedup_json(&run)["decisions"]["kept"].clone()
    };
    assert_eq!(
        (decided("title,body"), decided("body")),
        (2.into(), 1.into())
    );
    for (columns, parts) in [
        (
            "title,none",
            [
                "title,none",
                "its columns are body, id, page, title, page.body, page.title",
            ],
        ),
        ("text", ["(text, or fp)", "page.body"]),
    ] {
        let run = format!(
            "run {} --text-column {columns} -o {}",
            dir.at("d.jsonl"),
            dir.at("o.csv")
        );
        dedup(&run).fails(65, &parts);
    }
}

#[test]
fn an_archive_remembers_the_columns_of_its_first_day() {
    let dir = Dir::new();
    let (archive, output) = (dir.at("archive"), dir.at("pairs.csv"));
    let write = |name: &str, column: &str| {
        let line = |id: &str| {
            format!(
                "{{\"key\": \"{id}\", \"page\": {{\"{column}\": \"{id} two three four five six\"}}}}\n"
            )
        };
        std::fs::write(dir.join(name), line("a") + &line("b")).unwrap();
        dir.at(name)
    };
    let (first, second) = (write("1.jsonl", "body"), write("2.jsonl", "body"));
    let runs = || dedup_json(&format!("archive info {archive} --json"))["runs"].clone();
    let run = |new: &str, day: &str, options: &str| {
        dedup(&format!(
            "run {new} --base {archive} --append --day {day} -o {output} {options} --json"
        ))
    };
    let columns = "--id-column key --text-column page.body";
    let append = format!("archive append {archive} --input {first} --day 2026-01-01");
    let night = format!("run {first} --base {archive} --append --day 2026-01-01 -o {output}");
    for (of_archive, append, of_day) in [
        ("", &append, columns),
        ("", &night, columns),
        (columns, &night, ""),
    ] {
        let _ = std::fs::remove_dir_all(&archive);
        dedup_ok(&format!("archive create {archive} {of_archive}"));
        dedup_ok(&format!("{append} {of_day}"));
        assert_eq!(runs()["id_column"], "key");
        assert_eq!(runs()["text_column"], "page.body");
        assert_eq!(run(&second, "2026-01-02", "").ok().json()["hits"], 2);
    }
    // A rerun of the first day needs no options, either.
    assert_eq!(
        run(&first, "2026-01-01", "").ok().json()["commit"],
        "already_there"
    );
    // The columns of a further day are not recorded.
    let third = write("3.jsonl", "text");
    run(&third, "2026-01-03", "--text-column page.text").ok();
    assert_eq!(runs()["text_column"], "page.body");
    run(&third, "2026-01-04", "").fails(65, &["page.text", "--text-column"]);
    // Files without these columns are read as without them.
    let fingerprints = dir.at("fp.parquet");
    write_fingerprints(&fingerprints, &[("x".into(), 1)]);
    dedup(&format!("run {fingerprints} --base {archive} -o {output}"))
        .fails(65, &["these have none", "--sketch 256"]);
    // A batch without documents is refused, however it is appended.
    std::fs::write(dir.join("empty.jsonl"), "").unwrap();
    let append = format!(
        "archive append {archive} --input {} --day 2026-01-05",
        dir.at("empty.jsonl")
    );
    dedup(&append).fails(65, &["no documents", "--allow-empty"]);
    dedup_ok(&format!("{append} --allow-empty"));
}
