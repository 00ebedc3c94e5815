//! The entries of the batch by run: by the leading bits that they share.

use crate::huge_array::HugeArray;
use crate::isa::RUN_BITS;

/// How many entries are copied from each run unconditionally; room for as many follows the last run.
const SHORT: usize = 32;

/// The entries of each run, reduced to the 32 bits that follow the leading [`RUN_BITS`].
#[derive(Debug)]
pub(super) struct RunEntries {
    /// Run `r` is `next_bits[starts[r]..starts[r + 1]]`.
    starts: HugeArray<u32>,
    /// The 32 bits of each entry, and behind them room for [`SHORT`] more entries.
    pub(super) next_bits: HugeArray<u32>,
}

impl RunEntries {
    /// Bytes for a batch of `entries` entries.
    pub(super) fn bytes_for(entries: usize) -> usize {
        4 * (entries + SHORT + (1 << RUN_BITS) + 1)
    }

    /// Splits `entries`, which are ascending, into runs.
    pub(super) fn build(entries: &[u64]) -> Self {
        let mut starts = HugeArray::<u32>::zeroed((1 << RUN_BITS) + 1);
        let mut next_bits = HugeArray::<u32>::zeroed(entries.len() + SHORT);
        let mut run = 0;
        for (at, (&entry, bits)) in entries.iter().zip(next_bits.iter_mut()).enumerate() {
            *bits = (entry >> (32 - RUN_BITS)) as u32;
            let own_run = (entry >> (64 - RUN_BITS)) as usize;
            while run < own_run {
                run += 1;
                starts[run] = at as u32;
            }
        }
        starts[run + 1..].fill(entries.len() as u32);
        Self { starts, next_bits }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.starts.bytes() + self.next_bits.bytes()
    }

    /// The indexes in `next_bits` at which the entries of a run begin and end.
    #[inline(always)]
    pub(super) fn range(&self, run: u16) -> (usize, usize) {
        let run = usize::from(run);
        (self.starts[run] as usize, self.starts[run + 1] as usize)
    }

    /// The entries of a run.
    #[inline(always)]
    pub(super) fn of_run(&self, run: u16) -> &[u32] {
        let (start, end) = self.range(run);
        &self.next_bits[start..end]
    }

    /// Copies the entries of several runs into `gathered`, one run behind the other, and returns them.
    ///
    /// Short runs are copied without a branch on their length: a misprediction would cost as much as marking a run's
    /// entries.
    #[inline(always)]
    pub(super) fn gather<'a>(
        &self,
        runs: impl Iterator<Item = u16>,
        gathered: &'a mut Vec<u32>,
    ) -> &'a [u32] {
        let next_bits: &[u32] = &self.next_bits;
        let mut count = 0;
        for run in runs {
            let (start, end) = self.range(run);
            let length = end - start;
            if gathered.len() < count + length + SHORT {
                gathered.resize(2 * (count + length + SHORT), 0);
            }
            gathered[count..count + SHORT].copy_from_slice(&next_bits[start..start + SHORT]);
            if length > SHORT {
                gathered[count + SHORT..count + length]
                    .copy_from_slice(&next_bits[start + SHORT..end]);
            }
            count += length;
        }
        &gathered[..count]
    }
}
