//! KCP over UDP, compatible with kcp-go and kcptun.
//!
//! [`KcpListener::bind`] and [`KcpStream::connect`] are the two ends; [`Settings`] contains what
//! both must agree on. A [`KcpStream`] is a byte stream, or with [`Config::stream`] switched off a
//! sequence of messages, one for each write and read.
//!
//! [`KcpListener::from_socket`] and [`KcpStream::from_socket`] use a socket that you have opened,
//! and a [`DatagramTransport`] carries sessions without a UDP socket.
//!
//! One task drives each socket: it receives in batches, finds the sessions of the datagrams by
//! address and conversation, and sleeps until the earliest of their timers. Written data is sent
//! immediately, in the task that writes. An idle session costs its memory and no wake-up.
//!
//! The protocol has no handshake and no close. Between two adits there is a close nevertheless, a
//! segment that other implementations take for a window report:
//!
//! | this end | a peer that is adit sees | kcp-go, KCP in C and others |
//! |---|---|---|
//! | `shutdown` | all the data, then the end of the stream; may continue to write | nothing |
//! | drops the stream | the same, and writing fails with `BrokenPipe` | nothing |
//! | aborts it | `ConnectionReset` | nothing |
//! | disappears | `TimedOut` after [`Settings::idle`], or sooner when it writes | what its
//! application detects |
//!
//! A peer that is not adit never closes: there only [`Settings::idle`] ends the session of a peer
//! that is gone. If you need more, put smux over it (the crate `adit-smux`). The close is as
//! authentic as the data. With [`Settings::session`] and `aes-128-gcm` only the holder of the key
//! can produce one, and no recording works in another session; under the other ciphers, and without
//! one, everyone who can forge data can forge a close.
//!
//! A stream that is dropped is kept until the peer has acknowledged everything, five seconds at
//! most. A session fails with `TimedOut` if the peer is silent for half a minute while segments are
//! sent without an answer ([`Config::silence_ms`]), and with `ConnectionReset` if
//! the peer shows that it has lost the session, by confirming less than before.
//!
//! A listener sends to an address that has not acknowledged anything new at most three times the
//! bytes that were received from it, in at most two datagrams more than were received.
//!
//! # Examples
//!
//! Two ends without encryption:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use adit_kcp::{Config, KcpListener, KcpStream, Settings};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! let settings = Settings::new(Config::fast3());
//! let mut listener = KcpListener::bind("127.0.0.1:4000".parse()?, settings.clone())?;
//! let mut stream = KcpStream::connect("127.0.0.1:4000", settings).await?;
//! stream.write_all(b"hello").await?;
//! let (mut accepted, _) = listener.accept().await?;
//! let mut text = [0; 5];
//! accepted.read_exact(&mut text).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A session with a server of kcp-go or kcptun that uses the cipher `aes` and forward error correction
//! with 10 data and 3 parity shards:
//!
//! ```
//! use std::sync::Arc;
//!
//! use adit_kcp::{
//!     CodeMatrix, Config, Fec, KcpStream, PacketCheck, PacketKey, PacketKind, Settings,
//! };
//!
//! async fn dial(server: &str, password: &[u8]) -> Result<KcpStream, Box<dyn std::error::Error>> {
//!     let mut settings = Settings::new(Config::fast3());
//!     settings.key = Some(Arc::new(PacketKey::new(PacketKind::Aes, PacketCheck::Crc32, password)?));
//!     settings.fec = Some(Fec { data: 10, parity: 3, matrix: CodeMatrix::Vandermonde });
//!     Ok(KcpStream::connect(server, settings).await?)
//! }
//! ```
//!
//! # More
//!
//! Two programs of the repository that you can copy: `examples/src/bin/kcp-echo.rs`, which echoes all it
//! receives, and `examples/src/bin/kcp-frames.rs`, which sends messages over an encrypted session with forward
//! error correction. The guide `docs/guides/kcp-library.md` lists the name of each function of kcp-go in this
//! crate.

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod amplification_limit;
mod concatenated_buffers;
mod counters;
mod crypt;
mod driver;
pub mod fec;
#[cfg(target_os = "linux")]
mod handover;
mod listener;
mod new_peers;
mod oob;
mod pipeline;
mod route;
mod sealed_sessions;
mod session;
mod settings;
mod socket;
mod socket_timers;
mod stream;
mod table;
mod transport;

/// Compiles the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/kcp-library.md")]
mod guide {}

#[cfg(test)]
mod amplification_tests;
#[cfg(test)]
mod closing_tests;
#[cfg(test)]
mod tests;

pub use adit_crypto::CryptoError;
pub use adit_crypto::packet::session::SessionKey;
pub use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
pub use adit_fec::{CodeError, CodeMatrix};
pub use adit_kcp_proto::{ChangeError, Compat, Config, ConfigError, CongestionControl, Stats};
pub use adit_wire::Entropy;
pub use counters::{Count, Counters, Counts};
pub use crypt::{BlockCrypt, ChecksumCrypt, PacketCrypt};
pub use listener::KcpListener;
pub use oob::{OobError, OobReceiver};
pub use settings::{Fec, Settings, SettingsError};
pub use stream::{KcpReadHalf, KcpStream, KcpWriteHalf, PeerContact, SessionProbe};
pub use transport::DatagramTransport;
