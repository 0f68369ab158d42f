//! smux over any stream, optionally with kcptun's compression.
//!
//! [`Mux`] is one end: [`Mux::open`] and [`Mux::accept`] return [`SmuxStream`]s, and a separate
//! task moves bytes between them and the stream below. Each end immediately sends a keep-alive, so
//! that incompatible ends find out before any data is sent: [`EndReason`] is the reason.
//!
//! ```no_run
//! # async fn example(below: adit_stream::BoxStream) -> Result<(), Box<dyn std::error::Error>> {
//! use adit_smux::{Mux, Settings};
//! use adit_smux_proto::{Config, Role, Version};
//! use tokio::io::AsyncWriteExt;
//!
//! let mut settings = Settings::new(Config::new(Version::V2, Role::Client));
//! settings.compress = true;
//! let mux = Mux::new(below, settings)?;
//! mux.open()?.write_all(b"hello").await?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod driver;
mod end_reason;
mod framing;
mod mux;
mod peer_format;
mod qpp;
mod shared;
mod snappy;
mod stream;

#[cfg(test)]
mod tests;

pub use end_reason::EndReason;
pub use mux::{Mux, MuxWatch, Settings};
pub use peer_format::SmuxFormat;
pub use snappy::SnappyError;
pub use stream::{SmuxReadHalf, SmuxStream, SmuxWriteHalf};
