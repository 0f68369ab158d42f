//! Types of SSH: logins, trusted host keys and algorithms.

use core::time::Duration;
use std::path::PathBuf;

use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

use crate::scheme::endpoint_types::UserPassword;
use crate::text::Secret;

/// A client of an SSH server.
#[derive(Debug, PartialEq, Eq)]
pub struct SshHop {
    /// The user.
    pub user: String,
    /// The password.
    pub password: Option<Secret>,
    /// The keys to offer, in this order.
    pub keys: Vec<SshKey>,
    /// The socket of an agent with more keys.
    pub agent: Option<PathBuf>,
    /// The trusted host keys.
    pub trust: HostTrust,
    /// The algorithms to offer in the key exchange.
    pub algorithms: SshAlgorithms,
    /// Silence after which a keepalive request is sent to the server.
    pub keepalive: Duration,
    /// Number of connections kept open, at least 1; streams are distributed over them in turn.
    pub sessions: usize,
    /// True if UDP is sent in streams, which requires adit as the server.
    pub udp: bool,
}

/// A private key as its file contains it.
#[derive(Debug, PartialEq, Eq)]
pub struct SshKey {
    /// The path of the file, for messages.
    pub file: String,
    /// The content of the file, which the passphrase decrypts.
    pub text: Secret,
    /// The passphrase of the file.
    pub passphrase: Option<Secret>,
    /// The certificate from `FILE-cert.pub`.
    pub certificate: Option<String>,
}

/// The trusted host keys.
#[derive(Debug, PartialEq, Eq)]
pub enum HostTrust {
    /// Keys with one of these fingerprints, `SHA256:` and base64; at least one.
    Pinned(Vec<String>),
    /// Keys in files of known hosts, which are read for every connection.
    Known {
        /// The files. New hosts are added to the first one.
        files: Vec<PathBuf>,
        /// True if the key of an unknown host is accepted and stored.
        accept_new: bool,
    },
}

/// The algorithms to offer in a key exchange. An empty list means the default for this machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SshAlgorithms {
    /// Key exchanges.
    pub kex: Vec<Kex>,
    /// Ciphers.
    pub cipher: Vec<Cipher>,
    /// MACs.
    pub mac: Vec<Mac>,
    /// True for Deflate, once the user is authenticated.
    pub compression: bool,
}

/// An SSH server for streams to targets only.
#[derive(Debug, PartialEq, Eq)]
pub struct SshServer {
    /// The user name accepted with keys; `None` accepts every name.
    pub user: Option<String>,
    /// The users with passwords.
    pub users: Vec<UserPassword>,
    /// True if the users of the fleet are accepted too, with their passwords.
    pub fleet_users: bool,
    /// The file of authorized keys, read at every login. There is this, a user or a fleet.
    pub authorized_keys: Option<PathBuf>,
    /// The file of the host key, which is created if it does not exist.
    pub host_key: PathBuf,
    /// The algorithms to offer in the key exchange.
    pub algorithms: SshAlgorithms,
    /// Silence after which a keepalive request is sent to a client.
    pub keepalive: Duration,
}
