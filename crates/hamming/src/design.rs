//! Designs: the ways to cut the 64 bits into blocks so that no pair within `k` bits is missed.
//!
//! The generalised pigeonhole principle: if disjoint blocks have radii rᵢ with Σ(rᵢ + 1) > k, then a pair that differs
//! in at most k bits differs in at most rᵢ bits of some block i; else it would differ in at least Σ(rᵢ + 1) > k bits.
//! The designs of Manku, Jain and Das Sarma (WWW 2007, section 3.1.2) are those below with radius 0.
//!
//! | name          | tables at k = 3 | bits of a block | every pair within k … |
//! |---------------|---:|-------|---|
//! | `blocks-N`    | N  | 64/N  | agrees within the block's radius on one of N blocks; at N = k + 1 the radii are 0 |
//! | `choose-N-M`  | C(N, M) | 64·M/N | agrees exactly on M of N blocks, for M = N − k |
//! | `nested-N`    | N² | 64/N + (64 − 64/N)/N | agrees on one of N = k + 1 blocks, and on one of the N blocks that the other bits are cut into |
//! | `halves`      | 4  | 16 + 16 | agrees within 1 bit on a half, and so exactly on one quarter of it and within 1 bit on the other |
//! | `variants-N`  | N  | 64/N  | agrees within the block's radius (at most 2) on one of N blocks; each entry is stored under every value of the block within that radius |
//! | `trie`        | at k = 7: 3 | 24, 20, 20 | agrees within 3 bits on the leading block, whose candidates are gathered while sorted queries go by, or within the block's radius (at most 2) on one of two others |
//! | `exhaustive`  | 1  | 0     | is compared, because the block is empty |
//!
//! `halves` takes one lookup in each of only four tables, and yet has few candidates: two halves of radius 1
//! (Σ(rᵢ + 1) = 4 > 3), each cut once more by the same principle. `variants-N` is for larger distances: its tables are
//! large, and a query looks up one bucket in each. In a long sorted archive `trie` has the smaller tables.

use std::fmt;

use crate::ball::volume;

/// The largest distance that a join supports.
pub const MAX_DISTANCE: u32 = 16;

/// The bits of a fingerprint that one table indexes: a pair agrees on the block when at most
/// `radius` of them differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block {
    /// The bits of the block.
    pub mask: u64,
    /// How many of them may differ.
    pub radius: u32,
    /// Bits outside `mask`, at most one of which may differ; 0 in every design but `halves`.
    pub beside: u64,
}

impl Block {
    /// The share of random pairs that differ in at most the radius of the block's bits.
    pub(crate) fn random_share(&self) -> f64 {
        let bits = self.mask.count_ones();
        volume(bits, self.radius) / 2f64.powi(bits.cast_signed())
    }

    /// Whether a pair whose fingerprints differ in the bits of `difference` agrees on this block.
    #[inline(always)]
    #[must_use]
    pub fn agrees(&self, difference: u64) -> bool {
        (difference & self.mask).count_ones() <= self.radius
            && (difference & self.beside).count_ones() <= 1
    }
}

/// The N of `variants-N`: at least 3, because a block's tags are bits of the next two blocks; at
/// most 6, because the keys of more blocks are so short that a query has too many candidates.
const VARIANT_BLOCKS: std::ops::RangeInclusive<u32> = 3..=6;
/// The largest radius of a block of `variants-N`: at a larger one, each entry would have too many variants.
const MAX_VARIANT_RADIUS: u32 = 2;

/// The bits and the radius of the leading block of `trie`: its candidates take no memory, so it carries most of the errors.
const TRIE_BITS: u32 = 24;
const TRIE_RADIUS: u32 = 3;
/// The distances at which the two other blocks of `trie` have radii from 0 to [`MAX_VARIANT_RADIUS`].
const TRIE_DISTANCES: std::ops::RangeInclusive<u32> = 5..=9;

/// A family of designs: together with a distance, it determines the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Family {
    Blocks(u32),
    Choose(u32, u32),
    Nested(u32),
    Halves,
    Variants(u32),
    Trie,
    Exhaustive,
}

/// The ways to index the batch by the blocks of a design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// A permuted copy of the batch for each block.
    Permuted,
    /// A scan of the halves, and tables of their quarters.
    Halves,
    /// Tables that hold each entry under every key within the block's radius, or a trie in place of the first.
    Variants,
}

/// A set of blocks: every pair within [`Design::max_distance`] bits agrees on at least one of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Design {
    family: Family,
    max_distance: u32,
    blocks: Vec<Block>,
}

/// Why a design is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DesignError {
    /// No family has the name.
    #[error(
        "unknown design {name:?}: the designs are blocks-N, choose-N-M, nested-N, halves, variants-N, trie and exhaustive"
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
        /// Why it does not fit.
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
            Self::Trie => f.write_str("trie"),
            Self::Exhaustive => f.write_str("exhaustive"),
        }
    }
}

impl Design {
    /// The design with this name, for pairs within `max_distance` bits.
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
            ["trie"] => Family::Trie,
            ["exhaustive"] => Family::Exhaustive,
            _ => return Err(unknown()),
        };
        Self::new(family, max_distance)
    }

    /// Every design that is worth considering for pairs within `max_distance` bits.
    ///
    /// # Errors
    /// [`DesignError::DistanceTooLarge`].
    pub fn all(max_distance: u32) -> Result<Vec<Self>, DesignError> {
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
            Family::Trie,
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
                (split_mask(u64::MAX, n)
                    .into_iter()
                    .zip(spread_radii(max_distance, n)))
                .map(|(mask, radius)| Block {
                    radius,
                    ..exact(mask)
                })
                .collect()
            }
            Family::Choose(n, m) => {
                if n > 64 || m == 0 || n.checked_sub(m) != Some(max_distance) {
                    return refuse(
                        "M must be at least 1, N at most 64, and N − M equal to the distance",
                    );
                }
                let masks = split_mask(u64::MAX, n);
                let mut blocks = Vec::new();
                for_each_choice(&masks, m, 0, &mut |mask| blocks.push(exact(mask)));
                blocks
            }
            Family::Nested(n) => {
                if n != max_distance + 1 || n > 8 {
                    return refuse("N must be one more than the distance, and at most 8");
                }
                split_mask(u64::MAX, n)
                    .into_iter()
                    .flat_map(|outer| {
                        split_mask(!outer, n)
                            .into_iter()
                            .map(move |inner| outer | inner)
                    })
                    .map(exact)
                    .collect()
            }
            Family::Halves => {
                if max_distance > 3 {
                    return refuse("two halves of radius 1 cover a distance of at most 3");
                }
                let quarters = split_mask(u64::MAX, 4);
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
                // The first block is the narrowest: its buckets are the largest, but a sorted
                // archive reads them in order.
                let wide = 64u32.div_ceil(n);
                let first = u64::MAX << (wide * (n - 1));
                let masks = std::iter::once(first).chain(split_mask(!first, n - 1));
                let blocks: Vec<Block> = masks
                    .zip(spread_radii(max_distance, n))
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
            Family::Trie => {
                if !TRIE_DISTANCES.contains(&max_distance) {
                    return refuse("the distance must be between 5 and 9");
                }
                let first = u64::MAX << (u64::BITS - TRIE_BITS);
                let rest = spread_radii(max_distance - TRIE_RADIUS - 1, 2);
                let radii = std::iter::once(TRIE_RADIUS).chain(rest);
                (std::iter::once(first)
                    .chain(split_mask(!first, 2))
                    .zip(radii))
                .map(|(mask, radius)| Block {
                    radius,
                    ..exact(mask)
                })
                .collect()
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

    /// The design's name, as [`Design::named`] parses it.
    #[must_use]
    pub fn name(&self) -> String {
        self.family.to_string()
    }

    /// The largest distance at which every pair is found.
    #[must_use]
    pub fn max_distance(&self) -> u32 {
        self.max_distance
    }

    /// Whether the leading block has no table: its candidates are gathered while sorted queries go by.
    pub(crate) fn has_trie(&self) -> bool {
        self.family == Family::Trie
    }

    /// The mechanism that builds and probes the design's tables.
    pub(crate) fn mechanism(&self) -> Mechanism {
        match self.family {
            Family::Halves => Mechanism::Halves,
            Family::Variants(_) | Family::Trie => Mechanism::Variants,
            Family::Blocks(_) | Family::Choose(..) | Family::Nested(_) | Family::Exhaustive => {
                Mechanism::Permuted
            }
        }
    }

    /// The blocks, one table each.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }
}

/// The radii of `n` blocks with Σ(rᵢ + 1) = `max_distance` + 1; they differ by at most one, larger ones first.
fn spread_radii(max_distance: u32, n: u32) -> impl Iterator<Item = u32> {
    let (share, more) = ((max_distance + 1) / n, (max_distance + 1) % n);
    (0..n).map(move |i| share + u32::from(i < more) - 1)
}

/// Cuts the bits of `mask`, from the highest, into `n` masks whose sizes differ by at most one, larger ones first.
fn split_mask(mask: u64, n: u32) -> Vec<u64> {
    let bits: Vec<u32> = (0..64).rev().filter(|bit| mask >> bit & 1 == 1).collect();
    let (share, more) = (bits.len() / n as usize, bits.len() % n as usize);
    let mut at = 0;
    (0..n as usize)
        .map(|i| {
            let next = at + share + usize::from(i < more);
            let mask = bits[at..next].iter().fold(0, |mask, bit| mask | 1 << bit);
            at = next;
            mask
        })
        .collect()
}

/// Calls `each` with the union of every choice of `m` of the `masks`.
fn for_each_choice(masks: &[u64], m: u32, chosen: u64, each: &mut impl FnMut(u64)) {
    if m == 0 {
        return each(chosen);
    }
    for (at, mask) in masks.iter().enumerate() {
        for_each_choice(&masks[at + 1..], m - 1, chosen | mask, each);
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
            for design in Design::all(k).unwrap() {
                // The first block is the leading one: its table is the batch in order.
                let first = design.blocks()[0].mask;
                prop_assert_eq!(first.leading_ones(), first.count_ones());
                prop_assert!(design.blocks().iter().any(|b| b.agrees(difference)), "{}", design.name());
            }
        }
    }
}
