//! Decisions about pairs that are verified by their texts.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use crate::decisions::{Decision, crowded, days_since_epoch, read_decisions};
use crate::helpers::support::*;
use crate::verify::{jaccard, read_similar};

/// A document with a ready fingerprint, and the text beside it.
#[derive(Debug, Clone)]
struct Document {
    id: String,
    /// Its day, if it is in the archive.
    day: Option<i32>,
    fingerprint: Option<u64>,
    /// `None` in the archive if its text is not at hand.
    text: Option<String>,
}

const LEAST: f64 = 0.5;

/// The distance and the similarity of a pair.
type Nearness = (i32, Option<f64>);

/// The distance and the similarity of two documents that are a verified pair. A pair without a text is none.
fn pair(a: &Document, b: &Document, k: u32) -> Option<Nearness> {
    let distance = (a.fingerprint? ^ b.fingerprint?).count_ones();
    let texts = a.text.as_ref().zip(b.text.as_ref());
    let similarity = texts.map(|(a, b)| jaccard(a, b));
    let is_pair = distance <= k && similarity.is_some_and(|found| found >= LEAST);
    is_pair.then_some((distance.cast_signed(), similarity))
}

/// Nearer pairs first, then more similar ones.
fn by_nearness(a: &Nearness, b: &Nearness) -> Ordering {
    let similarity = |pair: &Nearness| pair.1.unwrap_or(f64::NEG_INFINITY);
    let more_similar = similarity(b).total_cmp(&similarity(a));
    a.0.cmp(&b.0).then(more_similar)
}

/// The decisions by definition, in a double loop: `batch` is in the order of the inputs.
fn by_definition(archive: &[Document], batch: &[Document], day: i32, k: u32) -> Vec<Decision> {
    let mut places: Vec<usize> = (0..batch.len()).collect();
    places.sort_by_key(|&place| (&batch[place].id, place));
    // What each duplicate repeats: a place in the batch, or one in the archive.
    let mut of: HashMap<usize, (Nearness, Result<usize, usize>)> = HashMap::new();
    let mut kept: Vec<usize> = Vec::new();
    for &place in &places {
        let own = &batch[place];
        // Equal documents are decided together, at the place of the first.
        let is_equal = |other: &&usize| {
            let other = &batch[**other];
            own.fingerprint.is_some()
                && (other.fingerprint, &other.text) == (own.fingerprint, &own.text)
        };
        let first = *places.iter().find(is_equal).unwrap_or(&place);
        if first != place {
            let decided = of.get(&first).copied();
            of.insert(place, decided.unwrap_or(((0, Some(1.0)), Ok(first))));
            continue;
        }
        let archived = (0..archive.len()).filter_map(|at| Some((pair(own, &archive[at], k)?, at)));
        let archived = archived.min_by(|(a, x), (b, y)| {
            let name = |at: usize| (archive[at].day, &archive[at].id);
            by_nearness(a, b).then_with(|| name(*x).cmp(&name(*y)))
        });
        let within = kept
            .iter()
            .filter_map(|&other| Some((pair(own, &batch[other], k)?, other)));
        // The first of the equally near is kept: `kept` has the order of the decisions.
        let within = within.min_by(|(a, _), (b, _)| by_nearness(a, b));
        match (archived, within) {
            (Some((pair, at)), _) => drop(of.insert(place, (pair, Err(at)))),
            (None, Some((pair, other))) => drop(of.insert(place, (pair, Ok(other)))),
            (None, None) => kept.push(place),
        }
    }
    let group = |place: usize| of.get(&place).map_or(Ok(place), |(_, other)| *other);
    let size = |place: usize| {
        let duplicates = of.values().filter(|(_, other)| *other == group(place));
        1 + duplicates.count() as i64
    };
    places
        .iter()
        .map(|&place| {
            let duplicate = of.get(&place);
            let other = duplicate.map(|(_, other)| match *other {
                Ok(place) => (batch[place].id.clone(), Some(day)),
                Err(at) => (archive[at].id.clone(), archive[at].day),
            });
            Decision {
                id: batch[place].id.clone(),
                kept: duplicate.is_none(),
                duplicate_of: other.as_ref().map(|(id, _)| id.clone()),
                day: other.and_then(|(_, day)| day),
                distance: duplicate.map(|((distance, _), _)| *distance),
                similarity: duplicate.and_then(|((_, similarity), _)| *similarity),
                group_size: size(place),
            }
        })
        .collect()
}

fn write(path: &str, documents: &[Document]) {
    let fingerprints: Int64Array = documents
        .iter()
        .map(|document| document.fingerprint.map(u64::cast_signed))
        .collect();
    let texts: StringArray = documents
        .iter()
        .map(|document| document.text.as_ref())
        .collect();
    write_parquet_in_groups(
        path,
        vec![
            ("id", strings(documents.iter().map(|document| &document.id))),
            ("fp", Arc::new(fingerprints) as ArrayRef),
            ("text", Arc::new(texts) as ArrayRef),
        ],
        5,
    );
}

/// One of three texts with up to three of its words replaced, so that equal and similar texts are
/// frequent.
fn text(random: &mut ChaCha8Rng) -> String {
    let seed = random.random_range(0..3);
    let mut words: Vec<String> = (0..12).map(|word| format!("w{seed}x{word}")).collect();
    for _ in 0..random.random_range(0..4) {
        let place = random.random_range(0..words.len());
        words[place] = format!("other{}", random.random_range(0..3));
    }
    words.join(" ")
}

#[test]
fn decisions_follow_verified_pairs_alone() {
    let (mut kept_by_texts, mut dropped) = (0, 0);
    for seed in 0..24 {
        let random = &mut ChaCha8Rng::seed_from_u64(seed);
        let dir = Dir::new();
        let k = random.random_range(0..6);
        let centres: Vec<u64> = (0..random.random_range(1..4))
            .map(|_| random.random())
            .collect();
        let archive = dir.archive("archive", "--profile paper");
        let mut archived = Vec::new();
        for day in ["2026-01-01", "2026-01-02"] {
            let rows: Vec<(String, u64)> = (0..random.random_range(0..5))
                .map(|at| (format!("{day}/{at}"), crowded(random, &centres)))
                .collect();
            let path = dir.at(&format!("{day}.parquet"));
            write_fingerprints(&path, &rows);
            dedup_ok(&format!(
                "fingerprint --input {path} --append {archive} --day {day} --allow-empty"
            ));
            archived.extend(rows.into_iter().map(|(id, fingerprint)| Document {
                id,
                day: Some(days_since_epoch(day)),
                fingerprint: Some(fingerprint),
                // Some texts of the archive are not at hand.
                text: random.random_bool(0.8).then(|| text(random)),
            }));
        }
        let base_text = dir.at("archived.parquet");
        write(&base_text, &archived);
        let batch: Vec<Document> = (0..random.random_range(1..60))
            .map(|_| Document {
                // Some share an id.
                id: format!("new/{}", random.random_range(0..50)),
                day: None,
                fingerprint: random.random_bool(0.95).then(|| crowded(random, &centres)),
                text: Some(text(random)),
            })
            .collect();
        std::fs::create_dir(dir.join("new")).unwrap();
        let half = batch.len() / 2;
        write(&dir.at("new/a.parquet"), &batch[..half]);
        write(&dir.at("new/b.parquet"), &batch[half..]);

        let expected = by_definition(&archived, &batch, days_since_epoch("2026-01-03"), k);
        let new = dir.at("new/");
        let run = format!(
            "run {new} --fingerprint-column fp --base {archive} --day 2026-01-03 -k {k} --verify jaccard --min-similarity {LEAST} --base-text {base_text}"
        );
        let mut outputs = Vec::new();
        for threads in [1, 3] {
            let output = dir.at("decisions.parquet");
            let ran = dedup(&format!(
                "{run} --threads {threads} --decisions {output} --overwrite --json"
            ));
            let summary = ran.ok().json();
            assert_eq!(read_decisions(&output), expected, "{seed}: -k {k}");
            assert_eq!(summary["verified"]["measure"], "jaccard");
            dropped += summary["verified"]["dropped"].as_u64().unwrap();
            outputs.push(std::fs::read(&output).unwrap());
        }
        assert!(
            outputs[0] == outputs[1],
            "{seed}: the bytes depend on threads"
        );
        let unverified = dir.at("unverified.parquet");
        dedup_ok(&format!(
            "run {new} --fingerprint-column fp --base {archive} --day 2026-01-03 -k {k} --decisions {unverified}"
        ));
        let kept = |rows: &[Decision]| rows.iter().filter(|row| row.kept).count();
        assert!(kept(&expected) >= kept(&read_decisions(&unverified)));
        kept_by_texts += kept(&expected) - kept(&read_decisions(&unverified));
    }
    assert!(
        kept_by_texts > 100 && dropped > 1000,
        "{kept_by_texts} {dropped}"
    );
}

/// Pages with texts and ids, as Parquet and as JSON Lines, the longest text first. The pairs of the
/// same run show whether the decisions are right.
#[test]
fn no_two_kept_documents_are_a_verified_pair() {
    let dir = Dir::new();
    let data = dir.at("data");
    dedup_ok(&format!(
        "generate pages --output {data} --new 1500 --base 2000 --days 2"
    ));
    let (day, base) = (format!("{data}/day.parquet"), format!("{data}/archive"));
    let lines = dir.at("day.jsonl");
    let mut all = String::new();
    for batch in read_parquet(&day) {
        let ids = texts(batch.column_by_name("id").unwrap());
        let pages = texts(batch.column_by_name("text").unwrap());
        for (id, text) in ids.iter().zip(&pages) {
            all += &format!("{}\n", serde_json::json!({ "id": id, "text": text }));
        }
    }
    std::fs::write(&lines, all).unwrap();
    for new in [&day, &lines] {
        let (pairs, decisions) = (dir.at("pairs.parquet"), dir.at("decisions.parquet"));
        let ran = dedup(&format!(
            "run {new} --base {base} --day 2027-01-01 -k 8 --verify jaccard -o {pairs} --decisions {decisions} --overwrite --json"
        ));
        let summary = ran.ok().json();
        let rows = read_decisions(&decisions);
        let kept: BTreeSet<String> = rows
            .iter()
            .filter(|row| row.kept)
            .map(|row| row.id.clone())
            .collect();
        let mut similarity_of = HashMap::new();
        for (new, other, _, similarity) in read_similar(&pairs) {
            // A pair that could not be verified drops no document.
            let archived = other.starts_with("archive/") && similarity.is_some();
            assert!(
                !(kept.contains(&new) && (archived || kept.contains(&other))),
                "{new} {other}"
            );
            similarity_of.insert((new.clone(), other.clone()), similarity);
            similarity_of.insert((other, new), similarity);
        }
        assert!(kept.len() < rows.len() - 50);
        for row in rows.iter().filter(|row| !row.kept) {
            let other = row.duplicate_of.clone().unwrap();
            let found = similarity_of[&(row.id.clone(), other)];
            assert_eq!(found, row.similarity, "{}", row.id);
        }
        assert_eq!(summary["decisions"]["kept"], kept.len());
    }
}

/// A page with a counter that the tokenizer does not see: one fingerprint, many texts.
#[test]
fn many_texts_with_one_fingerprint_are_compared_by_text() {
    let dir = Dir::new();
    let documents: Vec<Document> = (0..400)
        .map(|at| {
            let words = |from: usize| (from..from + 20).map(|word| format!("word{word}"));
            Document {
                id: format!("{at:03}"),
                day: None,
                fingerprint: Some(7),
                // Two kinds of text, each 100 times as it is, and 100 times with another word at
                // its end.
                text: Some(match at / 100 {
                    0 | 1 => words(100 * (at / 100)).collect::<Vec<_>>().join(" "),
                    kind => words(100 * (kind - 2))
                        .chain([format!("end{at}")])
                        .collect::<Vec<_>>()
                        .join(" "),
                }),
            }
        })
        .collect();
    let (new, output, kept) = (
        dir.at("new.parquet"),
        dir.at("d.parquet"),
        dir.at("kept.parquet"),
    );
    write(&new, &documents);
    dedup_ok(&format!(
        "run {new} --fingerprint-column fp --verify jaccard --decisions {output} --kept {kept} --memory-limit 100MB"
    ));
    let rows = read_decisions(&output);
    for (at, row) in rows.iter().enumerate() {
        let original = format!("{:03}", 100 * (at / 100 % 2));
        assert_eq!(row.kept, at == 0 || at == 100);
        assert_eq!(row.duplicate_of, (!row.kept).then_some(original));
        assert_eq!(row.group_size, 200);
    }
    let ids: Vec<String> = read_parquet(&kept)
        .iter()
        .flat_map(|batch| texts(batch.column_by_name("id").unwrap()))
        .collect();
    assert_eq!(ids, ["000", "100"]);
}

#[test]
fn a_day_that_texts_decided_is_carried_on_and_told_apart() {
    let dir = Dir::new();
    let archive = dir.archive("archive", "--profile paper --decisions");
    let document = |id: &str, text: &str| Document {
        id: id.into(),
        day: None,
        fingerprint: Some(7),
        text: Some(text.into()),
    };
    let first = [
        document("a", "one two three four five six"),
        document("b", "quite another text with six words"),
        document("c", "one two three four five six"),
    ];
    let second = [document("d", "quite another text with six words")];
    let (one, two) = (dir.at("one.parquet"), dir.at("two.parquet"));
    write(&one, &first);
    write(&two, &second);
    let output = dir.at("decisions.parquet");
    let run = |new: &str, day: &str, options: &str| {
        dedup(&format!(
            "run {new} --base {archive} --append --day {day} --decisions {output} --overwrite {options}"
        ))
    };
    let by_texts = format!("--verify jaccard --base-text {one}");
    run(&one, "2026-01-01", &by_texts).ok();
    let of = || -> Vec<Option<String>> {
        let rows = read_decisions(&output);
        rows.into_iter().map(|row| row.duplicate_of).collect()
    };
    assert_eq!(of(), [None, None, Some("a".into())]);
    let bytes = std::fs::read(&output).unwrap();
    run(&two, "2026-01-02", &by_texts).ok();
    assert_eq!(of(), [Some("b".into())]);
    // The same day again: the same decisions. Decided otherwise, it is another day.
    run(&one, "2026-01-01", &by_texts).ok();
    assert!(std::fs::read(&output).unwrap() == bytes);
    let log = contents(dir.join("archive/_delta_log"));
    run(&one, "2026-01-01", "").fails(65, &["verify=jaccard"]);
    assert!(contents(dir.join("archive/_delta_log")) == log);
}
