//! Compares every instruction set of this machine with the definitions. `buckets/tag.rs` tests the
//! comparisons of cache lines.

use proptest::prelude::*;

use super::{Isa, Kernel, Work};

/// [`Isa::within`], called as probes call it: in a loop that is compiled for the instruction set.
struct Within<'a> {
    query: u64,
    candidates: &'a [u64],
    max_distance: u32,
}

impl Work for Within<'_> {
    type Output = u64;

    #[inline(always)]
    fn execute<I: Isa>(self, isa: I) -> u64 {
        isa.within(self.query, self.candidates, self.max_distance)
    }
}

/// [`Isa::either_within_1`].
struct EitherWithin1<'a, const LANES: usize> {
    a: &'a [u16; LANES],
    x: u16,
    b: &'a [u16; LANES],
    y: u16,
}

impl<const LANES: usize> Work for EitherWithin1<'_, LANES> {
    type Output = bool;

    #[inline(always)]
    fn execute<I: Isa>(self, isa: I) -> bool {
        isa.either_within_1(self.a, self.x, self.b, self.y)
    }
}

/// Checks arrays of `LANES` lanes. In each array, one lane is at most `bits` bits from the query, all others are 2 bits
/// from it.
fn check_either_within_1<const LANES: usize>(
    lane: usize,
    bits: [u32; 2],
    flips: [u16; 2],
    x: u16,
    y: u16,
) {
    let (mut a, mut b) = ([x ^ 0b11; LANES], [y ^ 0b1001; LANES]);
    let flip = |value: u16, bits: u32, flips: u16| {
        let kept = (0..16)
            .filter(|bit| flips >> bit & 1 == 1)
            .take(bits as usize);
        kept.fold(value, |value, bit| value ^ 1 << bit)
    };
    a[lane % LANES] = flip(x, bits[0], flips[0]);
    b[lane % LANES] = flip(y, bits[1], flips[1]);
    let near =
        |lanes: &[u16], query: u16| lanes.iter().any(|lane| (lane ^ query).count_ones() <= 1);
    for kernel in Kernel::available() {
        let found = kernel.execute(EitherWithin1 { a: &a, x, b: &b, y });
        assert_eq!(found, near(&a, x) || near(&b, y), "{}", kernel.name());
    }
}

proptest! {
    #[test]
    fn either_within_1_equals_its_definition_in_every_kernel(
        lane in 0usize..64, bits in [0u32..4, 0u32..4], flips: [u16; 2], x: u16, y: u16,
    ) {
        check_either_within_1::<16>(lane, bits, flips, x, y);
        check_either_within_1::<32>(lane, bits, flips, x, y);
        check_either_within_1::<64>(lane, bits, flips, x, y);
    }

    #[test]
    fn within_equals_its_definition_in_every_kernel(
        query: u64,
        flips in proptest::collection::vec(proptest::collection::vec(0u32..64, 0..24), 0..=64),
        max_distance in 0u32..=16,
    ) {
        let candidates: Vec<u64> = flips
            .iter()
            .map(|bits| bits.iter().fold(query, |value, bit| value ^ (1 << bit)))
            .collect();
        let expected = candidates.iter().enumerate().fold(0u64, |mask, (i, candidate)| {
            mask | u64::from((candidate ^ query).count_ones() <= max_distance) << i
        });
        for kernel in Kernel::available() {
            let found = kernel.execute(Within { query, candidates: &candidates, max_distance });
            prop_assert_eq!(found, expected, "{}", kernel.name());
        }
    }
}
