//! Plain Rust, which every machine can run: the oracle of the instruction sets in the files beside it.

/// The top bit of each byte: bit i of the result for byte i.
#[inline(always)]
pub(crate) fn top_bits(bytes: &[u8; 64]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().enumerate().fold(0, |gathered, (at, word)| {
        let tops = u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
        // The multiplication moves each top bit to its place in the highest byte.
        gathered | (tops >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * at)
    })
}
