//! Instruction sets, and the comparisons that each of them implements.
//!
//! An instruction set is a zero-sized token ([`Isa`]). Its `detect` returns one only where the machine has the
//! instructions, so its methods are safe. [`scalar`] is plain code: the fallback, and the oracle of the others. A
//! [`Kernel`] holds one of the tokens; [`Kernel::execute`] hands it a whole loop ([`Work`]), never a single comparison.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod masks;
#[cfg(target_arch = "aarch64")]
mod neon;
mod run_filter;
mod scalar;
#[cfg(test)]
mod tests;

pub(crate) use masks::{any_line_mask, passing_mask};
pub(crate) use run_filter::{MAP_BITS, MAP_WORDS, RUN_BITS, RunFilter, TAIL_BITS, tail_place};

/// An instruction set to probe with. A value exists only where the machine has the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(Detected);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detected {
    Scalar(scalar::Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
}

impl Kernel {
    /// Plain code, which every machine runs.
    pub const SCALAR: Self = Self(Detected::Scalar(scalar::Scalar));

    /// Every kernel that this machine can run, the fastest last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut kernels = vec![Self::SCALAR];
        #[cfg(target_arch = "x86_64")]
        {
            kernels.extend(avx2::Avx2::detect().map(|isa| Self(Detected::Avx2(isa))));
            kernels.extend(avx512::Avx512::detect().map(|isa| Self(Detected::Avx512(isa))));
        }
        #[cfg(target_arch = "aarch64")]
        kernels.extend(neon::Neon::detect().map(|isa| Self(Detected::Neon(isa))));
        kernels
    }

    /// The fastest kernel of this machine.
    #[must_use]
    pub fn detect() -> Self {
        static BEST: std::sync::LazyLock<Kernel> =
            std::sync::LazyLock::new(|| Kernel::available().pop().unwrap_or(Kernel::SCALAR));
        *BEST
    }

    /// The name of the instruction set, for logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Detected::Scalar(_) => "scalar",
            #[cfg(target_arch = "x86_64")]
            Detected::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Detected::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            Detected::Neon(_) => "neon",
        }
    }

    /// Executes `work` with this kernel's instructions.
    pub(crate) fn execute<W: Work>(self, work: W) -> W::Output {
        match self.0 {
            Detected::Scalar(isa) => isa.execute(work),
            #[cfg(target_arch = "x86_64")]
            Detected::Avx2(isa) => isa.execute(work),
            #[cfg(target_arch = "x86_64")]
            Detected::Avx512(isa) => isa.execute(work),
            #[cfg(target_arch = "aarch64")]
            Detected::Neon(isa) => isa.execute(work),
        }
    }
}

/// A loop that is compiled once for each instruction set.
pub(crate) trait Work {
    type Output;

    /// Executes the loop. It must be `#[inline(always)]`, and so must all that it calls, to be compiled for the
    /// instruction set.
    fn execute<I: Isa>(self, isa: I) -> Self::Output;
}

/// The token of an instruction set, with the comparisons that every set provides.
///
/// Inside a [`Work`], which is compiled for the instruction set, a comparison is inlined; elsewhere it is a call.
pub(crate) trait Isa: Copy {
    /// Executes `work`, compiled for this instruction set.
    fn execute<W: Work>(self, work: W) -> W::Output;

    /// Which of `candidates` (at most 64) are within `max_distance` bits of `query`: bit i for candidate i.
    fn within(self, query: u64, candidates: &[u64], max_distance: u32) -> u64;

    /// Whether one of `a` is within 1 bit of `x`, or one of `b` within 1 bit of `y`. `LANES` is 16, 32 or 64.
    fn either_within_1<const LANES: usize>(
        self,
        a: &[u16; LANES],
        x: u16,
        b: &[u16; LANES],
        y: u16,
    ) -> bool;

    /// Which values of a cache line are within `limit` bits of `x`: bit i for value i.
    fn line_within_u16(self, line: &[u16; 32], x: u16, limit: u32) -> u32;

    /// Which values of a cache line differ from `x` in at most `limit` of the bits of `mask`: bit i for value i.
    fn line_within_u32(self, line: &[u32; 16], x: u32, mask: u32, limit: u32) -> u32;

    /// For each of `xs`, whether any value of `lines` differs from it in at most `limit` of the bits of `mask`: bit i
    /// for `xs[i]`.
    #[inline(always)]
    fn any_within_u32<'a, const N: usize>(
        self,
        lines: impl Iterator<Item = &'a [u32; 16]> + Clone,
        xs: [u32; N],
        mask: u32,
        limit: u32,
    ) -> u32 {
        any_line_mask(lines, xs, |line, x| {
            self.line_within_u32(line, x, mask, limit)
        })
    }

    /// Which of `fingerprints` (at most 32) pass `filter`: bit i for fingerprint i.
    #[inline(always)]
    fn passing(self, filter: &RunFilter<'_>, fingerprints: &[u64]) -> u32 {
        passing_mask(fingerprints, |fingerprint| filter.passes(fingerprint))
    }
}
