//! UMAC (RFC 4418): message authentication with tags of 32, 64, 96 or 128 bits, several times
//! faster than HMAC.
//!
//! ```
//! use adit_umac::{Nonce, Umac};
//!
//! let umac = Umac::<8>::new(b"abcdefghijklmnop"); // a tag of 8 bytes: UMAC-64
//! let nonce = Nonce::from(7u64); // a counter; never reuse it with the same key
//! let tag = umac.compute_tag(nonce, b"message");
//! assert!(umac.verify_tag(nonce, b"message", tag.as_ref()).is_ok());
//! assert!(umac.verify_tag(nonce, b"massage", tag.as_ref()).is_err());
//! ```
//!
//! Start with [`Umac`], the key. [`UmacSession`] is a key for nonces in increasing order, which saves
//! half of the AES calls of UMAC-64. [`Hasher`] processes the message in parts. The crate needs no
//! allocator, no `std`, no clock and no random numbers.
//!
//! # Features
//!
//! No feature is enabled by default.
//!
//! * `traits` implements the traits of RustCrypto.
//!
//! # Traits of RustCrypto
//!
//! The feature `traits` implements `KeyInit` for the keys, and adds
//! `NoncedUmac`, one message with its nonce, which implements `Mac` and `KeyIvInit` of the crate
//! `digest` 0.11:
//!
//! ```
//! # #[cfg(feature = "traits")] {
//! use adit_umac::NoncedUmac;
//! use digest::{Mac, common::KeyIvInit};
//!
//! let nonce = 7u64.to_be_bytes();
//! let mac = NoncedUmac::<8>::new(b"abcdefghijklmnop".into(), &nonce.into());
//! let tag = mac.chain_update(b"message").finalize().into_bytes();
//!
//! let mac = NoncedUmac::<8>::new(b"abcdefghijklmnop".into(), &nonce.into());
//! assert!(mac.chain_update(b"message").verify(&tag).is_ok());
//! # }
//! ```
//!
//! # Structure of the algorithm
//!
//! Each 32 bits of the tag are a separate hash of the message with separate keys (a *stream*):
//!
//! 1. L1, *NH* ([`nh`], [`simd`]): hashes 1,024 bytes to 64 bits. It does all the work for a long
//!    message.
//! 2. L2, two *polynomials* ([`poly`]): combine the results of several blocks into one.
//! 3. L3, an *inner product* ([`inner_product`]): hashes the result to 32 bits.
//!
//! [`uhash`] combines them. The pad ([`pad`]), which is AES of the nonce, is XORed with the hash;
//! [`kdf`] derives all keys from a single key of 16 bytes.
//!
//! # Security of a tag
//!
//! As long as AES is secure and no nonce is reused, computing power does not help an attacker. Only
//! guessing remains, and one guess for a message with any content is accepted with a probability of
//! about (RFC 4418 section 6):
//!
//! | tag | bytes | one guess | suitable for |
//! |---|--:|--:|---|
//! | UMAC-32 | 4 | 2⁻³⁰ | single voice frames, where a forged one is an audible click |
//! | UMAC-64 | 8 | 2⁻⁶⁰ | connections that end at the first wrong tag, such as SSH |
//! | UMAC-96 | 12 | 2⁻⁹⁰ | anything |
//! | UMAC-128 | 16 | 2⁻¹²⁰ | anything |
//!
//! The probabilities add up: *n* guesses succeed with *n* times that probability. An application
//! that lets an attacker try without limit (such as one that silently drops datagrams) must take
//! this into account: at a million guesses per second, UMAC-32 is broken within a quarter of an
//! hour, UMAC-64 within about 36,000 years. One success may reveal enough about the hash key to
//! make further ones cheap, so a forged tag means a broken key. Do not use UMAC-32 against an
//! attacker with patience.
//!
//! # Reuse of a nonce
//!
//! Two tags with the same nonce have the same pad, so their XOR is that of the two hashes. An
//! attacker can derive the hash key from it step by step, and then forge a tag for any message with
//! each nonce observed so far. Not a single message is lost, but the key. Therefore, use a counter
//! that is never reset during the life of the key; SSH replaces the key long before the 32-bit
//! packet number wraps. All nonces under one key must have the same length: short ones are padded
//! with zeros, so `01` and `0100` are equal.
//!
//! # Side channels
//!
//! The time depends only on lengths, with one exception of no use to an attacker: an NH result
//! whose upper half is all ones (one in 2³²) takes a second multiplication, as required by the RFC.
//! Without AES instructions, the `aes` crate uses a bit-sliced implementation. Keys are cleared on
//! drop, except for copies that the compiler keeps in registers or spills to the stack.

#![no_std]
#![deny(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]
#![allow(
    rustdoc::private_intra_doc_links,
    reason = "the links between private modules are for readers of the source"
)]

#[cfg(test)]
extern crate std;

mod cpu_level;
mod inner_product;
mod kdf;
mod nh;
mod pad;
mod poly;
mod session;
#[allow(
    unsafe_code,
    reason = "vector instructions; the module's docs explain their soundness"
)]
mod simd;
mod tag;
#[cfg(feature = "traits")]
mod traits;
mod uhash;
mod umac;

pub use cpu_level::SimdLevel;
pub use pad::{Nonce, NonceLength};
pub use session::UmacSession;
pub use tag::{Tag, WrongTag};
#[cfg(feature = "traits")]
pub use traits::NoncedUmac;
pub use umac::{Hasher, Umac};

#[cfg(test)]
mod tests;
