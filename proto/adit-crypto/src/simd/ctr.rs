//! AES in counter mode where this CPU has vectors for it; elsewhere the `aes` crate's.

use super::Path;

/// An expanded key of one of the three lengths; cleared on drop.
#[cfg(target_arch = "x86_64")]
pub(crate) struct CtrKey(super::aes::AesKey);
/// There are none.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) struct CtrKey(core::convert::Infallible);

#[cfg(target_arch = "x86_64")]
impl CtrKey {
    /// Expands a key of 16, 24 or 32 octets. `None` for others, and on paths without such vectors.
    pub(crate) fn new(path: Path, key: &[u8]) -> Option<Self> {
        super::aes::AesKey::new(path, key).map(Self)
    }

    /// Adds the keystream from block `next` on to `data`, and counts its blocks; the last may be
    /// the first part of one.
    #[inline]
    pub(crate) fn add(&self, next: &mut u128, data: &mut [u8]) {
        self.0.add(next, data);
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl CtrKey {
    /// There are none.
    pub(crate) const fn new(_: Path, _: &[u8]) -> Option<Self> {
        None
    }

    /// Never called.
    pub(crate) const fn add(&self, _: &mut u128, _: &mut [u8]) {
        match self.0 {}
    }
}
