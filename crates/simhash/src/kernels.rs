//! The loops that are compiled for several instruction sets, and which of them this machine has.
//!
//! A kernel is plain code over arrays of lanes, inlined into one function for each instruction set. The oracle of each is
//! the definition itself, in the tests.

/// An instruction set. A value exists only where the machine has the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(Isa);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Isa {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// A loop that is compiled once for each instruction set.
pub(crate) trait Work {
    type Output;

    /// The loop, over `LANES` words of 64 bits at once. Must be `#[inline(always)]`, as must be all that it calls.
    fn run<const LANES: usize>(self) -> Self::Output;
}

impl Kernel {
    /// What every machine has.
    pub const PORTABLE: Self = Self(Isa::Portable);

    /// Every instruction set of this machine, the fastest last.
    #[must_use]
    pub fn available() -> Vec<Self> {
        #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
        let mut kernels = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            if avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl")
            {
                kernels.push(Self(Isa::Avx512));
            }
            // Behind the other: a text has too few features for its wider words (580 to 670 MB/s of English on a machine
            // that has both).
            if avx2 {
                kernels.push(Self(Isa::Avx2));
            }
        }
        kernels
    }

    /// The fastest of this machine.
    #[must_use]
    pub fn detect() -> Self {
        static BEST: std::sync::LazyLock<Kernel> =
            std::sync::LazyLock::new(|| Kernel::available().pop().unwrap_or(Kernel::PORTABLE));
        *BEST
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self.0 {
            Isa::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => "avx512",
        }
    }

    /// Runs `work` with these instructions.
    pub(crate) fn run<W: Work>(self, work: W) -> W::Output {
        match self.0 {
            Isa::Portable => work.run::<2>(),
            // SAFETY: a `Kernel` exists only where its instructions do.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { run_avx2(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => unsafe { run_avx512(work) },
        }
    }
}

/// # Safety
/// The machine has the instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn run_avx2<W: Work>(work: W) -> W::Output {
    work.run::<4>()
}

/// # Safety
/// The machine has the instructions.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn run_avx512<W: Work>(work: W) -> W::Output {
    work.run::<8>()
}
