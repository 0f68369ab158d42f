//! `ssh://`, both ends.
//!
//! ```text
//! hop:       connect ─▶ one of a few kept connections ─▶ direct-tcpip channel = stream
//! listener:  connection ─▶ login ─▶ channel ─▶ Pending ─▶ router, chain, relay
//! ```
//!
//! A hop is a connector of its own, since its connections outlive streams: [`SshHop`]. What
//! `authorized_keys` and the route allow is all that a listener's clients get: streams.

mod acceptor;
mod hop;
mod host_key;
mod line;
mod login;
mod offer;
mod policy;
mod reasons;
mod trust;

pub(crate) use acceptor::Ssh;
pub use hop::SshHop;

use std::io;

use adit_ssh_proto::key::{KeyError, Place};

/// What a plan says of SSH cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SshPlanError {
    /// A private key, or its certificate.
    #[error("{file}: {why}")]
    Key {
        /// The file.
        file: String,
        /// What is wrong with it.
        why: KeyError,
    },
    /// The host key of a listener cannot be read or kept.
    #[error("the host key {file}: {why}")]
    HostKey {
        /// The file.
        file: String,
        /// What the system said.
        why: io::Error,
    },
    /// An authority whose every certificate would let in.
    #[error(
        "{0}: this `cert-authority` would let every one of its certificates in, since the listener \
         is for no certain user: name those who may in its line (`principals=\"ann,bob\"`), or a \
         user in the listener's URL (`ssh://ann@…`)"
    )]
    Authority(Place),
    /// A host that no file of known hosts can have.
    #[error("{0} is no name of a host that has a key")]
    Host(String),
}
