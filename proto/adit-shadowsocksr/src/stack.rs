//! Complete connections and packets without their obfs: target header, protocol and cipher.
//!
//! ```text
//! target header and data ─▶ frames of the protocol ─▶ cipher, its IV once in front
//! ```
//! Start with [`ClientStack`] or [`ServerStack`]. Sealing writes a frame around the payload and
//! encrypts it in place; opening decrypts each byte once, when it is needed, and opens the frames.
//! Both take one pass and do not allocate per frame.
//!
//! Only `verify_deflate` cannot be opened in place, see [`ProtocolKind::opens_in_place`]: call
//! [`StackOpen::open_frame`] for it and read the data from [`StackOpen::inflated`].
//!
//! [`ProtocolKind::opens_in_place`]: crate::ProtocolKind::opens_in_place

mod client;
mod header;
mod server;
mod stack_open;
mod stack_packet;
mod stack_seal;
#[cfg(test)]
mod tests;

pub use client::{ClientCodecs, ClientStack};
pub use server::{ServerStack, StackAccepted, StackHandshake};
pub use stack_open::{StackOpen, StackProgress};
pub use stack_packet::{PacketClient, PacketServer};
pub use stack_seal::StackSeal;

use adit_crypto::CryptoError;
use adit_wire::ProtocolError;

/// Converts an error of the cipher about a key or an IV, which have the right lengths here.
fn cipher_fault(_: CryptoError) -> ProtocolError {
    ProtocolError::Malformed("a cipher's key or IV")
}
