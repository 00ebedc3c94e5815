//! Tests of what the program says about short texts: from which length on texts are found again in
//! which one word was replaced, and how many documents are shorter.

use serde_json::{Value, json};

use crate::helpers::support::*;

/// A text of `words` words, which repeats some of them. Texts of other numbers have other words.
fn text(number: usize, words: usize) -> String {
    let word = |at: usize| format!("w{}", number * 1000 + at % 701);
    let words: Vec<String> = (0..words).map(word).collect();
    words.join(" ")
}

#[test]
fn a_summary_counts_short_documents() {
    let dir = Dir::new();
    let (path, output) = (dir.at("documents.parquet"), dir.at("pairs.csv"));
    let lengths = [0, 3, 19, 20, 60, 399, 400, 801];
    let documents = lengths.iter().enumerate();
    let documents: Vec<(String, String)> = documents
        .map(|(number, &words)| (words.to_string(), text(number, words)))
        .collect();
    write_texts(&path, &documents, 50);
    let run = |options: &str| {
        dedup_json(&format!("run {path} --output {output} --json {options}"))["new"].clone()
    };
    let short = |options: &str| run(options)["short"].clone();
    let below = |features: usize| {
        // Those of fewer than four words are not compared by their words.
        let compared = lengths.iter().filter(|words| **words >= 4);
        let documents = compared.filter(|words| **words < features).count();
        json!({ "features": features, "documents": documents })
    };
    // The table of `simhash::reliable_length` has these lengths for the default weight.
    assert_eq!(short("-k 3"), below(400));
    assert_eq!(short("-k 8"), below(50));
    assert_eq!(short("-k 10 --threads 3"), below(20));
    assert_eq!(short("-k 3 --weight tf"), below(200));
    assert_eq!(short("-k 3 --sketch 64"), below(400));
    assert_eq!(
        short(&format!("-k 3 --resume {}", dir.at("resume"))),
        below(400)
    );
    // No length is reliable, or none is known.
    for options in ["-k 0", "--weight set", "--tokenizer chars-4"] {
        assert!(run(options).get("short").is_none(), "{options}");
    }
    let shown = dedup_ok(&format!("run {path} -k 3 --output {output}"));
    let line = "  4 documents have fewer than 400 features (words): -k 3 can miss";
    assert!(shown.stdout.contains(line), "{}", shown.stdout);

    // `fingerprint` takes the default of -k. Ready fingerprints have no texts.
    let ready = dir.at("ready.parquet");
    let make = format!("fingerprint --input {path} --output {ready}");
    let made = dedup_json(&format!("{make} --json"));
    assert_eq!(made["short"], below(400));
    let shown = dedup_ok(&format!("{make} --overwrite"));
    assert!(shown.stdout.contains(line), "{}", shown.stdout);
    let of_ready = dedup_ok(&format!("run {ready} --output {output} --json"));
    assert!(of_ready.json()["new"].get("short").is_none());
    // Nothing is said if no document is short.
    write_texts(&path, &documents[6..], 50);
    let shown = dedup_ok(&format!("run {path} --output {output}"));
    assert!(!shown.stdout.contains("fewer than"), "{}", shown.stdout);
    assert_eq!(short("")["documents"], 0);
}

#[test]
fn tune_measures_texts_of_each_length() {
    let dir = Dir::new();
    let path = dir.at("documents.parquet");
    let mut documents = Vec::new();
    for number in 0..150 {
        let long = text(number, 120);
        if number < 60 {
            // A near-duplicate, so that there is a pair to find.
            let mut words: Vec<String> = long.split(' ').map(str::to_owned).collect();
            for at in [10, 50, 90] {
                words[at] = format!("edit{}", number * 100 + at);
            }
            documents.push((format!("{number}/edited"), words.join(" ")));
        }
        documents.push((format!("{number}/long"), long));
        documents.push((format!("{number}/short"), text(1000 + number, 30)));
    }
    for number in 0..7 {
        documents.push((format!("{number}/tiny"), text(2000 + number, 3)));
    }
    write_texts(&path, &documents, 50);
    let tune = format!("tune {path} --weight sqrt-tf");
    let tuned = dedup_json(&format!("{tune} --json"));
    let lengths = tuned["lengths"].as_array().unwrap();
    let column = |field: &str| -> Vec<u64> {
        let values = lengths.iter().map(|at| at[field].as_u64().unwrap());
        values.collect()
    };
    // No text has 200 words. A text of 30 words has no piece of 50.
    assert_eq!(column("words"), [5, 10, 20, 50, 100]);
    assert_eq!(column("texts"), [360, 360, 360, 210, 210]);
    assert_eq!(column("shorter_documents"), [7, 7, 7, 157, 157]);
    let recall = |at: &Value| -> Vec<f64> {
        let shares = at["recall"].as_array().unwrap().iter();
        shares.map(|share| share.as_f64().unwrap()).collect()
    };
    let recalls: Vec<Vec<f64>> = lengths.iter().map(recall).collect();
    for of_length in &recalls {
        assert_eq!(of_length.len(), 17);
        assert!(of_length.is_sorted());
    }
    // All words of a text differ. So a bit is the sign of a sum of n numbers, each 1 or -1. Another
    // word changes the sign if the sum becomes 0 or was 0, with half the probability of a sum of 0.
    for (words, of_length) in column("words").into_iter().zip(&recalls).skip(2) {
        let halves = (1..=words / 2).map(|pair| (2 * pair - 1) as f64 / (2 * pair) as f64);
        let sum_is_0: f64 = halves.product();
        for (k, share) in of_length.iter().enumerate() {
            let expected = at_most(k as u64, 64, sum_is_0 / 2.0);
            assert!(
                (share - expected).abs() < 0.12,
                "{words} words, k = {k}: {share}, not about {expected}"
            );
        }
    }
    // The reliable length is that of the recommended k.
    let advice = &tuned["advice"];
    let k = if advice["profile"].is_null() {
        advice["best"]["max_distance"].as_u64().unwrap() as usize
    } else {
        7
    };
    let reliable = recalls.iter().rev().take_while(|of| of[k] >= 0.95).count();
    let found = &tuned["reliable_length"];
    match reliable {
        0 => assert!(found.is_null(), "{found}"),
        reliable => {
            let at = &lengths[lengths.len() - reliable];
            let expected = json!({
                "max_distance": k,
                "words": at["words"],
                "shorter_documents": at["shorter_documents"],
            });
            assert_eq!(*found, expected);
        }
    }
    let shown = dedup_ok(&tune).stdout;
    for part in [
        "the share that is found, by length",
        "shorter documents",
        "sharp: -k 7 finds",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(shown.contains(" sharp, -k 7 "), "{shown}");
    // A sample that is too small shows no lengths; all documents count for the length.
    let small = dedup_json(&format!("{tune} --sample 50 --json"));
    assert_eq!(small["reliable_length"], Value::Null);
    assert_eq!(small["lengths"][0]["shorter_documents"], 7);
    let shown = dedup_ok(&format!("{tune} --sample 50")).stdout;
    assert!(!shown.contains("by length"), "{shown}");
}

/// The probability of at most `k` successes of `n` trials.
fn at_most(k: u64, n: u64, probability: f64) -> f64 {
    let mut of_exactly = (1.0 - probability).powi(n as i32);
    let mut sum = of_exactly;
    for done in 0..k {
        of_exactly *= (n - done) as f64 / (done + 1) as f64 * probability / (1.0 - probability);
        sum += of_exactly;
    }
    sum
}
