//! Vectorized kernels: ChaCha-Poly1305 (RFC 8439) with 8, 12 or 20 rounds, the plain keystreams of
//! ChaCha20, Salsa20 and AES in counter mode, the chains of AES in CFB mode, HighwayHash and CRC-32, in the
//! widest vectors that this CPU has; also plain loops of other modules, compiled for the same vectors.
//!
//! This is not a public API: [`crate::AeadKey`] decides which messages are processed here,
//! [`crate::stream`] counts the blocks of its streams, and [`crate::packet`] supplies its loops. Start with
//! [`CpuPath`], the choice made once per process, and [`aead`], the construction written once for all paths.
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
mod cpu_path;
mod crc32;
mod ctr;
mod highway;
mod kernel;
mod poly1305;
mod portable;
mod ssh;
mod stream_xor;
mod vector_loop;

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
mod limbs26;
#[cfg(target_arch = "x86_64")]
mod poly1305_lanes;
#[cfg(target_arch = "x86_64")]
mod vaes;

#[cfg(test)]
mod tests;

pub use cpu_path::{CpuLevel, cpu_level, limit_cpu};

pub(crate) use aead::ChaChaKey;
pub(crate) use cfb::{Chains, MAX_CHAINS as MOST_CHAINS};
pub(crate) use cpu_path::CpuPath;
pub(crate) use crc32::Crc32;
pub(crate) use ctr::CtrKey;
pub(crate) use highway::highway64;
pub(crate) use kernel::ChaChaRounds;
pub(crate) use ssh::SshKeys;
pub(crate) use stream_xor::{xor_chacha20, xor_salsa20, xor_salsa20_all};
pub(crate) use vector_loop::{MinimumLevel, VectorLoop, run_in_vectors, run_widest};

use kernel::{Kernel, MAX_BLOCKS, SalsaBlocks, TagInput, Task, wipe_stack};
