//! Sketches: a few bits of minhash from which the Jaccard similarity of two texts is estimated without the texts.
//!
//! A sketch summarizes the set of a text's shingles, each of three consecutive features. The hash
//! of a shingle assigns it to one of the bins, and each bin keeps its smallest hash
//! (one-permutation hashing: P. Li, A. Owen, C.-H. Zhang, "One Permutation Hashing", NIPS 2012).
//! The sketch stores one bit of each bin's hash (P. Li, A. C. König, "b-Bit Minwise Hashing", WWW
//! 2010). A bin without shingles takes the hash of another bin, chosen by a sequence of hashes that
//! is the same for all texts (optimal densification: A. Shrivastava, ICML 2017). So texts with
//! fewer shingles than bins have sketches, too.
//!
//! A bin has the same smallest hash in two texts with probability J, their Jaccard similarity;
//! otherwise its two bits are equal with probability 1/2. So a share e of equal bits estimates J as
//! 2e − 1, with a standard error of √((1 − J²) / bits): 0.06 at J = 0.7 with 128 bits. The error is
//! larger for texts with few shingles for each bin.

use crate::choice::{Choice, Name, by_name};
use crate::isa::{Isa, Kernel, Work};

/// The number of consecutive features in a shingle.
pub(crate) const SHINGLE: usize = 3;

/// The number of bits of a sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SketchBits {
    /// No sketch.
    #[default]
    None,
    /// 64 bits: the standard error of the similarity is 0.09 at 0.7.
    Bits64,
    /// 128 bits: 0.06.
    Bits128,
    /// 256 bits: 0.045.
    Bits256,
}

impl Choice for SketchBits {
    const PLURAL: &'static str = "sketches";
    const NAMES: &'static [Name<Self>] = &[
        Name::new("0", Self::None, "no sketch"),
        Name::new(
            "64",
            Self::Bits64,
            "8 bytes; standard error 0.09 at a similarity of 0.7",
        ),
        Name::new("128", Self::Bits128, "16 bytes; 0.06"),
        Name::new("256", Self::Bits256, "32 bytes; 0.045"),
    ];
}

by_name!(SketchBits);

impl SketchBits {
    /// The number of bits; 0 without a sketch.
    #[must_use]
    pub fn bits(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Bits64 => 64,
            Self::Bits128 => 128,
            Self::Bits256 => 256,
        }
    }

    /// The number of bytes; 0 without a sketch.
    #[must_use]
    pub fn bytes(self) -> usize {
        self.bits() as usize / 8
    }

    /// Whether there is no sketch.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// Serializes [`SketchBits`] as a JSON number, for [`crate::Spec`].
pub(crate) mod number {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::SketchBits;

    pub(crate) fn serialize<S: Serializer>(size: &SketchBits, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(size.bits())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SketchBits, D::Error> {
        let bits = u32::deserialize(from)?;
        bits.to_string().parse().map_err(D::Error::custom)
    }
}

/// Makes sketches of texts, given the hashes of their features.
#[derive(Debug, Clone)]
pub struct Sketcher {
    /// The number of bins, a power of two.
    bits: u32,
    /// For each bin the smallest hash of its shingles, or [`EMPTY`].
    smallest: Vec<u64>,
    /// For each bin its own smallest hash, or that of the bin which it copies.
    filled: Vec<u64>,
    /// The numbers of bins without shingles.
    empty: Vec<u8>,
    /// For each bin the bins that it copies when it is empty, in the order in which they are asked; [`ROUNDS`] rows.
    copied: &'static [u8],
    /// The hashes of the last features, fewer than a shingle has.
    last: Vec<u64>,
    /// Whether there was a shingle.
    has_shingles: bool,
}

/// The value of a bin without shingles. A shingle never has it: the lowest bits of its value are 0.
const EMPTY: u64 = u64::MAX;

impl Sketcher {
    /// Makes sketches of this size; `None` for [`SketchBits::None`].
    #[must_use]
    pub fn new(size: SketchBits) -> Option<Self> {
        (!size.is_none()).then(|| Self {
            bits: size.bits(),
            smallest: vec![EMPTY; size.bits() as usize],
            filled: vec![EMPTY; size.bits() as usize],
            empty: vec![0; size.bits() as usize],
            copied: match size {
                SketchBits::None => &[],
                SketchBits::Bits64 => COPIED_64.as_flattened(),
                SketchBits::Bits128 => COPIED_128.as_flattened(),
                SketchBits::Bits256 => COPIED_256.as_flattened(),
            },
            last: Vec::new(),
            has_shingles: false,
        })
    }

    /// Appends the sketch of a text to `sketch`. `hashes` are the hashes of its features in the order of the text. A text
    /// with fewer than three features has one shingle, made of all its features.
    pub fn sketch(&mut self, hashes: &[u64], sketch: &mut Vec<u8>) {
        self.start();
        self.add(hashes);
        self.finish(sketch);
    }

    /// Begins the sketch of a text.
    pub(crate) fn start(&mut self) {
        self.smallest.fill(EMPTY);
        self.last.clear();
        self.has_shingles = false;
    }

    /// Adds the next features of the text, given by their hashes.
    pub(crate) fn add(&mut self, hashes: &[u64]) {
        const OTHERS: usize = SHINGLE - 1;
        // The shingles of earlier features and these.
        let mut seam = std::mem::take(&mut self.last);
        seam.extend(hashes.iter().take(OTHERS));
        self.add_shingles(&seam);
        self.add_shingles(hashes);
        if hashes.len() > OTHERS {
            seam.clear();
            seam.extend(&hashes[hashes.len() - OTHERS..]);
        } else {
            seam.drain(..seam.len().saturating_sub(OTHERS));
        }
        self.last = seam;
    }

    fn add_shingles(&mut self, hashes: &[u64]) {
        for shingle in hashes.array_windows::<SHINGLE>() {
            self.add_shingle(shingle);
            self.has_shingles = true;
        }
    }

    #[inline(always)]
    fn add_shingle(&mut self, features: &[u64]) {
        let bin_bits = self.bits.trailing_zeros();
        let shingle = shingle(features);
        let smallest = &mut self.smallest[(shingle >> (64 - bin_bits)) as usize];
        *smallest = (*smallest).min(shingle << bin_bits);
    }

    /// Appends the sketch of the text.
    pub(crate) fn finish(&mut self, sketch: &mut Vec<u8>) {
        if !self.has_shingles {
            let all = std::mem::take(&mut self.last);
            self.add_shingle(&all);
        }
        self.fill_empty();
        Kernel::detect().run(Store {
            filled: &self.filled,
            sketch,
        });
    }

    /// Gives each bin without shingles the hash of another bin. Round by round, all empty bins ask their next bin: no
    /// branch depends on a hash, which could not be predicted.
    fn fill_empty(&mut self) {
        let (bins, smallest, empty) = (self.smallest.len(), &self.smallest, &mut self.empty);
        self.filled.copy_from_slice(smallest);
        let mut left = 0;
        for (bin, value) in smallest.iter().enumerate() {
            empty[left] = bin as u8;
            left += usize::from(*value == EMPTY);
        }
        for copied in self.copied.chunks_exact(bins) {
            if left == 0 {
                return;
            }
            for at in 0..std::mem::take(&mut left) {
                let bin = empty[at];
                let value = smallest[usize::from(copied[usize::from(bin)])];
                self.filled[usize::from(bin)] = value;
                empty[left] = bin;
                left += usize::from(value == EMPTY);
            }
        }
        for &bin in &empty[..left] {
            let mut values =
                (ROUNDS as u64..).map(|round| smallest[copied_bin(bin, round, self.bits) as usize]);
            let filled = values.find(|value| *value != EMPTY);
            self.filled[usize::from(bin)] = filled.unwrap_or(EMPTY);
        }
    }
}

/// Appends the bit of each bin to the sketch.
struct Store<'a> {
    filled: &'a [u64],
    sketch: &'a mut Vec<u8>,
}

impl Work for Store<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const LANES: usize>(self, _isa: impl Isa) {
        for (word, values) in self.filled.as_chunks::<64>().0.iter().enumerate() {
            let mut bits = 0;
            for (bit, value) in values.iter().enumerate() {
                // Mixes in the bin's number, so that bins with the same hash store independent bits.
                bits |= (mix(value ^ (64 * word + bit) as u64) >> 63) << bit;
            }
            self.sketch.extend_from_slice(&bits.to_le_bytes());
        }
    }
}

/// The rounds for which the bins that empty bins copy are in a table. Texts of few shingles take more.
const ROUNDS: usize = 32;

static COPIED_64: [[u8; 64]; ROUNDS] = copied();
static COPIED_128: [[u8; 128]; ROUNDS] = copied();
static COPIED_256: [[u8; 256]; ROUNDS] = copied();

/// For each round and bin the bin that an empty bin asks.
const fn copied<const BINS: usize>() -> [[u8; BINS]; ROUNDS] {
    let mut copied = [[0; BINS]; ROUNDS];
    let mut round = 0;
    while round < ROUNDS {
        let mut bin = 0;
        while bin < BINS {
            copied[round][bin] = copied_bin(bin as u8, round as u64, BINS as u32);
            bin += 1;
        }
        round += 1;
    }
    copied
}

/// The bin that an empty bin asks in a round.
const fn copied_bin(bin: u8, round: u64, bins: u32) -> u8 {
    (mix((bin as u64) << 32 | (round + 1)) >> (64 - bins.trailing_zeros())) as u8
}

/// The hash of a shingle of features, given by their hashes.
#[inline(always)]
pub(crate) fn shingle(features: &[u64]) -> u64 {
    features.iter().fold(0, |shingle: u64, &feature| {
        (shingle.rotate_left(23) ^ feature).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// Mixes all bits of `x` (the finalizer of splitmix64).
#[inline(always)]
const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Estimates the Jaccard similarity of two texts from their sketches, from 0 to 1.
///
/// # Panics
/// If the lengths differ.
#[must_use]
pub fn estimate(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!(a.len(), b.len(), "sketches of different lengths");
    similarity_by_bits(differing_bits(a, b), 8 * a.len() as u32)
}

/// The number of bits in which two sketches of equal length differ.
#[must_use]
pub fn differing_bits(a: &[u8], b: &[u8]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// Estimates the similarity of two texts whose sketches of `bits` bits differ in `differing` bits.
#[must_use]
pub fn similarity_by_bits(differing: u32, bits: u32) -> f64 {
    (1.0 - 2.0 * f64::from(differing) / f64::from(bits)).max(0.0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    const SIZES: [SketchBits; 3] = [SketchBits::Bits64, SketchBits::Bits128, SketchBits::Bits256];

    fn sketch(size: SketchBits, hashes: &[u64]) -> Vec<u8> {
        let mut sketch = Vec::new();
        Sketcher::new(size).unwrap().sketch(hashes, &mut sketch);
        assert_eq!(sketch.len(), size.bytes());
        sketch
    }

    proptest! {
        /// The definition, bin by bin.
        #[test]
        fn empty_bins_copy_others(features in proptest::collection::vec(any::<u64>(), 3..300)) {
            for size in SIZES {
                let bins = size.bits();
                let bin_bits = bins.trailing_zeros();
                let own = |bin: u64| {
                    let shingles = features.windows(SHINGLE).map(shingle);
                    shingles.filter(|shingle| shingle >> (64 - bin_bits) == bin).map(|shingle| shingle << bin_bits).min()
                };
                let smallest: Vec<_> = (0..u64::from(bins)).map(own).collect();
                let mut expected = vec![0; size.bytes()];
                for bin in 0..u64::from(bins) {
                    let asked = (1..).map(|attempt| mix(bin << 32 | attempt) >> (64 - bin_bits));
                    let mut values = std::iter::once(bin).chain(asked).filter_map(|bin| smallest[bin as usize]);
                    let bit = mix(values.next().unwrap() ^ bin) >> 63;
                    expected[bin as usize / 8] |= (bit as u8) << (bin % 8);
                }
                prop_assert_eq!(sketch(size, &features), expected);
            }
        }
    }

    fn hash(feature: u64) -> u64 {
        crate::hash::murmur3_low64(&feature.to_le_bytes(), 0)
    }

    /// A text, a revision of it with each `every`th feature replaced, and their Jaccard similarity.
    fn revised(seed: u64, length: u64, every: u64) -> ([Vec<u64>; 2], f64) {
        let feature = |at: u64| hash(seed * 1_000_003 + at);
        let text: Vec<u64> = (0..length).map(feature).collect();
        let revision: Vec<u64> = (0..length)
            .map(|at| match at % every {
                0 => feature(at + (1 << 40)),
                _ => text[at as usize],
            })
            .collect();
        let [a, b] = [&text, &revision].map(|text| {
            let shingles = text.windows(SHINGLE.min(text.len()));
            shingles.map(<[u64]>::to_vec).collect::<HashSet<_>>()
        });
        let common = a.intersection(&b).count() as f64;
        let jaccard = common / (a.len() + b.len()) as f64;
        ([text, revision], jaccard / (1.0 - jaccard))
    }

    proptest! {
        #[test]
        fn a_sketch_is_the_same_in_parts(
            parts in proptest::collection::vec(proptest::collection::vec(any::<u64>(), 0..6), 0..6),
        ) {
            for size in SIZES {
                let mut sketcher = Sketcher::new(size).unwrap();
                let (mut whole, mut in_parts) = (Vec::new(), Vec::new());
                sketcher.sketch(&parts.concat(), &mut whole);
                sketcher.start();
                for part in &parts {
                    sketcher.add(part);
                }
                sketcher.finish(&mut in_parts);
                prop_assert_eq!(&in_parts, &whole);
            }
        }
    }

    /// The mean of the estimate over many pairs is J, and its spread is the standard error.
    #[test]
    fn the_estimate_is_within_its_standard_error() {
        for size in SIZES {
            let bits = size.bits();
            for (length, every) in [(2000, 7), (2000, 31), (2000, 301), (300, 50), (60, 20)] {
                let pairs = 300;
                let (mut sum, mut squares) = (0.0, 0.0);
                let mut jaccard = 0.0;
                for seed in 0..pairs {
                    let (texts, exact) = revised(seed, length, every);
                    jaccard = exact;
                    let [a, b] = texts.map(|text| sketch(size, &text));
                    // Not `estimate`, which cuts off below 0.
                    let differing = f64::from(differing_bits(&a, &b));
                    let error = 1.0 - 2.0 * differing / f64::from(bits) - exact;
                    sum += error;
                    squares += error * error;
                }
                let expected = ((1.0 - jaccard * jaccard) / f64::from(bits)).sqrt();
                let spread = (squares / pairs as f64).sqrt();
                // Many bins of a short text copy other bins, which increases the spread.
                let most = if length < 10 * u64::from(bits) {
                    2.5
                } else {
                    1.3
                };
                assert!(
                    spread < most * expected,
                    "{bits} bits, {length} features, J = {jaccard}: {spread} for {expected}"
                );
                let mean = sum / pairs as f64;
                assert!(
                    mean.abs() < 4.0 * most * expected / (pairs as f64).sqrt() + 1e-9,
                    "{bits} bits, {length} features, J = {jaccard}: {mean}"
                );
            }
        }
    }

    #[test]
    fn sets_of_few_shingles() {
        for shingles in 1..=10u64 {
            let text: Vec<u64> = (0..shingles + 2).map(hash).collect();
            for size in SIZES {
                let bits = size.bits();
                let own = sketch(size, &text);
                assert!((estimate(&own, &sketch(size, &text)) - 1.0).abs() < 1e-9);
                let mut sum = 0.0;
                let others = 200;
                for other in 1..=others {
                    let other: Vec<u64> = (0..shingles + 2)
                        .map(|at| hash(1000 * other + at))
                        .collect();
                    sum += estimate(&own, &sketch(size, &other));
                }
                // The texts have no common shingle, and `estimate` cuts off the negative half of
                // the errors.
                let mean = sum / others as f64;
                let expected = 0.4 / f64::from(bits).sqrt();
                assert!(
                    mean < 2.0 * expected,
                    "{shingles} shingles, {bits} bits: {mean}"
                );
            }
        }
        assert_eq!(
            sketch(SketchBits::Bits64, &[1]),
            sketch(SketchBits::Bits64, &[1])
        );
        assert_ne!(
            sketch(SketchBits::Bits64, &[hash(1)]),
            sketch(SketchBits::Bits64, &[hash(2)])
        );
        assert_ne!(
            sketch(SketchBits::Bits64, &[hash(1), hash(2)]),
            sketch(SketchBits::Bits64, &[hash(2), hash(1)])
        );
    }

    proptest! {
        #[test]
        fn only_the_set_of_shingles_matters(features in proptest::collection::vec(0u64..50, 3..60), times in 1usize..4) {
            // Repetition adds the shingles at the seams. Two or more repetitions have the same set.
            let text: Vec<u64> = features.iter().map(|&feature| hash(feature)).collect();
            let repeated = |times: usize| text.repeat(times);
            prop_assert_eq!(sketch(SketchBits::Bits128, &repeated(times + 1)), sketch(SketchBits::Bits128, &repeated(times + 2)));
        }
    }
}
