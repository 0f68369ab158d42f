//! The shared vocabulary of adit's protocols.
//!
//! This crate uses no socket, clock, task or random generator. Bytes, time and random numbers are
//! arguments; bytes and values are results. Three interfaces cover every protocol:
//!
//! * A [`Handshake`] is a bounded dialogue that ends in a value (SOCKS, HTTP CONNECT, the Shadowsocks
//!   request header).
//! * [`Seal`] and [`Open`] are the two directions of a record codec. They work in place.
//! * A datagram codec is a pair of functions over a slice with space around the payload ([`Room`]).
//!
//! Start with [`Target`] (the destination of a client) and [`Handshake`].

#![forbid(unsafe_code)]

mod addr;
mod broken;
mod chance;
mod cursor;
mod handshake;
mod invariant;
pub mod law;
mod record;
mod role;
mod target;
mod time;
mod window;

pub use addr::{AddrError, MAX_ADDR_LEN, parse_addr, put_addr};
pub use broken::Broken;
pub use chance::{Entropy, FixedEntropy};
pub use cursor::{Reader, Short, without_zeros};
pub use handshake::{Handshake, Rx, Step, Tx};
pub use invariant::{Number, front, held, held_mut, narrow, u64_from, usize_from};
pub use record::{Open, Opened, Room, Seal};
pub use role::Role;
pub use target::{Host, Name, Target, TargetError, source_network, unmap};
pub use time::{Clock, Time, Unix};
pub use window::SlidingWindow;
