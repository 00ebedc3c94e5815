//! One permuted table: a permuted and sorted copy of the batch, with a directory.

use super::plan::PermutedTablePlan;
use crate::ball;
use crate::huge_array::HugeArray;
use crate::permutation::Permutation;

/// A permuted and sorted copy of the batch, with a directory over the leading bits of the block.
#[derive(Debug)]
pub(super) struct PermutedTable {
    /// Brings the block's bits to the top.
    pub(super) permutation: Permutation,
    /// How many leading bits of the block make a directory prefix.
    pub(super) directory_bits: u32,
    /// Entries with directory prefix `p` are `entries[starts[p]..starts[p + 1]]`.
    pub(super) starts: HugeArray<u32>,
    /// The batch's distinct fingerprints, permuted, ascending.
    pub(super) entries: HugeArray<u64>,
    /// Xor with a query's prefix turns these into every prefix within the block's radius.
    pub(super) flips: Vec<u32>,
}

impl PermutedTable {
    /// Builds the table of `values` by `plan`.
    pub(super) fn build(values: &[u64], plan: &PermutedTablePlan) -> Self {
        let permutation = Permutation::to_top(plan.block.mask);
        let mut entries = HugeArray::<u64>::zeroed(values.len());
        let permuted: &mut [u64] = &mut entries;
        for (entry, &value) in permuted.iter_mut().zip(values) {
            *entry = permutation.apply(value);
        }
        permuted.sort_unstable();
        let directory_bits = plan.directory_bits;
        let mut starts = HugeArray::<u32>::zeroed((1 << directory_bits) + 1);
        let counts: &mut [u32] = &mut starts;
        for &entry in entries.iter() {
            counts[prefix(entry, directory_bits) as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in counts {
            sum += *start;
            *start = sum;
        }
        Self {
            directory_bits,
            starts,
            entries,
            permutation,
            flips: ball::flips(directory_bits, plan.block.radius),
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.starts.bytes() + self.entries.bytes() + 4 * self.flips.capacity()
    }
}

/// The leading `bits` bits of a permuted fingerprint.
#[inline(always)]
pub(super) fn prefix(permuted: u64, bits: u32) -> u32 {
    // Two shifts, because a shift by 64 overflows.
    (permuted >> 1 >> (63 - bits)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        assert_eq!(prefix(u64::MAX, 0), 0);
        assert_eq!(prefix(0xabcd << 48, 16), 0xabcd);
    }
}
