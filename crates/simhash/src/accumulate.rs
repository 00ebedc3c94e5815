//! The sum over hashed features and its signs: bit i of a fingerprint is 1 where the features with
//! bit i set weigh more than those without (Charikar; Manku, Jain and Das Sarma, section 2).

/// Adds the low bit of each byte lane: `SPREAD[b]` has byte j equal to bit j of `b`.
const SPREAD: [u64; 256] = {
    let mut table = [0u64; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte] |= ((byte as u64 >> bit) & 1) << (8 * bit);
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// The fingerprint of features that all weigh the same, each given by its hash. A tie gives 0.
#[must_use]
pub fn of_equal_weights(hashes: &[u64]) -> u64 {
    let mut ones = [0u64; 64];
    // Eight bits are counted at once in the byte lanes of a word, which hold up to 255.
    for chunk in hashes.chunks(255) {
        let mut lanes = [0u64; 8];
        for hash in chunk {
            for (lane, byte) in lanes.iter_mut().zip(hash.to_le_bytes()) {
                *lane += SPREAD[usize::from(byte)];
            }
        }
        for (byte, lane) in lanes.iter().enumerate() {
            for (bit, count) in lane.to_le_bytes().into_iter().enumerate() {
                ones[8 * byte + bit] += u64::from(count);
            }
        }
    }
    let total = hashes.len() as u64;
    signs(|bit| 2 * ones[bit] > total)
}

/// The fingerprint of weighted features, each given by its hash and weight. A tie gives 0.
#[must_use]
pub fn of_weighted(features: impl Iterator<Item = (u64, i64)>) -> u64 {
    let mut sums = [0i64; 64];
    for (hash, weight) in features {
        for (bit, sum) in sums.iter_mut().enumerate() {
            // +weight where the bit is set, -weight where it is not.
            let minus = ((hash >> bit) & 1) as i64 - 1;
            *sum += (weight ^ minus) - minus;
        }
    }
    signs(|bit| sums[bit] > 0)
}

fn signs(positive: impl Fn(usize) -> bool) -> u64 {
    (0..64).fold(0, |fingerprint, bit| {
        fingerprint | (u64::from(positive(bit)) << bit)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Charikar's definition, word for word.
    fn by_definition(features: &[(u64, i64)]) -> u64 {
        let mut fingerprint = 0;
        for bit in 0..64 {
            let mut sum = 0;
            for &(hash, weight) in features {
                if hash & (1 << bit) != 0 {
                    sum += weight;
                } else {
                    sum -= weight;
                }
            }
            if sum > 0 {
                fingerprint |= 1 << bit;
            }
        }
        fingerprint
    }

    proptest! {
        #[test]
        fn equals_the_definition(features in proptest::collection::vec((any::<u64>(), 0i64..5000), 0..700)) {
            prop_assert_eq!(of_weighted(features.iter().copied()), by_definition(&features));
            let hashes: Vec<u64> = features.iter().map(|&(hash, _)| hash).collect();
            let ones: Vec<(u64, i64)> = hashes.iter().map(|&hash| (hash, 1)).collect();
            prop_assert_eq!(of_equal_weights(&hashes), by_definition(&ones));
        }
    }
}
