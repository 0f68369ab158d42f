//! A connection or a packet as a whole, without its obfs: target header, protocol and cipher.
//!
//! ```text
//! target header and data ─▶ frames of the protocol ─▶ cipher, its IV once in front
//! ```
//! Start with [`ClientStack`] or [`ServerStack`]. Sealing writes a frame around the payload and
//! enciphers it where it stands; opening deciphers each byte once, as it is needed, and opens the
//! frames in it. Both are one pass, and nothing is allocated for a frame.
//!
//! `verify_deflate` alone cannot be opened in place, see [`ProtocolKind::in_place`]: its driver
//! calls [`StackOpen::open_frame`] and takes the data from [`StackOpen::inflated`].
//!
//! [`ProtocolKind::in_place`]: crate::ProtocolKind::in_place

mod client;
mod header;
mod open;
mod packet;
mod seal;
mod server;
#[cfg(test)]
mod tests;

pub use client::{ClientStack, StackClient};
pub use open::{Progress, StackOpen};
pub use packet::{PacketClient, PacketServer};
pub use seal::StackSeal;
pub use server::{ServerStack, StackAccepted, StackHandshake};

use adit_crypto::CryptoError;
use adit_wire::ProtocolError;

/// What the cipher says of a key or an IV, which have the right lengths here.
fn cipher_fault(_: CryptoError) -> ProtocolError {
    ProtocolError::Malformed("a cipher's key or IV")
}
