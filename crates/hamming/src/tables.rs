//! The permuted tables of the new batch (Manku, Jain and Das Sarma, WWW 2007, section 3.1).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cost::directory_bits;
use crate::design::{Block, Design};
use crate::distinct::Distinct;
use crate::memory::Array;
use crate::permutation::Permutation;
use crate::scan::Scan;

/// One permuted copy of the batch: sorted, with a directory over the leading bits of the key.
#[derive(Debug)]
pub(crate) struct Table {
    /// Brings the key's bits to the top.
    pub(crate) permutation: Permutation,
    /// Bits of a directory prefix: the leading ones of the key.
    pub(crate) directory_bits: u32,
    /// Entries with directory prefix `p` are `entries[starts[p]..starts[p + 1]]`.
    pub(crate) starts: Array<u32>,
    /// The batch's distinct fingerprints, permuted, ascending.
    pub(crate) entries: Array<u64>,
    /// Where the lowest bit of the quarter beside the key stands in an entry, in the design of halves.
    partner_shift: u32,
    /// What to xor to a query's prefix to get every prefix within the block's radius.
    pub(crate) flips: Vec<u32>,
}

/// The new batch, or a part of it, ready to be probed: one permuted table for each block of a design.
#[derive(Debug)]
pub struct Tables {
    batch: Arc<Distinct>,
    part: Range<usize>,
    /// Tells these tables from all others of the process.
    id: u64,
    pub(crate) tables: Vec<Table>,
    pub(crate) design: Design,
    /// What picks the fingerprints that are worth a lookup; every one is where there is none.
    pub(crate) scan: Option<Scan>,
}

impl Tables {
    /// Builds the tables of those of the batch's values whose indexes are in `part`, for `design`, on up to
    /// `threads` threads.
    ///
    /// # Panics
    /// When `part` reaches beyond the values.
    #[must_use]
    pub fn build(batch: Arc<Distinct>, part: Range<usize>, design: Design, threads: usize) -> Self {
        let values = &batch.values()[part.clone()];
        let blocks = design.blocks();
        let share = blocks.len().div_ceil(threads.max(1));
        let tables: Vec<Table> = std::thread::scope(|scope| {
            let build = |blocks: &[Block]| -> Vec<Table> {
                blocks
                    .iter()
                    .map(|&block| Table::build(values, block))
                    .collect()
            };
            let (own, others) = blocks.split_at(share.min(blocks.len()));
            let others: Vec<_> = others
                .chunks(share.max(1))
                .map(|blocks| scope.spawn(move || build(blocks)))
                .collect();
            let mut tables = build(own);
            for worker in others {
                tables.extend(
                    worker
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                );
            }
            tables
        });
        let scan = design
            .is_halves()
            .then(|| Scan::build(&tables, values.len()));
        static TABLES: AtomicU64 = AtomicU64::new(0);
        Self {
            batch,
            part,
            id: TABLES.fetch_add(1, Ordering::Relaxed),
            tables,
            design,
            scan,
        }
    }

    /// Builds the tables of a whole batch, on one thread.
    #[must_use]
    pub fn of(batch: Distinct, design: Design) -> Self {
        let part = 0..batch.values().len();
        Self::build(Arc::new(batch), part, design, 1)
    }

    /// Tells these tables from all others of the process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Whether there is nothing to find.
    pub(crate) fn is_empty(&self) -> bool {
        self.part.is_empty()
    }

    /// The index in the batch of the first value that the tables are of.
    pub(crate) fn first(&self) -> usize {
        self.part.start
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

    /// Bytes held, without the batch's own.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(Table::bytes).sum();
        tables + self.scan.as_ref().map_or(0, Scan::bytes)
    }
}

impl Table {
    fn build(values: &[u64], block: Block) -> Self {
        let permutation = Permutation::to_top(block.mask);
        let mut entries: Vec<u64> = values.iter().map(|&v| permutation.apply(v)).collect();
        entries.sort_unstable();
        let entries = Array::from_slice(&entries);
        let directory_bits = directory_bits(&block, values.len());
        let mut starts = Array::<u32>::zeroed((1 << directory_bits) + 1);
        let counts: &mut [u32] = &mut starts;
        for &entry in entries.iter() {
            counts[prefix(entry, directory_bits) as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in counts {
            sum += *start;
            *start = sum;
        }
        let mut flips = Vec::new();
        push_flips(directory_bits, block.radius, 0, &mut flips);
        Self {
            directory_bits,
            starts,
            entries,
            partner_shift: permutation.apply(block.beside).trailing_zeros() % 64,
            permutation,
            flips,
        }
    }

    /// In the design of halves, the quarter beside the key of an entry.
    #[inline(always)]
    pub(crate) fn partner(&self, entry: u64) -> u16 {
        (entry >> self.partner_shift) as u16
    }

    /// In the design of halves, the half of an entry that has the key as its upper quarter.
    pub(crate) fn half(&self, entry: u64) -> u32 {
        u32::from((entry >> 48) as u16) << 16 | u32::from(self.partner(entry))
    }

    /// The entries whose leading `bits` bits are `prefix`.
    #[inline]
    pub(crate) fn entries_under(&self, prefix: u64, bits: u32) -> &[u64] {
        let (starts, entries): (&[u32], &[u64]) = (&self.starts, &self.entries);
        if bits <= self.directory_bits {
            let finer = self.directory_bits - bits;
            let (from, to) = (prefix << finer, (prefix + 1) << finer);
            return &entries[starts[from as usize] as usize..starts[to as usize] as usize];
        }
        let own = (prefix >> (bits - self.directory_bits)) as usize;
        let bucket = &entries[starts[own] as usize..starts[own + 1] as usize];
        let from = bucket.partition_point(|entry| entry >> (64 - bits) < prefix);
        let to = bucket.partition_point(|entry| entry >> (64 - bits) <= prefix);
        &bucket[from..to]
    }

    fn bytes(&self) -> usize {
        self.starts.bytes() + self.entries.bytes() + 4 * self.flips.capacity()
    }
}

/// The leading `bits` bits.
#[inline(always)]
pub(crate) fn prefix(permuted: u64, bits: u32) -> u32 {
    // Two shifts, because a shift by 64 is none.
    (permuted >> 1 >> (63 - bits)) as u32
}

/// Every word of `bits` bits with at most `radius` ones, added to `chosen`.
pub(crate) fn push_flips(bits: u32, radius: u32, chosen: u32, flips: &mut Vec<u32>) {
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
