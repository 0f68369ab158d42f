//! Connections to an agent.

use std::fmt;
use std::io;
use std::marker::PhantomData;

use adit_ssh::client::{Agent, AgentError, AgentPurpose, Identity};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{AgentIdentity, AgentSessionBinding};
use crate::keys::{Algorithm, Error, HashAlg};

/// A byte stream to an agent.
pub trait AgentStream: AsyncRead + AsyncWrite {}

impl<S: AsyncRead + AsyncWrite> AgentStream for S {}

/// A connection to an agent.
pub struct AgentClient<S: AgentStream> {
    agent: Agent,
    stream: PhantomData<fn() -> S>,
}

impl<S: AgentStream + Send + Unpin + 'static> AgentClient<S> {
    /// Uses `stream` as a connection to an agent.
    #[must_use]
    pub fn connect(stream: S) -> Self {
        Self {
            agent: Agent::from_stream(stream),
            stream: PhantomData,
        }
    }

    /// Removes the stream's type from the client's.
    #[must_use]
    pub fn dynamic(self) -> AgentClient<Box<dyn AgentStream + Send + Unpin>> {
        AgentClient {
            agent: self.agent,
            stream: PhantomData,
        }
    }
}

#[cfg(unix)]
impl AgentClient<tokio::net::UnixStream> {
    /// Connects to the agent at this path.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn connect_uds<P: AsRef<std::path::Path>>(path: P) -> Result<Self, Error> {
        Ok(Self::connect(tokio::net::UnixStream::connect(path).await?))
    }

    /// Connects to the agent at the path in the environment variable `SSH_AUTH_SOCK`.
    ///
    /// # Errors
    /// [`Error::EnvVar`] if the variable is not set, [`Error::BadAuthSock`] if there is no such file;
    /// or the connection failed.
    pub async fn connect_env() -> Result<Self, Error> {
        let path = std::env::var_os("SSH_AUTH_SOCK").ok_or(Error::EnvVar("SSH_AUTH_SOCK"))?;
        match Self::connect_uds(path).await {
            Err(Error::IO(why)) if why.kind() == io::ErrorKind::NotFound => Err(Error::BadAuthSock),
            other => other,
        }
    }
}

impl<S: AgentStream> AgentClient<S> {
    /// Returns the agent's keys and certificates in the agent's order, without unknown types.
    ///
    /// # Errors
    /// [`Error::AgentFailure`] if the agent refused, [`Error::AgentProtocolError`] if it violated the
    /// protocol; or it did not answer within 10 seconds, or the connection failed.
    pub async fn request_identities(&mut self) -> Result<Vec<AgentIdentity>, Error> {
        let keys = self.agent.keys().await?;
        Ok(keys
            .iter()
            .map(|key| AgentIdentity::from_key(key.key(), key.comment()))
            .collect())
    }

    /// Asks the agent to sign `data`. Returns `data` followed by the signature: its length (4 bytes),
    /// and the signature with its algorithm name. An RSA key without a hash signs with SHA-512.
    ///
    /// # Errors
    /// [`Error::AgentFailure`] if the agent refused, or signed with another key or algorithm;
    /// [`Error::AgentProtocolError`] if it violated the protocol; or the connection failed.
    ///
    /// # Cancel safety
    /// Not cancel-safe: a cancelled call closes the connection to the agent.
    pub async fn sign_request(
        &mut self,
        identity: &AgentIdentity,
        hash_alg: Option<HashAlg>,
        mut data: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        let algorithm = match identity.public_key().algorithm() {
            Algorithm::Rsa { .. } => Algorithm::Rsa {
                hash: hash_alg.or(Some(HashAlg::Sha512)),
            },
            other => other,
        };
        let algorithm = algorithm.signature_algorithm().ok_or(Error::AgentFailure)?;
        let signature = self
            .agent
            .sign_data(&identity.to_key(), algorithm, &data)
            .await?;
        let len = u32::try_from(signature.len()).map_err(|_| Error::AgentProtocolError)?;
        data.extend(len.to_be_bytes());
        data.extend(signature);
        Ok(data)
    }

    /// Binds the connection to a session: OpenSSH's agent then refuses keys that are restricted to
    /// other hosts. Set `forwarding` for an agent that programs on the host use.
    ///
    /// # Errors
    /// [`Error::AgentFailure`] if the agent does not support bindings or refuses this one; the
    /// connection is usable nevertheless. The other errors are those of
    /// [`AgentClient::request_identities`].
    pub async fn bind_session(
        &mut self,
        binding: &AgentSessionBinding,
        forwarding: bool,
    ) -> Result<(), Error> {
        let used = if forwarding {
            AgentPurpose::Forwarding
        } else {
            AgentPurpose::Login
        };
        Ok(self.agent.bind_session(&binding.0, used).await?)
    }
}

impl<S: AgentStream> fmt::Debug for AgentClient<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentClient")
    }
}

impl From<AgentError> for Error {
    fn from(why: AgentError) -> Self {
        match why {
            AgentError::Io(why) => Self::IO(why),
            AgentError::Timeout => Self::IO(io::ErrorKind::TimedOut.into()),
            AgentError::Ssh(_) => Self::AgentProtocolError,
            _ => Self::AgentFailure,
        }
    }
}
