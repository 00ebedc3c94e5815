//! The result of `tune` as text: a table of distances, a recommendation, and commands to copy.

use engine::Profile;
use engine::tune::{AtDistance, Estimate, FEW_WORDS, Tune, Tuned};
use serde_json::{Value, json};

use super::best::{Advice, Settings};
use super::{best, lengths};
use crate::printing::{count, size, visible};

/// The sources with templates that are named.
const ALIKE_SOURCES: usize = 5;
/// Fewer groups of near-duplicates do not say which settings are best.
const FEW_GROUPS: usize = 100;

/// Renders what was measured, and what to take: `tuned` is the spec of the recommended settings, and `k` their largest distance.
pub(super) fn render(
    compared: &[Tuned],
    advice: &Advice<'_>,
    (tuned, k): (&Tuned, u32),
    asked: &Tune,
    commands: &[String],
) -> String {
    let mut text = String::new();
    text += &format!(
        "{} of {} documents compared, {} more have the text of another, {} are too short to compare by their features\n",
        count(tuned.sampled as u64),
        count(tuned.documents),
        count(tuned.copies as u64),
        count(tuned.without_fingerprint as u64)
    );
    let [a, b, c, d] = tuned.alike.map(|pairs| count(pairs as u64));
    text += &format!(
        "pairs in the sample by exact similarity (Jaccard, 3-word shingles): {a} from 0.95, {b} from 0.9, {c} from 0.8, {d} from 0.5\n"
    );
    if compared.len() > 1 {
        write_compared(&mut text, compared, tuned, asked);
    }
    text += &format!("spec: {}\n", tuned.spec.to_json());
    write_table(&mut text, tuned, asked);
    lengths::write(&mut text, compared, (tuned, k));
    write_templates(&mut text, tuned);
    write_advice(&mut text, compared, advice, asked);
    text += "to run with these settings:\n";
    for line in commands {
        text += &format!("  {line}\n");
    }
    text
}

/// Says what to take, what it finds, and how sure that is.
fn write_advice(text: &mut String, compared: &[Tuned], advice: &Advice<'_>, asked: &Tune) {
    let min_similarity = asked.min_similarity;
    let Some(sharp) = compared.first() else {
        return;
    };
    if matches!(advice, Advice::Nothing) {
        *text += &format!(
            "no two documents of the sample have a similarity of {min_similarity} or more, so nothing speaks against the defaults: take a larger --sample, or documents with near-duplicates among them\n"
        );
        return;
    }
    let groups = sharp.groups_wanted;
    *text += &format!(
        "{} documents of the sample, in {} groups, have near-duplicates of a similarity of {min_similarity} or more; each counts alike in recall, precision and F1\n",
        count(sharp.documents_wanted as u64),
        count(groups as u64)
    );
    let line = |text: &mut String, name: &str, recall: f64, precision: f64, f1: f64| {
        let (low, high) = interval(recall, groups);
        *text += &format!(
            "  {name}: recall {recall:.3} ({low:.3} to {high:.3} with 95 % confidence), precision {precision:.3}, F1 {f1:.3}\n"
        );
    };
    if let Some(found) = &sharp.sharp {
        let name = format!(
            "sharp (-k {}, --sketch {} from {})",
            Profile::Sharp.max_distance(),
            found.bits,
            found.min_similarity
        );
        line(text, &name, found.recall, found.precision, found.f1);
    }
    if let Some(settings) = advice.best() {
        let name = format!("the best of those compared ({})", named(settings));
        line(
            text,
            &name,
            settings.recall(),
            settings.precision(),
            settings.f1(),
        );
    }
    match advice {
        Advice::Settings(settings) => {
            let unrelated = unrelated(settings.at);
            *text += &format!("recommended: {}\n", named(settings));
            let lost = sharp
                .sharp
                .map_or(0.0, |sharp| sharp.recall - settings.recall());
            if lost >= 0.001 {
                *text += &format!(
                    "  it finds {:.1} % of the near-duplicates fewer than sharp does\n",
                    100.0 * lost
                );
            }
            *text += &format!(
                "  in an archive of {} documents like these, a new document meets {unrelated} documents whose similarity is below 0.5\n",
                count(asked.archive)
            );
        }
        _ => {
            *text += &format!(
                "recommended: sharp: others are not better by more than {}, or there is too little to tell\n",
                best::ABOUT
            );
        }
    }
    if groups < FEW_GROUPS {
        *text += &format!(
            "warning: {groups} groups of near-duplicates are few to choose by: take a larger --sample\n"
        );
    }
}

/// Settings in words.
fn named(settings: &Settings<'_>) -> String {
    let spec = &settings.tuned.spec;
    let idf = match spec.idf {
        Some(_) => format!(", idf {}", spec.idf_power),
        None => String::new(),
    };
    let verified = match settings.sketch {
        Some(sketch) => format!("--sketch {} from {}", sketch.bits, sketch.min_similarity),
        None => "verified by texts".to_owned(),
    };
    let (tokenizer, weight, k) = (spec.tokenizer, spec.weight, settings.at.max_distance);
    format!("{tokenizer}, {weight}{idf}, -k {k}, {verified}")
}

/// Wilson's interval of a share of `n`, with 95 % confidence.
fn interval(share: f64, n: usize) -> (f64, f64) {
    const Z: f64 = 1.96;
    let n = n.max(1) as f64;
    let middle = share + Z * Z / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let whole = 1.0 + Z * Z / n;
    (
        ((middle - half) / whole).max(0.0),
        ((middle + half) / whole).min(1.0),
    )
}

/// What is recommended, in the `--json` output.
pub(super) fn advice_json(advice: &Advice<'_>) -> Value {
    json!({
        "profile": if matches!(advice, Advice::Settings(_)) { Value::Null } else { "sharp".into() },
        "best": advice.best().map(best::json),
    })
}

/// Warns of pages that come from one template.
fn write_templates(text: &mut String, tuned: &Tuned) {
    for source in tuned.alike_sources.iter().take(ALIKE_SOURCES) {
        *text += &format!(
            "warning: {} of {} pages of {} differ from another page there in fewer than {FEW_WORDS} words: they may come from one template, and be about different things\n",
            count(source.alike as u64),
            count(source.pages as u64),
            visible(&source.source)
        );
    }
    let names = tuned.differ_in_a_name;
    if names.whole >= MIN_TEMPLATE_PAIRS && 5 * names.part > names.whole {
        *text += &format!(
            "warning: of {} pairs with that similarity, {} have the same words but for one or two names. They come from templates, and may be about different things; a larger --min-similarity does not tell them from revisions\n",
            count(names.whole as u64),
            count(names.part as u64)
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
    *text += &format!(
        "the best k, --sketch and least similarity of each spec; unrelated: documents below 0.5 that a new document meets in an archive of {} (~ extrapolated, < upper bound)\n",
        count(asked.archive)
    );
    *text += &format!(
        "  {:<18} {:<8} {:>4} {:>3} {:>8} {:>6} {:>7} {:>9} {:>6} {:>15} {:>11} {:>9}\n",
        "tokenizer",
        "weight",
        "idf",
        "k",
        "--sketch",
        "from",
        "recall",
        "precision",
        "F1",
        "unrelated",
        "tables",
        "seconds"
    );
    for tuned in compared {
        let spec = &tuned.spec;
        let idf = match spec.idf {
            Some(_) => spec.idf_power.to_string(),
            None => "-".into(),
        };
        *text += &format!(
            "{} {:<18} {:<8} {idf:>4}",
            if std::ptr::eq(tuned, best) { '*' } else { ' ' },
            spec.tokenizer.to_string(),
            spec.weight.to_string()
        );
        let settings = best::best_of_spec(compared, tuned);
        *text += &match settings.and_then(|settings| Some((settings, settings.sketch?))) {
            Some((Settings { at, .. }, sketch)) => format!(
                " {:>3} {:>8} {:>6.3} {:>7.3} {:>9.3} {:>6.3} {:>15} {:>11} {:>9.1}\n",
                at.max_distance,
                sketch.bits,
                sketch.min_similarity,
                sketch.recall,
                sketch.precision,
                sketch.f1,
                unrelated(at),
                size(at.table_bytes as u64),
                at.core_seconds
            ),
            None => "   -\n".to_owned(),
        };
    }
    *text += "* is the spec that is recommended\n";
}

fn write_table(text: &mut String, tuned: &Tuned, asked: &Tune) {
    *text += &format!(
        "pairs that each -k finds; recall and precision from similarity {}, before pairs are verified; predicted cost of {} against {} fingerprints, on one core:\n",
        asked.min_similarity,
        count(asked.batch as u64),
        count(asked.archive)
    );
    *text += &format!(
        "  {:>2} {:>10} {:>9} {:>9} {:>9} {:>9} {:>10} {:>7} {:>9} {:>12} {:>11} {:>9}\n",
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
        let [a, b, c, d, e] = at.by_similarity.map(|pairs| count(pairs as u64));
        *text += &format!(
            "  {:>2} {:>10} {a:>9} {b:>9} {c:>9} {d:>9} {e:>10} {:>7.3} {:>9.3} {:>12} {:>11} {:>9.1}\n",
            at.max_distance,
            count(at.pairs as u64),
            at.recall,
            at.precision,
            at.design,
            size(at.table_bytes as u64),
            at.core_seconds
        );
    }
}
