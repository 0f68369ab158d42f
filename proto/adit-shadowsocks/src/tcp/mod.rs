//! Shadowsocks over TCP: a client's two codecs and a server's handshake.
//!
//! ```text
//! 2022  request   salt ‖ identity … ‖ [type 0, time, n] ‖ [address, padding, first data] ‖ chunk …
//!       response  salt ‖ [type 1, time, request salt, n] ‖ [first data] ‖ chunk …
//! AEAD  request   salt ‖ chunk …            the plaintext begins with the address
//!       response  salt ‖ chunk …
//! none  request   address ‖ data …
//! stream request  IV ‖ ⟨address ‖ data …⟩        ⟨ ⟩ is one state of the cipher
//!       response  IV ‖ ⟨data …⟩
//!       chunk     [length] ‖ [data]         each [ ] is sealed with its own nonce
//! ```
//! Each direction has its own salt, key and nonce counter, or IV. A request has one identity header
//! (SIP023) for each identity key of its client; an answer has none.

mod body;
mod chunk;
mod client;
mod progress;
mod request;
mod server;
mod server_seal;

#[cfg(test)]
mod empty_chunks;
#[cfg(test)]
mod golden;

pub(crate) use request::FIXED_SEALED;

pub use client::{ClientOpen, ClientSeal, client};
pub use progress::Progress;
pub use server::{Accepted, ServerHandshake, ServerOpen};
pub use server_seal::ServerSeal;

use adit_crypto::TAG_LEN;

use crate::{Edition, Method};

/// The most bytes a [`ServerHandshake`] ever asks for at once: the variable header and its tag.
pub const HEADER_MAX: usize = MAX_2022 + TAG_LEN;

/// The longest chunk of the 2022 edition, and of its variable header.
const MAX_2022: usize = 0xffff;

/// The longest chunk of the AEAD edition: the two top bits of the length are reserved.
const MAX_AEAD: usize = 0x3fff;

/// How much is handed through at once without records: a bound for buffers, not of the wire.
const MAX_RAW: usize = 1 << 20;

/// The longest padding a sender adds to a request.
const MAX_PADDING: usize = 900;

/// type ‖ time ‖ n
const FIXED_LEN: usize = 1 + 8 + 2;

const REQUEST: u8 = 0;
const RESPONSE: u8 = 1;

/// The longest chunk of a method that has chunks.
const fn max_chunk(method: Method) -> usize {
    match method.edition() {
        Edition::Aead2022 => MAX_2022,
        _ => MAX_AEAD,
    }
}
