//! MurmurHash3 x64-128, whose low 64 bits are the hash of a feature.
//!
//! It hashes slices directly: features are a few bytes long, and the reader interface of the `murmur3` crate costs more than
//! the hash itself. That crate is the oracle of the tests.

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The low 64 bits of MurmurHash3 x64-128 of `bytes` under `seed`.
#[inline]
#[must_use]
pub fn murmur3_low64(bytes: &[u8], seed: u32) -> u64 {
    murmur3_128(bytes, seed)[0]
}

/// MurmurHash3 x64-128 of `bytes` under `seed`: the low and the high 64 bits.
#[inline]
#[must_use]
pub fn murmur3_128(bytes: &[u8], seed: u32) -> [u64; 2] {
    let mut h1 = u64::from(seed);
    let mut h2 = u64::from(seed);
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let k1 = word(&block[..8]);
        let k2 = word(&block[8..]);
        h1 ^= mix1(k1);
        h1 = h1.rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= mix2(k2);
        h2 = h2.rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    if tail.len() > 8 {
        h2 ^= mix2(word(&tail[8..]));
    }
    if !tail.is_empty() {
        h1 ^= mix1(word(&tail[..tail.len().min(8)]));
    }
    let len = bytes.len() as u64;
    h1 ^= len;
    h2 ^= len;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    let (h1, h2) = (fmix64(h1), fmix64(h2));
    let low = h1.wrapping_add(h2);
    [low, h2.wrapping_add(low)]
}

/// [`murmur3_low64`] of `len` bytes, fewer than 16: two little-endian words, the missing bytes zero.
#[inline(always)]
pub(crate) fn murmur3_low64_short([low, high]: [u64; 2], len: u64, seed: u32) -> u64 {
    // MurmurHash3 does not mix an empty word. Mixing it is the same: 0 mixes to 0.
    let h1 = u64::from(seed) ^ mix1(low) ^ len;
    let h2 = u64::from(seed) ^ mix2(high) ^ len;
    let h1 = h1.wrapping_add(h2);
    let h2 = h2.wrapping_add(h1);
    fmix64(h1).wrapping_add(fmix64(h2))
}

/// Up to eight bytes as a little-endian word, the missing ones zero.
#[inline(always)]
fn word(bytes: &[u8]) -> u64 {
    let mut buffer = [0u8; 8];
    buffer[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(buffer)
}

#[inline(always)]
fn mix1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[inline(always)]
fn mix2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[inline(always)]
fn fmix64(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reference(bytes: &[u8], seed: u32) -> u128 {
        let mut reader = bytes;
        murmur3::murmur3_x64_128(&mut reader, seed).expect("a slice reads without error")
    }

    #[test]
    fn published_vectors() {
        let hash = |text: &str| murmur3_low64(text.as_bytes(), 0);
        assert_eq!(hash(""), 0);
        assert_eq!(hash("hello"), 0xcbd8_a7b3_41bd_9b02);
        assert_eq!(hash("hello, world"), 0x342f_ac62_3a5e_bc8e);
        assert_eq!(hash("19 Jan 2038 at 3:14:07 AM"), 0xb89e_5988_b737_affc);
        // Two blocks of 16 bytes and more than half of a third.
        assert_eq!(
            hash("The quick brown fox jumps over the lazy dog."),
            0xcd99_481f_9ee9_02c9
        );
        assert_eq!(
            hash("The quick brown fox jumps over the lazy dog"),
            0xe34b_bc7b_bc07_1b6c
        );
    }

    proptest! {
        #[test]
        fn equals_the_murmur3_crate(bytes in proptest::collection::vec(any::<u8>(), 0..100), seed: u32) {
            let reference = reference(&bytes, seed);
            prop_assert_eq!(murmur3_low64(&bytes, seed), reference as u64);
            prop_assert_eq!(murmur3_128(&bytes, seed), [reference as u64, (reference >> 64) as u64]);
        }
    }
}
