//! Tests of `explain`, `tune` and `sql`.

use std::fs;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray};

use crate::helpers::support::*;

const FOX: &str = "The quick brown fox jumps over the lazy dog while it rains";
const RED: &str = "The quick red fox jumped over the lazy dog while it rains";

#[test]
fn explain_takes_ids_files_and_texts() {
    let dir = Dir::new();
    write_documents(
        dir.join("documents.parquet"),
        &[("fox", FOX), ("red", RED), ("empty", "404")],
    );
    fs::write(dir.join("fox.txt"), FOX).unwrap();
    let documents = dir.at("documents.parquet");
    let file = dir.at("fox.txt");
    let json = |a: &str, b: &str, options: &[&str]| {
        let arguments = ["explain", a, b, "--json"]
            .into_iter()
            .chain(options.iter().copied());
        dedup_job(arguments).ok().json()
    };
    let ids = json("fox", "red", &["--documents", &documents]);
    let texts = json(FOX, RED, &[]);
    let mixed = json(&file, RED, &["--documents", &documents]);
    for other in [&texts, &mixed] {
        for field in [
            "distance",
            "differing_bits",
            "shared",
            "only_first",
            "similarity",
            "blocks",
        ] {
            assert_eq!(ids[field], other[field], "{field}");
        }
    }
    assert_eq!(ids["texts"][0]["from"], "document fox");
    assert_eq!(texts["texts"][0]["from"], "the text given");
    assert_eq!(mixed["texts"][0]["from"], format!("file {file}"));

    // The explanation is consistent, and agrees with a run.
    let bits = |at: usize| {
        u64::from_str_radix(ids["texts"][at]["fingerprint"].as_str().unwrap(), 2).unwrap()
    };
    let difference = bits(0) ^ bits(1);
    assert_eq!(ids["distance"], difference.count_ones());
    let listed: u64 = ids["differing_bits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bit| 1u64 << bit.as_u64().unwrap())
        .sum();
    assert_eq!(listed, difference);
    let archive = dir.archive("archive", "--profile paper");
    let output = dir.at("hits.parquet");
    dedup_ok(&format!(
        "run --new {documents} --base {archive} -k 16 --output {output}"
    ));
    let hits = read_hits(&output);
    assert_eq!(hits.len(), 1);
    assert_eq!(hits[0].2.unsigned_abs(), difference.count_ones());
    assert_eq!(ids["only_first"][0]["feature"], "brown");
    assert_eq!(ids["only_second"][1]["feature"], "red");
    assert_eq!(
        ids["shared"][0],
        serde_json::json!({ "feature": "the", "weights": [362, 362] })
    );

    let line = [
        "explain",
        "fox",
        "red",
        "--documents",
        &documents,
        "-k",
        "16",
        "--base",
        &archive,
    ];
    let shown = dedup_job(line).ok();
    let verbose = dedup_job(line.iter().chain(&["-v"])).ok();
    for part in [
        "document fox",
        "found: the fingerprints differ in ",
        "a pair at k = 16",
        "jaccard 0.3",
        "\"brown\" 256",
        "both: \"the\" 362",
    ] {
        assert!(shown.stdout.contains(part), "{part} in {}", shown.stdout);
        assert!(verbose.stdout.contains(part), "{part} in {verbose:?}");
    }
    let blocks = "blocks of the design ";
    assert!(!shown.stdout.contains(blocks) && verbose.stdout.contains(blocks));
    let missed = dedup_job([
        "explain",
        "fox",
        "red",
        "--documents",
        &documents,
        "-k",
        "0",
    ])
    .ok();
    assert!(
        missed
            .stdout
            .contains("missed: the fingerprints differ in ")
            && missed.stdout.contains("not a pair at k = 0"),
        "{}",
        missed.stdout
    );
    let none = dedup_job(["explain", "fox", "empty", "--documents", &documents]).ok();
    assert!(none.stdout.contains("too few features"), "{}", none.stdout);
    dedup_job(["explain", "fox", "wolf", "--documents", &documents])
        .fails(64, &["\"wolf\"", "documents.parquet"]);
    dedup_job(["explain", "a", "b", "--base", &archive, "--weight", "set"]).fails(78, &["weight"]);
    dedup_job(["explain", "a", "b", "--design", "halves", "-k", "9"]).fails(64, &["halves"]);
    dedup_job(["explain", "a"]).fails(64, &["<B>"]);
}

/// Explanations follow the weights, features and folding of the spec.
#[test]
fn explain_follows_the_spec() {
    let json = |options: &[&str]| {
        let arguments = ["explain", FOX, RED, "--json"]
            .into_iter()
            .chain(options.iter().copied());
        dedup_job(arguments).ok().json()
    };
    assert_eq!(
        json(&["--normalize", "as-is"])["shared"][0]["feature"],
        "The"
    );
    let shingles = json(&["--tokenizer", "shingles-2", "--top", "3"]);
    assert_eq!(shingles["shared"].as_array().unwrap().len(), 3);
    assert_eq!(shingles["only_first"][0]["feature"], "brown fox");
    assert_eq!(json(&["--weight", "set"])["shared"][0]["weights"][0], 1);
}

#[test]
fn tune_counts_what_a_run_would_find() {
    let dir = Dir::new();
    let mut random = numbers_below(3);
    let mut documents = Vec::new();
    for number in 0..40 {
        let words: Vec<String> = (0..100).map(|_| format!("w{}", random(3000))).collect();
        for edits in [0, 1, 4, 12] {
            let mut words = words.clone();
            for edit in 0..edits {
                words[(edit * 8) % 100] = format!("edit{}", random(3000));
            }
            documents.push((format!("{number}/{edits}"), words.join(" ")));
        }
    }
    documents.push(("error".into(), "404 Not Found".into()));
    let path = dir.at("documents.parquet");
    write_texts(&path, &documents, 20);
    let tune = format!("tune {path} --weight sqrt-tf");
    let tuned = dedup_json(&format!("{tune} --json"));
    assert_eq!(tuned["documents"], documents.len());
    assert_eq!(tuned["sampled"], documents.len());
    assert_eq!(tuned["without_fingerprint"], 1);
    let archive = dir.archive("archive", "--profile paper");
    let shingles = |text: &str| -> std::collections::BTreeSet<Vec<String>> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        words.windows(3).map(<[String]>::to_vec).collect()
    };
    let mut wanted = 0;
    let mut wanted_of: std::collections::BTreeMap<&str, usize> = Default::default();
    for (at, (id, a)) in documents.iter().enumerate() {
        for (other, b) in &documents[..at] {
            let (a, b) = (shingles(a), shingles(b));
            let alike = a.intersection(&b).count() as f64 / a.union(&b).count() as f64;
            if alike >= 0.8 {
                wanted += 1;
                *wanted_of.entry(id).or_default() += 1;
                *wanted_of.entry(other).or_default() += 1;
            }
        }
    }
    assert_eq!(tuned["wanted"], wanted);
    assert_eq!(tuned["documents_wanted"], wanted_of.len());
    assert!(wanted > 40);
    for k in [0, 3, 8, 16] {
        let output = dir.at("hits.parquet");
        dedup_ok(&format!(
            "run --new {path} --base {archive} -k {k} --output {output}"
        ));
        let at = &tuned["distances"][k];
        assert_eq!(at["max_distance"], k);
        assert_eq!(at["pairs"], read_hits(&output).len(), "k = {k}");
        dedup_ok(&format!(
            "run --new {path} --base {archive} -k {k} --verify jaccard --output {output} --quiet"
        ));
        // The mean of the documents' shares.
        let mut recalled = 0.0;
        for batch in read_parquet(&output) {
            for column in ["new_id", "base_id"] {
                let ids = texts(batch.column_by_name(column).unwrap());
                recalled += ids
                    .iter()
                    .map(|id| 1.0 / wanted_of[&**id] as f64)
                    .sum::<f64>();
            }
        }
        let recall = recalled / wanted_of.len() as f64;
        assert!(
            (at["recall"].as_f64().unwrap() - recall).abs() < 1e-9,
            "k = {k}"
        );
    }
    // The sample does not depend on the number of threads.
    let sample = |threads: u32| {
        let ran = dedup_ok(&format!("{tune} --sample 50 --threads {threads} --json"));
        ran.json()
    };
    assert_eq!(sample(1), sample(5));
    assert_eq!(sample(1)["sampled"], 50);
    let shown = dedup_ok(&tune).stdout;
    assert!(
        shown.contains("recommended: ") && shown.contains("with 95 % confidence"),
        "{shown}"
    );
    let without = dedup_ok(&format!("{tune} --sketch 0")).stdout;
    assert!(without.contains("--verify jaccard\n"), "{without}");
    // A run that verifies by sketches keeps as many pairs as `tune` predicts.
    for (number, bits) in [64, 128, 256].into_iter().enumerate() {
        let sketched = dir.at(&format!("sketched-{bits}"));
        dedup_ok(&format!(
            "archive create --profile paper {sketched} --sketch {bits}"
        ));
        for k in [3, 8] {
            let at = &tuned["distances"][k]["sketches"][number];
            assert_eq!(at["bits"], bits);
            let least = &at["min_similarity"];
            let output = dir.at("hits.parquet");
            let line = format!("run --new {path} --base {sketched} -k {k} --output {output}");
            let line = format!("{line} --verify sketch --min-similarity {least} --json");
            let summary = dedup_json(&line);
            assert_eq!(summary["hits"], at["pairs"], "{bits}, {k}, {least}");
        }
    }
    dedup(&format!("tune {path} --min-similarity 0.2")).fails(64, &["0.5 and 1"]);
    dedup("tune").fails(64, &["documents are needed"]);
}

/// Without options of the spec, `tune` compares specs. The commands that it prints can be run, and
/// make an archive with the best spec.
#[test]
fn tune_compares_specs_and_prints_commands() {
    let dir = Dir::new();
    let mut documents = Vec::new();
    for number in 0..30 {
        let words: Vec<String> = (0..120)
            .map(|word| format!("w{}", number * 1000 + word * word % 97))
            .collect();
        let text = words.join(" the ");
        documents.push((format!("{number}/a"), text.clone()));
        documents.push((
            format!("{number}/b"),
            text.replace("w1 ", "other ") + " end",
        ));
        // A page from a template, which differs from the others in one name.
        let template: Vec<String> = (0..120).map(|word| format!("t{word}")).collect();
        documents.push((
            format!("{number}/c"),
            format!("{} name{number}", template.join(" ")),
        ));
    }
    let path = dir.at("documents.parquet");
    write_texts(&path, &documents, 20);
    let tune = format!("tune {path} --archive-size 100000000");
    let tuned = dedup_json(&format!("{tune} --json"));
    let compared = tuned["compared"].as_array().unwrap();
    assert_eq!(compared.len(), 12);
    for each in compared {
        let best = &each["best"];
        assert!(
            best.is_null() || best["verified"]["f1"].as_f64().unwrap() > 0.5,
            "{each}"
        );
        assert_eq!(each["learnt"], each["spec"]["idf"].is_string());
    }
    let quarter = dedup_json(&format!("{tune} --idf-power 1/4 --json"));
    assert_eq!(quarter["compared"][1]["spec"]["idf_power"], "1/4");
    // An earlier name of the option still works, also in a configuration file.
    std::fs::write(dir.join("job.toml"), "[tune]\narchive-size = 100000000\n").unwrap();
    let config = dir.at("job.toml");
    let earlier = dedup(&format!("tune {path} --config {config} --json"));
    assert_eq!(earlier.ok().json(), tuned);
    let names = &tuned["differ_in_a_name"];
    assert!(names["part"].as_u64().unwrap() > 200, "{names}");
    let shown = dedup_ok(&tune).stdout;
    assert!(
        shown.contains("the same words but for one or two names"),
        "{shown}"
    );
    // Runs the printed commands in the directory of the test.
    let commands: Vec<&str> = shown
        .lines()
        .filter_map(|line| line.strip_prefix("  dedup-job "))
        .collect();
    assert!((2..=3).contains(&commands.len()), "{shown}");
    assert_eq!(tuned["commands"].as_array().unwrap().len(), commands.len());
    for line in commands {
        let words = line.split(' ');
        let output = command().args(words).current_dir(dir.join("")).output();
        Ran::of(output.unwrap()).ok();
    }
    let archive = dir.at("archive");
    let info = dedup_json(&format!("archive info {archive} --json"));
    let digest_free = |spec: &serde_json::Value| {
        let mut spec = spec.clone();
        spec["idf"] = spec["idf"].is_string().into();
        // The printed command makes a sharp archive, whose sketches and short texts the measured spec need not have.
        spec.as_object_mut().unwrap().remove("sketch");
        for field in ["short_texts", "template"] {
            spec.as_object_mut().unwrap().remove(field);
        }
        spec
    };
    assert_eq!(digest_free(&info["spec"]), digest_free(&tuned["spec"]));
}

/// A thousand copies of one page are one document, and pages of one template are noticed.
#[test]
fn tune_collapses_equal_texts_and_notices_templates() {
    let dir = Dir::new();
    let mut lines = Vec::new();
    let mut add = |host: &str, text: String| {
        let url = format!("https://{host}.example/{}", lines.len());
        lines.push(serde_json::json!({ "id": lines.len(), "url": url, "text": text }).to_string());
    };
    let words = |of: &str, count: usize| -> String {
        (0..count).map(|word| format!("{of}{word} ")).collect()
    };
    (0..1000).for_each(|_| add("copies", words("c", 200)));
    for page in 0..50 {
        add(
            "shop",
            words("frame", 600) + &words(&format!("product{page}x"), 12),
        );
        add("news", words(&format!("article{page}x"), 300));
    }
    std::fs::write(dir.join("d.jsonl"), lines.join("\n")).unwrap();
    let tune = format!("tune {}", dir.at("d.jsonl"));
    let tuned = dedup_json(&format!("{tune} --json"));
    assert_eq!(
        (&tuned["sampled"], &tuned["copies"]),
        (&101.into(), &999.into())
    );
    let shop = serde_json::json!([{ "source": "shop.example", "pages": 50, "alike": 50 }]);
    assert_eq!(tuned["alike_sources"], shop);
    let shown = dedup_ok(&tune).stdout;
    assert!(
        shown.contains("50 of 50 pages of shop.example differ"),
        "{shown}"
    );
    assert!(
        shown.contains("1 groups of near-duplicates are few"),
        "{shown}"
    );
    // Without near-duplicates, the defaults are recommended.
    std::fs::write(
        dir.join("d.jsonl"),
        lines[1001..]
            .iter()
            .step_by(2)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n"),
    )
    .unwrap();
    let tuned = dedup_json(&format!("{tune} --json"));
    assert_eq!(tuned["documents_wanted"], 0);
    assert_eq!(
        tuned["advice"],
        serde_json::json!({ "profile": "sharp", "best": null })
    );
    assert_eq!(tuned["commands"][0], "dedup-job archive create archive/");
}

/// The SQL functions give the same fingerprints and distances as the job.
#[test]
fn sql_has_the_functions_of_the_job() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate pages --output {data} --new 200 --base 200"
    ));
    let fingerprints = dir.at("fp.parquet");
    dedup_ok(&format!(
        "fingerprint --input {data}/day.parquet --output {fingerprints}"
    ));
    let sql = |query: &str, json: bool| {
        let (pages, made) = (
            format!("pages={data}/day.parquet"),
            format!("made={fingerprints}"),
        );
        let mut line = vec!["sql", query, "--table", &pages, "--table", &made];
        line.extend(json.then_some("--json"));
        dedup_job(line)
    };
    let same = sql(
        "select count(*) as n, sum(case when simhash(text) is not distinct from fp then 1 else 0 end) as same \
         from pages join made on pages.id = made.id",
        true,
    );
    assert_eq!(
        same.ok().json(),
        serde_json::json!({ "n": 200, "same": 200 })
    );
    let pairs = sql(
        "select count(*) as n from made a join made b on a.id < b.id and hamming_distance(a.fp, b.fp) <= 3",
        true,
    );
    let run = dedup(&format!(
        "run --new {fingerprints} --base {data}/archive --output {} --json",
        dir.at("hits.parquet")
    ));
    run.ok();
    let within = read_hits(dir.join("hits.parquet"))
        .into_iter()
        .filter(|hit| hit.1.starts_with("new/"))
        .count();
    assert!(within > 0);
    assert_eq!(pairs.ok().json()["n"], within);
    let shown = sql("select hamming_distance(5, 6) as distance", false).ok();
    assert!(shown.stdout.contains("| 2        |"), "{}", shown.stdout);
    sql("select nothing from pages", false).fails(64, &["nothing"]);
    sql("drop table pages", false).fails(64, &["DDL"]);
    dedup("sql select --table pages").fails(64, &["NAME=PATH"]);
    dedup("sql").fails(64, &["a query"]);
}

/// Texts print as text, and bytes that are not UTF-8 as replacement characters.
#[test]
fn sql_prints_texts_as_text() {
    let dir = Dir::new();
    let texts: ArrayRef = Arc::new(BinaryArray::from_opt_vec(vec![
        Some("近似 pages".as_bytes()),
        Some(b"near \xff pages".as_slice()),
        None,
    ]));
    let columns = vec![("id", strings(["a", "b", "c"])), ("text", texts)];
    write_parquet(dir.join("documents.parquet"), columns);
    let table = format!("t={}", dir.at("documents.parquet"));
    let query = "select * from t order by id";
    let json = dedup_job(["sql", query, "--table", &table, "--json"]).ok();
    let rows: Vec<serde_json::Value> = json
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        rows,
        [
            serde_json::json!({ "id": "a", "text": "近似 pages" }),
            serde_json::json!({ "id": "b", "text": "near \u{fffd} pages" }),
            serde_json::json!({ "id": "c" }),
        ]
    );
    let shown = dedup_job(["sql", query, "--table", &table]).ok().stdout;
    assert!(shown.contains("近似 pages"), "{shown}");
    // Queries of earlier versions cast the column themselves.
    let cast = "select cast(text as varchar) as text from t where text like '近似%'";
    let cast = dedup_job(["sql", cast, "--table", &table, "--json"]).ok();
    assert_eq!(cast.json(), serde_json::json!({ "text": "近似 pages" }));
}

/// `sql` has no options that name columns, so its errors name none.
#[test]
fn sql_names_no_options_that_it_lacks() {
    let dir = Dir::new();
    for (row, missing) in [
        ("{\"key\":\"x\",\"text\":\"y\"}\n", "no id column"),
        (
            "{\"id\":\"x\",\"page\":\"y\"}\n",
            "no text or fingerprint column",
        ),
    ] {
        fs::write(dir.join("documents.jsonl"), row).unwrap();
        let table = format!("t={}", dir.at("documents.jsonl"));
        let ran = dedup_job(["sql", "select 1 from t", "--table", &table]);
        let ran = ran.fails(
            65,
            &[missing, "only these names are found", "documents.jsonl"],
        );
        assert!(!ran.stderr.contains("-column"), "{}", ran.stderr);
    }
}

#[test]
fn the_history_of_a_document_has_its_captures() {
    let dir = Dir::new();
    let archive = dir.archive("archive", "");
    let day = |day: u32, documents: &[(&str, &str)]| {
        let new = dir.at("new.jsonl");
        let lines = documents.iter().map(|(id, of)| {
            let words: Vec<String> = (0..80).map(|word| format!("{of}{word}")).collect();
            serde_json::json!({ "id": id, "text": words.join(" ") }).to_string()
        });
        fs::write(&new, lines.collect::<Vec<_>>().join("\n")).unwrap();
        dedup_ok(&format!(
            "run {new} --base {archive} --append --day 2026-03-0{day} -o {archive}.csv"
        ));
    };
    day(1, &[("page", "first"), ("other", "x")]);
    // The same content: dropped, as a duplicate of the first capture.
    day(2, &[("page", "first")]);
    day(3, &[("page", "second"), ("more", "y")]);
    let history = dedup_json(&format!("history {archive} page --json"));
    let captures = history["captures"].as_array().unwrap();
    let seen: Vec<_> = captures
        .iter()
        .map(|capture| (capture["day"].as_str().unwrap(), capture["kept"].as_bool()))
        .collect();
    assert_eq!(
        seen,
        [
            ("2026-03-01", Some(true)),
            ("2026-03-02", Some(false)),
            ("2026-03-03", Some(true)),
        ]
    );
    assert!(captures[0]["distance"].is_null());
    assert_eq!(
        (&captures[1]["distance"], &captures[1]["similarity"]),
        (&0.into(), &1.0.into())
    );
    assert!(captures[2]["distance"].as_u64().unwrap() > 7);
    assert!(captures[2]["similarity"].as_f64().unwrap() < 0.3);
    let text = dedup_ok(&format!("history {archive} page")).stdout;
    assert!(
        text.contains("3 captures of page") && text.contains("2026-03-02"),
        "{text}"
    );
    let none = dedup_ok(&format!("history {archive} nobody")).stdout;
    assert!(none.contains("no document has the id nobody"), "{none}");
}
