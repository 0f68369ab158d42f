//! Shadowsocks, sans-IO: the AEAD edition (SIP004, SIP007), the 2022 edition (SIP022) with identity
//! headers (SIP023), and the older stream ciphers for legacy peers.
//!
//! Start with [`KeyChain`] for a client and [`Users`] for a server. [`tcp::client_codecs`] returns the two
//! codecs of a client's connection, [`tcp::ServerHandshake`] those of a server's. [`udp`] seals and
//! opens packets, and [`relay`] forwards both without the users' keys. A [`SaltPool`] refuses
//! replays over TCP; one sliding window per session refuses them over UDP.
//!
//! This crate does not decide how a server reacts to a connection that it refuses: every failure is
//! the same kind of error, and the caller must react to all of them in the same way.
//!
//! The feature `legacy-ciphers`, on by default, has the stream ciphers; without it their names are unknown methods.
//!
//! # Examples
//!
//! ```
//! use adit_shadowsocks::udp::{ClientSession, HEADROOM, ServerOpener, TAILROOM};
//! use adit_shadowsocks::{KeyChain, Method, Users};
//! use adit_wire::{FixedEntropy, Target, UnixTime};
//! use std::sync::Arc;
//!
//! let method: Method = "2022-blake3-aes-128-gcm".parse().unwrap();
//! let keys = KeyChain::parse(method, "AAECAwQFBgcICQoLDA0ODw==")?;
//! let users = Users::with_single_key(keys.user_key().clone());
//! let (now, mut entropy) = (UnixTime(1_800_000_000), FixedEntropy::new(&[7; 64]));
//! let target: Target = "192.0.2.1:53".parse().unwrap();
//!
//! // A client seals a datagram in place; the space around the payload is the caller's.
//! let mut packet = [&[0; HEADROOM][..], b"query", &[0; TAILROOM]].concat();
//! let payload = HEADROOM..HEADROOM + 5;
//! let mut client = ClientSession::new(&keys, &mut entropy);
//! let range = client.seal(&mut packet, payload, &target, now, &mut entropy).unwrap();
//!
//! // The server opens it.
//! let mut server = ServerOpener::new(&users);
//! let incoming = server.open_packet(&mut packet[range.clone()], now).unwrap();
//! assert_eq!(incoming.target, target);
//! assert_eq!(&packet[range][incoming.payload], b"query");
//! # Ok::<(), adit_shadowsocks::KeyError>(())
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

mod generations;
mod header_writer;
mod identity;
mod key;
mod key_chain;
mod key_material;
mod method;
mod padding;
pub mod relay;
mod salt;
mod salt_pool;
mod stream_cipher;
pub mod tcp;
mod timestamp;
pub mod udp;
pub mod uot;
mod users;

#[cfg(test)]
mod golden;

pub use identity::MAX_IDENTITIES;
pub use key::{Key, KeyError, KeyId};
pub use key_chain::KeyChain;
pub use method::{Edition, Method, UnknownMethod};
pub use salt_pool::{ProcessStart, RestartPolicy, SaltPool, SaltRestoreError};
pub use timestamp::MAX_CLOCK_SKEW;
pub use users::{MAX_TRIAL_USERS, MAX_USERS, UserId, UserRef, Users, UsersError};
