//! Masks of the elements that pass a test, in plain code.

/// Which fingerprints of `block` (at most 32) pass: bit i for fingerprint i.
#[inline(always)]
pub(crate) fn mask_of(block: &[u64], mut passes: impl FnMut(u64) -> bool) -> u32 {
    let mut bits = 0;
    for (at, &fingerprint) in block.iter().enumerate() {
        bits |= u32::from(passes(fingerprint)) << at;
    }
    bits
}

/// For each `x` of `xs`, whether `mask(line, x)` is not 0 for any of `lines`: bit i for `xs[i]`.
#[inline(always)]
pub(crate) fn mask_of_any<L, X: Copy, const N: usize>(
    lines: impl Iterator<Item = L> + Clone,
    xs: [X; N],
    mask: impl Fn(L, X) -> u32,
) -> u32 {
    let any = |x| lines.clone().fold(0, |any, line| any | mask(line, x)) != 0;
    let each = xs.into_iter().enumerate();
    each.fold(0, |all, (i, x)| all | u32::from(any(x)) << i)
}
