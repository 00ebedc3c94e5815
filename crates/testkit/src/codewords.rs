//! Bare fingerprints at any scale with exactly known hits.
//!
//! Random 64-bit numbers have accidental near pairs (19 expected for 8 billion against 1 million at k = 3),
//! and only a join could tell which. So fingerprints are taken from an extended BCH code of length 64:
//! any two different codewords are at least d bits apart, and a codeword with e ≤ k of its bits flipped is
//! at least d − e > k from every other when d ≥ 2k + 1. Planted pairs are then the only hits. The code is
//! systematic with its message on top, so that ascending messages give fingerprints that ascend as signed
//! numbers: a day of any size streams out sorted. Every run of fewer than d′ bits (the dual's distance) is uniform, as in
//! random numbers, and no bit tells one day from another, so that the join's work is the same.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The largest distance for which [`Code::for_distance`] has a code.
pub const MAX_DISTANCE: u32 = 10;

/// An extended BCH code of length 64 in systematic form.
#[derive(Debug, Clone)]
pub struct Code {
    message_bits: u32,
    min_distance: u32,
    /// The codewords of each byte of a message, from the lowest.
    bytes: Vec<[u64; 256]>,
}

impl Code {
    /// A code whose codewords stay more than `max_distance` apart even when one of them has
    /// `max_distance` bits flipped; `None` above [`MAX_DISTANCE`].
    #[must_use]
    pub fn for_distance(max_distance: u32) -> Option<Self> {
        // Designed distances of the narrow-sense BCH codes of length 63; the extension adds one.
        [7, 11, 13, 15, 21]
            .into_iter()
            .find(|designed| designed + 1 > 2 * max_distance)
            .map(Self::bch)
    }

    fn bch(designed: u32) -> Self {
        let generator = generator_polynomial(designed);
        let check_bits = generator.ilog2();
        let message_bits = 63 - check_bits;
        let basis: Vec<u64> = (0..message_bits)
            .map(|bit| {
                // The message times x^check_bits, less its remainder, is a multiple of the generator.
                let shifted = 1u64 << (check_bits + bit);
                let word = shifted | remainder(shifted, generator);
                // The extension: an overall parity bit below.
                word << 1 | u64::from(word.count_ones() & 1)
            })
            .collect();
        let sum = |words: &[u64], byte: usize| {
            let chosen = words.iter().enumerate().filter(|(i, _)| byte >> i & 1 == 1);
            chosen.fold(0, |sum, (_, word)| sum ^ word)
        };
        Self {
            message_bits,
            min_distance: designed + 1,
            bytes: basis
                .chunks(8)
                .map(|words| std::array::from_fn(|byte| sum(words, byte)))
                .collect(),
        }
    }

    /// Bits of a message.
    #[must_use]
    pub fn message_bits(&self) -> u32 {
        self.message_bits
    }

    /// Different codewords differ in at least so many bits.
    #[must_use]
    pub fn min_distance(&self) -> u32 {
        self.min_distance
    }

    /// The codeword of `message` with its top bit flipped, which makes it ascending in the message when read
    /// as a signed number, and changes no distance.
    #[must_use]
    pub fn encode(&self, message: u64) -> u64 {
        let bytes = self.bytes.iter().zip(message.to_le_bytes());
        bytes.fold(1 << 63, |word, (words, byte)| {
            word ^ words[usize::from(byte)]
        })
    }
}

/// The product of the minimal polynomials over GF(2) of α¹, α², …, α^(designed − 1), α primitive in GF(64).
fn generator_polynomial(designed: u32) -> u64 {
    let mut covered = [false; 63];
    let mut product = 1;
    for power in 1..designed as usize {
        if covered[power] {
            continue;
        }
        // The conjugates of α^power are the roots of its minimal polynomial.
        let mut minimal = vec![1u8];
        let mut conjugate = power;
        while !covered[conjugate] {
            covered[conjugate] = true;
            // Times (x + α^conjugate); coefficients from the constant up.
            let root = alpha(conjugate);
            let mut next = vec![0; minimal.len() + 1];
            for (i, &c) in minimal.iter().enumerate() {
                next[i + 1] ^= c;
                next[i] ^= multiply(c, root);
            }
            minimal = next;
            conjugate = 2 * conjugate % 63;
        }
        let minimal = minimal
            .iter()
            .enumerate()
            .fold(0u64, |bits, (i, &c)| bits | u64::from(c) << i);
        product = carryless_product(product, minimal);
    }
    product
}

/// α^power in GF(64) = GF(2)[x]/(x⁶ + x + 1).
fn alpha(power: usize) -> u8 {
    (0..power).fold(1, |value, _| multiply(value, 2))
}

fn multiply(a: u8, b: u8) -> u8 {
    let product = carryless_product(a.into(), b.into());
    remainder(product, 0b100_0011) as u8
}

fn carryless_product(a: u64, b: u64) -> u64 {
    (0..64)
        .filter(|bit| b >> bit & 1 == 1)
        .fold(0, |product, bit| product ^ a << bit)
}

fn remainder(mut value: u64, divisor: u64) -> u64 {
    while value != 0 && value.ilog2() >= divisor.ilog2() {
        value ^= divisor << (value.ilog2() - divisor.ilog2());
    }
    value
}

/// A new day and an archive of bare fingerprints with planted pairs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Fingerprints in the archive.
    pub base: u64,
    /// Days that they are shared out to, as evenly as can be.
    pub days: u64,
    /// Fingerprints in the new day.
    pub new: u64,
    /// How many of the day's are planted near one of the archive's, one archive fingerprint each.
    pub pairs: u64,
    /// Planted distances run from 0 to this, and no other pair is within it.
    pub max_distance: u32,
    /// Decides everything else.
    pub seed: u64,
}

/// Why a [`Plan`] cannot be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impossible(pub String);

impl std::fmt::Display for Impossible {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Impossible {}

/// A fingerprint of the new day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct New {
    /// Its 64 bits.
    pub fingerprint: u64,
    /// The archive fingerprint that it is planted near, and the distance.
    pub near: Option<(Base, u32)>,
}

/// A fingerprint of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Base {
    /// Its number, in the order of the days and in each in ascending order of the fingerprints.
    pub number: u64,
    /// Its day.
    pub day: u64,
}

/// Carries out a [`Plan`].
#[derive(Debug, Clone)]
pub struct Generator {
    plan: Plan,
    code: Code,
}

/// Archive fingerprints made at once; they are sorted block by block. So few that one of them costs little.
const BLOCK: u64 = 1 << 10;

impl Generator {
    /// Checks that `plan` can be carried out.
    ///
    /// # Errors
    /// [`Impossible`] when the distance is above [`MAX_DISTANCE`] or the code has too few words.
    pub fn new(plan: Plan) -> Result<Self, Impossible> {
        let code = Code::for_distance(plan.max_distance).ok_or_else(|| {
            Impossible(format!("fingerprints with known answers can be made up to a distance of {MAX_DISTANCE}, not {}", plan.max_distance))
        })?;
        let generator = Self { plan, code };
        let plan = &generator.plan;
        let capacity = generator.messages() / 4;
        if plan.base.div_ceil(plan.days.max(1)) > capacity || plan.new > capacity {
            return Err(Impossible(format!(
                "at a distance of {} and with {} days of history at most {capacity} fingerprints of a day can be made",
                plan.max_distance, plan.days
            )));
        }
        if plan.pairs > plan.base.min(plan.new) {
            return Err(Impossible(format!(
                "{} pairs need as many fingerprints on either side",
                plan.pairs
            )));
        }
        Ok(generator)
    }

    /// The first number of a day of the archive.
    #[must_use]
    pub fn first(&self, day: u64) -> u64 {
        share(self.plan.base, day, self.plan.days)
    }

    /// Blocks of a day of the archive.
    #[must_use]
    pub fn blocks(&self, day: u64) -> u64 {
        self.len(day).div_ceil(BLOCK)
    }

    /// Block `block` of a day of the archive: the number of its first fingerprint, and its fingerprints. Block after
    /// block they ascend as signed numbers.
    #[must_use]
    pub fn block(&self, day: u64, block: u64) -> (u64, Vec<u64>) {
        let of = self.blocks(day);
        let (first, end) = (
            share(self.len(day), block, of),
            share(self.len(day), block + 1, of),
        );
        let messages = self.messages();
        let mut rng = self.rng((1 + day) << 32 | block);
        let range = share(messages, block, of)..share(messages, block + 1, of);
        let drawn = draw(&mut rng, range, (end - first) as usize);
        let words = drawn.into_iter().map(|number| self.word(day, number));
        (self.first(day) + first, words.collect())
    }

    /// The day's fingerprints in a mixed order; planted ones name their pair.
    #[must_use]
    pub fn new_day(&self) -> Vec<New> {
        let plan = &self.plan;
        let mut rng = self.rng(0);
        let mut new = Vec::with_capacity(plan.new as usize);
        let mut made = ((u64::MAX, u64::MAX), (0, Vec::new()));
        for pair in 0..plan.pairs {
            // Spread over the archive; blocks are made again one at a time.
            let number = share(plan.base, pair, plan.pairs);
            let day = part_of(plan.base, number, plan.days);
            let block = part_of(self.len(day), number - self.first(day), self.blocks(day));
            if made.0 != (day, block) {
                made = ((day, block), self.block(day, block));
            }
            let (first, fingerprints) = &made.1;
            let original = fingerprints[(number - first) as usize];
            let distance = (pair % u64::from(plan.max_distance + 1)) as u32;
            let mut fingerprint = original;
            while (fingerprint ^ original).count_ones() < distance {
                let bit = 1u64 << rng.random_range(0..64);
                if (fingerprint ^ original) & bit == 0 {
                    fingerprint ^= bit;
                }
            }
            new.push(New {
                fingerprint,
                near: Some((Base { number, day }, distance)),
            });
        }
        let unrelated = (plan.new - plan.pairs) as usize;
        let drawn = draw(&mut rng, 0..self.messages(), unrelated);
        new.extend(drawn.into_iter().map(|number| New {
            fingerprint: self.word(plan.days, number),
            near: None,
        }));
        // Fisher and Yates.
        for last in (1..new.len()).rev() {
            new.swap(last, rng.random_range(0..=last));
        }
        new
    }

    /// Fingerprints of a day of the archive.
    fn len(&self, day: u64) -> u64 {
        self.first(day + 1) - self.first(day)
    }

    /// Messages that each day, the new one too, may use.
    fn messages(&self) -> u64 {
        (1 << self.code.message_bits()) / (self.plan.days + 1)
    }

    /// The fingerprint of the message of a day, `number` in ascending order. Days never meet: of the messages
    /// that follow each other each has one; which one is mixed, or a few bits would tell the days apart, and
    /// the join would have candidates to verify only where those agree.
    fn word(&self, day: u64, number: u64) -> u64 {
        let days = self.plan.days + 1;
        self.code
            .encode(number * days + (mix(number) % days + day) % days)
    }

    fn rng(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.plan.seed);
        rng.set_stream(stream);
        rng
    }
}

/// Where part `part` of `total` in `parts` begins.
fn share(total: u64, part: u64, parts: u64) -> u64 {
    (u128::from(total) * u128::from(part) / u128::from(parts.max(1))) as u64
}

/// The part of `total` in `parts` that `number` is in.
fn part_of(total: u64, number: u64, parts: u64) -> u64 {
    // Below the last part that begins at `number` or before.
    ((u128::from(number) + 1) * u128::from(parts)).div_ceil(u128::from(total)) as u64 - 1
}

/// `count` different numbers in ascending order.
fn draw(rng: &mut ChaCha8Rng, range: std::ops::Range<u64>, count: usize) -> Vec<u64> {
    let mut drawn = Vec::with_capacity(count);
    while drawn.len() < count {
        drawn.extend((drawn.len()..count).map(|_| rng.random_range(range.clone())));
        drawn.sort_unstable();
        drawn.dedup();
    }
    drawn
}

/// The finalizer of `SplitMix64`.
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{pairs_inside, pairs_within};

    #[test]
    fn codes_have_their_distance() {
        for (k, message_bits, min_distance) in [
            (3, 45, 8),
            (5, 36, 12),
            (6, 30, 14),
            (7, 24, 16),
            (10, 18, 22),
        ] {
            let code = Code::for_distance(k).unwrap();
            assert_eq!(
                (code.message_bits(), code.min_distance()),
                (message_bits, min_distance)
            );
            let mut rng = ChaCha8Rng::seed_from_u64(k.into());
            for _ in 0..20_000 {
                // The code is linear: its least distance is the least weight.
                let message = rng.random_range(1..1u64 << message_bits);
                let zero = code.encode(0);
                assert!((code.encode(message) ^ zero).count_ones() >= min_distance);
                let next = message + 1;
                let ascending =
                    code.encode(message).cast_signed() < code.encode(next).cast_signed();
                assert!(ascending || next >> message_bits != 0);
            }
            for bit in 0..message_bits {
                assert!((code.encode(1 << bit) ^ code.encode(0)).count_ones() >= min_distance);
            }
        }
        assert!(Code::for_distance(11).is_none());
    }

    fn plan(base: u64, days: u64, new: u64, pairs: u64, max_distance: u32) -> Plan {
        Plan {
            base,
            days,
            new,
            pairs,
            max_distance,
            seed: 7,
        }
    }

    /// The archive in the order of its numbers, which must be without gaps.
    fn archive(generator: &Generator) -> Vec<u64> {
        let mut archive = Vec::new();
        for day in 0..generator.plan.days {
            let start = archive.len();
            assert_eq!(generator.first(day), start as u64);
            for block in 0..generator.blocks(day) {
                let (first, fingerprints) = generator.block(day, block);
                assert_eq!(first, archive.len() as u64);
                archive.extend(fingerprints);
            }
            assert!(archive[start..].is_sorted_by(|a, b| a.cast_signed() < b.cast_signed()));
        }
        archive
    }

    #[test]
    fn planted_pairs_are_the_only_ones() {
        for (max_distance, days) in [(0, 1), (3, 1), (3, 4), (5, 2), (7, 3)] {
            let generator = Generator::new(plan(3000, days, 700, 200, max_distance)).unwrap();
            let base = archive(&generator);
            assert_eq!(base.len(), 3000);
            assert!(pairs_inside(&base, max_distance).is_empty());
            let day = generator.new_day();
            let fingerprints: Vec<u64> = day.iter().map(|new| new.fingerprint).collect();
            let near = day.iter().enumerate();
            let expected: Vec<_> = near
                .filter_map(|(i, new)| Some((i, new.near?)))
                .map(|(i, (base, distance))| (i, base.number as usize, distance))
                .collect();
            assert_eq!(expected.len(), 200);
            assert_eq!(pairs_within(&fingerprints, &base, max_distance), expected);
            assert!(pairs_inside(&fingerprints, max_distance).is_empty());
            assert_eq!(generator.new_day(), day);
        }
    }

    #[test]
    fn blocks_and_days_join_up() {
        for (base, days) in [
            (2 * BLOCK + 77, 1),
            (9 * BLOCK + 1, 7),
            (3, 5),
            (1, 1),
            (0, 2),
        ] {
            let generator = Generator::new(plan(base, days, 50, base.min(50), 3)).unwrap();
            let archive = archive(&generator);
            assert_eq!(archive.len() as u64, base);
            for new in generator.new_day() {
                let Some((base, distance)) = new.near else {
                    continue;
                };
                let days = generator.first(base.day)..generator.first(base.day + 1);
                assert!(days.contains(&base.number));
                let original = archive[base.number as usize];
                assert_eq!((original ^ new.fingerprint).count_ones(), distance);
            }
        }
        let too_many = Generator::new(plan(40_000, 1, 10, 0, 10));
        assert!(too_many.unwrap_err().0.contains("at most 32768"));
    }

    #[test]
    fn no_bits_tell_days_apart() {
        let generator = Generator::new(plan(4000, 2, 2000, 0, 3)).unwrap();
        let archive = archive(&generator);
        let new = generator.new_day();
        let days = [
            archive[..2000].to_vec(),
            archive[2000..].to_vec(),
            new.iter().map(|new| new.fingerprint).collect(),
        ];
        // Of 2000 random ones half have a bit set, within five standard deviations; so of the sums of neighbouring bits.
        for day in days {
            for (bits, shift) in [1u64, 3, 5, 7, 15]
                .iter()
                .flat_map(|b| (0..60).map(move |s| (b, s)))
            {
                let odd = day
                    .iter()
                    .filter(|&f| (f & bits << shift).count_ones() % 2 == 1);
                assert!(odd.count().abs_diff(1000) < 112, "{bits:b} at {shift}");
            }
        }
    }
}
