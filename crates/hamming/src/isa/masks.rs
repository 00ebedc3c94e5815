//! Plain code that tests elements one by one and collects the results in a mask.

/// Which of `fingerprints` (at most 32) pass: bit i for fingerprint i.
#[inline(always)]
pub(crate) fn passing_mask(fingerprints: &[u64], mut passes: impl FnMut(u64) -> bool) -> u32 {
    let mut bits = 0;
    for (at, &fingerprint) in fingerprints.iter().enumerate() {
        bits |= u32::from(passes(fingerprint)) << at;
    }
    bits
}

/// For each `x` of `xs`, whether `mask(line, x)` is not 0 for any of `lines`: bit i for `xs[i]`.
#[inline(always)]
pub(crate) fn any_line_mask<L, X: Copy, const N: usize>(
    lines: impl Iterator<Item = L> + Clone,
    xs: [X; N],
    mask: impl Fn(L, X) -> u32,
) -> u32 {
    let any = |x| lines.clone().fold(0, |any, line| any | mask(line, x)) != 0;
    let each = xs.into_iter().enumerate();
    each.fold(0, |all, (i, x)| all | u32::from(any(x)) << i)
}
