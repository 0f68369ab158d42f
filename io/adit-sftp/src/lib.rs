//! SFTP clients and servers for tokio, over SSH channels or any other stream.

#![forbid(unsafe_code)]
#![cfg(unix)]

pub mod server;
