//! Why a key, or a file of keys, is of no use.

use adit_ssh::client::KnownHostsError;
use adit_ssh_proto::key::{CertError, KeyError};

/// What russh's `keys::Error` stands for: files, and what is in them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no key in the file.
    #[error("there is no key to be read")]
    CouldNotReadKey,
    /// A passphrase is needed.
    #[error("the key is encrypted")]
    KeyIsEncrypted,
    /// No folder of the user's is known.
    #[error("no home folder is known")]
    NoHomeDir,
    /// The host is known with another key.
    #[error("the server's key has changed (line {line})")]
    KeyChanged {
        /// The line with the other key, from 1.
        line: usize,
    },
    /// The key is revoked.
    #[error("the server's key is revoked (line {line})")]
    KeyRevoked {
        /// The line that says so, from 1.
        line: usize,
    },
    /// A host's name that is none.
    #[error("not a name of a host")]
    InvalidParameters,
    /// The file cannot be read or written.
    #[error(transparent)]
    IO(#[from] std::io::Error),
    /// A file of known hosts cannot be read or written, or knows another key by now.
    #[error(transparent)]
    KnownHosts(#[from] KnownHostsError),
    /// The key.
    #[error(transparent)]
    SshKey(#[from] SshKeyError),
}

impl From<KeyError> for Error {
    fn from(why: KeyError) -> Self {
        match why {
            KeyError::Encrypted => Self::KeyIsEncrypted,
            other => Self::SshKey(other.into()),
        }
    }
}

/// What `ssh_key::Error` stands for: the key itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SshKeyError {
    /// Bytes or text that are no key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A certificate that is not in order.
    #[error(transparent)]
    Certificate(#[from] CertError),
    /// The name of an algorithm that is not known.
    #[error("an unknown algorithm")]
    UnknownAlgorithm,
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
