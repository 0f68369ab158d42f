//! Sessions that have timers of their own: a task drives each, streams come out.
//!
//! * [`kcp`]: [`kcp::KcpListener`] and [`kcp::KcpStream`], KCP over UDP with forward error
//!   correction and encryption, compatible with kcp-go. One task for each UDP socket.
//! * [`fec`]: [`fec::FecListener`] and [`fec::Lane`], datagrams with forward error correction
//!   alone.
//! * [`smux`]: [`smux::Mux`], many streams over one [`adit_stream::Stream`], with or without the
//!   compression of kcptun. One task for each session.
//! * [`ssh`]: SSH sessions, client and server, whose channels are streams. One task for each
//!   connection.
//!
//! The streams of the first three are [`Buffered`]: they lend and reserve as [`adit_stream::Stream`] wants it, and are
//! tokio's `AsyncRead` and `AsyncWrite` besides.
//!
//! ```text
//! KCP:   write ──▶ Kcp ──▶ FEC ──▶ encryption ──▶ Udp::queue, in the task that writes
//!         read ◀── Kcp ◀── FEC ◀── decryption ◀── Udp::poll_recv, in the task of the socket
//! smux:  write ──▶ Session ──▶ [snappy] ──▶ Stream      in the task of the session
//!         read ◀── Session ◀── [snappy] ◀── Stream
//! ```

#![forbid(unsafe_code)]

pub mod fec;
pub mod kcp;
mod newcomers;
pub mod smux;
pub mod ssh;
mod stream;

pub use stream::{Any, Buffered, Raw, ReadHalf, WriteHalf};
