//! smux versions 1 and 2: many streams over one ordered byte stream, sans-IO.
//!
//! A [`Session`] is one end. Pass received bytes to [`Session::handle_input`], take bytes to send
//! from [`Session::poll_output`], and pass the time as an argument. Streams are identified by
//! [`StreamId`]; [`Session::poll_event`] reports the streams that can continue.
//!
//! Bytes are copied once in each direction: from the input to the stream's buffer, where
//! [`Session::front_bytes`] lends them, and from the stream's buffer to the output. The sender can avoid
//! its copy: [`Session::direct_capacity`] and [`Session::seal_frame`] write the header before bytes that are
//! already in the caller's buffer. A stream without bytes owns no buffer.
//!
//! The crate needs an allocator, but no `std`.
//!
//! ```
//! use adit_smux_proto::{Config, Event, Role, Session, Version};
//! use adit_wire::Time;
//!
//! let now = Time(0);
//! let mut client = Session::new(Config::new(Version::V2, Role::Client), now)?;
//! let mut server = Session::new(Config::new(Version::V2, Role::Server), now)?;
//!
//! let id = client.open()?;
//! client.write(id, b"hello")?;
//! let mut wire = [0; 1024];
//! let len = client.poll_output(&mut wire);
//! assert_eq!(server.handle_input(now, &wire[..len])?, len);
//!
//! let id = server.accept().unwrap();
//! let mut text = [0; 16];
//! let len = server.read(id, &mut text)?;
//! assert_eq!(&text[..len], b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

extern crate alloc;

mod config;
mod error;
mod event;
mod frame;
mod frame_budget;
mod input;
mod output;
mod queue_pool;
mod session;
mod stream;

#[cfg(test)]
mod tests;

pub use adit_wire::Role;
pub use config::{Config, Version};
pub use error::{ConfigError, OpenError, PeerSilent, StreamError};
pub use event::Event;
pub use frame::FRAME_HEADER;
pub use output::MIN_OUTPUT;
pub use session::Session;
pub use stream::{ReadFront, StreamId};
