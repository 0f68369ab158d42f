//! Shadowsocks over UDP: sessions in the 2022 edition, independent packets in the others.
//!
//! ```text
//! 2022 AES     AES(session ‖ packet id) ‖ [identity …, in requests] ‖ AEAD(body)
//! 2022 ChaCha  nonce ‖ XAEAD(session ‖ packet id ‖ body)
//!       body   type ‖ time ‖ [client session, in answers] ‖ padding ‖ address ‖ data
//! AEAD         salt ‖ AEAD(address ‖ data)
//! none         address ‖ data
//! stream       IV ‖ ⟨address ‖ data⟩
//! ```
//! A packet that fails to open does not change any session and gets no answer; its bytes are
//! destroyed. A header key and a body key are expanded once per session. A request has one identity
//! header (SIP023) for each identity key of its client; the first identity key encrypts the
//! separate header.

mod client;
mod packet;
mod sender;
mod server;
mod session_registry;
mod sessionless;

#[cfg(test)]
mod golden;

pub use crate::padding::PADDING_MAX;
pub use client::ClientSession;
pub use server::{IncomingPacket, MAX_SESSIONS, ServerOpener, ServerSealer};
pub use session_registry::{SessionRegistry, SessionRestoreError};

use adit_crypto::TAG_LEN;
use adit_wire::MAX_ADDR_LEN;

use crate::MAX_IDENTITIES;
use crate::identity::IDENTITY_LEN;

pub(crate) use packet::{BODY_MIN, IDS_LEN};

/// Headroom in bytes that suffices for any method, any address and the maximum number of identity
/// headers.
///
/// Padding is not included: packets to or from port 53 get as much padding as the headroom allows,
/// so reserve [`PADDING_MAX`] more bytes for them.
pub const HEADROOM: usize =
    24 + IDS_LEN + MAX_IDENTITIES * IDENTITY_LEN + 1 + 8 + 8 + 2 + MAX_ADDR_LEN;

/// Tailroom in bytes that suffices for any method.
pub const TAILROOM: usize = TAG_LEN;
