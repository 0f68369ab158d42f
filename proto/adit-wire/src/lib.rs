//! The shared vocabulary of adit's protocols.
//!
//! This crate uses no socket, clock, task or random generator. Bytes, time and random numbers are
//! arguments; bytes and values are results. It needs an allocator, but no `std`. Three interfaces cover every protocol:
//!
//! * A [`Handshake`] is a bounded dialogue that ends in a value (SOCKS, HTTP CONNECT, the Shadowsocks
//!   request header).
//! * [`Seal`] and [`Open`] are the two directions of a record codec. They work in place.
//! * A datagram codec is a pair of functions over a slice with space around the payload ([`Overhead`]).
//!
//! Start with [`Target`] (the destination of a client) and [`Handshake`].
//!
//! # Examples
//!
//! ```
//! use adit_wire::{Host, Target, encode_addr, parse_addr};
//!
//! let target: Target = "example.test:443".parse()?;
//! assert!(matches!(&target.host, Host::Name(name) if name.as_str() == "example.test"));
//!
//! // The address of a Shadowsocks or SOCKS5 request, as on the wire.
//! let mut bytes = Vec::new();
//! encode_addr(&target, &mut bytes);
//! assert_eq!(parse_addr(&bytes), Ok((target, bytes.len())));
//! # Ok::<(), adit_wire::TargetError>(())
//! ```
//!
//! # Features
//!
//! No feature is enabled by default.
//!
//! * `test-util` adds `codec_laws`: functions that run a handshake or a codec over divided input and check the
//!   contracts of [`Handshake`], [`Seal`] and [`Open`]. Enable it in `[dev-dependencies]`.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

extern crate alloc;

#[cfg(any(test, feature = "test-util"))]
pub mod codec_laws;
mod error;
mod handshake;
mod invariant;
mod quota_period;
mod reader;
mod record;
mod rng;
mod role;
mod socks_addr;
mod target;
mod time;
mod window;

pub use error::ProtocolError;
pub use handshake::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress};
pub use invariant::{
    Number, array_prefix, narrow_int, subslice, subslice_mut, substr, u64_from, usize_from,
};
pub use quota_period::QuotaPeriod;
pub use reader::{EndOfInput, Reader, trim_leading_zeros};
pub use record::{Open, Opened, Overhead, Seal};
pub use rng::{Entropy, FixedEntropy};
pub use role::Role;
pub use socks_addr::{AddrError, MAX_ADDR_LEN, encode_addr, parse_addr};
pub use target::{Host, Name, Target, TargetError, source_network, unmap_ipv4};
pub use time::{Clock, Time, UnixTime};
pub use window::SlidingWindow;
