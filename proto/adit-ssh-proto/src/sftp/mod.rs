//! SFTP version 3 (draft-ietf-secsh-filexfer-02) with the extensions of OpenSSH, sans-IO.
//!
//! Channel data goes through [`FrameReader`], which lends one message at a time. A client passes each
//! message to [`SftpClient::handle_input`], which matches replies with requests; [`Download`] and
//! [`Upload`] keep many requests of one file in flight. A server passes each message to
//! [`SftpServer::handle_input`], executes the resulting [`SftpRequest`] and answers its [`ReplyTicket`]. All of
//! them append whole frames to the caller's vector, which is the data to send.
//!
//! File names are bytes: version 3 does not specify their encoding.

mod attrs;
mod client;
mod download;
mod extended;
mod extension;
mod filled_frame;
mod frames;
mod limits;
mod message_number;
mod names;
mod reply;
mod request;
mod server;
mod server_answer;
mod status;
#[cfg(test)]
mod tests;
mod transfer_window;
mod upload;

pub use attrs::{FileAttrs, FileType};
pub use client::{RequestId, SftpClient, SftpClientEvent};
pub use download::{Download, DownloadedChunk};
pub use extended::ExtendedRequest;
pub use extension::{Extension, ExtensionSet};
pub use frames::FrameReader;
pub use limits::{SftpLimits, StatVfs};
pub use names::{FileEntries, FileEntry, OwnerIds, OwnerNames};
pub use reply::{SftpReply, StatusReply};
pub use request::{OpenFlags, SftpRequest};
pub use server::{HandleId, SftpServer, SftpServerStep};
pub use server_answer::{NamesAnswer, ReplyTicket};
pub use status::{SftpRefused, SftpStatus, TransferError};
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
