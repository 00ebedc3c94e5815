//! How near a sketch has to be.

use super::Field;
use crate::cost::ball;
use crate::design::Block;

/// In what, and in how many bits of it, a pair may differ that is found by a block: one that agrees on several within their
/// radii, and differs in more behind one of them, is found by another (see [the module above](super)).
///
/// Behind its bits a sketch has as many as the block's radius, of which as many are ones as bits of the key differ: they
/// count in each test.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nearness {
    /// The bits that sketches are of.
    pub(super) bits: Field,
    /// Bits behind these.
    pub(super) room: u32,
    /// What all candidates are compared by: the test of the two that lets fewer pass.
    pub(super) first: Test,
    /// What those that pass are compared by, too.
    pub(super) second: Test,
}

/// Bits of which no more may differ than a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Test {
    /// Bits of a sketch, with those behind.
    pub(crate) mask: u32,
    /// Those of the key included.
    pub(crate) limit: u32,
}

impl Nearness {
    /// That of block `at`.
    pub(super) fn of(blocks: &[Block], at: usize) -> Self {
        match blocks[at].beside {
            0 => Self::around(blocks, at),
            beside => {
                let test = Test { mask: !0, limit: 1 };
                Self {
                    bits: Field {
                        before: beside.leading_zeros(),
                        bits: beside.count_ones().min(u16::BITS),
                    },
                    room: 0,
                    first: test,
                    second: test,
                }
            }
        }
    }

    /// Of the next two blocks around the ring: in how many bits of the next one, and of both, a pair may differ.
    fn around(blocks: &[Block], at: usize) -> Self {
        let block = &blocks[at];
        // With fewer, a block would be followed by itself, and count twice.
        assert!(blocks.len() >= 3, "at least three blocks");
        let following = |more: usize| &blocks[(at + more) % blocks.len()];
        let (next, third) = (following(1), following(2));
        let ends = |block: &Block| block.mask.trailing_zeros() % 64;
        let begins = |block: &Block| (64 - block.mask.leading_zeros()) % 64;
        assert!(
            ends(block) == begins(next) && ends(next) == begins(third),
            "each block follows the one before"
        );
        let room = block.radius;
        let next_bits = next.mask.count_ones().min(u32::BITS - room);
        let bits = (next_bits + third.mask.count_ones()).min(u32::BITS - room);
        let of_next = Test {
            mask: !(((1 << (bits - next_bits)) - 1) << room),
            limit: block.radius + next.radius + 1,
        };
        let of_both = Test {
            mask: !0,
            limit: of_next.limit + third.radius + 1,
        };
        let near = |first, second| Self {
            bits: Field {
                before: next.mask.leading_zeros(),
                bits,
            },
            room,
            first,
            second,
        };
        [near(of_next, of_both), near(of_both, of_next)]
            .into_iter()
            .min_by(|a, b| a.share().total_cmp(&b.share()))
            .expect("two")
    }

    /// The sketch of a fingerprint, with no bit of its key flipped.
    #[inline(always)]
    pub(super) fn sketch(&self, fingerprint: u64) -> u32 {
        self.bits.of(fingerprint) << self.room
    }

    /// The share of random sketches that pass the first test where as many bits of the key differ as may.
    pub(super) fn share(&self) -> f64 {
        let bits = self.counted(self.first);
        ball(bits, self.first.limit - self.room) / 2f64.powi(bits.cast_signed())
    }

    /// The share that passes both tests.
    pub(super) fn share_of_both(&self) -> f64 {
        // One is of some bits, the other of these and others.
        let (some, all) = match self.counted(self.first) < self.counted(self.second) {
            true => (self.first, self.second),
            false => (self.second, self.first),
        };
        let (bits, limit) = (self.counted(some), all.limit - self.room);
        let mut share = 0.0;
        let mut exactly = 1.0;
        for differing in 0..=bits.min(limit).min(some.limit - self.room) {
            share += exactly * ball(self.counted(all) - bits, limit - differing);
            exactly *= f64::from(bits - differing) / f64::from(differing + 1);
        }
        share / 2f64.powi(self.bits.bits.cast_signed())
    }

    /// How many bits of a fingerprint a test is of.
    fn counted(&self, test: Test) -> u32 {
        self.bits.bits - (!test.mask).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Design;

    #[test]
    fn shares_are_those_of_all_sketches() {
        // Three blocks of 20, 22 and 22 bits with radii of 2, so that 2, 5 and 8 bits of one, two and three may differ.
        let design = Design::named("variants-3", 8).unwrap();
        let all = Test { mask: !0, limit: 8 };
        let of_next = |behind: u32| Test {
            mask: !(((1 << behind) - 1) << 2),
            limit: 5,
        };
        let nearness = [0, 1, 2].map(|at| Nearness::of(design.blocks(), at));
        let tests = nearness.map(|near| (near.bits.bits, near.room, near.first, near.second));
        let expected = [
            (30, 2, of_next(8), all),
            (30, 2, of_next(8), all),
            (30, 2, all, of_next(10)),
        ];
        assert_eq!(tests, expected);
        for (near, next_bits) in nearness.into_iter().zip([22, 22, 20]) {
            let [mut both, mut next] = [0.0; 2];
            for bits in 0..=3u32 {
                let fewer = bits
                    .checked_sub(1)
                    .map_or(0.0, |fewer| ball(next_bits, fewer));
                let exactly = ball(next_bits, bits) - fewer;
                next += exactly;
                both += exactly * ball(30 - next_bits, 6 - bits);
            }
            let next = next / 2f64.powi(next_bits.cast_signed());
            let first = next.min(ball(30, 6) / 2f64.powi(30));
            assert!((near.share() / first - 1.0).abs() < 1e-9);
            assert!((near.share_of_both() * 2f64.powi(30) / both - 1.0).abs() < 1e-9);
            assert!(near.share_of_both() < 0.5 * near.share());
        }
    }
}
