//! UMAC (RFC 4418): message authentication with tags of 32, 64, 96 or 128 bits, several times
//! faster than any HMAC.
//!
//! ```
//! use adit_umac::{Nonce, Umac};
//!
//! let umac = Umac::<8>::new(b"abcdefghijklmnop"); // the tag has 8 octets: UMAC-64
//! let nonce = Nonce::from(7u64); // a counter, never twice under one key
//! let tag = umac.tag(nonce, b"message");
//! assert!(umac.verify(nonce, b"message", tag.as_ref()).is_ok());
//! assert!(umac.verify(nonce, b"massage", tag.as_ref()).is_err());
//! ```
//!
//! Start with [`Umac`], the key; [`Session`] is a key that goes through its nonces in order and
//! saves half of the AES calls of UMAC-64; [`Hasher`] takes the message in pieces. There is no
//! allocation, no `std`, no clock and no chance in here.
//!
//! # How a tag is made
//!
//! Each 32 bits of the tag are a hash of the message of their own, with their own keys (a *stream*):
//!
//! 1. L1, *NH* ([`nh`], [`simd`]): 1,024 octets become 64 bits. All the work of a long message.
//! 2. L2, two *polynomials* ([`poly`]): the results of more than one block become one.
//! 3. L3, an *inner product* ([`inner`]): what is left becomes 32 bits.
//!
//! [`uhash`] puts them together. The pad ([`pad`]), AES of the nonce, is XORed onto the hash; [`kdf`]
//! makes all keys from one of 16 octets.
//!
//! # What a tag is worth
//!
//! No computing power helps a forger as long as AES is good and no nonce is used twice. There is
//! only guessing, and one guess at a message of any content is accepted with a probability of
//! about (RFC 4418 section 6):
//!
//! | tag | octets | one guess | fit for |
//! |---|--:|--:|---|
//! | UMAC-32 | 4 | 2⁻³⁰ | single frames of voice, where a forged one is a click |
//! | UMAC-64 | 8 | 2⁻⁶⁰ | connections that end at the first wrong tag, as those of SSH do |
//! | UMAC-96 | 12 | 2⁻⁹⁰ | anything |
//! | UMAC-128 | 16 | 2⁻¹²⁰ | anything |
//!
//! The guesses add up: *n* of them succeed with *n* times that probability. Whoever lets a forger
//! try without end (datagrams that are dropped in silence) must count on this: at a million
//! guesses a second UMAC-32 falls in a quarter of an hour, UMAC-64 in some 36,000 years. One
//! success may tell the forger enough about the hash's key to make the next ones cheap, so a
//! broken tag is a broken key. UMAC-32 protects nothing that matters to an attacker with patience.
//!
//! # What a nonce used twice costs
//!
//! The two tags have the same pad; their XOR is that of two hashes. From it the hash's key can be
//! worked out piece by piece, and who has it forges a tag for any message under each nonce that
//! he has seen used. It is not one message that is lost but the key. A counter that is
//! never set back while the key lives is the way; in SSH the key is changed long before the 32-bit
//! number of the packet comes round. All nonces under one key must have the same length: short ones
//! are padded with zeros, so that `01` and `0100` are the same.
//!
//! # What can be seen from outside
//!
//! The time depends on the lengths alone, with one exception of no use: an NH result whose upper
//! half is all ones (one in 2³²) takes a second multiplication, as the RFC says. AES without
//! instructions for it is bit-sliced by the `aes` crate. Keys are cleared on drop; what the compiler
//! keeps in registers, or spills from them, is out of reach.

#![no_std]
#![deny(unsafe_code)]
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the way through the modules is for those who read the source"
)]

#[cfg(test)]
extern crate std;

mod inner;
mod kdf;
mod level;
mod nh;
mod pad;
mod poly;
mod session;
#[allow(
    unsafe_code,
    reason = "vector instructions; what keeps them sound is in the module's text"
)]
mod simd;
mod tag;
mod uhash;
mod umac;

pub use level::Level;
pub use pad::{Nonce, NonceLength};
pub use session::Session;
pub use tag::{Tag, WrongTag};
pub use umac::{Hasher, Umac};

#[cfg(test)]
mod tests;
