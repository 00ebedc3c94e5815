//! What was measured of one method, and its JSON row.

use serde_json::{Map, Value, json};

use super::corpora::Corpora;
use super::false_pairs::FalsePairs;
use super::near::{Counts, J50, J70, J80, J95, LEVELS};
use super::short::ShortCounts;
use crate::peers::Found;

/// The greatest distance that is recorded.
pub const MAX_DISTANCE: u32 = 16;

/// Sizes of the archives for which false pairs are estimated, in documents.
pub const ARCHIVES: [f64; 3] = [1e8, 1e9, 1e10];

/// Figures of one method.
pub struct Measured {
    pub name: String,
    /// The choices of the spec; null for other programs.
    pub choices: Value,
    /// Whether pairs are found by the distance of fingerprints, so that there is a figure for each k.
    pub by_distance: bool,
    pub false_pairs: FalsePairs,
    /// For each part of the corpora, in their order.
    pub parts: Vec<Counts>,
    /// For each corpus and each length; empty for other programs, which get no short texts.
    pub short: Vec<Vec<ShortCounts>>,
    /// For each corpus, megabytes of text per second.
    pub speeds: Vec<f64>,
}

impl Measured {
    /// Counts the pairs that a method found in each corpus; `seconds` has its time for each corpus.
    pub fn new(
        name: String,
        choices: Value,
        corpora: &Corpora,
        found: &[Found],
        seconds: &[f64],
    ) -> Self {
        let each = corpora.all.iter().zip(found);
        let parts = each.flat_map(|(corpus, found)| {
            let parts = corpus.parts.iter();
            parts.map(|part| part.count(found)).collect::<Vec<_>>()
        });
        let speeds = corpora.all.iter().zip(seconds);
        Self {
            name,
            choices,
            by_distance: matches!(found[0], Found::Fingerprints(_)),
            false_pairs: FalsePairs::count(&corpora.sources, &found[0]),
            parts: parts.collect(),
            short: Vec::new(),
            speeds: speeds
                .map(|(corpus, seconds)| corpus.bytes() as f64 / 1e6 / seconds)
                .collect(),
        }
    }

    /// Returns `distances`, or only 0 for a method that reports pairs without distances.
    pub fn distances<'a>(&self, distances: &'a [u32]) -> &'a [u32] {
        if self.by_distance { distances } else { &[0] }
    }

    /// Returns the row of the results: counts for each k from 0 to 16, and estimates for each k of `printed`.
    pub fn json(&self, corpora: &Corpora, printed: &[u32]) -> Value {
        let all: Vec<u32> = (0..=MAX_DISTANCE).collect();
        let distances = self.distances(&all);
        let rates = distances.iter().map(|&k| self.false_pairs.rate(k));
        let rates: Vec<_> = rates.collect();
        let parts = corpora.parts().zip(&self.parts).map(|(part, counts)| {
            let at_most = |level: usize| -> Vec<u64> {
                let near = &counts.near[level];
                distances.iter().map(|&k| near.at_most(k)).collect()
            };
            let recalled = |level: usize| -> Vec<u64> {
                let recalled = &counts.recalled[level];
                distances.iter().map(|&k| recalled.at_most(k)).collect()
            };
            let found: Vec<u64> = distances.iter().map(|&k| counts.found.at_most(k)).collect();
            let row = json!({
                "documents": part.size(),
                "pairs": found,
                "similar": by_level(&[J50, J70, J80], at_most),
                "relevant": by_level(&[J80, J95], |level| part.relevant[level]),
                "relevant_pairs": by_level(&[J80, J95], recalled),
            });
            (part.name.clone(), row)
        });
        let short = corpora.all.iter().zip(&self.short).map(|(corpus, short)| {
            let rows: Vec<Value> = short.iter().map(|counts| counts.json(distances)).collect();
            (corpus.name.clone(), Value::from(rows))
        });
        let speeds = corpora.all.iter().zip(&self.speeds);
        let speeds = speeds.map(|(corpus, speed)| (corpus.name.clone(), json!(speed)));
        json!({
            "way": self.name,
            "ours": !self.choices.is_null(),
            "spec": self.choices,
            "k": if self.by_distance { json!(distances) } else { Value::Null },
            "across_sources": {
                "pairs": rates.first().map(|rate| rate.pairs),
                "documents_without_fingerprint": self.false_pairs.without_fingerprint,
                "false_pairs": rates.iter().map(|rate| rate.events).collect::<Vec<_>>(),
                "extrapolated": rates.iter().map(|rate| rate.extrapolated).collect::<Vec<_>>(),
            },
            "false_pairs_per_document": self.estimates(self.distances(printed)),
            "inside": parts.collect::<Map<_, _>>(),
            "one_word_replaced": short.collect::<Map<_, _>>(),
            "megabytes_per_second": speeds.collect::<Map<_, _>>(),
        })
    }

    /// Returns the false pairs to expect for each new document, for each size of the archive.
    fn estimates(&self, distances: &[u32]) -> Vec<Value> {
        let mut estimates = Vec::new();
        for &k in distances {
            let rate = self.false_pairs.rate(k);
            let shares = self.false_pairs.shares_without_a_source(k);
            for archive in ARCHIVES {
                let per_document = |events: f64| rate.per_document(events, archive);
                estimates.push(json!({
                    "k": self.by_distance.then_some(k),
                    "archive": archive,
                    "expected": per_document(rate.events as f64),
                    "interval_95": [per_document(rate.interval.0), per_document(rate.interval.1)],
                    "extrapolated": rate.extrapolated.map(per_document),
                    "without_a_source": shares.map(|(least, greatest)| [least * archive, greatest * archive]),
                }));
            }
        }
        estimates
    }
}

/// Returns a JSON object that maps the similarity of each level to its value.
fn by_level<T: Into<Value>>(levels: &[usize], value: impl Fn(usize) -> T) -> Value {
    let mut object = Map::new();
    for &level in levels {
        object.insert(LEVELS[level].to_string(), value(level).into());
    }
    Value::Object(object)
}
