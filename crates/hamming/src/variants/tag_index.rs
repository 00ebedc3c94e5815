//! The entries sorted by the leading bits of their tags, to find the entries that a survivor's tag may belong to.

use crate::buckets::{Field, counting_sort};
use crate::huge_array::HugeArray;

/// The most leading bits of a tag by which entries are sorted.
const MAX_PREFIX_BITS: u32 = 20;

/// The number of bits of a prefix: enough for one to two prefixes for each of `entries` entries,
/// but at most [`MAX_PREFIX_BITS`].
fn prefix_bits(entries: usize) -> u32 {
    (usize::BITS - entries.leading_zeros()).clamp(1, MAX_PREFIX_BITS)
}

/// The entries, sorted by the prefixes (the leading bits) of their tags.
#[derive(Debug)]
pub(super) struct TagIndex {
    /// The bits of a fingerprint that are the prefix of its tag.
    pub(super) prefix: Field,
    /// Entries with prefix `p` are from `starts[p]` to `starts[p + 1]`.
    pub(super) starts: HugeArray<u32>,
    /// The entries.
    pub(super) values: HugeArray<u64>,
    /// The index of each entry in the part of the batch.
    pub(super) indexes: HugeArray<u32>,
}

impl TagIndex {
    /// Sorts `values` by the prefixes of their tags, which hold the bits of `tag`.
    pub(super) fn build(values: &[u64], tag: Field) -> Self {
        let prefix = Field {
            bits: prefix_bits(values.len()).min(tag.bits),
            ..tag
        };
        let mut index = Self {
            prefix,
            starts: HugeArray::zeroed((1 << prefix.bits) + 1),
            values: HugeArray::zeroed(values.len()),
            indexes: HugeArray::zeroed(values.len()),
        };
        let (sorted, indexes): (&mut [u64], &mut [u32]) = (&mut index.values, &mut index.indexes);
        counting_sort(prefix, values, &mut index.starts, |place, index| {
            sorted[place] = values[index];
            indexes[place] = index as u32;
        });
        index
    }

    /// Bytes for `entries` entries.
    pub(super) fn bytes_for(entries: usize) -> usize {
        12 * entries + 4 * ((1 << prefix_bits(entries)) + 1)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.starts.bytes() + self.values.bytes() + self.indexes.bytes()
    }
}
