//! Shadowsocks over UDP: sessions of the 2022 edition, single packets of the others.
//!
//! ```text
//! 2022 AES     AES(session ‖ packet id) ‖ [identity …, in requests] ‖ AEAD(body)
//! 2022 ChaCha  nonce ‖ XAEAD(session ‖ packet id ‖ body)
//!       body   type ‖ time ‖ [client session, in answers] ‖ padding ‖ address ‖ data
//! AEAD         salt ‖ AEAD(address ‖ data)
//! none         address ‖ data
//! stream       IV ‖ ⟨address ‖ data⟩
//! ```
//! A packet that fails leaves no trace in any session and gets no answer; its bytes are destroyed.
//! A header key and a body key are expanded once per session. A request has one identity header
//! (SIP023) for each identity key of its client, the first of which hides the separate header.

mod book;
mod client;
mod packet;
mod padding;
mod sender;
mod server;
mod single;

#[cfg(test)]
mod golden;

pub use book::SessionBook;
pub use client::ClientSession;
pub use padding::PADDING_MAX;
pub use server::{Incoming, MAX_SESSIONS, ServerOpener, ServerSealer};

use adit_crypto::TAG_LEN;
use adit_wire::MAX_ADDR_LEN;

use crate::MAX_IDENTITIES;
use crate::identity::IDENTITY_LEN;

pub(crate) use packet::{BODY_MIN, IDS_LEN};

/// Bytes in front of a payload that are enough for any method, any address and as many identity
/// headers as there may be.
///
/// Padding is not counted: packets to or from port 53 get as much of it as there is room in front
/// of the payload, so give [`PADDING_MAX`] more where it is wanted.
pub const HEAD_ROOM: usize =
    24 + IDS_LEN + MAX_IDENTITIES * IDENTITY_LEN + 1 + 8 + 8 + 2 + MAX_ADDR_LEN;

/// Bytes behind a payload that are enough for any method.
pub const TAIL_ROOM: usize = TAG_LEN;
