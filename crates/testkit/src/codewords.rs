//! Bare fingerprints at any scale with exactly known hits.
//!
//! Random 64-bit numbers have accidental near pairs (19 expected for 8 billion against 1 million at k = 3),
//! and only a join could tell which. So fingerprints are taken from an extended BCH code of length 64:
//! any two different codewords are at least d bits apart, and a codeword with e ≤ k of its bits flipped is
//! at least d − e > k from every other when d ≥ 2k + 1. Planted pairs are then the only hits. The code is
//! systematic with its message on top, so that ascending messages give fingerprints that ascend as signed
//! numbers: an archive of any size streams out sorted. Every run of fewer than d′ bits (the dual's distance) is uniform, as in
//! random numbers, so that the join's work is the same.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The largest distance for which [`Code::for_distance`] has a code.
pub const MAX_DISTANCE: u32 = 10;

/// An extended BCH code of length 64 in systematic form.
#[derive(Debug, Clone)]
pub struct Code {
    message_bits: u32,
    min_distance: u32,
    /// The codeword of each single message bit, from the lowest.
    basis: Vec<u64>,
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
        let basis = (0..message_bits)
            .map(|bit| {
                // The message times x^check_bits, less its remainder, is a multiple of the generator.
                let shifted = 1u64 << (check_bits + bit);
                let word = shifted | remainder(shifted, generator);
                // The extension: an overall parity bit below.
                word << 1 | u64::from(word.count_ones() & 1)
            })
            .collect();
        Self {
            message_bits,
            min_distance: designed + 1,
            basis,
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
        let mut rest = message;
        let mut word = 1 << 63;
        while rest != 0 {
            word ^= self.basis[rest.trailing_zeros() as usize];
            rest &= rest - 1;
        }
        word
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

/// A day and an archive of bare fingerprints with planted pairs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Fingerprints in the archive.
    pub base: u64,
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
    /// The archive fingerprint that it is planted near, by its rank in ascending order, and the distance.
    pub near: Option<(u64, u32)>,
}

/// Carries out a [`Plan`].
#[derive(Debug, Clone)]
pub struct Generator {
    plan: Plan,
    code: Code,
    blocks: u64,
}

/// Archive fingerprints made at once; they are sorted block by block.
const BLOCK: u64 = 1 << 20;

impl Generator {
    /// Checks that `plan` can be carried out.
    ///
    /// # Errors
    /// [`Impossible`] when the distance is above [`MAX_DISTANCE`] or the code has too few words.
    pub fn new(plan: Plan) -> Result<Self, Impossible> {
        let code = Code::for_distance(plan.max_distance).ok_or_else(|| {
            Impossible(format!("fingerprints with known answers can be made up to a distance of {MAX_DISTANCE}, not {}", plan.max_distance))
        })?;
        let capacity = (1u64 << (code.message_bits() - 1)) / 4;
        if plan.base > capacity || plan.new > capacity {
            return Err(Impossible(format!(
                "at a distance of {} at most {capacity} fingerprints can be made on either side",
                plan.max_distance
            )));
        }
        if plan.pairs > plan.base.min(plan.new) {
            return Err(Impossible(format!(
                "{} pairs need as many fingerprints on either side",
                plan.pairs
            )));
        }
        let blocks = plan.base.div_ceil(BLOCK);
        Ok(Self { plan, code, blocks })
    }

    /// The archive's fingerprints in ascending order as signed numbers, a block at a time.
    pub fn base(&self) -> impl Iterator<Item = Vec<u64>> + '_ {
        (0..self.blocks).map(|block| self.base_block(block))
    }

    /// Block `block` of the archive: uniform within its share of the messages.
    fn base_block(&self, block: u64) -> Vec<u64> {
        let share = |block: u64, of: u64| {
            (u128::from(of) * u128::from(block) / u128::from(self.blocks)) as u64
        };
        let count = (share(block + 1, self.plan.base) - share(block, self.plan.base)) as usize;
        // Archive messages are even, the day's unrelated ones odd: they never meet.
        let evens = 1u64 << (self.code.message_bits() - 1);
        let range = share(block, evens)..share(block + 1, evens);
        let mut rng = self.rng(1 + block);
        let mut messages = Vec::with_capacity(count);
        while messages.len() < count {
            messages.extend((messages.len()..count).map(|_| rng.random_range(range.clone())));
            messages.sort_unstable();
            messages.dedup();
        }
        messages.iter().map(|m| self.code.encode(2 * m)).collect()
    }

    /// The day's fingerprints in a mixed order; planted ones name their pair.
    pub fn new_day(&self) -> Vec<New> {
        let mut rng = self.rng(0);
        let mut day = Vec::with_capacity(self.plan.new as usize);
        let mut block = (u64::MAX, Vec::new());
        for pair in 0..self.plan.pairs {
            // Spread over the archive; blocks are made again one at a time.
            let rank = (u128::from(self.plan.base) * u128::from(pair) / u128::from(self.plan.pairs))
                as u64;
            let number = self.block_of(rank);
            if block.0 != number {
                block = (number, self.base_block(number));
            }
            let distance = (pair % u64::from(self.plan.max_distance + 1)) as u32;
            let mut fingerprint = block.1[(rank - self.first_rank(number)) as usize];
            let original = fingerprint;
            while (fingerprint ^ original).count_ones() < distance {
                let bit = 1u64 << rng.random_range(0..64);
                if (fingerprint ^ original) & bit == 0 {
                    fingerprint ^= bit;
                }
            }
            day.push(New {
                fingerprint,
                near: Some((rank, distance)),
            });
        }
        let odds = 1u64 << (self.code.message_bits() - 1);
        let mut messages: Vec<u64> = Vec::new();
        let unrelated = (self.plan.new - self.plan.pairs) as usize;
        while messages.len() < unrelated {
            messages.extend((messages.len()..unrelated).map(|_| rng.random_range(0..odds)));
            messages.sort_unstable();
            messages.dedup();
        }
        day.extend(messages.iter().map(|m| New {
            fingerprint: self.code.encode(2 * m + 1),
            near: None,
        }));
        // Fisher and Yates.
        for last in (1..day.len()).rev() {
            day.swap(last, rng.random_range(0..=last));
        }
        day
    }

    fn first_rank(&self, block: u64) -> u64 {
        (u128::from(self.plan.base) * u128::from(block) / u128::from(self.blocks)) as u64
    }

    fn block_of(&self, rank: u64) -> u64 {
        let guess =
            (u128::from(rank) * u128::from(self.blocks) / u128::from(self.plan.base)) as u64;
        // Rounding can put the guess one block off.
        (guess.saturating_sub(1)..self.blocks)
            .take_while(|&block| self.first_rank(block) <= rank)
            .last()
            .unwrap_or(0)
    }

    fn rng(&self, stream: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.plan.seed);
        rng.set_stream(stream);
        rng
    }
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

    #[test]
    fn planted_pairs_are_the_only_ones() {
        for max_distance in [0, 3, 5, 7] {
            let generator = Generator::new(Plan {
                base: 3000,
                new: 700,
                pairs: 200,
                max_distance,
                seed: 7,
            })
            .unwrap();
            let base: Vec<u64> = generator.base().flatten().collect();
            assert!(base.is_sorted_by_key(|f| f.cast_signed()) && base.len() == 3000);
            let day = generator.new_day();
            let fingerprints: Vec<u64> = day.iter().map(|new| new.fingerprint).collect();
            let expected: Vec<_> = day
                .iter()
                .enumerate()
                .filter_map(|(i, new)| {
                    new.near
                        .map(|(rank, distance)| (i, rank as usize, distance))
                })
                .collect();
            assert_eq!(expected.len(), 200);
            assert_eq!(pairs_within(&fingerprints, &base, max_distance), expected);
            assert!(pairs_inside(&fingerprints, max_distance).is_empty());
            assert_eq!(generator.new_day(), day);
        }
    }

    #[test]
    fn blocks_join_up() {
        let generator = Generator::new(Plan {
            base: 2 * BLOCK + 77,
            new: 50,
            pairs: 50,
            max_distance: 3,
            seed: 1,
        })
        .unwrap();
        let base: Vec<u64> = generator.base().flatten().collect();
        assert_eq!(base.len() as u64, 2 * BLOCK + 77);
        assert!(base.is_sorted_by(|a, b| a.cast_signed() < b.cast_signed()));
        for new in generator.new_day() {
            let (rank, distance) = new.near.unwrap();
            assert_eq!(
                (base[rank as usize] ^ new.fingerprint).count_ones(),
                distance
            );
        }
    }
}
