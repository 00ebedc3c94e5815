//! The numbers of keys, by which passages are counted.

/// Finds the numbers of keys, which are hashes: about where they are follows from their first bits.
pub(crate) struct Numbers {
    /// For each value of the first bits, the number of the first key with it or a greater one.
    starts: Vec<u32>,
    shift: u32,
}

impl Numbers {
    /// Those of `keys`, ascending.
    pub(crate) fn new(keys: &[u32]) -> Self {
        let bits = keys.len().max(2).ilog2();
        let shift = u32::BITS - bits;
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        for (number, key) in keys.iter().enumerate() {
            let first = (key >> shift) as usize;
            starts.resize(starts.len().max(first + 1), number as u32);
        }
        starts.resize((1 << bits) + 1, keys.len() as u32);
        Self { starts, shift }
    }

    /// The number of a key that is among the keys.
    pub(crate) fn of(&self, key: u32, keys: &[u32]) -> usize {
        let first = (key >> self.shift) as usize;
        let (start, end) = (self.starts[first] as usize, self.starts[first + 1] as usize);
        start + keys[start..end].partition_point(|other| *other < key)
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn numbers_are_found_by_keys() {
        let mut random = ChaCha8Rng::seed_from_u64(45);
        for count in [1, 2, 3, 100, 5_000] {
            let mut keys: Vec<u32> = (0..count).map(|_| random.random()).collect();
            keys.extend([0, u32::MAX]);
            // Many with the same first bits.
            keys.extend(0..count / 2);
            keys.sort_unstable();
            keys.dedup();
            let numbers = Numbers::new(&keys);
            for (number, key) in keys.iter().enumerate() {
                assert_eq!(numbers.of(*key, &keys), number);
            }
        }
        let one = [7];
        assert_eq!(Numbers::new(&one).of(7, &one), 0);
    }
}
