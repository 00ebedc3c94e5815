//! The result of `tune` as text: a table of distances, a recommendation, and commands to copy.

use std::fmt::Write as _;

use engine::tune::{AtDistance, Tune, Tuned};
use simhash::Spec;

use super::command;
use crate::args::TuneArgs;
use crate::terminal::{count, size};

/// The recommended distance is the smallest that finds this share of the pairs.
const ENOUGH: f64 = 0.97;

pub(super) fn render(tuned: &Tuned, asked: &Tune, spec: &Spec, args: &TuneArgs) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} of {} documents, {} too short to compare",
        count(tuned.sampled as u64),
        count(tuned.documents),
        count(tuned.without_fingerprint as u64)
    );
    let _ = writeln!(text, "spec: {}", spec.to_json());
    let [a, b, c, d] = tuned.alike.map(|pairs| count(pairs as u64));
    let _ = writeln!(
        text,
        "pairs in the sample by exact similarity (Jaccard, 3-word shingles): {a} from 0.95, {b} from 0.9, {c} from 0.8, {d} from 0.5"
    );
    write_table(&mut text, tuned, asked);
    let enough = tuned.distances.iter().find(|at| at.recall >= ENOUGH);
    let min_similarity = asked.min_similarity;
    match (tuned.wanted, enough) {
        (0, _) => {
            let _ = writeln!(
                text,
                "no pair of the sample has a similarity of {min_similarity} or more: take a larger sample, or documents with copies among them"
            );
        }
        (_, Some(at)) => {
            let _ = writeln!(
                text,
                "-k {} finds {:.1} % of the pairs with a similarity of {min_similarity} or more; --verify jaccard drops the others that it finds",
                at.max_distance,
                100.0 * at.recall
            );
            let _ = writeln!(text, "to run with these settings:");
            for line in command::lines(args, at.max_distance, min_similarity) {
                let _ = writeln!(text, "  {line}");
            }
        }
        (_, None) => {
            let _ = writeln!(
                text,
                "no k up to 16 finds {:.0} % of the pairs with a similarity of {min_similarity} or more: try another --tokenizer or --weight",
                100.0 * ENOUGH
            );
        }
    }
    text
}

fn write_table(text: &mut String, tuned: &Tuned, asked: &Tune) {
    let _ = writeln!(
        text,
        "pairs that each -k finds; recall and precision from similarity {}; predicted cost of {} against {} fingerprints, on one core:",
        asked.min_similarity,
        count(asked.day as u64),
        count(asked.history)
    );
    let _ = writeln!(
        text,
        "  {:>2} {:>10} {:>9} {:>9} {:>9} {:>9} {:>10} {:>7} {:>9} {:>12} {:>11} {:>9}",
        "k",
        "pairs",
        ">= .95",
        ".9-.95",
        ".8-.9",
        ".5-.8",
        "< .5",
        "recall",
        "precision",
        "design",
        "tables",
        "seconds"
    );
    for at in &tuned.distances {
        write_distance(text, at);
    }
}

fn write_distance(text: &mut String, at: &AtDistance) {
    let [a, b, c, d, e] = at.by_similarity.map(|pairs| count(pairs as u64));
    let _ = writeln!(
        text,
        "  {:>2} {:>10} {a:>9} {b:>9} {c:>9} {d:>9} {e:>10} {:>7.3} {:>9.3} {:>12} {:>11} {:>9.1}",
        at.max_distance,
        count(at.pairs as u64),
        at.recall,
        at.precision,
        at.design,
        size(at.table_bytes as u64),
        at.core_seconds
    );
}
