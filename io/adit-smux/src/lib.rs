//! smux over any stream, with the compression of kcptun where that is wanted.
//!
//! [`Mux`] is one end: [`Mux::open`] and [`Mux::accept`] give [`SmuxStream`]s, a task of its own
//! moves bytes between them and the stream below. An end says at once that it is there, so that
//! two which do not understand each other find out before anything is sent: [`End`] tells why.
//!
//! ```no_run
//! # async fn example(below: adit_stream::BoxStream) -> Result<(), Box<dyn std::error::Error>> {
//! use adit_smux::{Mux, Settings};
//! use adit_smux_proto::{Config, Role, Version};
//! use tokio::io::AsyncWriteExt;
//!
//! let settings = Settings {
//!     config: Config::new(Version::V2, Role::Client),
//!     compress: true,
//!     pads: None,
//! };
//! let mux = Mux::new(below, settings)?;
//! mux.open()?.write_all(b"hello").await?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod driver;
mod end;
mod framing;
mod manner;
mod mux;
mod padded;
mod shared;
mod snappy;
mod stream;

#[cfg(test)]
mod tests;

pub use end::End;
pub use manner::Manner;
pub use mux::{Mux, Settings, Watch};
pub use snappy::SnappyError;
pub use stream::{SmuxReadHalf, SmuxStream, SmuxWriteHalf};
