//! `ssh://`, both ends.
//!
//! ```text
//! hop:       connect ─▶ one of a few kept connections ─▶ direct-tcpip channel = stream
//! listener:  connection ─▶ login ─▶ channel ─▶ Pending ─▶ router, chain, relay
//! ```
//!
//! A hop is a connector of its own, since its connections outlive streams: [`SshHop`]. What
//! `authorized_keys` and the route allow is all that a listener's clients get: streams.

mod hop;
mod known_hosts;
mod line;
mod login;
mod offer;
mod trust;

pub use hop::SshHop;

use adit_ssh::key::KeyError;

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
    /// A host that no file of known hosts can have.
    #[error("{0} is no name of a host that has a key")]
    Host(String),
}
