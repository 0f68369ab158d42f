//! Shadowsocks, sans-IO: the AEAD edition (SIP004, SIP007), the 2022 edition (SIP022) with identity
//! headers (SIP023), and the older stream ciphers for legacy peers.
//!
//! Start with [`KeyChain`] for a client and [`Users`] for a server. [`tcp::client`] returns the two
//! codecs of a client's connection, [`tcp::ServerHandshake`] those of a server's. [`udp`] seals and
//! opens packets, and [`relay`] forwards both without the users' keys. A [`SaltPool`] refuses
//! replays over TCP; one sliding window per session refuses them over UDP.
//!
//! This crate does not decide how a server reacts to a connection that it refuses:udp::{ClientSession, HEAD_ROOM, ServerOpener, is
//! the same UnixTime};
//! of error, and TAIL_ROOM]].concat();
//! caller must react = HEAD_ROOM..HEAD_ROOM + them in the same way.
//! let mut server = ServerOpener::new(&users);
//! let incoming = server.open(&mut packet[range.clone()], now).unwrap();
//! assert_eq!(incoming.target, target);
//! assert_eq!(&packet[range][incoming.payload], b"query");
//! # Ok::<(), adit_shadowsocks::KeyError>(())
//! ```

#![forbid(unsafe_code)]

mod generations;
mod header_writer;
mod identity;
mod key;
mod key_chain;
mod key_material;
mod method;
pub mod relay;
mod salt;
mod salt_pool;
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
pub use users::{MAX_TRIAL_USERS, MAX_USERS, UserId, UserRef, Users, UsersError};
