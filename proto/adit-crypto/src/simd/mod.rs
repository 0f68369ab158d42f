//! Vectorized kernels: ChaCha-Poly1305 (RFC 8439) with 8, 12 or 20 rounds, the plain keystreams of
//! ChaCha20, Salsa20 and AES in counter mode, the chains of AES in CFB mode, HighwayHash and CRC-32, in the
//! widest vectors that this CPU has; also plain loops of other modules, compiled for the same vectors.
//!
//! This is not a public API: [`crate::AeadKey`] decides which messages are processed here,
//! [`crate::stream`] counts the blocks of its streams, and [`crate::packet`] supplies its loops. Start with
//! [`Path`], the choice made once per process, and [`aead`], the construction written once for all paths.
//!
//! This module has almost all `unsafe` of the crate. It is confined to three places per vector width:
//! entering a function compiled for a CPU feature, the operations on one register type, and its loads and
//! stores from slices whose length was checked. Each value of such a type is derived from a proof
//! ([`avx2::Avx2`], [`avx512::Avx512`], [`ifma::Ifma`], [`vaes::Vaes`]) that only feature detection
//! creates, so the algorithms above them are safe code. The running time of every path depends on lengths
//! alone. Keystream, keys and powers in memory are cleared; values that the compiler keeps in registers, or
//! spills from them, cannot be, as in any library.
//! spills from them, is out of reach, as in any library.

mod aead;
mod cfb;
mod cpu;
mod crc32;
mod ctr;
mod highway;
mod poly1305;
mod portable;
mod ssh;
mod wide;
mod xor;

#[cfg(target_arch = "x86_64")]
mod aes;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod clmul256;
#[cfg(target_arch = "x86_64")]
mod ifma;
#[cfg(target_arch = "x86_64")]
mod keystream;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod limbs26;
#[cfg(target_arch = "x86_64")]
mod vaes;

#[cfg(test)]
mod tests;

pub use cpu::{CpuLevel, cpu_level, limit_cpu};

pub(crate) use aead::ChaChaKey;
pub(crate) use cfb::{Chains, MOST as MOST_CHAINS};
pub(crate) use cpu::Path;
pub(crate) use crc32::Crc32;
pub(crate) use ctr::CtrKey;
pub(crate) use highway::highway64;
pub(crate) use ssh::SshKeys;
pub(crate) use wide::{Loop, Vectors, in_vectors, widest};
pub(crate) use xor::{xor_chacha20, xor_salsa20, xor_salsa20_all};

use poly1305::Form;
use xor::Pieces;

/// The number of ChaCha rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds(u8);

impl Rounds {
    /// ChaCha8
    pub(crate) const EIGHT: Self = Self(8);
    /// ChaCha12
    #[cfg(test)]
    pub(crate) const TWELVE: Self = Self(12);
    /// ChaCha20
    pub(crate) const TWENTY: Self = Self(20);

    /// Returns the number of double rounds: a column round and a diagonal round each.
    pub(crate) const fn doubled(self) -> u8 {
        self.0 / 2
    }
}

/// The operations of a path; implemented by the proofs that its CPU features are available.
trait Kernel: Copy {
    /// True if blocks of several streams are better computed in parallel.
    const TOGETHER: bool = true;

    /// Runs `task` in code compiled for this path.
    fn enter<T: Task>(self, task: T) -> T::Output;

    /// Adds the keystream from block `state[12]` on to `buf`. The counter wraps at 2³².
    fn xor(self, state: &[u32; 16], rounds: Rounds, buf: &mut [u8]);

    /// Adds the keystream of Salsa20 from block `state[8]` on to `buf`. The counter wraps at 2³².
    fn salsa(self, state: &[u32; 16], buf: &mut [u8]);

    /// Adds the keystream of Salsa20 to at most 16 blocks of any streams; `state` has the key.
    fn salsa_pieces(self, state: &[u32; 16], pieces: Pieces<'_, '_>);

    /// Returns the Poly1305 tag of `data` in this form.
    fn tag(self, key: &[u8; 32], data: &[u8], form: Form) -> [u8; 16];
}

/// A task for any path. Implementations must be `#[inline(always)]`: only then are they compiled for the
/// features of the path.
trait Task {
    /// The result of the task.
    type Output;

    /// Runs the task.
    fn run<K: Kernel>(self, kernel: K) -> Self::Output;
}

/// Clears secrets on the stack, a vector at a time where volatile writes would clear byte by byte.
#[inline(always)]
fn wipe<T: Copy + Default>(secret: &mut [T]) {
    secret.fill(T::default());
    zeroize::optimization_barrier(secret);
}
