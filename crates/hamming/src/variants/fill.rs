//! Filling buckets with variants, one region of keys at a time.

use crate::ball;
use crate::buckets::{Buckets, counting_sort};
use crate::huge_array::HugeArray;

/// How many lower bits of a key vary within a region: its keys share the upper bits.
const REGION_BITS: u32 = 11;

/// Bytes of an entry while it is put into buckets.
pub(super) const ENTRY_BYTES: usize = size_of::<Entry>();

/// An entry while it is put into buckets.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    value: u64,
    /// Its tag.
    tag: u32,
}

/// Puts every entry into the buckets of all keys within `radius` of its own.
///
/// It fills the buckets of one region at a time, so that they stay in the cache. It takes the
/// entries whose upper bits are within `radius` bits of the region's. It puts each under every key
/// of the region that differs from the entry's own key in at most `radius` bits, upper and lower
/// ones together.
pub(super) fn fill_variants(buckets: &mut Buckets<u32>, values: &[u64], radius: u32) {
    let (key, scheme) = (buckets.key, buckets.scheme);
    let lower_bits = key.bits.min(REGION_BITS);
    let upper_bits = key.bits - lower_bits;
    let keys = 1usize << lower_bits;
    let lower = |value: u64| key.extract(value) & (keys as u32 - 1);
    // The entries, sorted by key.
    let mut key_starts = HugeArray::<u32>::zeroed((1 << key.bits) + 1);
    let mut entries = vec![Entry::default(); values.len()];
    counting_sort(key, values, &mut key_starts, |place, index| {
        let value = values[index];
        let tag = scheme.tag(value);
        entries[place] = Entry { value, tag };
    });
    let of_region = |region: usize| {
        let [from, to] = [region, region + 1].map(|region| key_starts[region * keys] as usize);
        &entries[from..to]
    };
    let flips = |bits: u32| ball::flips_by_ones(bits, radius);
    let (upper_flips, lower_flips) = (flips(upper_bits), flips(lower_bits));
    // For each number of flipped upper bits: the flips of lower bits that the radius still allows.
    let lower_flips: Vec<&[u32]> = (0..=radius)
        .map(|flipped| {
            let fits = |flip: &u32| flip.count_ones() + flipped <= radius;
            &lower_flips[..lower_flips.partition_point(fits)]
        })
        .collect();

    let starts: &mut [u32] = &mut buckets.starts;
    let tags: &mut [u32] = &mut buckets.tags;
    let mut places = vec![0u32; keys];
    let mut end = 0u32;
    for (region, starts) in starts.chunks_exact_mut(keys).enumerate() {
        places.fill(0);
        for upper in &upper_flips {
            let flips = lower_flips[upper.count_ones() as usize];
            for entry in of_region(region ^ *upper as usize) {
                let key = lower(entry.value);
                for flip in flips {
                    places[(key ^ flip) as usize] += 1;
                }
            }
        }
        for (place, start) in places.iter_mut().zip(starts) {
            *start = end;
            end += std::mem::replace(place, end);
        }
        for upper in &upper_flips {
            let flipped = upper.count_ones();
            let flips = lower_flips[flipped as usize];
            for entry in of_region(region ^ *upper as usize) {
                let key = lower(entry.value);
                for flip in flips {
                    let place = &mut places[(key ^ flip) as usize];
                    let ones = (1 << (flipped + flip.count_ones())) - 1;
                    tags[*place as usize] = entry.tag | ones;
                    *place += 1;
                }
            }
        }
    }
    if let Some(last) = starts.last_mut() {
        *last = end;
    }
}
