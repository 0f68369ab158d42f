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

use crate::Level;
use crate::nh::{self, NhKey, Run, Sums};

/// Implementation that a key uses. A variant with a CPU feature proves that the feature is
/// available.
#[derive(Clone, Copy)]
pub(crate) enum Kernel {
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

impl Kernel {
    /// Returns the widest kernel that this CPU supports.
    pub(crate) fn best() -> Self {
        let widest = Level::ALL.into_iter().rev().find_map(Self::of);
        widest.unwrap_or(Self::Portable)
    }

    /// Returns the kernel for `level`, if this CPU supports it.
    pub(crate) fn of(level: Level) -> Option<Self> {
        match level {
            Level::Portable => Some(Self::Portable),
            #[cfg(all(
                target_arch = "aarch64",
                target_feature = "neon",
                target_endian = "little"
            ))]
            Level::Neon => Some(Self::Neon(neon::Neon::new())),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => avx2::Avx2::detect().map(Self::Avx2),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => avx512::Avx512::detect()
                .zip(avx2::Avx2::detect())
                .map(|(wide, narrow)| Self::Avx512(wide, narrow)),
            _ => None,
        }
    }

    pub(crate) const fn level(self) -> Level {
        match self {
            Self::Portable => Level::Portable,
            #[cfg(all(
                target_arch = "aarch64",
                target_feature = "neon",
                target_endian = "little"
            ))]
            Self::Neon(_) => Level::Neon,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => Level::Avx2,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(..) => Level::Avx512,
        }
    }

    /// Computes the contribution of `run` to the NH of its block, for each stream of a tag of `TAG`
    /// bytes.
    #[inline(always)]
    pub(crate) fn nh<const TAG: usize>(self, key: &NhKey, run: Run<'_>) -> Sums {
        match self {
            Self::Portable => nh::portable::<TAG>(key, run),
            #[cfg(all(
                target_arch = "aarch64",
                target_feature = "neon",
                target_endian = "little"
            ))]
            Self::Neon(kernel) => kernel.nh::<TAG>(key, run),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(kernel) => kernel.nh::<TAG>(key, run),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(wide, narrow) => match run.block() {
                Some(block) if TAG > 8 => wide.nh(key, block),
                _ => narrow.nh::<TAG>(key, run),
            },
        }
    }
}
