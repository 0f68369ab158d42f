//! What only SSH has: who logs in and how, which host keys are believed, which algorithms.

use core::time::Duration;
use std::path::PathBuf;

use adit_ssh_proto::algorithm::{Cipher, Kex, Mac};

use crate::scheme::typed::Login;
use crate::text::Secret;

/// A client of an SSH server.
#[derive(Debug, PartialEq, Eq)]
pub struct SshHop {
    /// The user.
    pub user: String,
    /// The password.
    pub password: Option<Secret>,
    /// Keys that are offered, in this order.
    pub keys: Vec<SshKey>,
    /// The socket of the agent that is asked for more.
    pub agent: Option<PathBuf>,
    /// Which host keys are believed.
    pub trust: HostTrust,
    /// What is offered in the key exchange.
    pub offer: SshOffer,
    /// Silence after which the server is asked whether it is there.
    pub keepalive: Duration,
    /// Connections that are kept, at least 1; streams take turns.
    pub sessions: usize,
    /// UDP goes in streams, to a server that knows them (adit's).
    pub udp: bool,
}

/// A private key, as its file has it.
#[derive(Debug, PartialEq, Eq)]
pub struct SshKey {
    /// Where it stands, for messages.
    pub file: String,
    /// The file; it can be read with the passphrase.
    pub text: Secret,
    /// What the file is encrypted with.
    pub passphrase: Option<Secret>,
    /// The certificate of `FILE-cert.pub`.
    pub certificate: Option<String>,
}

/// Which host keys are believed.
#[derive(Debug, PartialEq, Eq)]
pub enum HostTrust {
    /// Those with one of these fingerprints, `SHA256:` and base64; at least one.
    Pinned(Vec<String>),
    /// Those of files of known hosts, read whenever a connection is made.
    Known {
        /// The files; a new host goes into the first.
        files: Vec<PathBuf>,
        /// A host that is not known is taken, and noted down.
        accept_new: bool,
    },
}

/// What is offered in a key exchange. An empty list is what this machine is best at.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SshOffer {
    /// Key exchanges.
    pub kex: Vec<Kex>,
    /// Ciphers.
    pub cipher: Vec<Cipher>,
    /// MACs.
    pub mac: Vec<Mac>,
    /// Deflate, once the user is known.
    pub compression: bool,
}

/// An SSH server that gives streams to targets alone.
#[derive(Debug, PartialEq, Eq)]
pub struct SshServer {
    /// The one name that keys let in; `None` is every name.
    pub user: Option<String>,
    /// Who gets in by password.
    pub users: Vec<Login>,
    /// Whose keys let in, read at every login. There is this or a user.
    pub authorized_keys: Option<PathBuf>,
    /// The host key; made if it is not there.
    pub host_key: PathBuf,
    /// What is offered in the key exchange.
    pub offer: SshOffer,
    /// Silence after which a client is asked whether it is there.
    pub keepalive: Duration,
}
