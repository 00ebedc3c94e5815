//! What was measured of one method, and its JSON row.

use serde_json::{Map, Value, json};

use super::corpora::Corpora;
use super::distances::{Distances, MAX_DISTANCE};
use super::false_pairs::FalsePairs;
use super::near::{Counts, J50, J70, J80, J95, LEVELS};
use super::short::ShortCounts;
use crate::peers::Found;
use crate::truth::Pair;

/// Sizes of the archives for which false pairs are estimated, in documents.
pub const ARCHIVES: [f64; 3] = [1e8, 1e9, 1e10];

/// Figures of one method.
pub struct Measured {
    pub name: String,
    /// The choices of the spec and of the verification, if there is one; null for other programs.
    pub choices: Value,
    /// The package of another program, its version and settings; null for ours.
    pub peer: Value,
    /// Whether pairs are found by the distance of fingerprints, so that there is a figure for each k.
    pub by_distance: bool,
    pub false_pairs: FalsePairs,
    /// For each part of the corpora, in their order.
    pub parts: Vec<Counts>,
    /// For each corpus and each length; empty for other programs and after a verification, which get no short texts.
    pub short: Vec<Vec<ShortCounts>>,
    /// For each corpus, the seconds of the fastest run.
    pub seconds: Vec<f64>,
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
        Self {
            name,
            choices,
            peer: Value::Null,
            by_distance: matches!(found[0], Found::Fingerprints(_)),
            false_pairs: FalsePairs::count(&corpora.sources, &found[0]),
            parts: parts.collect(),
            short: Vec::new(),
            seconds: seconds.to_vec(),
        }
    }

    /// Counts those pairs of this method that a verification keeps: `kept` has them for each corpus, with their
    /// distances, up to [`MAX_DISTANCE`]. `seconds` has the time for each corpus.
    pub fn verified(
        &self,
        name: String,
        choices: Value,
        corpora: &Corpora,
        kept: &[Vec<(Pair, u32)>],
        seconds: &[f64],
    ) -> Self {
        let each = corpora.all.iter().zip(kept);
        let parts = each.flat_map(|(corpus, kept)| {
            let parts = corpus.parts.iter();
            let counts = parts.map(|part| part.count_pairs(kept.iter().copied()));
            counts.collect::<Vec<_>>()
        });
        Self {
            name,
            choices,
            peer: Value::Null,
            by_distance: true,
            false_pairs: self.false_pairs.verified(&corpora.sources, &kept[0]),
            parts: parts.collect(),
            short: Vec::new(),
            seconds: seconds.to_vec(),
        }
    }

    /// Returns the megabytes of text per second for each corpus.
    pub fn speeds(&self, corpora: &Corpora) -> Vec<f64> {
        let each = corpora.all.iter().zip(&self.seconds);
        each.map(|(corpus, seconds)| corpus.bytes() as f64 / 1e6 / seconds)
            .collect()
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
            let at_most = |counted: &Distances| -> Vec<u64> {
                distances.iter().map(|&k| counted.at_most(k)).collect()
            };
            let row = json!({
                "documents": part.size(),
                "pairs": at_most(&counts.found),
                "similar": by_level(&[J50, J70, J80], |level| at_most(&counts.near[level])),
                "relevant": by_level(&[J70, J80, J95], |level| part.relevant[level]),
                "relevant_pairs": by_level(&[J70, J80, J95], |level| at_most(&counts.recalled[level])),
            });
            (part.name.clone(), row)
        });
        let short = corpora.all.iter().zip(&self.short).map(|(corpus, short)| {
            let rows: Vec<Value> = short.iter().map(|counts| counts.json(distances)).collect();
            (corpus.name.clone(), Value::from(rows))
        });
        let by_corpus = |figures: &[f64]| -> Map<String, Value> {
            let each = corpora.all.iter().zip(figures);
            each.map(|(corpus, figure)| (corpus.name.clone(), json!(figure)))
                .collect()
        };
        json!({
            "way": self.name,
            "ours": !self.choices.is_null(),
            "spec": self.choices,
            "peer": self.peer,
            "k": if self.by_distance { json!(distances) } else { Value::Null },
            "across_sources": {
                "pairs": rates.first().map(|rate| rate.pairs),
                "documents_without_fingerprint": self.false_pairs.without_fingerprint,
                "false_pairs": rates.iter().map(|rate| rate.events).collect::<Vec<_>>(),
                "extrapolated": rates.iter().map(|rate| rate.extrapolated).collect::<Vec<_>>(),
                "extrapolated_is_bound": rates.first().map(|rate| rate.extrapolated_is_bound),
            },
            "false_pairs_per_document": self.estimates(self.distances(printed)),
            "inside": parts.collect::<Map<_, _>>(),
            "one_word_replaced": short.collect::<Map<_, _>>(),
            "megabytes_per_second": by_corpus(&self.speeds(corpora)),
            "seconds": by_corpus(&self.seconds),
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
