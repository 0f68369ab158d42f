//! smux versions 1 and 2: many streams over one ordered byte stream, sans-IO.
//!
//! A [`Session`] is one end. What came from the peer goes to [`Session::handle_input`], what is to
//! be sent comes from [`Session::poll_output`], and the time is an argument. Streams are named by
//! [`StreamId`]; [`Session::poll_event`] says which of them can go on.
//!
//! Bytes are copied once on each way: from the input to the stream's buffer, where
//! [`Session::front`] lends them, and from the stream's buffer to the output. The copy of the
//! sender can be spared: [`Session::direct`] and [`Session::seal_frame`] put the header in front of
//! bytes that lie in the caller's buffer already. A stream that holds no bytes owns no buffer.
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

#![forbid(unsafe_code)]

mod budget;
mod buffers;
mod config;
mod error;
mod event;
mod frame;
mod input;
mod output;
mod session;
mod stream;

#[cfg(test)]
mod tests;

pub use adit_wire::Role;
pub use config::{Config, Version};
pub use error::{ConfigError, OpenError, Silent, StreamError};
pub use event::Event;
pub use frame::FRAME_HEADER;
pub use output::MIN_OUTPUT;
pub use session::Session;
pub use stream::{Front, StreamId};
