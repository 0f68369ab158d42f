//! The words every protocol of adit is written in.
//!
//! Pure: no socket, no clock, no task, no random generator. Bytes, time and chance come in as
//! arguments, bytes and values go out. Three shapes cover every protocol:
//!
//! * a [`Handshake`] is a bounded dialogue that ends in a value (SOCKS, HTTP CONNECT, the
//!   Shadowsocks request header);
//! * [`Seal`] and [`Open`] are the two directions of a record codec, in place;
//! * a datagram codec is a pair of functions over a slice with head and tail room ([`Room`]).
//!
//! Start with [`Target`] (where a client wants to go) and [`Handshake`].

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
