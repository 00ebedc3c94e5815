//! The warnings of a report.

use engine::output::OutputKind;

use super::bit_shares::BitShares;
use super::facts::{Facts, SIMILARITY_BINS};
use crate::printing::count;

/// A group is suspicious if it has at least this many documents, and at least this share of all
/// rows.
const LARGE_GROUP: u64 = 100;
const LARGE_SHARE: f64 = 0.01;
/// A bit is flat if it is 0, or 1, in more than this share of the fingerprints.
const FLAT: f64 = 0.95;
/// Pairs below this similarity share a template rather than a text. A report warns if they are at
/// least TEMPLATE_SHARE of at least TEMPLATE_PAIRS pairs with a known similarity.
const TEMPLATE_SIMILARITY: f64 = 0.5;
const TEMPLATE_SHARE: f64 = 0.2;
const TEMPLATE_PAIRS: u64 = 100;

/// The warnings, as sentences.
pub(super) fn warnings(facts: &Facts, bit_shares: Option<&BitShares>) -> Vec<String> {
    let mut warnings = Vec::new();
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let largest = facts.sizes().keys().next_back().copied().unwrap_or(0);
    if largest >= LARGE_GROUP && share(largest, facts.rows) >= LARGE_SHARE {
        let percent = 100.0 * share(largest, facts.rows);
        warnings.push(match facts.kind {
            OutputKind::Decisions => format!(
                "The largest group has {} documents, {percent:.0} % of all: it may be a template or an error page. Look at its samples.",
                count(largest)
            ),
            _ => format!(
                "One document has {} pairs, {percent:.0} % of all: it may be a template or an error page.",
                count(largest)
            ),
        });
    }
    let known = facts.pairs - facts.unknown_similarity;
    let bins = (TEMPLATE_SIMILARITY * SIMILARITY_BINS as f64) as usize;
    let dissimilar: u64 = facts.by_similarity[..bins].iter().sum();
    if known >= TEMPLATE_PAIRS && share(dissimilar, known) >= TEMPLATE_SHARE {
        warnings.push(format!(
            "{:.0} % of the pairs with a known similarity are below {TEMPLATE_SIMILARITY}: documents that share a template rather than \
             a text. Use `run --verify sketch`, or features that weigh common words less (`archive create --learn`).",
            100.0 * share(dissimilar, known)
        ));
    }
    if let Some(bit_shares) = bit_shares.filter(|bit_shares| bit_shares.fingerprints >= 1000) {
        for bit in 0..64 {
            let ones = bit_shares.share(bit);
            if !(1.0 - FLAT..=FLAT).contains(&ones) {
                warnings.push(format!(
                    "Bit {bit} is 1 in {:.1} % of the fingerprints of the archive: it hardly tells documents apart, so unrelated ones \
                     are nearer to each other.",
                    100.0 * ones
                ));
            }
        }
    }
    warnings
}
