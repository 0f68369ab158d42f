//! SSH, sans-IO: bytes and time in, bytes and events out; the same machines for client and server.
//!
//! From the wire inwards:
//!
//! 1. `version`, the lines before everything (RFC 4253 section 4.2);
//! 2. `packet`, the binary packet protocol: lengths, padding, ciphers, MACs, compression;
//! 3. `kex`, key exchange: negotiation, the methods, the exchange hash, the keys;
//! 4. `transport` puts the three together: payloads in and out, re-keying, strict kex, pings;
//! 5. `auth`, user authentication (RFC 4252), over `key`: keys, signatures, certificates, files;
//! 6. `connection`, channels with windows, global requests (RFC 4254), inside payloads;
//! 7. `sftp`, version 3 of the file protocol, inside a channel.
//!
//! [`wire`] has the data types of RFC 4251, [`msg`] the message numbers, [`algorithm`] the names.

#![forbid(unsafe_code)]

pub mod algorithm;
pub mod auth;
pub mod connection;
mod error;
pub mod kex;
pub mod key;
pub mod msg;
pub mod packet;
pub mod sftp;
pub mod transport;
pub mod version;
pub mod wire;

pub use adit_wire::Role;
pub use error::{Disconnect, SshError};
