//! SFTP version 3 (draft-ietf-secsh-filexfer-02) with the extensions of OpenSSH, sans-IO.
//!
//! Channel data goes through [`Frames`], which lends one message at a time. A client passes each
//! message to [`Client::handle_input`], which matches replies with requests; [`Download`] and
//! [`Upload`] keep many requests of one file in flight. A server passes each message to
//! [`Server::handle_input`], executes the resulting [`Request`] and answers its [`Ticket`]. All of
//! them append whole frames to the caller's vector, which is the data to send.
//!
//! File names are bytes: version 3 does not specify their encoding.

mod answer;
mod attrs;
mod client;
mod data;
mod download;
mod extended;
mod extension;
mod frames;
mod limits;
mod names;
mod number;
mod reply;
mod request;
mod server;
mod status;
#[cfg(test)]
mod tests;
mod upload;
mod window;

pub use answer::{NamesAnswer, Ticket};
pub use attrs::{Attrs, FileKind};
pub use client::{Client, Event, RequestId};
pub use download::{Download, Piece};
pub use extended::Extended;
pub use extension::{Extension, Extensions};
pub use frames::Frames;
pub use limits::{Limits, StatVfs};
pub use names::{Ids, Name, Names, Texts};
pub use reply::{Reply, StatusReply};
pub use request::{OpenFlags, Request};
pub use server::{HandleId, Server, Step};
pub use status::{Refused, Status, TransferError};
pub use upload::Upload;

/// Supported protocol version.
pub const VERSION: u32 = 3;

/// Maximum length of a message without its length field, in bytes (as in OpenSSH).
pub const MAX_MESSAGE: usize = 256 * 1024;

/// Maximum number of bytes of one READ or WRITE: the maximum message without 1 KiB for its header.
pub const MAX_DATA: u32 = 255 * 1024;

/// Number of bytes of one READ or WRITE that every server accepts.
pub const USUAL_DATA: u32 = 32 * 1024;

/// Maximum number of files and directories that one client may have open.
pub const MAX_HANDLES: usize = 256;

/// Maximum length of a handle, in bytes (draft section 3).
pub const MAX_HANDLE_LEN: usize = 256;
