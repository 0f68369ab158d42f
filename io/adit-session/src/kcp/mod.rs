//! KCP over UDP, as kcp-go and kcptun speak it.
//!
//! [`KcpListener::bind`] and [`KcpStream::connect`](crate::Buffered::connect) are the two ends;
//! [`Settings`] say what both must agree on. A [`KcpStream`] is a byte stream, or with
//! [`adit_kcp::Config::stream`] switched off a sequence of messages, one for each write and read.
//!
//! One task drives each UDP socket: it receives in batches, finds the sessions of what came by
//! address and conversation, and sleeps until the earliest of their timers. What is written goes
//! out at once in the task that writes. An idle session costs its memory and no wake-up.
//!
//! The protocol has neither handshake nor end. A stream that is dropped is kept until the peer has
//! acknowledged everything, five seconds at most; the peer is not told, and a stream never ends by
//! itself. Whoever needs that puts [`crate::smux`] over it. A session of which nothing is heard for
//! half a minute while segments are sent in vain ([`adit_kcp::Config::silence_ms`]) fails with
//! `TimedOut`, and one that the peer has shown to have lost, by confirming less than before, with
//! `ConnectionReset`.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use adit_session::kcp::{KcpListener, KcpStream, Settings};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! let settings = Settings::new(adit_kcp::Config::fast3());
//! let mut listener = KcpListener::bind("127.0.0.1:4000".parse()?, settings.clone())?;
//! let mut stream = KcpStream::connect("127.0.0.1:4000".parse()?, settings)?;
//! stream.write_all(b"hello").await?;
//! let (mut accepted, _) = listener.accept().await?;
//! let mut text = [0; 5];
//! accepted.read_exact(&mut text).await?;
//! # Ok(())
//! # }
//! ```

mod alarms;
mod allowance;
mod counters;
mod driver;
mod listener;
mod route;
mod sealed;
mod session;
mod settings;
mod socket;
mod stream;
mod table;
mod wire;

#[cfg(test)]
mod reflection;
#[cfg(test)]
mod tests;

pub use counters::{Count, Counters, Counts};
pub use listener::KcpListener;
pub use settings::{Fec, Settings, SettingsError};
pub use stream::{Contact, KcpStream, Link, Probe};
