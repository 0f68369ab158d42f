//! The ARQ of KCP, sans-IO: an ordered, reliable stream (or messages) over datagrams that may be
//! lost, duplicated and reordered. Wire-compatible with KCP (C) and with kcp-go.
//!
//! ```text
//!        send ──▶ SendWindow ────▶ flush ───▶ poll_output ──▶ datagram ──▶ FEC, encryption, UDP
//!                     ▲              ▲
//!                acks, una       acks owed
//!                     │              │
//!        read ◀── RecvWindow ◀── handle_input ◀── datagram ◀── UDP, decryption, FEC
//! ```
//!
//! Start with [`KcpSession`]. A driver passes datagrams to [`handle_input`](KcpSession::handle_input) with the
//! time. After every call it calls [`poll_output`](KcpSession::poll_output) until there are no more
//! datagrams, and [`poll_timeout`](KcpSession::poll_timeout) for the time of the next call.
//!
//! ```
//! use adit_kcp_proto::{Config, KcpSession};
//! use adit_wire::Time;
//!
//! let now = Time(0);
//! let mut here = KcpSession::new(7, Config::fast3(), now);
//! let mut there = KcpSession::new(7, Config::fast3(), now);
//! here.send(b"hello").unwrap();
//!
//! let mut datagram = [0; 1400];
//! while let Some(len) = here.poll_output(now, &mut datagram) {
//!     there.handle_input(now, &datagram[..len], false).unwrap();
//! }
//! assert_eq!(there.front_bytes(), Some(&b"hello"[..]));
//! ```
//!
//! Not included: a handshake, which the protocol does not have; a close, except for a closing
//! message that only adit understands ([`KcpSession::finish`], [`KcpSession::close_gracefully`]); forward error correction
//! and encryption, which wrap whole datagrams; the choice of `conv`, which must be random where
//! unauthenticated peers can send.
//!
//! The crate needs an allocator, but no `std`.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

extern crate alloc;

mod acks;
mod bbr;
mod byte_ring;
mod change_config;
mod closing;
mod config;
mod in_flight;
mod input;
mod output;
mod path_meters;
mod peer_confirmation;
mod reachability;
mod recv;
mod reno;
mod retransmit;
mod rtt;
mod segment;
mod send;
mod seq;
mod session;
mod stats;
mod timers;

#[cfg(test)]
mod tests;

pub use change_config::ChangeError;
pub use config::{Compat, Config, ConfigError, CongestionControl};
pub use segment::{Command, HEADER_LEN, SegmentHeader};
pub use session::{KcpSession, SendError, SessionState};
pub use stats::Stats;
