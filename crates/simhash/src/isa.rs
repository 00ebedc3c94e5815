//! Instruction sets, and hot loops that are compiled once for each of them.
//!
//! A hot loop is safe code over arrays of lanes: it implements [`Work`], and [`Kernel::run`] inlines it into one function
//! per instruction set. [`Kernel`] holds a zero-sized token of its instruction set. Only the token's own `detect` makes one,
//! so every method on a token is safe, and all `unsafe` code of this crate stands in this module's folder.
//!
//! The tests of each loop compare every available kernel with the loop's definition.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod lowercase;
#[cfg(any(test, not(target_arch = "x86_64")))]
mod top_bits_portable;
#[cfg(target_arch = "x86_64")]
mod top_bits_sse2;

#[cfg(not(target_arch = "x86_64"))]
use top_bits_portable::top_bits;
#[cfg(target_arch = "x86_64")]
use top_bits_sse2::top_bits;

pub(crate) use lowercase::push_lowercase;

/// A token of an instruction set.
pub(crate) trait Isa: Copy {
    /// Gathers the top bits of 64 bytes: bit i of the result is the top bit of byte i.
    fn top_bits(self, bytes: &[u8; 64]) -> u64;

    /// A mask whose bit i is set if `is` holds for byte i.
    #[inline(always)]
    fn mask(self, bytes: &[u8; 64], is: impl Fn(u8) -> bool) -> u64 {
        let mut kinds = [0u8; 64];
        for (kind, &byte) in kinds.iter_mut().zip(bytes) {
            *kind = if is(byte) { 0xff } else { 0 };
        }
        self.top_bits(&kinds)
    }
}

/// The token of the instructions that every machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Portable;

impl Isa for Portable {
    #[inline(always)]
    fn top_bits(self, bytes: &[u8; 64]) -> u64 {
        top_bits(bytes)
    }
}

/// The instruction set that the hot loops run with. A value exists only if this machine has the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(Detected);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detected {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
}

/// A loop that is compiled once for each instruction set.
pub(crate) trait Work {
    type Output;

    /// Runs the loop over `LANES` 64-bit words at once, with the instructions of `isa`. Must be
    /// `#[inline(always)]`, like everything that it calls: other functions are compiled without the
    /// instruction set.
    fn run<const LANES: usize>(self, isa: impl Isa) -> Self::Output;
}

impl Kernel {
    /// The instructions that every machine has.
    pub const PORTABLE: Self = Self(Detected::Portable);

    /// Every kernel that this machine can run, the fastest last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
        let mut kernels = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            kernels.extend(avx512::Avx512::detect().map(|isa| Self(Detected::Avx512(isa))));
            // AVX2 comes last, because it is the fastest: 670 MB/s of English text, against 580
            // MB/s with AVX-512. Few texts fill vectors of 512 bits.
            kernels.extend(avx2::Avx2::detect().map(|isa| Self(Detected::Avx2(isa))));
        }
        kernels
    }

    /// The fastest kernel that this machine can run.
    #[must_use]
    pub fn detect() -> Self {
        static BEST: std::sync::LazyLock<Kernel> =
            std::sync::LazyLock::new(|| Kernel::available().pop().unwrap_or(Kernel::PORTABLE));
        *BEST
    }

    /// The instruction set's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Detected::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Detected::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Detected::Avx512(_) => "avx512",
        }
    }

    /// Runs `work` with these instructions.
    pub(crate) fn run<W: Work>(self, work: W) -> W::Output {
        match self.0 {
            Detected::Portable => work.run::<2>(Portable),
            #[cfg(target_arch = "x86_64")]
            Detected::Avx2(isa) => isa.run(work),
            #[cfg(target_arch = "x86_64")]
            Detected::Avx512(isa) => isa.run(work),
        }
    }
}
