//! AES in counter mode where this CPU has vectors for it; elsewhere the `aes` crate's.

#[cfg(not(target_arch = "x86_64"))]
use core::convert::Infallible;

use super::Path;
#[cfg(target_arch = "x86_64")]
use super::vaes::{Keys, Vaes};

/// An expanded key of one of the three lengths; cleared on drop.
pub(crate) enum CtrKey {
    #[cfg(target_arch = "x86_64")]
    Aes128(Keys<11>),
    #[cfg(target_arch = "x86_64")]
    Aes192(Keys<13>),
    #[cfg(target_arch = "x86_64")]
    Aes256(Keys<15>),
    #[cfg(not(target_arch = "x86_64"))]
    Never(Infallible),
}

impl CtrKey {
    /// Expands a key of 16, 24 or 32 octets. `None` for others, and on paths without such vectors.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn new(path: Path, key: &[u8]) -> Option<Self> {
        let wide = match path {
            Path::Portable | Path::Avx2(_) => return None,
            Path::Avx512(kernel) => kernel,
            Path::Ifma(kernel) => kernel.without(),
        };
        let proof = Vaes::detect(wide)?;
        if let Ok(key) = <&[u8; 16]>::try_from(key) {
            Some(Self::Aes128(Keys::new(proof, key)))
        } else if let Ok(key) = <&[u8; 24]>::try_from(key) {
            Some(Self::Aes192(Keys::new(proof, key)))
        } else if let Ok(key) = <&[u8; 32]>::try_from(key) {
            Some(Self::Aes256(Keys::new(proof, key)))
        } else {
            None
        }
    }

    /// There are none.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn new(_: Path, _: &[u8]) -> Option<Self> {
        None
    }

    /// Adds the keystream from block `next` on to `data`, and counts its blocks; the last may be
    /// the first part of one.
    #[inline]
    pub(crate) fn add(&self, next: &mut u128, data: &mut [u8]) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Aes128(keys) => keys.add(next, data),
            #[cfg(target_arch = "x86_64")]
            Self::Aes192(keys) => keys.add(next, data),
            #[cfg(target_arch = "x86_64")]
            Self::Aes256(keys) => keys.add(next, data),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Never(never) => {
                let _ = (next, data);
                match *never {}
            }
        }
    }
}
