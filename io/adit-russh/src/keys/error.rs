//! Errors of keys and key files.

use adit_ssh::client::KnownHostsError;
use adit_ssh_proto::key::{CertError, KeyError};

/// An error of a key file or its contents; the equivalent of russh's `keys::Error`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file has no key.
    #[error("the file or text has no valid key")]
    CouldNotReadKey,
    /// The key is encrypted and needs a passphrase.
    #[error("the key is encrypted: a passphrase is needed")]
    KeyIsEncrypted,
    /// The user's home directory is unknown.
    #[error("the home directory is unknown")]
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
        /// The line with the revocation, from 1.
        line: usize,
    },
    /// The host name is invalid.
    #[error("not a valid host name")]
    InvalidParameters,
    /// The agent refused the request.
    #[error("the agent refused the request")]
    AgentFailure,
    /// The agent violated the protocol.
    #[error("the agent violated the protocol")]
    AgentProtocolError,
    /// The environment variable is not set.
    #[error("the environment variable `{0}` is not set")]
    EnvVar(&'static str),
    /// There is no file at the path in `SSH_AUTH_SOCK`.
    #[error("there is no agent at the path in `SSH_AUTH_SOCK`")]
    BadAuthSock,
    /// The file cannot be read or written, or the connection to the agent failed.
    #[error(transparent)]
    IO(#[from] std::io::Error),
    /// A known-hosts file cannot be read or written, or has another key for the host by now.
    #[error(transparent)]
    KnownHosts(#[from] KnownHostsError),
    /// An error of the key itself.
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

/// An error of a key; the equivalent of `ssh_key::Error`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SshKeyError {
    /// The data or text is not a valid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The certificate is invalid.
    #[error(transparent)]
    Certificate(#[from] CertError),
    /// The algorithm name is unknown.
    #[error("unknown key algorithm")]
    UnknownAlgorithm,
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
