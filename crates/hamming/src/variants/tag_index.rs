//! The entries sorted by the leading bits of their tags, to find the entries that a survivor's tag may belong to.

use crate::buckets::{Field, Queries, Survivor, TagView, TaggedEntries, counting_sort};
use crate::huge_array::HugeArray;
use crate::isa::Isa;
use crate::matches::{Match, Matches};
use crate::mechanism::BatchPart;
use crate::prefetch::prefetch_l1;

/// If survivors have more entries than this on average, they are sorted, so that repeated ones (the
/// same query and prefix) are skipped.
const MANY_ENTRIES: usize = 16;

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
    prefix: Field,
    /// Entries with prefix `p` are from `starts[p]` to `starts[p + 1]`.
    starts: HugeArray<u32>,
    /// The entries.
    values: HugeArray<u64>,
    /// The index of each entry in the part of the batch.
    indexes: HugeArray<u32>,
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

impl TaggedEntries for TagIndex {
    type Tag = u32;

    #[inline(always)]
    fn compare<I: Isa>(
        &self,
        tags: TagView<'_, I, u32>,
        part: &BatchPart<'_>,
        queries: Queries<'_>,
        survivors: &mut Vec<Survivor>,
        matches: &mut Matches<'_>,
    ) {
        let Self {
            prefix,
            starts,
            values,
            indexes,
        } = self;
        let starts: &[u32] = starts;
        let TagView { isa, tags, scheme } = tags;
        let unused = scheme.flip_bits + scheme.field.bits - prefix.bits;
        // Branchless, because it is unpredictable which survivors pass the second test: the next
        // survivor overwrites one that fails.
        let mut kept = 0;
        for at in 0..survivors.len() {
            let Survivor { query, tag_index } = survivors[at];
            let candidate = tags[tag_index as usize];
            let query_tag = scheme.tag(queries.fingerprints[query as usize]);
            // From here on, the survivor holds the prefix of the tag, by which `TagIndex` finds its entries.
            let prefix = candidate >> unused;
            prefetch_l1(starts, prefix as usize);
            survivors[kept] = Survivor {
                query,
                tag_index: prefix,
            };
            let differing = ((candidate ^ query_tag) & scheme.second.mask).count_ones();
            kept += usize::from(differing <= scheme.second.limit);
        }
        survivors.truncate(kept);
        let mut entries = 0;
        for survivor in survivors.iter() {
            let [start, end] = [0, 1].map(|next| starts[survivor.tag_index as usize + next]);
            prefetch_l1(values, start as usize);
            entries += (end - start) as usize;
        }
        // In a batch of many similar entries, many survivors of one query have the same prefix.
        if entries > MANY_ENTRIES * survivors.len() {
            survivors.sort_unstable_by_key(|survivor| {
                u64::from(survivor.query) << 32 | u64::from(survivor.tag_index)
            });
        }
        let mut before = None;
        for survivor in survivors.iter() {
            if before.replace(*survivor) == Some(*survivor) {
                continue;
            }
            let chunk_index = queries.chunk_index(survivor.query);
            let fingerprint = queries.fingerprints[survivor.query as usize];
            let prefix = survivor.tag_index as usize;
            let (mut first, end) = (starts[prefix] as usize, starts[prefix + 1] as usize);
            for candidates in values[first..end].chunks(64) {
                let mut near = isa.within(fingerprint, candidates, part.max_distance);
                while near != 0 {
                    let at = near.trailing_zeros() as usize;
                    near &= near - 1;
                    let index = indexes[first + at];
                    if !part.is_self(chunk_index, index) {
                        matches.push(Match {
                            query: chunk_index,
                            entry: (part.first + index as usize) as u32,
                            distance: (candidates[at] ^ fingerprint).count_ones(),
                        });
                    }
                }
                first += candidates.len();
            }
            if matches.is_full() {
                return;
            }
        }
    }
}
