//! Formats an explanation as text.

use engine::explain::{ExplainedBlock, ExplainedFeature, ExplainedText, Explanation};
use engine::profile::CompareSettings;
use simhash::Measure;

use super::Given;
use crate::printing::{count, visible};

/// The largest distance that any run accepts.
const LARGEST_K: u32 = 16;
/// Characters of a feature that are shown: a feature can be a long sentence.
const FEATURE_CHARS: usize = 60;

/// Formats an explanation: the two texts, the verdict, the bits, the blocks, the similarities and the features. `compare` says how a
/// run finds and verifies pairs; a text needs `min_features` distinct features to be compared by them. The blocks are shown if there
/// is a `layout`, that of the design's tables.
pub(super) fn render(
    explanation: &Explanation,
    given: &[Given; 2],
    compare: &CompareSettings,
    min_features: u32,
    layout: Option<&str>,
) -> String {
    let mut text = String::new();
    for ((name, given), side) in ["A", "B"].iter().zip(given).zip(&explanation.texts) {
        text += &format!(
            "{name}: {}: {} characters, {} features, {} of them distinct\n",
            given.from,
            count(side.characters as u64),
            count(side.features),
            count(side.distinct_features as u64)
        );
    }
    text += &format!("{}\n", verdict(explanation, compare, min_features));
    write_bits(&mut text, explanation);
    if let (Some(layout), Some(_)) = (layout, explanation.distance) {
        text += &format!("blocks of the design {} ({layout}):\n", explanation.design);
        for (number, block) in (1..).zip(&explanation.blocks) {
            write_block(&mut text, number, block);
        }
    }
    let similarity = &explanation.similarity;
    let edit = similarity.edit.map(|edit| format!("{edit:.4}"));
    text += &format!(
        "exact similarity: jaccard {:.4}, cosine {:.4}, edit {}\n",
        similarity.jaccard,
        similarity.cosine,
        edit.as_deref().unwrap_or("not computed (long texts)")
    );
    if let Some(sketch) = similarity.sketch {
        text += &format!("estimated by the sketches: jaccard {sketch:.4}\n");
    }
    text += &format!(
        "features: {:.1} % of the weight is in features that both have\n",
        100.0 * explanation.shared_weight
    );
    for (title, features) in [
        ("both", &explanation.shared),
        ("only A", &explanation.only_first),
        ("only B", &explanation.only_second),
    ] {
        text += &format!("  {title}: {}\n", listed(features));
    }
    text
}

/// Says in one sentence why a run finds the pair or misses it.
fn verdict(explanation: &Explanation, compare: &CompareSettings, min_features: u32) -> String {
    let k = compare.max_distance;
    let is_short = |text: &ExplainedText| text.distinct_features < min_features as usize;
    let subject = match explanation.texts.each_ref().map(is_short) {
        [true, true] => Some("A and B have"),
        [true, false] => Some("A has"),
        [false, true] => Some("B has"),
        [false, false] => None,
    };
    let too_few = subject.map(|subject| {
        format!("missed: {subject} too few features, fewer than {min_features} distinct ones")
    });
    match (too_few, explanation.distance) {
        (Some(missed), None) => return format!("{missed}; such texts are not compared"),
        (Some(missed), Some(1..)) => {
            return format!("{missed}; only an equal text is a near-duplicate of such a text");
        }
        _ => {}
    }
    let distance = explanation.distance.unwrap_or(0);
    let differ = format!("the fingerprints differ in {distance} of 64 bits");
    if distance <= k {
        let verified = compare.verify.as_ref().and_then(|verify| {
            let similarity = match verify.measure {
                Measure::Sketch => explanation.similarity.sketch?,
                _ => explanation.similarity.jaccard,
            };
            Some((verify, similarity))
        });
        return match verified {
            Some((verify, similarity)) if similarity < verify.min_similarity => format!(
                "missed: {differ}, at most {k}, but the similarity by {} is {similarity:.3}, below {}",
                verify.measure, verify.min_similarity
            ),
            Some((verify, similarity)) => format!(
                "found: {differ}, at most {k}, and the similarity by {} is {similarity:.3}, at least {}: a pair at k = {k}",
                verify.measure, verify.min_similarity
            ),
            None => format!("found: {differ}, at most {k}: a pair at k = {k}"),
        };
    }
    if distance <= LARGEST_K {
        format!(
            "missed: {differ}, more than {k}: not a pair at k = {k}; -k {distance} would find it"
        )
    } else {
        format!(
            "missed: {differ}, more than {k}: not a pair at k = {k}, nor at the largest -k, {LARGEST_K}"
        )
    }
}

/// Writes both fingerprints in binary, and marks the bits that differ.
fn write_bits(text: &mut String, explanation: &Explanation) {
    for (name, side) in ["A", "B"].iter().zip(&explanation.texts) {
        if let Some(bits) = &side.fingerprint {
            *text += &format!("  {name}  {}\n", grouped(bits));
        }
    }
    if explanation.distance.is_some_and(|distance| distance > 0) {
        let differs = |bit: u32| explanation.differing_bits.contains(&bit);
        let mark = |bit| if differs(bit) { '^' } else { ' ' };
        let marks: String = (0..64).rev().map(mark).collect();
        *text += &format!("     {}\n", grouped(&marks).trim_end());
    }
}

/// Writes one block: its places, how many of its bits differ and how many may, and whether the pair
/// is a candidate in its table.
fn write_block(text: &mut String, number: u32, block: &ExplainedBlock) {
    let beside = block.beside.as_ref();
    let beside_mask = beside.map_or("", |beside| &beside.mask).chars();
    let places: String = block
        .mask
        .chars()
        .zip(beside_mask.chain(std::iter::repeat('0')))
        .map(|bits| match bits {
            ('1', _) => '#',
            (_, '1') => '+',
            _ => '.',
        })
        .collect();
    let beside = beside.map_or(String::new(), |beside| {
        format!("; at +, {}, 1 allowed", bits_differ(beside.differing))
    });
    *text += &format!(
        "  {number:<2} {}  {}, {} allowed{beside}: {}\n",
        grouped(&places),
        bits_differ(block.differing),
        block.radius,
        if block.matches {
            "a candidate in this table"
        } else {
            "this table misses the pair"
        }
    );
}

fn bits_differ(bits: u32) -> String {
    match bits {
        1 => "1 bit differs".into(),
        _ => format!("{bits} bits differ"),
    }
}

/// 64 characters in groups of eight.
fn grouped(bits: &str) -> String {
    let characters: Vec<char> = bits.chars().collect();
    let eights: Vec<String> = characters
        .chunks(8)
        .map(|eight| eight.iter().collect())
        .collect();
    eights.join(" ")
}

/// Features with their weights: one number if both are equal or one text lacks the feature, or else
/// `A's/B's`.
fn listed(features: &[ExplainedFeature]) -> String {
    if features.is_empty() {
        return "none".into();
    }
    let each: Vec<String> = features
        .iter()
        .map(|feature| {
            let mut name: String = feature.feature.chars().take(FEATURE_CHARS).collect();
            if name.len() < feature.feature.len() {
                name.push('…');
            }
            let name = visible(&name);
            match feature.weights {
                [a, b] if a == b || b == 0 => format!("\"{name}\" {a}"),
                [0, b] => format!("\"{name}\" {b}"),
                [a, b] => format!("\"{name}\" {a}/{b}"),
            }
        })
        .collect();
    each.join(", ")
}
