//! A permutation of the 64 bits that brings the bits of a mask to the top.

/// A bijection of a fingerprint's bits; it preserves Hamming distances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permutation {
    /// Left rotations: for each, the mask of the original bits that it moves, and by how many places.
    rotations: Vec<(u64, u32)>,
}

impl Permutation {
    /// The permutation that brings the bits of `mask` to the top. It keeps the order of these bits,
    /// and that of the others.
    pub(crate) fn to_top(mask: u64) -> Self {
        let mut rotations: Vec<(u64, u32)> = Vec::new();
        let mut target = 64;
        for moved in [mask, !mask] {
            for bit in (0..64).rev().filter(|bit| moved >> bit & 1 == 1) {
                target -= 1;
                let rotation = (64 + target - bit) % 64;
                match rotations.iter_mut().find(|(_, by)| *by == rotation) {
                    Some((bits, _)) => *bits |= 1 << bit,
                    None => rotations.push((1 << bit, rotation)),
                }
            }
        }
        Self { rotations }
    }

    /// Permutes a fingerprint.
    #[inline(always)]
    pub(crate) fn apply(&self, fingerprint: u64) -> u64 {
        self.rotations
            .iter()
            .fold(0, |permuted, &(bits, rotation)| {
                permuted | (fingerprint & bits).rotate_left(rotation)
            })
    }

    /// The fingerprint that [`Self::apply`] permutes to `permuted`.
    #[inline(always)]
    pub(crate) fn reverse(&self, permuted: u64) -> u64 {
        self.rotations
            .iter()
            .fold(0, |fingerprint, &(bits, rotation)| {
                fingerprint | (permuted.rotate_right(rotation) & bits)
            })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_a_bijection_with_the_mask_on_top(mask: u64, a: u64, b: u64) {
            let permutation = Permutation::to_top(mask);
            prop_assert_eq!(permutation.reverse(permutation.apply(a)), a);
            let distance = (permutation.apply(a) ^ permutation.apply(b)).count_ones();
            prop_assert_eq!(distance, (a ^ b).count_ones());
            let width = mask.count_ones();
            prop_assert_eq!(permutation.apply(mask).leading_ones(), width);
        }
    }
}
