//! The first message of a client: its content, and its verification by a server.
//!
//! ```text
//! auth_simple     a frame whose data begins with the hello
//! auth_sha1       crc(4) ‖ BE16 length ‖ pad ‖ hello ‖ data ‖ HMAC(10)
//! auth_sha1_v4    BE16 length ‖ crc(4) ‖ pad ‖ hello ‖ data ‖ HMAC(10)
//! auth_aes128_*   c(1) ‖ MAC(6) ‖ uid ‖ AES(hello, length, n) ‖ MAC(4) ‖ noise(n) ‖ data ‖ MAC(4)
//! auth_chain_*    c(4) ‖ MAC(8) ‖ masked uid ‖ AES(hello, overhead) ‖ MAC(4), then a frame
//! ```

pub(crate) mod aes;
pub(crate) mod chain;
pub(crate) mod sha1;
pub(crate) mod simple;

use core::ops::Range;

use adit_wire::ProtocolError;

use crate::hello::Hello;

/// Maximum data that a client puts into its first message, as in other implementations.
pub(crate) const FIRST_DATA: usize = 1200;

/// A first message whose MACs are valid; time and ids are not checked yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct VerifiedHead {
    pub(crate) hello: Hello,
    /// Number of bytes in the message.
    pub(crate) consumed: usize,
    /// The range of its data.
    pub(crate) payload: Range<usize>,
    /// The range of the bytes that identify a replay.
    pub(crate) proof: Range<usize>,
}

/// The error if the tag of a first message is wrong.
pub(crate) const FORGED: ProtocolError = ProtocolError::Unauthentic;
