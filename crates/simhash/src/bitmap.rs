//! A bitmap summarizes the shingles of a text. Two bitmaps give an upper bound of the Jaccard similarity of their texts, so a pair
//! with a bound below the threshold is dropped without its texts (E. Sandes, G. Teodoro, A. Melo, "Bitmap filter: speeding up
//! exact set similarity joins with bitwise operations", Information Systems 88, 2020).
//!
//! Every shingle sets one bit. If only one of two bitmaps has a bit, then only that text has its shingle. The number of bits grows
//! with the text. Shingles are counted as often as they occur, which makes the bound weaker, and not wrong.

/// The bytes of the number of shingles, which stands before the bits.
const COUNT_BYTES: usize = size_of::<u32>();
/// The fewest bits for each shingle.
const BITS: usize = 2;
/// The most bits: those of longer texts say less and less.
const MOST_BITS: usize = 1 << 13;

/// Appends the bitmap of a text whose shingles have these hashes: their number, and at most a kibibyte of bits.
pub(crate) fn append(shingles: impl ExactSizeIterator<Item = u64>, bitmap: &mut Vec<u8>) {
    let count = shingles.len();
    let bits = (BITS * count).next_power_of_two().clamp(64, MOST_BITS);
    // A byte for each bit: unlike bits, bytes are set without being read, which would wait for the last write nearby.
    let mut is_set = vec![0_u8; bits];
    for hash in shingles {
        is_set[(hash >> 32) as usize & (bits - 1)] = 1;
    }
    bitmap.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    // The product has the lowest bit of each byte in its highest byte.
    let packed = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes).wrapping_mul(0x0102_0408_1020_4080);
    let bytes = is_set.as_chunks().0.iter();
    bitmap.extend(bytes.map(|bytes| (packed(bytes) >> 56) as u8));
}

/// Whether the Jaccard similarity of two texts may be `least` or more, by their bitmaps. About a text with an empty bitmap, nothing
/// is known.
#[must_use]
pub fn may_reach(a: &[u8], b: &[u8], least: f64) -> bool {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let Some((few_count, few)) = few.split_first_chunk::<COUNT_BYTES>() else {
        return true;
    };
    let Some((many_count, many)) = many.split_first_chunk::<COUNT_BYTES>() else {
        return true;
    };
    let (few, many) = (few.as_chunks().0, many.as_chunks().0);
    let (mut only_few, mut only_many) = (0, 0);
    for (at, word) in few.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The longer bitmap, folded to the length of the shorter.
        let others = many[at..].iter().step_by(few.len());
        let other = others.fold(0, |bits, other| bits | u64::from_le_bytes(*other));
        only_few += (word & !other).count_ones();
        only_many += (other & !word).count_ones();
    }
    let common = (u32::from_le_bytes(*few_count) - only_few)
        .min(u32::from_le_bytes(*many_count) - only_many);
    let all = common + only_few + only_many;
    // As it is computed of texts, so that both round alike.
    f64::from(common) / f64::from(all) >= least
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::hash::murmur3_low64;

    /// The bitmap of the shingles with these numbers.
    fn bitmap(shingles: &[u32]) -> Vec<u8> {
        let mut bitmap = Vec::new();
        let hashes = shingles
            .iter()
            .map(|number| murmur3_low64(&number.to_le_bytes(), 0));
        append(hashes, &mut bitmap);
        bitmap
    }

    proptest! {
        #[test]
        fn bitmaps_bound_the_similarity(
            common in proptest::collection::vec(0_u32..3000, 1..2500),
            own in proptest::collection::vec(3000_u32..4000, 0..300),
            other in proptest::collection::vec(4000_u32..5000, 0..3000),
        ) {
            let sets = [own, other].map(|own| [&common[..], &own].concat());
            let [a, b] = sets.each_ref().map(|set| set.iter().collect::<HashSet<_>>());
            let jaccard = a.intersection(&b).count() as f64 / a.union(&b).count() as f64;
            let [a, b] = sets.map(|set| bitmap(&set));
            prop_assert!(may_reach(&a, &b, jaccard) && may_reach(&b, &a, jaccard));
            prop_assert!(may_reach(&a, &a, 1.0) && may_reach(&a, &[], 1.0));
            // The texts share 55 of 100 shingles. A product is rounded up: `0.55 * 100.0 > 55.0`.
            let [a, b] = [0..55, 0..100].map(|numbers| bitmap(&numbers.collect::<Vec<_>>()));
            prop_assert!(may_reach(&a, &b, 0.55));
        }
    }

    #[test]
    fn bitmaps_tell_unlike_texts_apart() {
        for count in [10, 250, 2000] {
            let text: Vec<u32> = (0..count).collect();
            // Half of the shingles are common: a third of all.
            let unlike: Vec<u32> = (count / 2..count * 3 / 2).collect();
            let like: Vec<u32> = (count / 10..count * 11 / 10).collect();
            let reaches = |other: &[u32]| may_reach(&bitmap(&text), &bitmap(other), 0.8);
            assert!(!reaches(&unlike) && reaches(&like), "{count}");
        }
    }
}
