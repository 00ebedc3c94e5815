//! Sums hashed features into a fingerprint: bit i is 1 if the features whose hash has bit i set weigh more than the others
//! (Charikar; Manku, Jain and Das Sarma, section 2).
//!
//! Carry-save adders count features of equal weight (Harley and Seal's positional population
//! count). The 64 counters are bit-sliced: word d holds binary digit d of each. The final
//! comparison with half the number of features is bit-sliced, too. Weights that differ are added to 64
//! counters of 32 bits, which are flushed to 64 sums of 64 bits.

use crate::isa::{Isa, Kernel, Work};

/// The fingerprint of features of equal weight, given by their hashes. A tie gives bit 0.
#[must_use]
pub fn unweighted_fingerprint(kernel: Kernel, hashes: &[u64]) -> u64 {
    kernel.run(Unweighted { hashes })
}

/// The fingerprint of weighted features, given by their hashes and weights, each below 2²⁷. A tie gives bit 0.
#[must_use]
pub fn weighted_fingerprint(kernel: Kernel, hashes: &[u64], weights: &[u32]) -> u64 {
    weighted_sums(kernel, SameWeight::default(), hashes, weights).fingerprint()
}

/// The sums of the features of `same`, whose weight is below 2²⁷, and those of `hashes` and `weights`.
pub(crate) fn weighted_sums(
    kernel: Kernel,
    same: SameWeight<'_>,
    hashes: &[u64],
    weights: &[u32],
) -> Sums {
    kernel.run(Weighted {
        same,
        hashes,
        weights,
    })
}

/// What a fingerprint is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sums {
    /// For each bit, the weights of the features whose hash has it.
    set: [u64; 64],
    /// The weights of all features.
    total: u64,
}

impl Sums {
    /// The sums of no features.
    pub(crate) const ZERO: Self = Self {
        set: [0; 64],
        total: 0,
    };

    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in self.set.iter_mut().zip(other.set) {
            *sum += more;
        }
        self.total += other.total;
    }

    /// The fingerprint. A tie gives bit 0.
    pub(crate) fn fingerprint(&self) -> u64 {
        (0..64).fold(0, |fingerprint, bit| {
            fingerprint | (u64::from(2 * self.set[bit] > self.total) << bit)
        })
    }
}

/// Features of one weight, given by their hashes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SameWeight<'a> {
    pub(crate) hashes: &'a [u64],
    pub(crate) weight: u32,
}

/// The number of binary digits of a counter. It suffices: 2⁴⁰ hashes would take 8 TiB of memory.
const DIGITS: usize = 40;
/// The number of hashes that a lane adds at once.
const GROUP: usize = 8;

struct Unweighted<'a> {
    hashes: &'a [u64],
}

impl Work for Unweighted<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<const LANES: usize>(self, _: impl Isa) -> u64 {
        let (total, used) = count_bits::<LANES>(self.hashes);
        // Sets the bits whose counters exceed half the number of hashes. Compares all 64 counters
        // at once, from the highest digit down.
        let half = self.hashes.len() / 2;
        let (mut more, mut same) = (0, u64::MAX);
        for (digit, &sum) in total[..used].iter().enumerate().rev() {
            let set = ((half >> digit & 1) as u64).wrapping_neg();
            more |= same & sum & !set;
            same &= !(sum ^ set);
        }
        more
    }
}

/// Counts how many of `hashes` have each bit set: word d holds binary digit d of the 64 counts. The digits from the returned
/// number on are 0.
#[inline(always)]
fn count_bits<const LANES: usize>(hashes: &[u64]) -> ([u64; DIGITS], usize) {
    let (groups, _) = hashes.as_chunks::<LANES>().0.as_chunks::<GROUP>();
    let rest = &hashes[groups.len() * GROUP * LANES..];
    let mut last = [[0; LANES]; GROUP];
    last.as_flattened_mut()[..rest.len()].copy_from_slice(rest);
    // Each lane counts its own hashes. Their number bounds the digits in use, so no branch
    // depends on a carry.
    let mut digits = [[0u64; LANES]; DIGITS];
    let used = bits(GROUP * (groups.len() + 1));
    for group in groups.iter().chain([&last]) {
        add_group(&mut digits[..used], group);
    }
    // Adds up the counters of all lanes.
    let used = used + bits(LANES);
    let mut total = [0u64; DIGITS];
    for lane in 0..LANES {
        let mut carry = 0;
        for (sum, digit) in total[..used].iter_mut().zip(&digits) {
            let (a, b) = (*sum, digit[lane]);
            *sum = a ^ b ^ carry;
            carry = (a & b) | (carry & (a ^ b));
        }
    }
    (total, used)
}

/// The number of binary digits of `number`.
const fn bits(number: usize) -> usize {
    (usize::BITS - number.leading_zeros()) as usize
}

/// Adds a group of hashes to the counters. These have at least four digits, enough for one group.
#[inline(always)]
fn add_group<const LANES: usize>(digits: &mut [[u64; LANES]], group: &[[u64; LANES]; GROUP]) {
    let [first, second, third, rest @ ..] = digits else {
        unreachable!()
    };
    let twos = [
        add(first, &group[0], &group[1]),
        add(first, &group[2], &group[3]),
        add(first, &group[4], &group[5]),
        add(first, &group[6], &group[7]),
    ];
    let fours = [
        add(second, &twos[0], &twos[1]),
        add(second, &twos[2], &twos[3]),
    ];
    let mut carry = add(third, &fours[0], &fours[1]);
    for digit in rest {
        for lane in 0..LANES {
            (digit[lane], carry[lane]) = (digit[lane] ^ carry[lane], digit[lane] & carry[lane]);
        }
    }
}

/// Adds two words to one digit of the counters, and returns the carries.
#[inline(always)]
fn add<const LANES: usize>(
    digit: &mut [u64; LANES],
    a: &[u64; LANES],
    b: &[u64; LANES],
) -> [u64; LANES] {
    let mut carry = [0; LANES];
    for lane in 0..LANES {
        let (sum, a, b) = (digit[lane], a[lane], b[lane]);
        let either = a ^ b;
        digit[lane] = sum ^ either;
        carry[lane] = (a & b) | (sum & either);
    }
    carry
}

/// The number of weights that are added to the 32-bit counters before a flush: 31 weights below 2²⁷
/// sum to less than 2³².
const CHUNK: usize = 31;

struct Weighted<'a> {
    same: SameWeight<'a>,
    hashes: &'a [u64],
    weights: &'a [u32],
}

impl Work for Weighted<'_> {
    type Output = Sums;

    #[inline(always)]
    fn run<const LANES: usize>(self, _: impl Isa) -> Sums {
        let mut sums = [0u64; 64];
        if !self.same.hashes.is_empty() {
            let (counts, used) = count_bits::<LANES>(self.same.hashes);
            for (digit, &set) in counts[..used].iter().enumerate() {
                let weight = u64::from(self.same.weight) << digit;
                for (bit, sum) in sums.iter_mut().enumerate() {
                    *sum += weight & (set >> bit & 1).wrapping_neg();
                }
            }
        }
        let chunks = self.hashes.chunks(CHUNK).zip(self.weights.chunks(CHUNK));
        for (hashes, weights) in chunks {
            let mut partial = [0u32; 64];
            for (&hash, &weight) in hashes.iter().zip(weights) {
                let halves = [hash as u32, (hash >> 32) as u32];
                for (half, partial) in halves.iter().zip(partial.as_chunks_mut::<32>().0) {
                    for (bit, sum) in partial.iter_mut().enumerate() {
                        // All ones if the hash has this bit, else 0.
                        let set = ((half << (31 - bit)).cast_signed() >> 31).cast_unsigned();
                        *sum += weight & set;
                    }
                }
            }
            for (sum, partial) in sums.iter_mut().zip(partial) {
                *sum += u64::from(partial);
            }
        }
        let total: u64 = self.weights.iter().map(|&weight| u64::from(weight)).sum();
        Sums {
            set: sums,
            total: total + self.same.hashes.len() as u64 * u64::from(self.same.weight),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Charikar's definition.
    fn by_definition(features: &[(u64, u32)]) -> u64 {
        let mut fingerprint = 0;
        for bit in 0..64 {
            let mut sum = 0;
            for &(hash, weight) in features {
                if hash & (1 << bit) != 0 {
                    sum += i64::from(weight);
                } else {
                    sum -= i64::from(weight);
                }
            }
            if sum > 0 {
                fingerprint |= 1 << bit;
            }
        }
        fingerprint
    }

    fn check(features: &[(u64, u32)]) {
        check_with_same_weight(features);
        let (hashes, weights): (Vec<u64>, Vec<u32>) = features.iter().copied().unzip();
        let ones: Vec<(u64, u32)> = hashes.iter().map(|&hash| (hash, 1)).collect();
        for kernel in Kernel::available() {
            assert_eq!(
                weighted_fingerprint(kernel, &hashes, &weights),
                by_definition(features),
                "{} of {}",
                kernel.name(),
                hashes.len()
            );
            assert_eq!(
                unweighted_fingerprint(kernel, &hashes),
                by_definition(&ones),
                "{} of {}",
                kernel.name(),
                hashes.len()
            );
        }
    }

    /// The hashes of the first half of `features` with the weight of the first, and the other half.
    fn check_with_same_weight(features: &[(u64, u32)]) {
        let weight = features.first().map_or(0, |first| first.1);
        let (same, others) = features.split_at(features.len() / 2);
        let same: Vec<u64> = same.iter().map(|&(hash, _)| hash).collect();
        let (hashes, weights): (Vec<u64>, Vec<u32>) = others.iter().copied().unzip();
        let mut all: Vec<_> = same.iter().map(|&hash| (hash, weight)).collect();
        all.extend(others);
        for kernel in Kernel::available() {
            let same = SameWeight {
                hashes: &same,
                weight,
            };
            assert_eq!(
                weighted_sums(kernel, same, &hashes, &weights).fingerprint(),
                by_definition(&all),
                "{} of {}",
                kernel.name(),
                all.len()
            );
        }
    }

    #[test]
    fn every_number_of_features_and_every_tie() {
        for count in 0..300u64 {
            let scattered = |at: u64| (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let all = |hash: fn(u64) -> u64| {
                let features: Vec<_> = (0..count)
                    .map(|at| (hash(at), ((1 << 27) - 1) >> (at % 20)))
                    .collect();
                check(&features);
            };
            all(|_| u64::MAX);
            all(|_| 0);
            all(|at| if at % 2 == 0 { u64::MAX } else { 0 });
            all(|at| 0xaaaa_aaaa_aaaa_aaaa >> (at % 2));
            check(&(0..count).map(|at| (scattered(at), 1)).collect::<Vec<_>>());
        }
        check(&vec![(u64::MAX / 3, (1 << 27) - 1); 70_001]);
    }

    proptest! {
        #[test]
        fn fingerprints_equal_the_definition(features in proptest::collection::vec((any::<u64>(), 0u32..1 << 27), 0..700)) {
            check(&features);
        }
    }
}
