//! Forward error correction: Reed–Solomon over GF(2⁸) and the framing of kcp-go, sans-IO.
//!
//! [`Code`] computes parity shards from data shards and restores data shards from the remaining ones; its
//! kernels are chosen for the CPU at run time. [`Encoder`] and [`Decoder`] apply it to datagrams like
//! kcp-go and kcptun: bytes and the time are arguments, packets are in the caller's buffers, and once the
//! buffers exist nothing is allocated for a packet.
//!
//! ```
//! use adit_fec::{Code, Decoder, Encoder, HEADER};
//! use adit_wire::Time;
//!
//! let mut sender = Encoder::new(Code::vandermonde(3, 1)?, 1400)?;
//! let mut receiver = Decoder::new(Code::vandermonde(3, 1)?, 1400);
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

mod code;
mod decoder;
mod encoder;
mod field;
mod group;
mod matrix;
mod packet;
mod plans;
// Kernels: each `unsafe` there states why it is sound; tests compare each with the safe version.
#[allow(unsafe_code)]
mod simd;
mod sums;
mod tune;

#[cfg(test)]
mod tests;

pub use code::{Code, CodeError};
pub use decoder::{Counters, Decoder, View};
pub use encoder::Encoder;
pub use matrix::Matrix;
pub use packet::{HEADER, OOB_HEADER, Packet, put_oob};
pub use simd::{Level, level, limit};
