//! Explains why two texts are a pair, or are not: their fingerprints bit by bit, and the features that made them.

use std::collections::HashMap;

use hamming::Design;
use serde::Serialize;
use simhash::{Fingerprinter, Measure, Model, Similarity, WeightedFeature};

/// The numbers of the two texts whose fingerprints are nearest, one of each side; of the first ones if no two have fingerprints. If
/// both sides are of the same documents, two different ones.
pub fn nearest<T: AsRef<str>>(model: &Model, texts: &[Vec<T>; 2], is_same: bool) -> [usize; 2] {
    let mut fingerprinter = Fingerprinter::new(model.clone());
    let mut made = |side: &Vec<T>| -> Vec<Option<u64>> {
        let each = side.iter();
        each.map(|text| fingerprinter.fingerprint(text.as_ref()))
            .collect()
    };
    let [first, second] = texts.each_ref().map(&mut made);
    let pairs = first.iter().enumerate().flat_map(|(at, a)| {
        let others = second.iter().enumerate();
        others.filter_map(move |(other, b)| Some(([at, other], (*a)? ^ (*b)?)))
    });
    let pairs = pairs.filter(|([at, other], _)| !is_same || first.len() == 1 || at != other);
    let best = pairs.min_by_key(|(_, difference)| difference.count_ones());
    let first_ones = [0, usize::from(is_same && second.len() > 1)];
    best.map_or(first_ones, |(pair, _)| pair)
}

/// Two texts compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    pub texts: [ExplainedText; 2],
    /// Distance of the fingerprints; `None` when a text has none.
    pub distance: Option<u32>,
    /// The bits in which they differ, the highest first.
    pub differing_bits: Vec<u32>,
    pub design: String,
    /// Each block of the design, applied to the difference.
    pub blocks: Vec<ExplainedBlock>,
    /// Exact similarities.
    pub similarity: Similarities,
    /// The heaviest features that both texts have.
    pub shared: Vec<ExplainedFeature>,
    /// The heaviest features of the first text alone.
    pub only_first: Vec<ExplainedFeature>,
    /// The heaviest features of the second text alone.
    pub only_second: Vec<ExplainedFeature>,
    /// The weight of the shared features, divided by the weight of all features of both texts.
    pub shared_weight: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedText {
    /// Its fingerprint as 64 binary digits, the highest bit first; `None` with too few features.
    pub fingerprint: Option<String>,
    pub characters: usize,
    /// Occurrences of features.
    pub features: u64,
    pub distinct_features: usize,
}

/// A block of a design, applied to the difference of two fingerprints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedBlock {
    /// Its bits, as 64 binary digits.
    pub mask: String,
    /// The most bits in which candidates differ in the block.
    pub radius: u32,
    /// Bits in which the fingerprints differ in the block.
    pub differing: u32,
    /// The bits outside the block that the design compares too; `None` in most designs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<ExplainedBeside>,
    /// Whether the fingerprints are candidates by this block.
    pub matches: bool,
}

/// Bits outside a block that some designs compare too: candidates differ in at most one of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedBeside {
    /// The bits, as 64 binary digits.
    pub mask: String,
    /// Bits in which the fingerprints differ.
    pub differing: u32,
}

/// The similarity of two texts by each [`Measure`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Similarities {
    pub jaccard: f64,
    pub cosine: f64,
    /// See [`Measure::Edit`]; `None` for texts too long to be compared within seconds.
    pub edit: Option<f64>,
    /// See [`Measure::Sketch`]; `None` if the spec has no sketches, or a text has no fingerprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sketch: Option<f64>,
}

/// A feature with its weight in each text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedFeature {
    pub feature: String,
    /// Its weight in the first and the second text.
    pub weights: [u64; 2],
}

/// Compares two texts under `model`, with the blocks of `design`; lists the `top` heaviest features of each kind.
pub fn explain(model: &Model, texts: [&str; 2], design: &Design, top: usize) -> Explanation {
    let mut fingerprinter = Fingerprinter::new(model.clone());
    let bits = texts.map(|text| fingerprinter.fingerprint(text));
    let features = texts.map(|text| fingerprinter.features(text));
    let difference = match bits {
        [Some(a), Some(b)] => Some(a ^ b),
        _ => None,
    };
    let [first, second] = &features;
    let weights_by_hash = |features: &[WeightedFeature]| -> HashMap<u64, u64> {
        let each = features.iter();
        each.map(|feature| (feature.hash, feature.weight)).collect()
    };
    let (in_first, in_second) = (weights_by_hash(first), weights_by_hash(second));
    let weights = |feature: &WeightedFeature| {
        [&in_first, &in_second].map(|text| text.get(&feature.hash).copied().unwrap_or(0))
    };
    let heaviest_first = |features: &[WeightedFeature], is_kept: fn([u64; 2]) -> bool| {
        let explained = features.iter().map(|feature| ExplainedFeature {
            feature: feature.feature.clone(),
            weights: weights(feature),
        });
        let kept = explained.filter(|feature| is_kept(feature.weights));
        let mut kept: Vec<ExplainedFeature> = kept.collect();
        kept.sort_by(|a, b| {
            let weight = |feature: &ExplainedFeature| feature.weights[0] + feature.weights[1];
            weight(b)
                .cmp(&weight(a))
                .then_with(|| a.feature.cmp(&b.feature))
        });
        kept
    };
    let mut shared = heaviest_first(first, |[a, b]| a > 0 && b > 0);
    let mut only_first = heaviest_first(first, |[_, b]| b == 0);
    let mut only_second = heaviest_first(second, |[a, _]| a == 0);
    let sum = |features: &[ExplainedFeature]| -> u64 {
        let each = features.iter();
        each.map(|feature| feature.weights[0] + feature.weights[1])
            .sum()
    };
    let (common, apart) = (sum(&shared), sum(&only_first) + sum(&only_second));
    for features in [&mut shared, &mut only_first, &mut only_second] {
        features.truncate(top);
    }
    let similarity = |measure| {
        let mut similarity = Similarity::new(measure, model.clone());
        let [a, b] = texts.map(|text| similarity.prepare(text));
        Similarity::between(&a, &b, 0.0)
    };
    Explanation {
        texts: [0, 1].map(|at| ExplainedText {
            fingerprint: bits[at].map(digits),
            characters: texts[at].chars().count(),
            features: features[at]
                .iter()
                .map(|feature| u64::from(feature.occurrences))
                .sum(),
            distinct_features: features[at].len(),
        }),
        distance: difference.map(u64::count_ones),
        differing_bits: (0..64)
            .rev()
            .filter(|bit| difference.is_some_and(|bits| bits >> bit & 1 == 1))
            .collect(),
        design: design.name(),
        blocks: difference.map_or(Vec::new(), |difference| {
            let blocks = design.blocks().iter();
            blocks
                .map(|block| ExplainedBlock {
                    mask: digits(block.mask),
                    radius: block.radius,
                    differing: (difference & block.mask).count_ones(),
                    beside: (block.beside != 0).then(|| ExplainedBeside {
                        mask: digits(block.beside),
                        differing: (difference & block.beside).count_ones(),
                    }),
                    matches: block.agrees(difference),
                })
                .collect()
        }),
        similarity: Similarities {
            jaccard: similarity(Measure::Jaccard),
            cosine: similarity(Measure::Cosine),
            edit: (texts[0].len() as f64 * texts[1].len() as f64 <= EDIT_PRODUCT)
                .then(|| similarity(Measure::Edit)),
            sketch: (!model.spec().sketch.is_none() && difference.is_some())
                .then(|| similarity(Measure::Sketch)),
        },
        shared,
        only_first,
        only_second,
        shared_weight: match common + apart {
            0 => 1.0,
            all => common as f64 / all as f64,
        },
    }
}

/// The largest product of two texts' bytes for which the edit distance takes seconds, not minutes.
const EDIT_PRODUCT: f64 = 1e11;

fn digits(bits: u64) -> String {
    format!("{bits:064b}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_fit_together() {
        let spec = simhash::Spec {
            weight: simhash::Weight::Tf,
            ..simhash::Spec::default()
        };
        let model = Model::plain(spec).unwrap();
        let design = Design::named("blocks-4", 3).unwrap();
        let texts = [
            "the cat sat on the mat by the door",
            "the cat sat on the rug by the door",
        ];
        let found = explain(&model, texts, &design, 2);
        let [a, b] = [0, 1].map(|at| {
            u64::from_str_radix(found.texts[at].fingerprint.as_ref().unwrap(), 2).unwrap()
        });
        assert_eq!(found.distance, Some((a ^ b).count_ones()));
        assert_eq!(found.differing_bits.len() as u32, (a ^ b).count_ones());
        assert_eq!(
            found.blocks.iter().map(|of| of.differing).sum::<u32>(),
            (a ^ b).count_ones()
        );
        assert_eq!(found.texts[0].features, 9);
        assert_eq!(found.texts[0].distinct_features, 7);
        let the = ExplainedFeature {
            feature: "the".into(),
            weights: [3, 3],
        };
        assert_eq!((found.shared.len(), &found.shared[0]), (2, &the));
        assert_eq!(found.only_first[0].feature, "mat");
        assert_eq!(found.only_second[0].weights, [0, 1]);
        assert_eq!(found.shared_weight, 16.0 / 18.0);

        assert!(found.blocks.iter().all(|of| of.beside.is_none()));
        let halves = Design::named("halves", 3).unwrap();
        for block in explain(&model, texts, &halves, 2).blocks {
            let of = |mask: &str| u64::from_str_radix(mask, 2).unwrap();
            let beside = block.beside.unwrap();
            assert_eq!(beside.differing, ((a ^ b) & of(&beside.mask)).count_ones());
            assert_eq!((of(&beside.mask) & of(&block.mask), block.radius), (0, 0));
            assert_eq!(block.matches, block.differing == 0 && beside.differing <= 1);
        }

        let empty = explain(&model, ["", texts[0]], &design, 2);
        assert_eq!((empty.distance, empty.blocks.len()), (None, 0));
        assert_eq!(empty.texts[0].fingerprint, None);
    }
}
