//! Comparing one fingerprint with up to 64 candidates at a time, one module an instruction set.
//!
//! [`scalar`] is the oracle of the others: the same function in plain code. [`Kernel::detect`] looks once
//! at what the machine has; [`crate::Tables::probe`] dispatches once a chunk, never once a candidate.

pub(crate) mod scalar;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;

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
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
                kernels.push(Self(Isa::Avx2));
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vpopcntdq")
                && is_x86_feature_detected!("popcnt")
            {
                kernels.push(Self(Isa::Avx512));
            }
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
        }
    }
}

/// What every instruction set provides.
pub(crate) trait Compare {
    /// Which of `candidates` (at most 64) are within `max_distance` bits of `query`: bit i for candidate i.
    ///
    /// # Safety
    /// The machine has the instruction set, and the caller is compiled for it (else this is a call where it
    /// could have been a few instructions).
    unsafe fn within(query: u64, candidates: &[u64], max_distance: u32) -> u64;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
            }
        }
    }

    proptest! {
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
