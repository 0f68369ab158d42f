//! SFTP clients and servers for tokio, over SSH channels or any other stream.

#![forbid(unsafe_code)]
#![cfg(unix)]

pub mod client;
mod error;
pub mod local;
mod names;
pub mod server;

pub use client::SftpSession;
pub use error::SftpError;
pub use names::is_entry_name;
