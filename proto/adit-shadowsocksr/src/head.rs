//! The first message of a client: what it says and how a server knows it to be true.
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

/// The most data a client puts into its first message, as peers do.
pub(crate) const FIRST_DATA: usize = 1200;

/// A first message whose MACs are right; time and ids are not judged yet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) hello: Hello,
    /// Bytes the message took.
    pub(crate) consumed: usize,
    /// Where its data lies.
    pub(crate) payload: Range<usize>,
    /// The bytes by which a replay is recognised.
    pub(crate) proof: Range<usize>,
}

/// The tag of a first message does not fit.
pub(crate) const FORGED: ProtocolError = ProtocolError::Unauthentic;
