//! KCP over UDP, as kcp-go and kcptun speak it.
//!
//! [`KcpListener::bind`] and [`KcpStream::connect`] are the two ends;
//! [`Settings`] say what both must agree on. A [`KcpStream`] is a byte stream, or with
//! [`adit_kcp_proto::Config::stream`] switched off a sequence of messages, one for each write and read.
//!
//! [`KcpListener::from_socket`] and [`KcpStream::from_socket`] take over
//! a socket of the program's own, and a [`DatagramTransport`] carries sessions where there is none.
//!
//! One task drives each socket: it receives in batches, finds the sessions of what came by
//! address and conversation, and sleeps until the earliest of their timers. What is written goes
//! out at once in the task that writes. An idle session costs its memory and no wake-up.
//!
//! The protocol has no handshake and no end. Between two adits there is an end nevertheless, a
//! segment that other implementations take for news of a window:
//!
//! | this end | what a peer that is adit sees | kcp-go, KCP in C and others |
//! |---|---|---|
//! | `shutdown` | reads all the data, then the end of the stream; may go on writing | nothing |
//! | drops the stream | the same, and writing fails with `BrokenPipe` | nothing |
//! | aborts it | `ConnectionReset` | nothing |
//! | is itself gone | `TimedOut` after [`Settings::idle`], or sooner when it writes | what its program finds out |
//!
//! From a peer that is not adit no end ever comes: there only [`Settings::idle`] ends a session of a
//! peer that is gone. If you need more, put smux over it (the crate `adit-smux`). The end is as authentic as the
//! data: with [`Settings::session`] and `aes-128-gcm` nobody else can make one, nor send a recorded
//! one into another session; under the other ciphers, and without one, whoever can forge data can.
//!
//! A stream that is dropped is kept until the peer has acknowledged everything, five seconds at most.
//! A session of which nothing is heard for half a minute while segments are sent in vain
//! ([`adit_kcp_proto::Config::silence_ms`]) fails with `TimedOut`, and one that the peer has shown to have
//! lost, by confirming less than before, with `ConnectionReset`.
//!
//! A listener sends to an address that has not acknowledged anything new at most three times the
//! bytes that came from it, in at most two datagrams more than came.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use adit_kcp::{KcpListener, KcpStream, Settings};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! let settings = Settings::new(adit_kcp_proto::Config::fast3());
//! let mut listener = KcpListener::bind("127.0.0.1:4000".parse()?, settings.clone())?;
//! let mut stream = KcpStream::connect("127.0.0.1:4000".parse()?, settings)?;
//! stream.write_all(b"hello").await?;
//! let (mut accepted, _) = listener.accept().await?;
//! let mut text = [0; 5];
//! accepted.read_exact(&mut text).await?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod alarms;
mod allowance;
mod counters;
mod crypt;
mod driver;
pub mod fec;
mod listener;
mod newcomers;
mod oob;
mod parts;
mod route;
mod sealed;
mod session;
mod settings;
mod socket;
mod stream;
mod table;
mod transport;
mod wire;

/// The programs of the guide are compiled as they stand there.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/kcp-library.md")]
mod guide {}

#[cfg(test)]
mod endings;
#[cfg(test)]
mod reflection;
#[cfg(test)]
mod tests;

pub use adit_crypto::CryptoError;
pub use adit_wire::Entropy;
pub use counters::{Count, Counters, Counts};
pub use crypt::{BlockCrypt, Checked, PacketCrypt};
pub use listener::KcpListener;
pub use oob::{OobError, OobReceiver};
pub use settings::{Fec, Settings, SettingsError};
pub use stream::{Contact, KcpReadHalf, KcpStream, KcpWriteHalf, Probe};
pub use transport::DatagramTransport;
