//! `ssh://`, client and server.
//!
//! ```text
//! hop:       connect ─▶ one of a few persistent connections ─▶ direct-tcpip channel = stream
//! listener:  connection ─▶ login ─▶ channel ─▶ Pending ─▶ router, chain, relay
//! ```
//!
//! A hop is a connector of its own ([`SshHop`]), since its connections outlive streams. Clients of a
//! listener get streams, as far as `authorized_keys` and the route allow, and nothing else.

mod acceptor;
mod algorithms;
mod auth_policy;
mod connection_slot;
mod error_causes;
mod hop;
mod host_key;
mod host_key_check;
mod login;

pub(crate) use acceptor::SshAcceptor;
pub use hop::SshHop;

use std::io;

use adit_ssh_proto::key::{KeyError, LinePosition};

/// The error of SSH settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SshPlanError {
    /// A private key or its certificate cannot be used.
    #[error("{file}: {why}")]
    Key {
        /// The file.
        file: String,
        /// The error of the key.
        why: KeyError,
    },
    /// The host key of a listener cannot be read or stored.
    #[error("the host key {file}: {why}")]
    HostKey {
        /// The file.
        file: String,
        /// The error of the system.
        why: io::Error,
    },
    /// A certificate authority of which every certificate would be accepted.
    #[error(
        "{0}: this `cert-authority` would accept all of its certificates, since the listener is \
         for no particular user: list the allowed ones in its line (`principals=\"ann,bob\"`), or set \
         a user in the listener's URL (`ssh://ann@…`)"
    )]
    Authority(LinePosition),
    /// A name that cannot be in a known hosts file.
    #[error("{0} is not a host name that can have a key")]
    Host(String),
}
