//! Zero-copy byte streams, and the relay between two of them.
//!
//! * [`Stream`]: borrow to read, reserve to write. [`Tcp`] is the plain socket.
//! * [`Layered`]: a record codec over a stream, in place; layers nest and share one buffer.
//! * [`TokioStream`]: any stream as tokio's `AsyncRead` and `AsyncWrite`; [`Stream::into_tokio`]
//!   makes one.
//! * [`run_handshake`]: drives an [`adit_wire::Handshake`] over a stream.
//! * [`relay()`]: copies between two streams until both directions have ended, and counts with a
//!   [`TrafficMeter`].
//! * [`Buffered`]: a [`Stream`] over anything that copies bytes in and out: a session behind a
//!   lock, or any of tokio's streams. [`session_stream!`] declares such a type in another crate.
//! * [`pool`]: pooled buffers, so that an idle stream owns none.
//! * [`bulk`]: fast flows wake their reader less often.
//! * [`lane`]: relays that keep a processor busy have their own threads.
//! * [`time_slice`]: a task yields after a while, so that small requests do not wait behind bulk
//!   traffic.
//!
//! Data takes this path: `relay` asks the destination for a slot, the source reads into it (or
//! lends the bytes that its codec opened in place), the destination seals in place, and one write
//! sends all records.
//!
//! # Examples
//!
//! A relay between two sockets:
//!
//! ```no_run
//! use adit_stream::{RelayTimeouts, Tcp, TrafficMeter, relay};
//! use std::time::Duration;
//! use tokio::net::TcpStream;
//!
//! /// Connects a client to a target until both directions have ended.
//! async fn forward(client: TcpStream, target: &str) -> std::io::Result<()> {
//!     let target = TcpStream::connect(target).await?;
//!     let meter = TrafficMeter::default();
//!     let timeouts = RelayTimeouts::NEVER
//!         .with_idle(Duration::from_secs(300))
//!         .with_half_close_idle(Duration::from_secs(15));
//!     relay(&mut Tcp::new(client), &mut Tcp::new(target), &timeouts, &meter).await;
//!     println!("{:?}", meter.stats());
//!     Ok(())
//! }
//! ```
//!
//! A stream of any protocol in a function that takes tokio's traits:
//!
//! ```no_run
//! use adit_stream::{BoxStream, Stream};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! async fn ask(stream: BoxStream) -> std::io::Result<String> {
//!     let mut stream = stream.into_tokio();
//!     stream.write_all(b"hello").await?;
//!     stream.shutdown().await?;
//!     let mut answer = String::new();
//!     stream.read_to_string(&mut answer).await?;
//!     Ok(answer)
//! }
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod buffered;
pub mod bulk;
mod handshake;
pub mod lane;
mod layered;
mod meter;
pub mod pool;
mod relay;
mod stream;
mod tcp;
pub mod time_slice;
mod tokio_stream;

pub use buffered::{Buffered, PooledBuffer, RawStream, TokioIo};
pub use handshake::{HandshakeError, run_handshake, write_all, write_and_flush};
pub use layered::Layered;
pub use meter::{CountBytes, MeterStats, TrafficMeter};
pub use relay::{EndReason, RelayOutcome, RelayTimeouts, relay};
pub use stream::{BoxStream, Stream, fill_to, finish_stream, flush_stream};
pub use tcp::{ShortRead, Tcp};
pub use tokio_stream::TokioStream;
