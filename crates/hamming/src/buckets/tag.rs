//! Tags: 16 or 32 bits of a fingerprint beside its key, and the comparisons of a cache line of them.

use bytemuck::Pod;

use crate::isa::{Isa, any_line_mask};

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// A test of a tag: a tag passes when it differs from the query's tag in at most `limit` of the
/// bits of `mask`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TagTest {
    /// The bits that are compared. 16-bit tags ignore the mask: all their bits are compared.
    pub(crate) mask: u32,
    /// How many of them may differ.
    pub(crate) limit: u32,
}

/// The operations on tags of one width.
pub(crate) trait Tag: Pod {
    /// How many tags a cache line holds.
    const LANES: usize = LINE / size_of::<Self>();

    /// The tag that consists of the lowest bits of `bits`.
    fn from_bits(bits: u32) -> Self;

    /// Which tags of a cache line pass `test` against `x`: bit i for tag i.
    fn line_within<I: Isa>(isa: I, line: &[Self], x: Self, test: TagTest) -> u32;

    /// For each of `xs`, whether any tag of the lines passes `test` against it: bit i for `xs[i]`.
    fn any_within<'a, I: Isa, const N: usize>(
        isa: I,
        lines: impl Iterator<Item = &'a [Self]> + Clone,
        xs: [Self; N],
        test: TagTest,
    ) -> u32;
}

impl Tag for u16 {
    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        bits as Self
    }

    #[inline(always)]
    fn line_within<I: Isa>(isa: I, line: &[Self], x: Self, test: TagTest) -> u32 {
        let line = line.as_array().expect("a line");
        isa.line_within_u16(line, x, test.limit)
    }

    #[inline(always)]
    fn any_within<'a, I: Isa, const N: usize>(
        isa: I,
        lines: impl Iterator<Item = &'a [Self]> + Clone,
        xs: [Self; N],
        test: TagTest,
    ) -> u32 {
        any_line_mask(lines, xs, |line, x| Self::line_within(isa, line, x, test))
    }
}

impl Tag for u32 {
    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        bits
    }

    #[inline(always)]
    fn line_within<I: Isa>(isa: I, line: &[Self], x: Self, test: TagTest) -> u32 {
        let line = line.as_array().expect("a line");
        isa.line_within_u32(line, x, test.mask, test.limit)
    }

    #[inline(always)]
    fn any_within<'a, I: Isa, const N: usize>(
        isa: I,
        lines: impl Iterator<Item = &'a [Self]> + Clone,
        xs: [Self; N],
        test: TagTest,
    ) -> u32 {
        let lines = lines.map(|line| line.as_array().expect("a line"));
        isa.any_within_u32(lines, xs, test.mask, test.limit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::isa::{Kernel, Work};

    /// [`Tag::line_within`], in a loop that is compiled for the instruction set.
    struct LineWithin<'a, T> {
        line: &'a [T],
        x: T,
        test: TagTest,
    }

    impl<T: Tag> Work for LineWithin<'_, T> {
        type Output = u32;

        #[inline(always)]
        fn execute<I: Isa>(self, isa: I) -> u32 {
            T::line_within(isa, self.line, self.x, self.test)
        }
    }

    /// [`Tag::any_within`] over all cache lines of `tags`.
    struct AnyWithin<'a, T> {
        tags: &'a [T],
        xs: [T; 3],
        test: TagTest,
    }

    impl<T: Tag> Work for AnyWithin<'_, T> {
        type Output = u32;

        #[inline(always)]
        fn execute<I: Isa>(self, isa: I) -> u32 {
            T::any_within(isa, self.tags.chunks_exact(T::LANES), self.xs, self.test)
        }
    }

    fn line_within<T: Tag>(kernel: Kernel, line: &[T], x: T, test: TagTest) -> u32 {
        kernel.execute(LineWithin { line, x, test })
    }

    fn any_within<T: Tag>(kernel: Kernel, tags: &[T], xs: [T; 3], test: TagTest) -> u32 {
        kernel.execute(AnyWithin { tags, xs, test })
    }

    proptest! {
        #[test]
        fn any_within_equals_its_definition_in_every_kernel(
            lanes in proptest::collection::vec(any::<u32>(), 64), xs: [u32; 3], near in 0usize..200, mask: u32, limit in 0u32..=12,
        ) {
            let mut lanes = lanes;
            // Random tags alone are hardly ever near.
            if let Some(lane) = lanes.get_mut(near) {
                *lane = xs[near % 3] ^ 0x0014_0014;
            }
            let any = |distance: &dyn Fn(u32, u32) -> u32, lanes: &[u32]| {
                xs.iter().enumerate().fold(0u32, |any, (i, &x)| {
                    any | u32::from(lanes.iter().any(|&lane| distance(lane, x) <= limit)) << i
                })
            };
            let of_narrow = any(&|lane, x| (lane as u16 ^ x as u16).count_ones(), &lanes);
            let of_wide = any(&|lane, x| ((lane ^ x) & mask).count_ones(), &lanes[..32]);
            let [all, some] = [!0, mask].map(|mask| TagTest { mask, limit });
            let narrow: Vec<u16> = lanes.iter().map(|&lane| lane as u16).collect();
            for kernel in Kernel::available() {
                let name = kernel.name();
                prop_assert_eq!(any_within(kernel, &narrow, xs.map(|x| x as u16), all), of_narrow, "{}", name);
                prop_assert_eq!(any_within(kernel, &lanes[..32], xs, some), of_wide, "{}", name);
            }
        }

        #[test]
        fn line_within_equals_its_definition_in_every_kernel(lanes: [u32; 32], x: u32, mask: u32, limit in 0u32..=32) {
            let narrow = lanes.map(|lane| lane as u16);
            let near = |distance: &dyn Fn(u32, u32) -> u32, lanes: &[u32]| {
                lanes.iter().enumerate().fold(0u32, |near, (i, &lane)| {
                    near | u32::from(distance(lane, x) <= limit) << i
                })
            };
            let of_narrow = near(&|lane, x| (lane as u16 ^ x as u16).count_ones(), &lanes);
            let of_wide = near(&|lane, x| ((lane ^ x) & mask).count_ones(), &lanes[..16]);
            let [all, some] = [!0, mask].map(|mask| TagTest { mask, limit });
            for kernel in Kernel::available() {
                let name = kernel.name();
                prop_assert_eq!(line_within(kernel, &narrow, x as u16, all), of_narrow, "{}", name);
                prop_assert_eq!(line_within(kernel, &lanes[..16], x, some), of_wide, "{}", name);
            }
        }
    }
}
