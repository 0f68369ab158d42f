//! Shadowsocks, sans-IO: the AEAD edition (SIP004, SIP007) and the 2022 edition (SIP022) with
//! identity headers (SIP023); for old peers, the stream ciphers that came before them.
//!
//! Start with [`KeyChain`] for a client and [`Users`] for a server. [`tcp::client`] gives the two
//! codecs of a client's connection, [`tcp::ServerHandshake`] those of a server's; [`udp`] seals and
//! opens packets, and [`relay`] passes both on without their keys. Replays are refused by a
//! [`SaltPool`] (TCP) and by one sliding window per session (UDP).
//!
//! What a server does with a connection it refuses is not decided here: every failure is an
//! error of one kind to the caller, who reacts the same way to all of them.

#![forbid(unsafe_code)]

mod chain;
mod generations;
mod identity;
mod key;
mod material;
mod method;
pub mod relay;
mod salt;
mod salts;
mod stamp;
pub mod tcp;
pub mod udp;
pub mod uot;
mod users;
mod writer;

#[cfg(test)]
mod golden;

pub use chain::KeyChain;
pub use identity::MAX_IDENTITIES;
pub use key::{Key, KeyError, KeyId};
pub use method::{Edition, Method, UnknownMethod};
pub use salts::{Restart, SaltPool, SaltsError, Start};
pub use users::{MAX_TRIAL_USERS, MAX_USERS, UserId, UserRef, Users, UsersError};
