//! Designs: how the 64 bits are cut so that no pair within `k` is missed.
//!
//! Generalised pigeonhole: if disjoint parts have radii rᵢ with Σ(rᵢ + 1) > k, then a pair that differs in
//! at most k bits differs in at most rᵢ bits of some part i (else it differed in Σ(rᵢ + 1) > k bits). The
//! designs of Manku, Jain and Das Sarma (WWW 2007, section 3.1.2) are the cases below with radius 0.
//!
//! | name          | tables at k = 3 | key bits | every pair within k … |
//! |---------------|---:|-------|---|
//! | `blocks-N`    | N  | 64/N  | agrees within the block's radius on one of N blocks; at N = k + 1 the radii are 0 |
//! | `choose-N-M`  | C(N, M) | 64·M/N | agrees exactly on M of N blocks, for M = N − k |
//! | `nested-N`    | N² | 64/N + (64 − 64/N)/N | agrees on one of N = k + 1 blocks and, of the rest cut again, on one of N |
//! | `halves`      | 4  | 16 + 16 | agrees within 1 bit on a half, and so exactly on one quarter of it and within 1 bit on the other |
//! | `variants-N`  | N  | 64/N  | agrees within the block's radius (at most 2) on one of N blocks, under all of whose values so near the entries stand |
//! | `exhaustive`  | 1  | 0     | is compared, as all are |
//!
//! `halves` is the design with the fewest candidates that needs no enumeration: two halves of radius 1 (Σ(rᵢ + 1)
//! = 4 > 3), each cut once more by the same principle. `variants-N` is the one for larger distances: its tables
//! are large, and a query takes one access to each.

use std::fmt;

use crate::MAX_DISTANCE;

/// One table's key: the bits that a pair must agree on, but for at most `radius` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block {
    /// The bits of the key.
    pub mask: u64,
    /// How many of them may differ.
    pub radius: u32,
    /// More bits on which a pair must agree, but for at most one; none in most designs.
    pub beside: u64,
}

impl Block {
    /// Whether a pair whose fingerprints differ in the bits of `difference` agrees on this block.
    #[inline(always)]
    #[must_use]
    pub fn agrees(&self, difference: u64) -> bool {
        (difference & self.mask).count_ones() <= self.radius
            && (difference & self.beside).count_ones() <= 1
    }
}

/// How many blocks there can be where variants are stored: three at least, because what is beside a block is compared by bits
/// of the two that follow; not so many that nearly everything is a candidate.
const VARIANT_BLOCKS: std::ops::RangeInclusive<u32> = 3..=6;
/// Of more than these many flipped bits there are too many variants.
const MAX_VARIANT_RADIUS: u32 = 2;

/// A family of designs; with `k` it fixes the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Family {
    Blocks(u32),
    Choose(u32, u32),
    Nested(u32),
    Halves,
    Variants(u32),
    Exhaustive,
}

/// A set of blocks of which every pair within [`Design::max_distance`] agrees on at least one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Design {
    family: Family,
    max_distance: u32,
    blocks: Vec<Block>,
}

/// Why a design cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DesignError {
    /// The name is of no family.
    #[error(
        "unknown design {name:?}: the designs are blocks-N, choose-N-M, nested-N, halves, variants-N and exhaustive"
    )]
    Unknown {
        /// The name as given.
        name: String,
    },
    /// The family would miss pairs, or has too many tables, at this distance.
    #[error("design {name} does not fit a distance of {max_distance}: {reason}")]
    DoesNotFit {
        /// The design's name.
        name: String,
        /// The distance.
        max_distance: u32,
        /// What is wrong.
        reason: String,
    },
    /// The distance is above [`MAX_DISTANCE`].
    #[error("a distance of {0} is above {MAX_DISTANCE}, the largest that is supported")]
    DistanceTooLarge(u32),
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocks(n) => write!(f, "blocks-{n}"),
            Self::Choose(n, m) => write!(f, "choose-{n}-{m}"),
            Self::Nested(n) => write!(f, "nested-{n}"),
            Self::Halves => f.write_str("halves"),
            Self::Variants(n) => write!(f, "variants-{n}"),
            Self::Exhaustive => f.write_str("exhaustive"),
        }
    }
}

impl Design {
    /// The design called `name`, for pairs within `max_distance` bits.
    ///
    /// # Errors
    /// [`DesignError`] when the name is unknown or the design is not exact at that distance.
    pub fn named(name: &str, max_distance: u32) -> Result<Self, DesignError> {
        let unknown = || DesignError::Unknown {
            name: name.to_owned(),
        };
        let number = |text: &str| text.parse::<u32>().map_err(|_| unknown());
        let family = match name.split('-').collect::<Vec<_>>()[..] {
            ["blocks", n] => Family::Blocks(number(n)?),
            ["choose", n, m] => Family::Choose(number(n)?, number(m)?),
            ["nested", n] => Family::Nested(number(n)?),
            ["halves"] => Family::Halves,
            ["variants", n] => Family::Variants(number(n)?),
            ["exhaustive"] => Family::Exhaustive,
            _ => return Err(unknown()),
        };
        Self::new(family, max_distance)
    }

    /// Every design that is worth considering at `max_distance`.
    ///
    /// # Errors
    /// [`DesignError::DistanceTooLarge`].
    pub fn candidates(max_distance: u32) -> Result<Vec<Self>, DesignError> {
        if max_distance > MAX_DISTANCE {
            return Err(DesignError::DistanceTooLarge(max_distance));
        }
        let k = max_distance;
        let blocks = (1..=k + 1).map(Family::Blocks);
        let choose = (k + 2..=k + 3).map(|n| Family::Choose(n, n - k));
        let variants = VARIANT_BLOCKS.map(Family::Variants);
        let families = blocks.chain(choose).chain(variants).chain([
            Family::Nested(k + 1),
            Family::Halves,
            Family::Exhaustive,
        ]);
        Ok(families
            .filter_map(|family| Self::new(family, k).ok())
            .collect())
    }

    fn new(family: Family, max_distance: u32) -> Result<Self, DesignError> {
        if max_distance > MAX_DISTANCE {
            return Err(DesignError::DistanceTooLarge(max_distance));
        }
        let refuse = |reason: &str| {
            Err(DesignError::DoesNotFit {
                name: family.to_string(),
                max_distance,
                reason: reason.to_owned(),
            })
        };
        let exact = |mask| Block {
            mask,
            radius: 0,
            beside: 0,
        };
        let blocks = match family {
            Family::Blocks(n) => {
                if !(1..=max_distance + 1).contains(&n) {
                    return refuse("N must be between 1 and one more than the distance");
                }
                (cut(u64::MAX, n).into_iter().zip(spread(max_distance, n)))
                    .map(|(mask, radius)| Block {
                        radius,
                        ..exact(mask)
                    })
                    .collect()
            }
            Family::Choose(n, m) => {
                if n > 64 || m == 0 || n.checked_sub(m) != Some(max_distance) {
                    return refuse("M must be at least 1 and N less M equal to the distance");
                }
                let parts = cut(u64::MAX, n);
                let mut blocks = Vec::new();
                choose(&parts, m, 0, &mut |mask| blocks.push(exact(mask)));
                blocks
            }
            Family::Nested(n) => {
                if n != max_distance + 1 || n > 8 {
                    return refuse("N must be one more than the distance, and at most 8");
                }
                cut(u64::MAX, n)
                    .into_iter()
                    .flat_map(|outer| cut(!outer, n).into_iter().map(move |inner| outer | inner))
                    .map(exact)
                    .collect()
            }
            Family::Halves => {
                if max_distance > 3 {
                    return refuse("two halves of radius 1 cover a distance of at most 3");
                }
                let quarters = cut(u64::MAX, 4);
                (0..4)
                    .map(|i| Block {
                        beside: quarters[i ^ 1],
                        ..exact(quarters[i])
                    })
                    .collect()
            }
            Family::Variants(n) => {
                if !VARIANT_BLOCKS.contains(&n) || n > max_distance + 1 {
                    return refuse(
                        "N must be between 3 and 6, and at most one more than the distance",
                    );
                }
                // In an archive in order the first table is read in order. It can be the one with more entries under a
                // value, that is, fewer bits.
                let wide = 64u32.div_ceil(n);
                let first = u64::MAX << (wide * (n - 1));
                let masks = std::iter::once(first).chain(cut(!first, n - 1));
                let blocks: Vec<Block> = masks
                    .zip(spread(max_distance, n))
                    .map(|(mask, radius)| Block {
                        radius,
                        ..exact(mask)
                    })
                    .collect();
                if blocks.iter().any(|block| block.radius > MAX_VARIANT_RADIUS) {
                    return refuse("radii above 2 would need too many variants");
                }
                blocks
            }
            Family::Exhaustive => vec![exact(0)],
        };
        if blocks.len() > 256 {
            return refuse("it would need more than 256 tables");
        }
        Ok(Self {
            family,
            max_distance,
            blocks,
        })
    }

    /// Its name, as [`Design::named`] takes it.
    #[must_use]
    pub fn name(&self) -> String {
        self.family.to_string()
    }

    /// Pairs up to this distance are found, all of them.
    #[must_use]
    pub fn max_distance(&self) -> u32 {
        self.max_distance
    }

    /// Whether it is the one of halves, which is scanned before it is probed.
    pub(crate) fn is_halves(&self) -> bool {
        self.family == Family::Halves
    }

    /// Whether its tables hold the variants of the entries.
    pub(crate) fn is_variants(&self) -> bool {
        matches!(self.family, Family::Variants(_))
    }

    /// The blocks, one table each.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }
}

/// Radii of `n` blocks with Σ(rᵢ + 1) = `max_distance` + 1, which differ by at most one, larger ones first.
fn spread(max_distance: u32, n: u32) -> impl Iterator<Item = u32> {
    let (share, more) = ((max_distance + 1) / n, (max_distance + 1) % n);
    (0..n).map(move |i| share + u32::from(i < more) - 1)
}

/// Cuts the bits of `mask` into `n` runs from the top, whose sizes differ by at most one, wider ones first.
fn cut(mask: u64, n: u32) -> Vec<u64> {
    let bits: Vec<u32> = (0..64).rev().filter(|bit| mask >> bit & 1 == 1).collect();
    let (share, more) = (bits.len() / n as usize, bits.len() % n as usize);
    let mut at = 0;
    (0..n as usize)
        .map(|part| {
            let next = at + share + usize::from(part < more);
            let run = bits[at..next].iter().fold(0, |run, bit| run | 1 << bit);
            at = next;
            run
        })
        .collect()
}

/// Calls `each` with the union of every choice of `m` of the `parts`.
fn choose(parts: &[u64], m: u32, chosen: u64, each: &mut impl FnMut(u64)) {
    if m == 0 {
        return each(chosen);
    }
    for (at, part) in parts.iter().enumerate() {
        choose(&parts[at + 1..], m - 1, chosen | part, each);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_published_designs() {
        for (name, tables, bits) in [
            ("blocks-4", 4, 16..=16),
            ("nested-4", 16, 28..=28),
            ("choose-5-2", 10, 25..=26),
            ("choose-6-3", 20, 31..=33),
        ] {
            let design = Design::named(name, 3).unwrap();
            assert_eq!(design.name(), name);
            assert_eq!(design.blocks().len(), tables);
            for block in design.blocks() {
                assert!(
                    bits.contains(&block.mask.count_ones()) && block.radius == 0,
                    "{name}"
                );
            }
        }
        let halves = Design::named("blocks-2", 3).unwrap();
        assert!(
            halves
                .blocks()
                .iter()
                .all(|b| b.radius == 1 && b.mask.count_ones() == 32)
        );
    }

    #[test]
    fn designs_that_would_miss_pairs_are_refused() {
        for (name, k) in [
            ("blocks-5", 3),
            ("blocks-0", 3),
            ("choose-5-2", 4),
            ("nested-4", 2),
            ("5x", 3),
            ("blocks-x", 3),
        ] {
            assert!(Design::named(name, k).is_err(), "{name} at {k}");
        }
        assert_eq!(
            Design::named("blocks-2", 17),
            Err(DesignError::DistanceTooLarge(17))
        );
    }

    proptest! {
        /// Any difference of at most k bits leaves at least one block in agreement.
        #[test]
        fn every_design_covers_every_pair(k in 0u32..=16, bits in proptest::collection::vec(0u32..64, 16)) {
            let difference = bits[..k as usize].iter().fold(0u64, |d, bit| d | 1 << bit);
            for design in Design::candidates(k).unwrap() {
                // The first block is the leading one: its table is the batch in order.
                let first = design.blocks()[0].mask;
                prop_assert_eq!(first.leading_ones(), first.count_ones());
                prop_assert!(design.blocks().iter().any(|b| b.agrees(difference)), "{}", design.name());
            }
        }
    }
}
