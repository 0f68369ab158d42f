//! Forward error correction: Reed–Solomon over GF(2⁸) and the framing of kcp-go, sans-IO.
//!
//! [`ErasureCode`] computes parity shards from data shards, verifies them, and restores lost shards of both
//! kinds from the remaining ones; its kernels are chosen for the CPU at run time. [`Encoder`] and [`Decoder`] apply it to datagrams like
//! kcp-go and kcptun: bytes and the time are arguments, packets are in the caller's buffers, and once the
//! buffers exist nothing is allocated for a packet.
//!
//! The crate needs an allocator, and no `std` without the feature of that name.
//!
//! # Features
//!
//! * `std`, which is enabled by default, chooses the kernel for the CPU at run time. Without it, the kernel is that
//!   of the CPU features that the program is compiled for (`-C target-feature`, `-C target-cpu`).
//!
//! # Examples
//!
//! ```
//! use adit_fec::{Decoder, Encoder, ErasureCode, HEADER};
//! use adit_wire::Time;
//!
//! let mut sender = Encoder::new(ErasureCode::vandermonde(3, 1)?, 1400)?;
//! let mut receiver = Decoder::new(ErasureCode::vandermonde(3, 1)?, 1400);
//! let mut recovered = Vec::new();
//! for (n, text) in ["one", "two", "three"].into_iter().enumerate() {
//!     let mut packet = [&[0; HEADER], text.as_bytes()].concat();
//!     sender.seal(Time(0), &mut packet).unwrap();
//!     if n != 1 {
//!         receiver.handle_input(&packet); // the second one is lost
//!     }
//! }
//! let mut out = [0; 1500];
//! while let Some(len) = sender.poll_output(&mut out) {
//!     receiver.handle_input(&out[..len]);
//!     while let Some(datagram) = receiver.poll_recovered() {
//!         recovered.push(datagram.to_vec());
//!     }
//! }
//! assert_eq!(recovered, [b"two"]);
//! # Ok::<(), adit_fec::CodeError>(())
//! ```

#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

extern crate alloc;

mod decoder;
mod encoder;
mod erasure_code;
mod gf256;
mod matrix;
mod packet;
mod repair_plans;
mod shard_group;
// Kernels: each `unsafe` there states why it is sound; tests compare each with the safe version.
mod group_size;
mod parity_sums;
#[allow(unsafe_code)]
mod simd;

#[cfg(test)]
mod tests;

pub use decoder::{Decoder, FecCounters, PacketView};
pub use encoder::Encoder;
pub use erasure_code::{CodeError, ErasureCode};
pub use matrix::CodeMatrix;
pub use packet::{HEADER, OOB_HEADER, Packet, encode_oob};
pub use simd::{FecLevel, effective_level, limit_level};
