//! Complete connections and packets without their obfs: target header, protocol and cipher.
//!
//! ```text
//! target header and data ─▶ frames of the protocol ─▶ cipher, its IV once in front
//! ```
//! Start with [`ClientStack`] or [`ServerStack`]. Sealing writes a frame around the payload and
//! encrypts it in place; opening decrypts each byte once, when it is needed, and opens the frames.
//! Both take one pass and do not allocate per frame.
//!
//! Only `verify_deflate` cannot be opened in place, see [`ProtocolKind::in_place`]: call
//! [`StackOpen::open_frame`] for it and read the data from [`StackOpen::inflated`].
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
use adit_wire::Broken;

/// Converts an error of the cipher about a key or an IV, which have the right lengths here.
fn cipher_fault(_: CryptoError) -> Broken {
    Broken::Malformed("a cipher's key or IV")
}
