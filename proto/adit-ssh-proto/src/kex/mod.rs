//! Key exchange (RFC 4253 section 7): negotiation, the shared secret and the host key's signature.
//!
//! Each side sends its lists (`init`), both choose the same names from them (`negotiate`), and the
//! method runs (`client`, `server`). Its secret and the hash over the whole exchange determine the
//! session identifier and the keys (`hash`). The state machines here only see payloads;
//! [`crate::transport`] decides when they run and in which order.

mod client;
mod hash;
mod init;
mod negotiate;
mod secret;
mod server;

pub use client::{ClientKex, ServerKexReply};
pub use hash::{ExchangeHashInput, KeyDerivation};
pub use init::{
    EXT_INFO_CLIENT, EXT_INFO_SERVER, KexInit, STRICT_CLIENT, STRICT_SERVER, write_kexinit,
};
pub use negotiate::{DirectionAlgorithms, Negotiated, guess_is_wrong, negotiate};
pub use secret::KexSecret;
pub use server::{ServerKex, ServerKexAnswer, ServerKexReplyValue};

#[cfg(test)]
pub(crate) mod tests;
