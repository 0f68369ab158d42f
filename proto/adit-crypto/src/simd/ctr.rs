//! AES in counter mode on CPUs with vectors for it; the `aes` crate is used otherwise.

use super::CpuPath;

/// An expanded key of one of the three lengths; cleared on drop.
#[cfg(target_arch = "x86_64")]
pub(crate) struct CtrKey(super::aes::AesKey);
/// An uninhabited type: this architecture has no such vectors.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) struct CtrKey(core::convert::Infallible);

#[cfg(target_arch = "x86_64")]
impl CtrKey {
    /// Expands a key of 16, 24 or 32 bytes. Returns `None` for other lengths, and on paths without such
    /// vectors.
    pub(crate) fn new(path: CpuPath, key: &[u8]) -> Option<Self> {
        super::aes::AesKey::new(path, key).map(Self)
    }

    /// Adds the keystream from block `next` on to `data`, and advances `next`; the last block may be
    /// partial.
    #[inline]
    pub(crate) fn add(&self, next: &mut u128, data: &mut [u8]) {
        self.0.add(next, data);
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl CtrKey {
    /// Returns `None`.
    pub(crate) const fn new(_: CpuPath, _: &[u8]) -> Option<Self> {
        None
    }

    /// Never called.
    pub(crate) const fn add(&self, _: &mut u128, _: &mut [u8]) {
        match self.0 {}
    }
}
