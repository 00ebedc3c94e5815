//! The result of `tune` as text: a table of distances, a recommendation, and commands to copy.

use std::fmt::Write as _;

use engine::tune::{AtDistance, AtSketch, Estimate, Tune, Tuned};

use super::{best, lengths, next_commands};
use crate::args::TuneArgs;
use crate::printing::{count, size};

/// Renders the specs that were compared, and what the best of them, `tuned`, finds.
pub(super) fn render(compared: &[Tuned], tuned: &Tuned, asked: &Tune, args: &TuneArgs) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} of {} documents, {} too short to compare",
        count(tuned.sampled as u64),
        count(tuned.documents),
        count(tuned.without_fingerprint as u64)
    );
    let [a, b, c, d] = tuned.alike.map(|pairs| count(pairs as u64));
    let _ = writeln!(
        text,
        "pairs in the sample by exact similarity (Jaccard, 3-word shingles): {a} from 0.95, {b} from 0.9, {c} from 0.8, {d} from 0.5"
    );
    if compared.len() > 1 {
        write_compared(&mut text, compared, tuned, asked);
    }
    let _ = writeln!(text, "spec: {}", tuned.spec.to_json());
    write_table(&mut text, tuned, asked);
    lengths::write(&mut text, compared, tuned);
    let min_similarity = asked.min_similarity;
    match (tuned.wanted, best::smallest_distance(tuned)) {
        (0, _) => {
            let _ = writeln!(
                text,
                "no pair of the sample has a similarity of {min_similarity} or more: take a larger sample, or documents with copies among them"
            );
        }
        (_, Some(at)) => {
            let sketch = sketch(tuned, at, args);
            let _ = writeln!(
                text,
                "-k {} finds {:.1} % of the pairs with a similarity of {min_similarity} or more; --verify drops the others that it finds",
                at.max_distance,
                100.0 * at.recall
            );
            write_sketches(&mut text, at, sketch, min_similarity);
            let _ = writeln!(
                text,
                "in an archive of {} documents like these, a new document meets {} documents whose similarity is below 0.5",
                count(asked.archive),
                unrelated(at)
            );
            let _ = writeln!(text, "to run with these settings:");
            for line in next_commands::lines(args, tuned, at, sketch, min_similarity) {
                let _ = writeln!(text, "  {line}");
            }
        }
        (_, None) => {
            let _ = writeln!(
                text,
                "no k up to 16 finds {:.0} % of the pairs with a similarity of {min_similarity} or more: try another --tokenizer or --weight",
                100.0 * best::ENOUGH
            );
        }
    }
    let names = tuned.differ_in_a_name;
    if names.whole >= MIN_TEMPLATE_PAIRS && 5 * names.part > names.whole {
        let _ = writeln!(
            text,
            "warning: of {} pairs with that similarity, {} have the same words but for one or two names. They come from templates, and may be about different things; a larger --min-similarity does not tell them from revisions",
            count(names.whole as u64),
            count(names.part as u64)
        );
    }
    text
}

/// The sketch for the printed commands: that of --base or --sketch, or else the best.
fn sketch<'a>(tuned: &Tuned, at: &'a AtDistance, args: &TuneArgs) -> Option<&'a AtSketch> {
    match args.base.is_some() || args.spec.sketch.is_some() {
        true => {
            let bits = tuned.spec.sketch.bits();
            at.sketches.iter().find(|sketch| sketch.bits == bits)
        }
        false => best::best_sketch(at),
    }
}

/// Writes a line for each sketch size: the pairs at this distance that `--verify sketch` keeps.
fn write_sketches(
    text: &mut String,
    at: &AtDistance,
    chosen: Option<&AtSketch>,
    min_similarity: f64,
) {
    if at.sketches.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "--verify sketch at -k {}, with the largest --min-similarity that keeps 99 % of these pairs; it reads no texts. Recall and precision from similarity {min_similarity}:",
        at.max_distance
    );
    let _ = writeln!(
        text,
        "  {:>8} {:>15} {:>17} {:>10} {:>7} {:>9}",
        "--sketch", "bytes/document", "--min-similarity", "pairs", "recall", "precision"
    );
    for sketch in &at.sketches {
        let is_chosen = chosen.is_some_and(|chosen| chosen.bits == sketch.bits);
        let _ = writeln!(
            text,
            "{} {:>8} {:>15} {:>17.2} {:>10} {:>7.3} {:>9.3}",
            if is_chosen { '*' } else { ' ' },
            sketch.bits,
            sketch.bits / 8,
            sketch.min_similarity,
            count(sketch.pairs as u64),
            sketch.recall,
            sketch.precision
        );
    }
}

/// The fewest similar pairs from which `tune` can warn of templates.
const MIN_TEMPLATE_PAIRS: usize = 20;

/// The number of unrelated documents, with how it was estimated: `~` if extrapolated, `<` for a
/// bound.
fn unrelated(at: &AtDistance) -> String {
    let number = match at.unrelated {
        none if none < 0.01 => return "< 0.01".into(),
        few if few < 10.0 => format!("{few:.2}"),
        many => count(many.round() as u64),
    };
    match at.estimate {
        Estimate::Counted => number,
        Estimate::Extrapolated => format!("~ {number}"),
        Estimate::Bound => format!("< {number}"),
    }
}

/// Writes a line for each spec that was compared.
fn write_compared(text: &mut String, compared: &[Tuned], best: &Tuned, asked: &Tune) {
    let _ = writeln!(
        text,
        "settings at the smallest k that finds {:.0} % of the pairs from similarity {}; unrelated: documents below 0.5 that a new document meets in an archive of {} (~ extrapolated, < upper bound)",
        100.0 * best::ENOUGH,
        asked.min_similarity,
        count(asked.archive)
    );
    let _ = writeln!(
        text,
        "  {:<18} {:<8} {:>4} {:>3} {:>7} {:>15} {:>12} {:>11} {:>9}",
        "tokenizer", "weight", "idf", "k", "recall", "unrelated", "pairs", "tables", "seconds"
    );
    for tuned in compared {
        let spec = &tuned.spec;
        let idf = match spec.idf {
            Some(_) => spec.idf_power.to_string(),
            None => "-".into(),
        };
        let _ = write!(
            text,
            "{} {:<18} {:<8} {idf:>4}",
            if std::ptr::eq(tuned, best) { '*' } else { ' ' },
            spec.tokenizer.to_string(),
            spec.weight.to_string()
        );
        let _ = match best::smallest_distance(tuned) {
            Some(at) => writeln!(
                text,
                " {:>3} {:>7.3} {:>15} {:>12} {:>11} {:>9.1}",
                at.max_distance,
                at.recall,
                unrelated(at),
                count(at.pairs as u64),
                size(at.table_bytes as u64),
                at.core_seconds
            ),
            None => writeln!(text, "   -"),
        };
    }
    let _ = writeln!(
        text,
        "* is the best: of those with the fewest unrelated documents, or up to twice as many, the fastest, and then the one with the fewest wrong pairs"
    );
}

fn write_table(text: &mut String, tuned: &Tuned, asked: &Tune) {
    let _ = writeln!(
        text,
        "pairs that each -k finds; recall and precision from similarity {}; predicted cost of {} against {} fingerprints, on one core:",
        asked.min_similarity,
        count(asked.batch as u64),
        count(asked.archive)
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
