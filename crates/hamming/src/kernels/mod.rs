//! Comparing one fingerprint with up to 64 candidates at a time, one module an instruction set.
//!
//! [`scalar`] is the oracle of the others: the same function in plain code. [`Kernel::detect`] looks once
//! at what the machine has; [`crate::Tables::probe`] dispatches once a chunk, never once a candidate.

#[cfg(target_arch = "aarch64")]
pub(crate) mod aarch64;
pub(crate) mod scalar;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

use crate::scan::{Look, each};

/// An instruction set to probe with. A value exists only where the machine has the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(pub(crate) Isa);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isa {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Kernel {
    /// Plain code, on every machine.
    pub const SCALAR: Self = Self(Isa::Scalar);

    /// Every kernel that this machine can run, the fastest last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut kernels = vec![Self::SCALAR];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            if avx2 {
                kernels.push(Self(Isa::Avx2));
            }
            if avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vpopcntdq")
                && is_x86_feature_detected!("avx512bitalg")
            {
                kernels.push(Self(Isa::Avx512));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            kernels.push(Self(Isa::Neon));
        }
        kernels
    }

    /// The fastest kernel of this machine.
    #[must_use]
    pub fn detect() -> Self {
        static BEST: std::sync::LazyLock<Kernel> =
            std::sync::LazyLock::new(|| Kernel::available().pop().unwrap_or(Kernel::SCALAR));
        *BEST
    }

    /// Its name, for logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Isa::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => "neon",
        }
    }
}

/// A loop that is compiled once for each instruction set.
pub(crate) trait Work {
    type Output;

    /// The loop. Must be `#[inline(always)]`, as must be all that it calls, to be compiled for the instruction set.
    fn run<C: Compare>(self) -> Self::Output;
}

impl Kernel {
    /// Runs `work` with this kernel's instructions.
    pub(crate) fn run<W: Work>(self, work: W) -> W::Output {
        match self.0 {
            Isa::Scalar => work.run::<scalar::Scalar>(),
            // SAFETY: a `Kernel` exists only where its instructions do.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { x86::run_avx2(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { x86::run_avx512(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { aarch64::run_neon(work) },
        }
    }
}

/// For which of `xs` any of `lines` has a mask that is not empty: bit i for number i of `xs`.
#[inline(always)]
pub(crate) fn any_each<L, X: Copy, const N: usize>(
    lines: impl Iterator<Item = L> + Clone,
    xs: [X; N],
    mask: impl Fn(L, X) -> u32,
) -> u32 {
    let any = |x| lines.clone().fold(0, |any, line| any | mask(line, x)) != 0;
    let each = xs.into_iter().enumerate();
    each.fold(0, |all, (i, x)| all | u32::from(any(x)) << i)
}

/// What every instruction set provides.
pub(crate) trait Compare {
    /// Which of `candidates` (at most 64) are within `max_distance` bits of `query`: bit i for candidate i.
    ///
    /// # Safety
    /// The machine has the instruction set, and the caller is compiled for it (else this is a call where it
    /// could have been a few instructions).
    unsafe fn within(query: u64, candidates: &[u64], max_distance: u32) -> u64;

    /// Whether one of `a` is within 1 bit of `x`, or one of `b` of `y`. `LANES` is 16, 32 or 64.
    ///
    /// # Safety
    /// As above.
    unsafe fn near<const LANES: usize>(a: &[u16; LANES], x: u16, b: &[u16; LANES], y: u16) -> bool;

    /// Which of a line of sketches are within so many bits of `x`: bit i for sketch i.
    ///
    /// # Safety
    /// As above.
    unsafe fn narrow_within(line: &[u16; 32], x: u16, bits: u32) -> u32;

    /// As [`Self::narrow_within`], of sketches of twice the width, of which only the bits of `mask` count.
    ///
    /// # Safety
    /// As above.
    unsafe fn wide_within(line: &[u32; 16], x: u32, mask: u32, bits: u32) -> u32;

    /// Within so many bits of `mask` of which of `xs` any sketch of some lines is: bit i for sketch i of `xs`.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    unsafe fn any_wide_within<'a, const N: usize>(
        lines: impl Iterator<Item = &'a [u32; 16]> + Clone,
        xs: [u32; N],
        mask: u32,
        bits: u32,
    ) -> u32 {
        // SAFETY: the caller vouches for the instruction set.
        any_each(lines, xs, |line, x| unsafe {
            Self::wide_within(line, x, mask, bits)
        })
    }

    /// Which fingerprints of `block`, at most 32, `look` marks: bit i for fingerprint i.
    ///
    /// # Safety
    /// As above.
    #[inline(always)]
    unsafe fn marked(look: &Look<'_>, block: &[u64]) -> u32 {
        each(block, |fingerprint| look.marks(fingerprint))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sketches::{Sketch, Test};

    /// The kernel's answer, through the safe face.
    fn within(kernel: Kernel, query: u64, candidates: &[u64], max_distance: u32) -> u64 {
        // SAFETY: a `Kernel` exists only where its instructions do.
        unsafe {
            match kernel.0 {
                Isa::Scalar => scalar::Scalar::within(query, candidates, max_distance),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => x86::Avx2::within(query, candidates, max_distance),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => x86::Avx512::within(query, candidates, max_distance),
                #[cfg(target_arch = "aarch64")]
                Isa::Neon => aarch64::Neon::within(query, candidates, max_distance),
            }
        }
    }

    fn near<const LANES: usize>(
        kernel: Kernel,
        a: &[u16; LANES],
        x: u16,
        b: &[u16; LANES],
        y: u16,
    ) -> bool {
        // SAFETY: a `Kernel` exists only where its instructions do.
        unsafe {
            match kernel.0 {
                Isa::Scalar => scalar::Scalar::near(a, x, b, y),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => x86::Avx2::near(a, x, b, y),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => x86::Avx512::near(a, x, b, y),
                #[cfg(target_arch = "aarch64")]
                Isa::Neon => aarch64::Neon::near(a, x, b, y),
            }
        }
    }

    /// Checks one number of lanes: nothing near but, perhaps, one lane of each.
    fn check_near<const LANES: usize>(
        lane: usize,
        bits: [u32; 2],
        flips: [u16; 2],
        x: u16,
        y: u16,
    ) {
        // Two bits away, whatever the lane.
        let (mut a, mut b) = ([x ^ 0b11; LANES], [y ^ 0b1001; LANES]);
        let flip = |value: u16, bits: u32, flips: u16| {
            let kept = (0..16)
                .filter(|bit| flips >> bit & 1 == 1)
                .take(bits as usize);
            kept.fold(value, |value, bit| value ^ 1 << bit)
        };
        a[lane % LANES] = flip(x, bits[0], flips[0]);
        b[lane % LANES] = flip(y, bits[1], flips[1]);
        let of =
            |lanes: &[u16], query: u16| lanes.iter().any(|lane| (lane ^ query).count_ones() <= 1);
        for kernel in Kernel::available() {
            assert_eq!(
                near(kernel, &a, x, &b, y),
                of(&a, x) || of(&b, y),
                "{}",
                kernel.name()
            );
        }
    }

    fn sketches<S: Sketch>(kernel: Kernel, line: &[S], x: S, test: Test) -> u32 {
        // SAFETY: a `Kernel` exists only where its instructions do.
        unsafe {
            match kernel.0 {
                Isa::Scalar => S::within::<scalar::Scalar>(line, x, test),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => S::within::<x86::Avx2>(line, x, test),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => S::within::<x86::Avx512>(line, x, test),
                #[cfg(target_arch = "aarch64")]
                Isa::Neon => S::within::<aarch64::Neon>(line, x, test),
            }
        }
    }

    /// For which of `xs` any of some lines has a sketch within so many bits.
    fn any_near<S: Sketch>(kernel: Kernel, lines: &[S], xs: [S; 3], test: Test) -> u32 {
        let lines = lines.chunks_exact(S::LANES);
        // SAFETY: a `Kernel` exists only where its instructions do.
        unsafe {
            match kernel.0 {
                Isa::Scalar => S::any_within::<scalar::Scalar, 3>(lines, xs, test),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => S::any_within::<x86::Avx2, 3>(lines, xs, test),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 => S::any_within::<x86::Avx512, 3>(lines, xs, test),
                #[cfg(target_arch = "aarch64")]
                Isa::Neon => S::any_within::<aarch64::Neon, 3>(lines, xs, test),
            }
        }
    }

    proptest! {
        #[test]
        fn every_kernel_knows_to_which_sketches_any_is_near(
            lanes in proptest::collection::vec(any::<u32>(), 64), xs: [u32; 3], near in 0usize..200, mask: u32, limit in 0u32..=12,
        ) {
            let mut lanes = lanes;
            // Random sketches alone are hardly ever near.
            if let Some(lane) = lanes.get_mut(near) {
                *lane = xs[near % 3] ^ 0x0014_0014;
            }
            let any = |near: &dyn Fn(u32, u32) -> u32, lanes: &[u32]| {
                xs.iter().enumerate().fold(0u32, |any, (i, &x)| {
                    any | u32::from(lanes.iter().any(|&lane| near(lane, x) <= limit)) << i
                })
            };
            let of_narrow = any(&|lane, x| (lane as u16 ^ x as u16).count_ones(), &lanes);
            let of_wide = any(&|lane, x| ((lane ^ x) & mask).count_ones(), &lanes[..32]);
            let [all, some] = [!0, mask].map(|mask| Test { mask, limit });
            let narrow: Vec<u16> = lanes.iter().map(|&lane| lane as u16).collect();
            for kernel in Kernel::available() {
                let name = kernel.name();
                prop_assert_eq!(any_near(kernel, &narrow, xs.map(|x| x as u16), all), of_narrow, "{}", name);
                prop_assert_eq!(any_near(kernel, &lanes[..32], xs, some), of_wide, "{}", name);
            }
        }

        #[test]
        fn every_kernel_counts_the_bits_of_sketches(lanes: [u32; 32], x: u32, mask: u32, limit in 0u32..=32) {
            let narrow = lanes.map(|lane| lane as u16);
            let near = |distance: &dyn Fn(u32, u32) -> u32, lanes: &[u32]| {
                lanes.iter().enumerate().fold(0u32, |near, (i, &lane)| {
                    near | u32::from(distance(lane, x) <= limit) << i
                })
            };
            let of_narrow = near(&|lane, x| (lane as u16 ^ x as u16).count_ones(), &lanes);
            let of_wide = near(&|lane, x| ((lane ^ x) & mask).count_ones(), &lanes[..16]);
            let [all, some] = [!0, mask].map(|mask| Test { mask, limit });
            for kernel in Kernel::available() {
                let name = kernel.name();
                prop_assert_eq!(sketches(kernel, &narrow, x as u16, all), of_narrow, "{}", name);
                prop_assert_eq!(sketches(kernel, &lanes[..16], x, some), of_wide, "{}", name);
            }
        }

        #[test]
        fn every_kernel_sees_near_lanes(
            lane in 0usize..64, bits in [0u32..4, 0u32..4], flips: [u16; 2], x: u16, y: u16,
        ) {
            check_near::<16>(lane, bits, flips, x, y);
            check_near::<32>(lane, bits, flips, x, y);
            check_near::<64>(lane, bits, flips, x, y);
        }

        #[test]
        fn every_kernel_equals_the_definition(
            query: u64,
            flips in proptest::collection::vec(proptest::collection::vec(0u32..64, 0..24), 0..=64),
            max_distance in 0u32..=16,
        ) {
            let candidates: Vec<u64> = flips
                .iter()
                .map(|bits| bits.iter().fold(query, |value, bit| value ^ (1 << bit)))
                .collect();
            let expected = candidates.iter().enumerate().fold(0u64, |mask, (i, candidate)| {
                mask | u64::from((candidate ^ query).count_ones() <= max_distance) << i
            });
            for kernel in Kernel::available() {
                prop_assert_eq!(within(kernel, query, &candidates, max_distance), expected, "{}", kernel.name());
            }
        }
    }
}
