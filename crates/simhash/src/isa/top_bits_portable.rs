//! `top_bits` in plain Rust: used on other machines than x86-64, and by tests as the oracle of the
//! SSE2 version.

/// Gathers the top bits of 64 bytes: bit i of the result is the top bit of byte i.
#[inline(always)]
pub(crate) fn top_bits(bytes: &[u8; 64]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().enumerate().fold(0, |gathered, (at, word)| {
        let tops = u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
        // The multiplication moves each top bit to its place in the highest byte.
        gathered | (tops >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * at)
    })
}
