//! NH with vector instructions, and the choice between these and the portable code.
//!
//! This is the only module with `unsafe`, in two places per vector width. The first is the call of
//! a function compiled for a CPU feature; it requires a proof that only detection creates (`Avx2`,
//! `Avx512`, `Neon`). The second is the loads and stores, each from or to an array reference of
//! exactly their size and with any alignment, or under a mask computed from the length of a slice.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(all(
    target_arch = "aarch64",
    target_feature = "neon",
    target_endian = "little"
))]
mod neon;

use crate::SimdLevel;
use crate::nh::{self, GroupRun, NhKey, Sums};

/// Implementation that a key uses. A variant with a CPU feature proves that the feature is
/// available.
#[derive(Clone, Copy)]
pub(crate) enum NhKernel {
    /// Portable code for any CPU
    Portable,
    /// 128-bit vectors
    #[cfg(all(
        target_arch = "aarch64",
        target_feature = "neon",
        target_endian = "little"
    ))]
    Neon(neon::Neon),
    /// 256-bit vectors
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    /// 512-bit vectors where they are faster, otherwise 256-bit vectors
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512, avx2::Avx2),
}

impl NhKernel {
    /// Returns the widest kernel that this CPU supports.
    pub(crate) fn best_available() -> Self {
        let widest = SimdLevel::ALL.into_iter().rev().find_map(Self::for_level);
        widest.unwrap_or(Self::Portable)
    }

    /// Returns the kernel for `level`, if this CPU supports it.
    pub(crate) fn for_level(level: SimdLevel) -> Option<Self> {
        match level {
            SimdLevel::Portable => Some(Self::Portable),
            #[cfg(all(
                target_arch = "aarch64",
                target_feature = "neon",
                target_endian = "little"
            ))]
            SimdLevel::Neon => Some(Self::Neon(neon::Neon::new())),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 => avx2::Avx2::detect().map(Self::Avx2),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 => avx512::Avx512::detect()
                .zip(avx2::Avx2::detect())
                .map(|(wide, narrow)| Self::Avx512(wide, narrow)),
            _ => None,
        }
    }

    pub(crate) const fn level(self) -> SimdLevel {
        match self {
            Self::Portable => SimdLevel::Portable,
            #[cfg(all(
                target_arch = "aarch64",
                target_feature = "neon",
                target_endian = "little"
            ))]
            Self::Neon(_) => SimdLevel::Neon,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => SimdLevel::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(..) => SimdLevel::Avx512,
        }
    }

    /// Computes the contribution of `run` to the NH of its block, for each stream of a tag of `TAG`
    /// bytes.
    #[inline(always)]
    pub(crate) fn compute_nh<const TAG: usize>(self, key: &NhKey, run: GroupRun<'_>) -> Sums {
        match self {
            Self::Portable => nh::nh_portable::<TAG>(key, run),
            #[cfg(all(
                target_arch = "aarch64",
                target_feature = "neon",
                target_endian = "little"
            ))]
            Self::Neon(kernel) => kernel.compute_nh::<TAG>(key, run),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(kernel) => kernel.compute_nh::<TAG>(key, run),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(wide, narrow) => match run.block() {
                Some(block) if TAG > 8 => wide.compute_nh(key, block),
                _ => narrow.compute_nh::<TAG>(key, run),
            },
        }
    }
}
