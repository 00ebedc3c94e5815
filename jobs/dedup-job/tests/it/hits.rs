//! Tests of pairs: a run finds the expected ones, in order, as the same bytes for any number of
//! threads and files.

use std::fs;

use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use testkit::oracle;

use crate::helpers::support::*;

#[test]
fn generated_pages_give_the_expected_hits() {
    let dir = Dir::new();
    let data = dir.at("data");
    let made = dedup_json(&format!(
        "generate pages --output {data} --new 600 --base 4000 --json"
    ));
    assert!(made["expected"].as_u64().unwrap() > 100);
    let hits = dir.at("hits.parquet");
    let summary = dedup(&format!(
        "run --new {data}/day.parquet --base {data}/archive --day 2026-01-31 --output {hits} --json"
    ));
    let summary = summary.ok().json();
    assert_eq!(
        fs::read(&hits).unwrap(),
        fs::read(format!("{data}/expected.parquet")).unwrap()
    );
    assert_eq!(summary["hits"], made["expected"]);
    assert_eq!(summary["new"]["documents"], 600);
    assert!(summary["new"]["without_fingerprint"].as_u64().unwrap() > 0);
    let rows = read_hits(&hits);
    assert!(rows.is_sorted_by_key(|hit| (hit.0.clone(), hit.2, hit.1.clone(), hit.3)));
    assert!(
        rows.iter().any(|hit| hit.1.starts_with("new/")),
        "pairs inside the day"
    );
    assert!(
        rows.iter().any(|hit| hit.1.starts_with("archive/")),
        "pairs with the archive"
    );
}

#[test]
fn generated_fingerprints_give_the_expected_hits() {
    for (k, ids) in [(0, "string"), (3, "bigint"), (5, "string"), (7, "bigint")] {
        let dir = Dir::new();
        let data = dir.at("data");
        dedup_ok(&format!(
            "generate fingerprints --output {data} --new 3000 --base 40000 -k {k} --id-type {ids} --seed 9"
        ));
        let hits = dir.at("hits.parquet");
        dedup_ok(&format!(
            "run --new {data}/day.parquet --base {data}/archive --day 2026-01-31 -k {k} --output {hits}"
        ));
        assert_eq!(
            fs::read(&hits).unwrap(),
            fs::read(format!("{data}/expected.parquet")).unwrap(),
            "k = {k}"
        );
        assert_eq!(read_hits(&hits).len(), 300);
    }
}

#[test]
fn generation_is_fixed_by_its_seed() {
    let dir = Dir::new();
    for (name, seed) in [("a", 5), ("b", 5), ("c", 6)] {
        dedup_ok(&format!(
            "generate pages --output {} --new 50 --base 50 --seed {seed}",
            dir.at(name)
        ));
    }
    let day = |name: &str| fs::read(dir.join(&format!("{name}/day.parquet"))).unwrap();
    assert!(day("a") == day("b") && day("a") != day("c"));
}

/// Writes a batch and an archive of ready fingerprints, many of them equal or close, to this many
/// files each. Returns the paths of the batch and of the archive.
fn crowded(dir: &Dir, history_files: usize, day_files: usize) -> (String, String) {
    let value = |n: u64| simhash::hash::murmur3_low64(&(n / 5).to_le_bytes(), 1) ^ (1 << (n % 40));
    let old: Vec<(String, u64)> = (0..20_000)
        .map(|n| (format!("old-{n}"), value(n)))
        .collect();
    let new: Vec<(String, u64)> = (0..3_000)
        .map(|n| (format!("new-{n}"), value(7 * n) ^ (n % 3)))
        .collect();
    let base = dir.at(&format!("base-{history_files}"));
    fs::create_dir_all(&base).unwrap();
    for (at, part) in old.chunks(old.len().div_ceil(history_files)).enumerate() {
        write_fingerprints(format!("{base}/part-{at}.parquet"), part);
    }
    let day = dir.at(&format!("day-{day_files}"));
    fs::create_dir_all(&day).unwrap();
    for (at, part) in new.chunks(new.len().div_ceil(day_files)).enumerate() {
        write_fingerprints(format!("{day}/part-{at}.parquet"), part);
    }
    (day, base)
}

#[test]
fn the_output_is_the_same_bytes_for_any_threads_and_files() {
    let dir = Dir::new();
    let mut outputs = Vec::new();
    for (history_files, day_files) in [(1, 1), (50, 1), (1, 17), (50, 17)] {
        let (day, base) = crowded(&dir, history_files, day_files);
        for threads in [1, 2, 7] {
            let hits = dir.at("hits.parquet");
            dedup_ok(&format!(
                "run --new {day} --base {base} --threads {threads} --output {hits}"
            ));
            outputs.push(fs::read(&hits).unwrap());
        }
    }
    assert!(read_hits(dir.join("hits.parquet")).len() > 1000);
    assert!(outputs.iter().all(|output| *output == outputs[0]));
    // With an archive as --base, base_day is set, and nothing else differs.
    let (day, base) = crowded(&dir, 1, 1);
    let archive = dir.archive("archive", "--profile paper");
    dedup_ok(&format!(
        "archive append {archive} --input {base} --day 2026-02-01"
    ));
    dedup_ok(&format!(
        "run --new {day} --base {archive} --output {}",
        dir.at("from-archive.parquet")
    ));
    let [plain, archived] = ["hits.parquet", "from-archive.parquet"].map(|name| dir.join(name));
    assert_eq!(read_pairs(plain), read_pairs(&archived));
    assert!(
        read_hits(archived)
            .iter()
            .all(|hit| hit.3.is_some() != hit.1.starts_with("new-"))
    );
}

#[test]
fn hits_equal_brute_force_for_every_design_and_k() {
    let dir = Dir::new();
    let (day, base) = crowded(&dir, 3, 2);
    let read = |path: &str| -> (Vec<String>, Vec<u64>) {
        let mut rows = (Vec::new(), Vec::new());
        for (path, _) in contents(path) {
            for batch in read_parquet(path) {
                rows.0.extend(texts(batch.column(0)));
                rows.1.extend(
                    batch
                        .column(1)
                        .as_primitive::<Int64Type>()
                        .values()
                        .iter()
                        .map(|f| f.cast_unsigned()),
                );
            }
        }
        rows
    };
    let ((new_ids, new), (old_ids, old)) = (read(&day), read(&base));
    for (k, design) in [
        (0, "blocks-1"),
        (2, "nested-3"),
        (3, "blocks-2"),
        (3, "choose-6-3"),
        (3, "halves"),
        (4, "exhaustive"),
        (5, "variants-4"),
        (7, "trie"),
        (8, "variants-6"),
        (9, "blocks-4"),
        (16, "blocks-4"),
    ] {
        for within in [true, false] {
            let flag = if within { "--within" } else { "--no-within" };
            let hits = dir.at("hits.parquet");
            dedup_ok(&format!(
                "run --new {day} --base {base} -k {k} --design {design} {flag} --output {hits}"
            ));
            let mut expected: Vec<(String, String, i32)> = oracle::pairs_within(&new, &old, k)
                .into_iter()
                .map(|(i, j, d)| (new_ids[i].clone(), old_ids[j].clone(), d.cast_signed()))
                .collect();
            if within {
                expected.extend(oracle::pairs_inside(&new, k).into_iter().map(|(i, j, d)| {
                    let (a, b) = (&new_ids[i], &new_ids[j]);
                    (a.max(b).clone(), a.min(b).clone(), d.cast_signed())
                }));
            }
            expected.sort_by(|a, b| (&a.0, a.2, &a.1).cmp(&(&b.0, b.2, &b.1)));
            let found = read_pairs(&hits);
            assert!(
                found == expected,
                "k = {k}, {design}, {flag}: {} of {}",
                found.len(),
                expected.len()
            );
        }
    }
}

#[test]
fn pairs_inside_the_day_name_the_smaller_id_as_base_and_the_day() {
    let dir = Dir::new();
    write_parquet(
        dir.join("day.parquet"),
        vec![("id", numbers([-5, 30, 7])), ("fp", numbers([1, 1, 3]))],
    );
    fs::create_dir(dir.join("base")).unwrap();
    let (day, base, hits) = (
        dir.at("day.parquet"),
        dir.at("base"),
        dir.at("hits.parquet"),
    );
    let row = |new: &str, base: &str, distance: i32, day: Option<i32>| {
        (new.to_owned(), base.to_owned(), distance, day)
    };
    dedup_ok(&format!("run --new {day} --base {base} --output {hits}"));
    assert_eq!(
        read_hits(&hits),
        [
            row("7", "-5", 1, None),
            row("30", "-5", 0, None),
            row("30", "7", 1, None)
        ]
    );
    dedup_ok(&format!(
        "run --new {day} --base {base} --day 1970-01-03 -k 0 --output {hits}"
    ));
    assert_eq!(read_hits(&hits), [row("30", "-5", 0, Some(2))]);
    dedup_ok(&format!(
        "run --new {day} --base {base} --no-within --output {hits}"
    ));
    assert!(read_hits(&hits).is_empty());
}

#[test]
fn days_of_plain_files_come_from_their_paths() {
    let dir = Dir::new();
    fs::create_dir_all(dir.join("base/day=1970-01-11")).unwrap();
    write_fingerprints(
        dir.join("base/day=1970-01-11/x.parquet"),
        &[("old".into(), 9)],
    );
    write_fingerprints(dir.join("day.parquet"), &[("new".into(), 8)]);
    dedup_ok(&format!(
        "run --new {} --base {} --output {}",
        dir.at("day.parquet"),
        dir.at("base"),
        dir.at("hits.parquet")
    ));
    assert_eq!(
        read_hits(dir.join("hits.parquet")),
        [("new".to_owned(), "old".to_owned(), 1, Some(10))]
    );
    // A pattern serves as well as a directory.
    let pattern = dir.at("base/*/x.parq*");
    dedup_ok(&format!(
        "run --new {} --base {pattern} --output {}",
        dir.at("day.parquet"),
        dir.at("again.parquet")
    ));
    assert_eq!(
        fs::read(dir.join("hits.parquet")).unwrap(),
        fs::read(dir.join("again.parquet")).unwrap()
    );
}

/// Fault 51: a run compares documents, not ids.
#[test]
fn one_row_per_pair_though_ids_repeat() {
    let dir = Dir::new();
    // Two documents have the id `a` and are a pair. Each pair of ids has one row, with the smallest
    // distance.
    write_parquet(
        dir.join("day.parquet"),
        vec![("id", strings(["a", "a", "b"])), ("fp", numbers([0, 1, 3]))],
    );
    write_fingerprints(
        dir.join("base.parquet"),
        &[("a".into(), 1), ("c".into(), 0)],
    );
    let run = |options: &str| {
        let ran = dedup(&format!(
            "run --new {} --base {} --output {} --json {options}",
            dir.at("day.parquet"),
            dir.at("base.parquet"),
            dir.at("hits.parquet")
        ));
        assert_eq!(ran.ok().json()["new"]["duplicate_ids"], 1);
        read_hits(dir.join("hits.parquet"))
    };
    let row = |new: &str, base: &str, distance: i32, day: Option<i32>| {
        (new.to_owned(), base.to_owned(), distance, day)
    };
    // A document of an earlier day with the same id is a pair like any other.
    assert_eq!(
        run("--day 1970-01-03"),
        [
            row("a", "a", 0, None),
            row("a", "c", 0, None),
            row("a", "a", 1, Some(2)),
            row("b", "a", 1, None),
            row("b", "a", 1, Some(2)),
            row("b", "c", 2, None)
        ]
    );
    // Without days, the pair of the two `a` of the batch and the pair of `a` with the base's `a`
    // share one row.
    assert_eq!(
        run(""),
        [
            row("a", "a", 0, None),
            row("a", "c", 0, None),
            row("b", "a", 1, None),
            row("b", "c", 2, None)
        ]
    );
    assert_eq!(
        run("--day 1970-01-03 --no-within"),
        [
            row("a", "a", 0, None),
            row("a", "c", 0, None),
            row("b", "a", 1, None),
            row("b", "c", 2, None)
        ]
    );
}

/// Fault 51: ten documents with one id and one text.
#[test]
fn documents_with_one_id_and_one_text_are_a_pair() {
    let dir = Dir::new();
    let page = "the same six words on every page";
    write_documents(dir.join("day.parquet"), &[("x", page); 10]);
    fs::create_dir(dir.join("base")).unwrap();
    let run = format!(
        "run --new {} --base {} --verify none --day 1970-01-03 --output {}",
        dir.at("day.parquet"),
        dir.at("base"),
        dir.at("hits.parquet")
    );
    for limit in ["", " --max-hits-per-document 1"] {
        let ran = dedup_ok(&format!("{run}{limit}"));
        assert!(ran.stdout.contains("9 repeated ids"), "{}", ran.stdout);
        assert_eq!(
            read_hits(dir.join("hits.parquet")),
            [("x".to_owned(), "x".to_owned(), 0, Some(2))]
        );
    }
}

/// Fault 51: so many documents with one id and one text that their pairs would be a billion.
#[test]
fn copies_with_one_id_stay_one_row() {
    let dir = Dir::new();
    let page = "the same six words on every page";
    write_documents(dir.join("day.parquet"), &vec![("x", page); 50_000]);
    fs::create_dir(dir.join("base")).unwrap();
    let run = format!(
        "run --new {} --base {} --verify jaccard --output {}",
        dir.at("day.parquet"),
        dir.at("base"),
        dir.at("hits.jsonl")
    );
    for limit in ["", " --max-hits-per-document 1"] {
        dedup_ok(&format!("{run}{limit}"));
        let row = "{\"new_id\":\"x\",\"base_id\":\"x\",\"distance\":0,\"base_day\":null,\"similarity\":1.0}\n";
        assert_eq!(fs::read_to_string(dir.join("hits.jsonl")).unwrap(), row);
    }
}

/// Fault 51: if many documents share ids, the pairs, and the nearest pairs, are those that brute
/// force finds.
#[test]
fn repeated_ids_equal_brute_force() {
    let dir = Dir::new();
    let value = |n: u64| simhash::hash::murmur3_low64(&(n / 20).to_le_bytes(), 1) ^ (1 << (n % 7));
    let rows: Vec<(String, u64)> = (0..600)
        .map(|n| (format!("id-{:02}", n * 7 % 50 / 4), value(n)))
        .collect();
    write_fingerprints(dir.join("day.parquet"), &rows);
    fs::create_dir(dir.join("base")).unwrap();
    let values: Vec<u64> = rows.iter().map(|row| row.1).collect();
    let mut nearest = std::collections::BTreeMap::new();
    for (i, j, distance) in oracle::pairs_inside(&values, 3) {
        let (a, b) = (&rows[i].0, &rows[j].0);
        let least = nearest
            .entry((a.max(b).clone(), a.min(b).clone()))
            .or_insert(distance);
        *least = distance.min(*least);
    }
    let mut expected: Vec<Hit> = nearest
        .into_iter()
        .map(|((new, base), distance)| (new, base, distance.cast_signed(), None))
        .collect();
    expected.sort_by(|a, b| (&a.0, a.2, &a.1).cmp(&(&b.0, b.2, &b.1)));
    assert!(expected.iter().any(|hit| hit.0 == hit.1));
    let hits = dir.at("hits.parquet");
    for threads in [1, 4] {
        let run = format!(
            "run --new {} --base {} --output {hits} --threads {threads}",
            dir.at("day.parquet"),
            dir.at("base")
        );
        dedup_ok(&run);
        assert_eq!(read_hits(&hits), expected);
        for limit in [1, 2, 5, 1000] {
            dedup_ok(&format!("{run} --max-hits-per-document {limit}"));
            let kept: Vec<_> = expected
                .chunk_by(|a, b| a.0 == b.0)
                .flat_map(|of_id| of_id.iter().take(limit))
                .cloned()
                .collect();
            assert_eq!(read_hits(&hits), kept, "{limit}");
        }
    }
}

/// Plain files may be unsorted, lack fingerprints in some rows, and have several row groups.
#[test]
fn nulls_row_groups_and_disorder_hide_no_hit() {
    let dir = Dir::new();
    let value = |n: u64| simhash::hash::murmur3_low64(&(n % 20_000).to_le_bytes(), 7);
    let old: Vec<Option<u64>> = (0..150_000)
        .map(|n| (n % 11 != 3 && n > 70_000 || n % 3 == 0).then(|| value(n)))
        .collect();
    let new: Vec<Option<u64>> = (0..300)
        .map(|n| (n % 7 != 2).then(|| value(60 * n) ^ (1 << (n % 64))))
        .collect();
    let write = |name: &str, rows: &[Option<u64>], group: usize| {
        let ids: Vec<String> = (0..rows.len()).map(|n| format!("{name}{n:06}")).collect();
        let values: arrow::array::Int64Array =
            rows.iter().map(|f| f.map(u64::cast_signed)).collect();
        let values: arrow::array::ArrayRef = std::sync::Arc::new(values);
        write_parquet_in_groups(
            dir.join(name),
            vec![("fp", values), ("id", strings(&ids))],
            group,
        );
    };
    write("old", &old, 40_000);
    write("new", &new, 100);
    std::fs::rename(dir.join("old"), dir.join("old.parquet")).unwrap();
    std::fs::rename(dir.join("new"), dir.join("new.parquet")).unwrap();
    let hits = dir.at("hits.parquet");
    dedup_ok(&format!(
        "run --new {} --base {} --no-within --output {hits}",
        dir.at("new.parquet"),
        dir.at("old.parquet")
    ));
    let present = |rows: &[Option<u64>]| -> (Vec<usize>, Vec<u64>) {
        rows.iter()
            .enumerate()
            .filter_map(|(n, f)| Some((n, (*f)?)))
            .unzip()
    };
    let ((new_rows, new), (old_rows, old)) = (present(&new), present(&old));
    let mut expected: Vec<_> = oracle::pairs_within(&new, &old, 3)
        .into_iter()
        .map(|(i, j, d)| {
            (
                format!("new{:06}", new_rows[i]),
                format!("old{:06}", old_rows[j]),
                d.cast_signed(),
            )
        })
        .collect();
    expected.sort_by(|a, b| (&a.0, a.2, &a.1).cmp(&(&b.0, b.2, &b.1)));
    let found = read_pairs(&hits);
    assert!(
        found == expected && found.len() > 500,
        "{} of {}",
        found.len(),
        expected.len()
    );
}

/// A page copied many times, in the batch and in the archive, gives every pair of copies.
#[test]
fn copies_by_the_thousand_give_every_pair() {
    let dir = Dir::new();
    let copies = |name: &str, count: usize| -> Vec<(String, u64)> {
        (0..count).map(|n| (format!("{name}{n}"), 42)).collect()
    };
    write_fingerprints(dir.join("day.parquet"), &copies("new", 300));
    write_fingerprints(dir.join("base.parquet"), &copies("old", 5000));
    let ran = dedup_ok(&format!(
        "run --new {} --base {} --output {} --json",
        dir.at("day.parquet"),
        dir.at("base.parquet"),
        dir.at("h.parquet")
    ));
    assert_eq!(ran.json()["hits"], 300 * 5000 + 300 * 299 / 2);
    assert_eq!(ran.json()["new"]["distinct_fingerprints"], 1);
}

#[test]
fn the_nearest_hits_of_each_document_are_kept() {
    let dir = Dir::new();
    let (new, base) = crowded(&dir, 7, 3);
    let run = |options: &str| {
        let hits = dir.at("hits.parquet");
        let line = format!("run --new {new} --base {base} --output {hits} --json {options}");
        (dedup_json(&line), read_hits(&hits))
    };
    let (summary, all) = run("");
    assert_eq!(summary["hits_left_out"], 0);
    for (limit, threads) in [(1, 2), (2, 1), (3, 7), (1000, 2)] {
        let (summary, kept) = run(&format!(
            "--max-hits-per-document {limit} --threads {threads}"
        ));
        let nearest: Vec<_> = all
            .chunk_by(|a, b| a.0 == b.0)
            .flat_map(|of_document| of_document.iter().take(limit))
            .cloned()
            .collect();
        assert!(
            kept == nearest,
            "{limit}: {} hits, not {}",
            kept.len(),
            nearest.len()
        );
        assert_eq!(summary["hits_left_out"], all.len() - nearest.len());
    }
    dedup(&format!(
        "run --new {new} --base {base} --max-hits-per-document 0"
    ))
    .fails(64, &["0"]);
}

/// Fault 31: pages copied many times on both sides. All pairs would be 2.5 billion.
#[test]
fn copies_on_both_sides_stay_linear_with_a_limit() {
    let dir = Dir::new();
    let copies = 50_000;
    let rows = |name: &str, more: u64| -> Vec<(String, u64)> {
        let equal = (0..copies).map(|n| (format!("{name}-{n:06}"), 77));
        equal.chain([(format!("{name}-other"), more)]).collect()
    };
    write_fingerprints(dir.join("new.parquet"), &rows("new", 76));
    std::fs::create_dir(dir.join("base")).unwrap();
    write_fingerprints(dir.join("base/a.parquet"), &rows("base", 79));
    let (new, base, hits) = (
        dir.at("new.parquet"),
        dir.at("base"),
        dir.at("hits.parquet"),
    );
    let line = format!(
        "run --new {new} --base {base} --output {hits} --max-hits-per-document 2 --json --memory-limit 256MiB"
    );
    let summary = dedup_json(&line);
    // Each document has 50,001 pairs with the archive. Within the batch, each copy has a pair with
    // each copy before it and one with the other document.
    let (n, within) = (copies, copies * (copies - 1) / 2 + copies);
    let pairs = (n + 1) * (n + 1) + within;
    let kept = read_hits(&hits);
    assert_eq!(kept.len(), 2 * (copies + 1));
    assert_eq!(summary["hits_left_out"], pairs - kept.len());
    let of = |id: &str| -> Vec<_> {
        kept.iter()
            .filter(|hit| hit.0 == id)
            .map(|hit| (hit.1.as_str(), hit.2))
            .collect()
    };
    assert_eq!(of("new-000000"), [("base-000000", 0), ("base-000001", 0)]);
    assert_eq!(of("new-000007"), [("base-000000", 0), ("base-000001", 0)]);
    assert_eq!(of("new-other"), [("base-000000", 1), ("base-000001", 1)]);
}

#[test]
fn little_memory_cuts_the_day_into_parts_and_finds_the_same() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate fingerprints --output {data} --new 200000 --base 150000 --seed 3 --id-type bigint"
    ));
    let run = format!("--new {data}/day.parquet --base {data}/archive --design choose-6-3");
    let limit = "--memory-limit 40MiB";
    let plan = dedup_json(&format!("plan {run} {limit} --json"));
    assert!(plan["designs"][0]["passes"].as_u64().unwrap() > 1);
    let hits = dir.at("hits.parquet");
    let summary = dedup_json(&format!(
        "run {run} {limit} --day 2026-01-31 --output {hits} --json"
    ));
    assert!(summary["passes"].as_u64().unwrap() > 1);
    assert!(fs::read(&hits).unwrap() == fs::read(format!("{data}/expected.parquet")).unwrap());
}

#[test]
fn pairs_that_do_not_fit_into_memory_are_sorted_on_the_disk() {
    let dir = Dir::new();
    let (new, whole, hits) = (
        dir.at("d.parquet"),
        dir.at("w.parquet"),
        dir.at("h.parquet"),
    );
    // Among 20,000 documents, 1,500 have the same fingerprint: 1.1 million pairs of ids of 36 bytes.
    let id = |number: i64| format!("{:036}", number.wrapping_mul(0x2545_f491_4f6c_dd1d) as u64);
    let fingerprint = |number: i64| match number % 13 {
        0 if number < 19_500 => 77,
        _ => number.wrapping_mul(0x1e37_79b9_7f4a_7c15),
    };
    let columns = vec![
        ("id", strings((0..20_000).map(id))),
        ("fp", numbers((0..20_000).map(fingerprint))),
    ];
    write_parquet_in_groups(&new, columns, 2000);
    dedup_ok(&format!(
        "run {new} -k 0 --output {whole} --memory-limit 2GiB"
    ));
    let rows: usize = read_parquet(&whole)
        .iter()
        .map(|batch| batch.num_rows())
        .sum();
    assert_eq!(rows, 1500 * 1499 / 2);
    let whole = fs::read(&whole).unwrap();
    for (threads, limit) in [(1, 40), (2, 40), (2, 64), (8, 40), (8, 100)] {
        let run = format!("run {new} -k 0 --output {hits} --threads {threads}");
        dedup_ok(&format!("{run} --memory-limit {limit}MiB"));
        assert!(fs::read(&hits).unwrap() == whole, "{threads} {limit}");
    }
}

/// Without --base, a run compares the batch with itself, and needs nothing but the documents.
#[test]
fn a_batch_alone() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate pages --output {data} --new 300 --base 300"
    ));
    let (alone, empty) = (dir.at("alone.parquet"), dir.at("empty"));
    let nothing = dir.at("nothing.parquet");
    std::fs::create_dir(&empty).unwrap();
    for options in [
        "",
        "-k 6 --max-hits-per-document 2",
        "-k 8 --verify jaccard",
    ] {
        let day = format!("{data}/day.parquet");
        let ran = dedup_ok(&format!("run {day} --output {alone} {options}"));
        assert!(!ran.stderr.contains("archive:"), "{}", ran.stderr);
        let run = format!("run --new {day} --base {empty} --output {nothing} {options}");
        dedup_ok(&run);
        assert!(std::fs::read(&alone).unwrap() == std::fs::read(&nothing).unwrap());
        assert!(read_parquet(&alone).iter().any(|rows| rows.num_rows() > 0));
    }
    // Documents on the command line replace those of a configuration file.
    let config = dir.at("run.toml");
    std::fs::write(&config, "[run]\nnew = [\"elsewhere.parquet\"]\n").unwrap();
    let day = format!("{data}/day.parquet");
    dedup_ok(&format!("run --config {config} {day} --output {alone}"));
    dedup(&format!("run {day} --new {day}")).fails(64, &["--new"]);
    dedup("run").fails(64, &["documents of the batch", "--new"]);
    dedup(&format!("run {day} --append --day 2026-01-01")).fails(64, &["--append needs --base"]);
    dedup(&format!("run {day} --no-within")).fails(64, &["--no-within needs --base"]);
}

/// The Parquet library decodes a dense selection of rows with those between them, whose pages must be there, too.
#[test]
fn dense_matches_with_pages_without_any_between_them_are_read() {
    let dir = Dir::new();
    let row = |prefix: &str, number: u64| (format!("{prefix}{number}"), number << 30);
    // A page of ids has 20,000 rows.
    let archived: Vec<_> = (0..100_000).map(|number| row("a", number)).collect();
    write_fingerprints(dir.join("base.parquet"), &archived);
    let matching = (0..10_000)
        .chain(70_000..80_000)
        .filter(|number| number % 2 == 0);
    let batch: Vec<_> = matching.map(|number| row("n", number)).collect();
    write_fingerprints(dir.join("new.parquet"), &batch);
    let (new, base, hits) = (
        dir.at("new.parquet"),
        dir.at("base.parquet"),
        dir.at("hits.parquet"),
    );
    dedup_ok(&format!(
        "run --new {new} --base {base} -k 0 --no-within --output {hits}"
    ));
    let found = read_hits(&hits);
    assert_eq!(found.len(), batch.len());
    for hit in found {
        assert_eq!(hit.0[1..], hit.1[1..]);
    }
}

#[test]
fn pairs_of_classes_have_one_row_for_each_document() {
    let dir = Dir::new();
    let (new, base, output) = (dir.at("new.csv"), dir.at("base.csv"), dir.at("o.csv"));
    // Fingerprints, and how many documents have each; those of `b` are near those of `a`, and those of `c` near none.
    let groups = [("a", 0_u64, 40), ("b", 3, 30), ("c", u64::MAX, 25)];
    let mut lines = String::from("id,fp\n");
    for (name, fingerprint, documents) in groups {
        for document in 0..documents {
            lines += &format!("{name}{document:02},{}\n", fingerprint.cast_signed());
        }
    }
    fs::write(&new, lines).unwrap();
    fs::write(&base, "id,fp\nx,1\ny,1\n").unwrap();
    let archive = dir.at("base.parquet");
    dedup_ok(&format!("fingerprint {base} --output {archive}"));
    let rows = |options: &str| -> Vec<(String, String, u32)> {
        dedup_ok(&format!(
            "run {new} --base {archive} --output {output} --overwrite {options}"
        ));
        let text = fs::read_to_string(&output).unwrap();
        let row = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            (
                fields[0].to_owned(),
                fields[1].to_owned(),
                fields[2].parse().unwrap(),
            )
        };
        text.lines().skip(1).map(row).collect()
    };
    let all = rows("");
    let within = 70 * 69 / 2 + 25 * 24 / 2;
    assert_eq!(all.len(), within + 2 * 70);
    let of_classes = rows("--pairs classes");
    // One for each other document of a class, one for the two near classes, and two of each near class with the archive.
    assert_eq!(of_classes.len(), 39 + 29 + 24 + 1 + 4);
    assert!(of_classes.iter().all(|row| all.contains(row)));
    assert_eq!(rows("--pairs classes --threads 1"), of_classes);
    // The same documents are connected.
    let connected = |rows: &[(String, String, u32)]| {
        let mut group: std::collections::BTreeMap<String, String> = Default::default();
        for _ in 0..3 {
            for (new, base, _) in rows {
                let own = group.get(new).unwrap_or(new).clone();
                let other = group.get(base).unwrap_or(base).clone();
                let least = own.min(other);
                group.insert(new.clone(), least.clone());
                group.insert(base.clone(), least);
            }
        }
        group
    };
    let by_class = connected(&of_classes);
    assert_eq!(by_class.len(), 97);
    assert_eq!(by_class["a39"], by_class["b00"]);
    assert_ne!(by_class["a39"], by_class["c00"]);

    // A run says that it writes very many rows, and how to write fewer.
    let many = dir.at("many.csv");
    let lines: Vec<String> = (0..250).map(|document| format!("{document},7")).collect();
    fs::write(&many, format!("id,fp\n{}", lines.join("\n"))).unwrap();
    let ran = dedup_ok(&format!("run {many} --output {output} --overwrite"));
    assert!(ran.stderr.contains("--pairs classes"), "{}", ran.stderr);
    let quiet = dedup_ok(&format!(
        "run {many} --output {output} --overwrite --pairs classes"
    ));
    assert!(!quiet.stderr.contains("many documents"), "{}", quiet.stderr);
    dedup(&format!(
        "run {many} --pairs classes --max-hits-per-document 2"
    ))
    .fails(64, &["--pairs"]);
}

#[test]
fn texts_tell_classes_apart_where_they_are_compared() {
    let dir = Dir::new();
    let (new, output) = (dir.at("n.jsonl"), dir.at("o.csv"));
    let words: Vec<String> = (0..90).map(|word| format!("word{word}")).collect();
    let forward = words.join(" ");
    // The same words, so the same fingerprint, but no phrase of the other.
    let backward = words.iter().rev().cloned().collect::<Vec<_>>().join(" ");
    let line = |(id, text): (&str, &str)| serde_json::json!({ "id": id, "text": text }).to_string();
    let documents = [
        ("a1", &*forward),
        ("a2", &*forward),
        ("a3", &*forward),
        ("b1", &*backward),
        ("b2", &*backward),
    ];
    fs::write(&new, documents.map(line).join("\n")).unwrap();
    let run = format!("run {new} --output {output} --overwrite --pairs classes");
    let found = || {
        let text = fs::read_to_string(&output).unwrap();
        let row = |line: &str| line.split(',').take(2).collect::<Vec<_>>().join("-");
        text.lines().skip(1).map(row).collect::<Vec<_>>()
    };
    dedup_ok(&run);
    assert_eq!(found(), ["a2-a1", "a3-a1", "b2-b1"]);
    // Without a comparison of texts, their fingerprints are equal.
    dedup_ok(&format!("{run} --verify none"));
    assert_eq!(found(), ["a2-a1", "a3-a1", "b1-a1", "b2-a1"]);
    dedup(&format!(
        "split {} {new} --output {output} --pairs classes",
        dir.at("job")
    ))
    .fails(64, &["--pairs classes"]);
}
