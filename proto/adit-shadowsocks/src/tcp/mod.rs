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
//! Each direction has its own salt, key and nonce counter, or its own IV. A request has one
//! identity header (SIP023) for each identity key of its client; a response has none.

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

pub use client::{ClientOpen, ClientSeal, client_codecs};
pub use progress::ClientProgress;
pub use server::{AcceptedRequest, ServerHandshake, ServerOpen};
pub use server_seal::ServerSeal;

use adit_crypto::TAG_LEN;

use crate::{Edition, Method};

/// Maximum number of bytes that a [`ServerHandshake`] ever waits for: the variable header and its
/// tag.
pub const HEADER_MAX: usize = MAX_2022 + TAG_LEN;

/// Maximum length of a chunk of the 2022 edition, and of its variable header, in bytes.
const MAX_2022: usize = 0xffff;

/// Maximum length of a chunk of the AEAD edition, in bytes: the two top bits of the length are
/// reserved.
const MAX_AEAD: usize = 0x3fff;

/// Maximum payload of one call without records, in bytes. It bounds buffers; the wire format has no
/// such limit.
const MAX_RAW: usize = 1 << 20;

/// type ‖ time ‖ n
const FIXED_LEN: usize = 1 + 8 + 2;

const REQUEST: u8 = 0;
const RESPONSE: u8 = 1;

/// Returns the maximum length of a chunk, for methods that have chunks.
const fn max_chunk(method: Method) -> usize {
    match method.edition() {
        Edition::Aead2022 => MAX_2022,
        _ => MAX_AEAD,
    }
}
