//! The permuted tables of the new batch (Manku, Jain and Das Sarma, WWW 2007, section 3.1).

use crate::cost::directory_bits;
use crate::design::{Block, Design};
use crate::distinct::Distinct;
use crate::permutation::Permutation;

/// One permuted copy of the batch: sorted, with a directory over the leading bits of the key.
#[derive(Debug)]
pub(crate) struct Table {
    /// Brings the key's bits to the top.
    pub(crate) permutation: Permutation,
    /// Bits of a directory prefix: the leading ones of the key.
    pub(crate) directory_bits: u32,
    /// Entries with directory prefix `p` are `entries[starts[p]..starts[p + 1]]`.
    pub(crate) starts: Vec<u32>,
    /// The batch's distinct fingerprints, permuted, ascending.
    pub(crate) entries: Vec<u64>,
    /// What to xor to a query's prefix to get every prefix within the block's radius.
    pub(crate) flips: Vec<u32>,
}

/// The new batch, ready to be probed: one permuted table for each block of a design.
#[derive(Debug)]
pub struct Tables {
    pub(crate) batch: Distinct,
    pub(crate) tables: Vec<Table>,
    pub(crate) design: Design,
}

impl Tables {
    /// Builds the tables of `batch` for `design`.
    #[must_use]
    pub fn build(batch: Distinct, design: Design) -> Self {
        let tables = design
            .blocks()
            .iter()
            .map(|&block| Table::build(batch.values(), block))
            .collect();
        Self {
            batch,
            tables,
            design,
        }
    }

    /// The batch they were built of.
    #[must_use]
    pub fn batch(&self) -> &Distinct {
        &self.batch
    }

    /// The design they were built for.
    #[must_use]
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Heap bytes held, the batch's own included.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(Table::bytes).sum();
        tables + self.batch.bytes()
    }
}

impl Table {
    fn build(values: &[u64], block: Block) -> Self {
        let permutation = Permutation::to_top(block.mask);
        let mut entries: Vec<u64> = values.iter().map(|&v| permutation.apply(v)).collect();
        entries.sort_unstable();
        let directory_bits = directory_bits(&block, values.len());
        let mut starts = vec![0u32; (1 << directory_bits) + 1];
        for &entry in &entries {
            starts[prefix(entry, directory_bits) as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut flips = Vec::new();
        push_flips(directory_bits, block.radius, 0, &mut flips);
        Self {
            permutation,
            directory_bits,
            starts,
            entries,
            flips,
        }
    }

    fn bytes(&self) -> usize {
        4 * self.starts.capacity() + 8 * self.entries.capacity() + 4 * self.flips.capacity()
    }
}

/// The leading `bits` bits.
#[inline(always)]
pub(crate) fn prefix(permuted: u64, bits: u32) -> u32 {
    // Two shifts, because a shift by 64 is none.
    (permuted >> 1 >> (63 - bits)) as u32
}

/// Every word of `bits` bits with at most `radius` ones, added to `chosen`.
fn push_flips(bits: u32, radius: u32, chosen: u32, flips: &mut Vec<u32>) {
    flips.push(chosen);
    if radius > 0 {
        for bit in 0..bits {
            push_flips(bit, radius - 1, chosen | 1 << bit, flips);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flips_are_the_ball() {
        let mut flips = Vec::new();
        push_flips(10, 3, 0, &mut flips);
        flips.sort_unstable();
        let ball: Vec<u32> = (0..1024u32).filter(|f| f.count_ones() <= 3).collect();
        assert_eq!(flips, ball);
    }

    #[test]
    fn prefixes() {
        assert_eq!(prefix(u64::MAX, 0), 0);
        assert_eq!(prefix(0xabcd << 48, 16), 0xabcd);
    }
}
