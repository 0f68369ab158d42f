//! Key exchange (RFC 4253 section 7): what is agreed on, with which secret, under whose key.
//!
//! Each side sends its lists (`init`), both choose the same names from them (`negotiate`), the
//! method runs (`client`, `server`), and from its secret and the hash over all that was said come
//! the session identifier and the keys (`hash`). The machines here see payloads only; in which
//! order and when they run is the business of [`crate::transport`].

mod client;
mod hash;
mod init;
mod negotiate;
mod secret;
mod server;

pub use client::{ClientKex, Reply};
pub use hash::{HashInput, KeySource};
pub use init::{
    EXT_INFO_CLIENT, EXT_INFO_SERVER, KexInit, STRICT_CLIENT, STRICT_SERVER, write_kexinit,
};
pub use negotiate::{DirectionAlgorithms, Negotiated, guess_is_wrong, negotiate};
pub use secret::Agreed;
pub use server::{Answer, AnswerValue, ServerKex};

#[cfg(test)]
pub(crate) mod tests;
