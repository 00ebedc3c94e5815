//! `top_bits` with SSE2, which every x86-64 machine has.

use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_movemask_epi8};

/// Gathers the top bits of 64 bytes: bit i of the result is the top bit of byte i.
#[inline(always)]
pub(crate) fn top_bits(bytes: &[u8; 64]) -> u64 {
    let mut gathered = 0;
    for (at, part) in bytes.as_chunks::<16>().0.iter().enumerate() {
        // SAFETY: every x86-64 machine has SSE2, and the load reads the 16 bytes of `part`.
        let bits = unsafe { _mm_movemask_epi8(_mm_loadu_si128(part.as_ptr().cast::<__m128i>())) };
        gathered |= u64::from(bits.cast_unsigned()) << (16 * at);
    }
    gathered
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::isa::top_bits_portable;

    proptest! {
        #[test]
        fn top_bits_equal_the_portable_ones(bytes: [u8; 64]) {
            prop_assert_eq!(top_bits(&bytes), top_bits_portable::top_bits(&bytes));
        }
    }
}
