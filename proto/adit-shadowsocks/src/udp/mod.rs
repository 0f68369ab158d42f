//! Shadowsocks over UDP: sessions of the 2022 edition, single packets of the others.
//!
//! ```text
//! 2022 AES     AES(session ‖ packet id) ‖ AEAD(body)
//! 2022 ChaCha  nonce ‖ XAEAD(session ‖ packet id ‖ body)
//!       body   type ‖ time ‖ [client session, in answers] ‖ padding ‖ address ‖ data
//! AEAD         salt ‖ AEAD(address ‖ data)
//! none         address ‖ data
//! ```
//! A packet that fails leaves no trace in any session and gets no answer; its bytes are destroyed.
//! A header key and a body key are expanded once per session. Identity headers (SIP023) would
//! stand between the separate header and the body; `packet.rs` is where they belong.

mod client;
mod packet;
mod padding;
mod sender;
mod server;
mod single;

#[cfg(test)]
mod golden;

pub use client::ClientSession;
pub use padding::PADDING_MAX;
pub use server::{Incoming, MAX_SESSIONS, ServerOpener, ServerSealer};

use adit_crypto::TAG_LEN;
use adit_wire::MAX_ADDR_LEN;

/// Bytes in front of a payload that are enough for any method and any address.
///
/// Padding is not counted: packets to or from port 53 get as much of it as there is room in front
/// of the payload, so give [`PADDING_MAX`] more where it is wanted.
pub const HEAD_ROOM: usize = 24 + 16 + 1 + 8 + 8 + 2 + MAX_ADDR_LEN;

/// Bytes behind a payload that are enough for any method.
pub const TAIL_ROOM: usize = TAG_LEN;
