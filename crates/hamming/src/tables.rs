//! The permuted tables of the new batch (Manku, Jain and Das Sarma, WWW 2007, section 3.1).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::cost::directory_bits;
use crate::design::{Block, Design};
use crate::distinct::Distinct;
use crate::memory::Array;
use crate::permutation::Permutation;
use crate::scan::Scan;
use crate::sketches::{IndexedTable, PinnedTable};

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
    /// See [`Tables::chunk`].
    chunk: usize,
    pub(crate) index: Index,
    pub(crate) design: Design,
}

/// Bytes that a fingerprint takes while it waits and is put in order, with its row.
const PROBED_BYTES: usize = 24;

/// The tables, by the way they are looked up.
#[derive(Debug)]
pub(crate) enum Index {
    /// Every fingerprint is looked up in every table.
    Permuted(Vec<Table>),
    /// Those that the scan lets through are looked up in the tables of their quarters.
    Scanned(Vec<IndexedTable>, Box<Scan>),
    /// Every fingerprint has one bucket in each.
    Variants(Vec<PinnedTable>),
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
        let index = if design.is_variants() {
            Index::Variants(in_parallel(blocks.len(), threads, |at| {
                PinnedTable::build(values, &design, at)
            }))
        } else if design.is_halves() {
            let tables = in_parallel(blocks.len(), threads, |at| {
                IndexedTable::build(values, &design, at)
            });
            let scan = Scan::build(values, &tables, threads);
            Index::Scanned(tables, Box::new(scan))
        } else {
            Index::Permuted(in_parallel(blocks.len(), threads, |at| {
                Table::build(values, blocks[at])
            }))
        };
        static TABLES: AtomicU64 = AtomicU64::new(0);
        let chunk = match &index {
            // All threads together take an eighth of the tables for their chunks at most, unless that is next to nothing.
            Index::Variants(tables) => {
                let bytes: usize = tables.iter().map(PinnedTable::bytes).sum();
                let most = bytes / 8 / (PROBED_BYTES * threads.max(1));
                (most >> 20 << 20).clamp(1 << 20, 1 << 23)
            }
            Index::Permuted(_) | Index::Scanned(..) => 1 << 14,
        };
        Self {
            batch,
            part,
            id: TABLES.fetch_add(1, Ordering::Relaxed),
            chunk,
            index,
            design,
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

    /// The indexes in the batch of the values that the tables are of.
    pub(crate) fn part(&self) -> Range<usize> {
        self.part.clone()
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
        let permuted = |tables: &[Table]| tables.iter().map(Table::bytes).sum::<usize>();
        let indexed =
            |tables: &[IndexedTable]| tables.iter().map(IndexedTable::bytes).sum::<usize>();
        match &self.index {
            Index::Permuted(tables) => permuted(tables),
            Index::Scanned(tables, scan) => indexed(tables) + scan.bytes(),
            Index::Variants(tables) => tables.iter().map(PinnedTable::bytes).sum(),
        }
    }

    /// How many fingerprints are best probed at once: with few, they stay in the cache; with many, they can be put in an order
    /// in which large tables are read.
    #[must_use]
    pub fn chunk(&self) -> usize {
        self.chunk
    }

    /// The values that the tables are of.
    pub(crate) fn values(&self) -> &[u64] {
        &self.batch.values()[self.part.clone()]
    }
}

/// `build(0..count)` on up to `threads` threads, each of which takes the next when it is done with one.
fn in_parallel<T: Send>(count: usize, threads: usize, build: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let at = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        at.take_while(|&at| at < count)
            .map(|at| (at, build(at)))
            .collect::<Vec<_>>()
    };
    let mut built: Vec<(usize, T)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(work)).collect();
        let mut built = work();
        for worker in others {
            built.extend(
                worker
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            );
        }
        built
    });
    built.sort_unstable_by_key(|(at, _)| *at);
    built.into_iter().map(|(_, built)| built).collect()
}

impl Table {
    fn build(values: &[u64], block: Block) -> Self {
        let permutation = Permutation::to_top(block.mask);
        let mut entries = Array::<u64>::zeroed(values.len());
        let permuted: &mut [u64] = &mut entries;
        for (entry, &value) in permuted.iter_mut().zip(values) {
            *entry = permutation.apply(value);
        }
        permuted.sort_unstable();
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
            permutation,
            flips,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
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
