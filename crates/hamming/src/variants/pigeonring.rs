//! The tags of `variants-N`: bits of the two blocks that follow a table's own, and two tests by the pigeonring
//! principle.
//!
//! The pigeonring principle strengthens the pigeonhole principle (Qin and Xiao, "Pigeonring", VLDB 2018). Let the
//! blocks form a ring (the first follows the last) and have radii rᵢ with Σ(rᵢ + 1) = k + 1, and let a pair within k
//! differ in dᵢ bits of block i. The sum of all dᵢ − (rᵢ + 1) is negative, so there is a block from which on all
//! partial sums around the ring are negative: not only dᵢ ≤ rᵢ, but also dᵢ + dᵢ₊₁ ≤ rᵢ + rᵢ₊₁ + 1, and so on. A pair
//! that fails a test at one block is found at another.
//!
//! At three blocks with radii of 2, one candidate in 1,500 passes the first test, and 2 in 5 of these pass the second.

use crate::buckets::{Field, TagScheme, TagTest};
use crate::design::Block;

/// The tag scheme of block `at`: one test covers the next block, one the next two; the one that fewer pass comes first.
///
/// # Panics
/// When there are fewer than three blocks, or they do not follow each other.
pub(super) fn pigeonring_scheme(blocks: &[Block], at: usize) -> TagScheme {
    let block = &blocks[at];
    // With fewer, the block after the next would be the block itself, whose bits would count twice.
    assert!(blocks.len() >= 3, "at least three blocks");
    let following = |more: usize| &blocks[(at + more) % blocks.len()];
    let (next, third) = (following(1), following(2));
    let ends = |block: &Block| block.mask.trailing_zeros() % 64;
    let begins = |block: &Block| (64 - block.mask.leading_zeros()) % 64;
    assert!(
        ends(block) == begins(next) && ends(next) == begins(third),
        "each block follows the one before"
    );
    let flip_bits = block.radius;
    let next_bits = next.mask.count_ones().min(u32::BITS - flip_bits);
    let bits = (next_bits + third.mask.count_ones()).min(u32::BITS - flip_bits);
    let of_next = TagTest {
        mask: !(((1 << (bits - next_bits)) - 1) << flip_bits),
        limit: block.radius + next.radius + 1,
    };
    let of_both = TagTest {
        mask: !0,
        limit: of_next.limit + third.radius + 1,
    };
    let scheme = |first, second| TagScheme {
        field: Field {
            before: next.mask.leading_zeros(),
            bits,
        },
        flip_bits,
        first,
        second,
    };
    let (next_first, both_first) = (scheme(of_next, of_both), scheme(of_both, of_next));
    if next_first.first_share() <= both_first.first_share() {
        next_first
    } else {
        both_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Design;
    use crate::ball::volume;

    #[test]
    fn shares_are_those_of_all_tags() {
        // Three blocks of 20, 22 and 22 bits with radii of 2: at most 2 bits may differ in one
        // block, 5 in two together, 8 in all three.
        let design = Design::named("variants-3", 8).unwrap();
        let all = TagTest { mask: !0, limit: 8 };
        let of_next = |behind: u32| TagTest {
            mask: !(((1 << behind) - 1) << 2),
            limit: 5,
        };
        let schemes = [0, 1, 2].map(|at| pigeonring_scheme(design.blocks(), at));
        let tests = schemes.map(|scheme| {
            (
                scheme.field.bits,
                scheme.flip_bits,
                scheme.first,
                scheme.second,
            )
        });
        let expected = [
            (30, 2, of_next(8), all),
            (30, 2, of_next(8), all),
            (30, 2, all, of_next(10)),
        ];
        assert_eq!(tests, expected);
        for (scheme, next_bits) in schemes.into_iter().zip([22, 22, 20]) {
            let [mut both, mut next] = [0.0; 2];
            for bits in 0..=3u32 {
                let fewer = bits
                    .checked_sub(1)
                    .map_or(0.0, |fewer| volume(next_bits, fewer));
                let exactly = volume(next_bits, bits) - fewer;
                next += exactly;
                both += exactly * volume(30 - next_bits, 6 - bits);
            }
            let next = next / 2f64.powi(next_bits.cast_signed());
            let first = next.min(volume(30, 6) / 2f64.powi(30));
            assert!((scheme.first_share() / first - 1.0).abs() < 1e-9);
            assert!((scheme.both_share() * 2f64.powi(30) / both - 1.0).abs() < 1e-9);
            assert!(scheme.both_share() < 0.5 * scheme.first_share());
        }
    }
}
