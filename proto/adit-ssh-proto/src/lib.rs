//! The SSH protocol as sans-IO state machines: bytes and time in, bytes and events out. Client and
//! server use the same machines.
//!
//! The layers, from the wire upwards:
//!
//! 1. `version`: the identification lines that start a connection (RFC 4253 section 4.2);
//! 2. `packet`: the binary packet protocol with lengths, padding, ciphers, MACs and compression;
//! 3. `kex`: key exchange with negotiation, methods, the exchange hash and key derivation;
//! 4. `transport`: combines these three into payloads in and out, re-keying, strict kex and pings;
//! 5. `auth`: user authentication (RFC 4252), on top of `key` with keys, signatures, certificates
//!    and key files;
//! 6. `connection`: channels with windows and global requests (RFC 4254), inside payloads;
//! 7. `sftp`: version 3 of the file transfer protocol, inside a channel.
//!
//! [`wire`] contains the data types of RFC 4251, [`msg`] the message numbers, [`algorithm`] the
//! algorithm names.
//!
//! # Examples
//!
//! Keys sign and verify without a connection:
//!
//! ```
//! use adit_ssh_proto::algorithm::KeyAlgorithm;
//! use adit_ssh_proto::key::{KeyType, PrivateKey};
//! use adit_wire::FixedEntropy;
//!
//! // Use the system's random numbers in a program.
//! let key = PrivateKey::generate(KeyType::Ed25519, &mut FixedEntropy::new(&[7; 64]))?;
//! let signature = key.sign(KeyAlgorithm::Ed25519, b"data")?;
//! let public = key.public_key();
//! assert!(public.verify_signature(KeyAlgorithm::Ed25519, b"data", &signature).is_ok());
//! assert!(public.fingerprint().starts_with("SHA256:"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

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
