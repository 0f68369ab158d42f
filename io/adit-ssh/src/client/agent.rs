//! Connections to an SSH agent, which keeps private keys and signs with them.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use adit_ssh_proto::SshError;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::AnyKey;
use adit_ssh_proto::key::agent::{self, AgentAnswer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::{AgentPurpose, Identity, SessionBinding};
use crate::BoxFuture;

/// Maximum time an agent may take to list its keys. Signing has no limit: it may wait for a person.
pub(super) const LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Size of one read, in bytes.
const READ_SIZE: usize = 4096;

/// A connection to an agent.
#[derive(Clone)]
pub struct Agent(Arc<Mutex<AgentConnection>>);

/// The connection, and the session that it was bound to, with its use.
struct AgentConnection {
    io: Option<Box<dyn AgentStream>>,
    bound: Option<(SessionBinding, AgentPurpose)>,
}

/// A byte stream to an agent.
pub(super) trait AgentStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> AgentStream for T {}

/// An error of an agent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The connection to the agent failed.
    #[error("agent: {0}")]
    Io(io::Error),
    /// The agent violated the protocol.
    #[error("agent: {0}")]
    Ssh(SshError),
    /// The agent refused the request.
    #[error("the agent refused the request")]
    Refused,
    /// The agent did not answer in time.
    #[error("the agent did not answer")]
    Timeout,
}

impl From<io::Error> for AgentError {
    fn from(why: io::Error) -> Self {
        Self::Io(why)
    }
}

impl From<SshError> for AgentError {
    fn from(why: SshError) -> Self {
        Self::Ssh(why)
    }
}

/// A key held by an agent.
#[derive(Debug)]
pub struct AgentKey {
    agent: Agent,
    key: AnyKey,
    comment: String,
}

impl Agent {
    /// Connects to the agent at `path`: that of a Unix socket, which is usually in the environment variable
    /// `SSH_AUTH_SOCK`, or on Windows that of a named pipe (OpenSSH's is
    /// `\\.\pipe\openssh-ssh-agent`).
    ///
    /// # Errors
    /// Returns [`AgentError::Io`] if the connection fails.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the connection is closed.
    #[cfg(any(unix, windows))]
    pub async fn connect(path: impl AsRef<std::path::Path>) -> Result<Self, AgentError> {
        Ok(Self::from_stream(
            super::agent_socket::connect(path.as_ref()).await?,
        ))
    }

    /// Uses `io` as a connection to an agent.
    #[must_use]
    pub fn from_stream(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Self {
        Self(Arc::new(Mutex::new(AgentConnection {
            io: Some(Box::new(io)),
            bound: None,
        })))
    }

    /// Returns the agent's keys, in the agent's order.
    ///
    /// # Errors
    /// The agent refused, did not answer, or violated the protocol.
    ///
    /// # Cancel safety
    /// Not cancel-safe: a cancelled call closes the connection to the agent.
    pub async fn keys(&self) -> Result<Vec<AgentKey>, AgentError> {
        let mut question = Vec::new();
        agent::put_request_identities(&mut question);
        let answer = timeout(LIST_TIMEOUT, self.send_request(&question)).await;
        match answer.map_err(|_| AgentError::Timeout)?? {
            AgentAnswer::Identities(found) => Ok(found
                .into_iter()
                .map(|found| AgentKey {
                    agent: self.clone(),
                    key: found.key,
                    comment: found.comment,
                })
                .collect()),
            _ => Err(AgentError::Refused),
        }
    }

    /// Asks the agent to sign `data` with this key; returns the signature with its algorithm name. There
    /// is no time limit: the agent may wait for a person.
    ///
    /// # Errors
    /// The agent does not have the key, refused, or violated the protocol; [`AgentError::Refused`] also
    /// if the signature is not by this key and algorithm.
    ///
    /// # Cancel safety
    /// Not cancel-safe: a cancelled call closes the connection to the agent.
    pub async fn sign_data(
        &self,
        key: &AnyKey,
        algorithm: KeyAlgorithm,
        data: &[u8],
    ) -> Result<Vec<u8>, AgentError> {
        let mut question = Vec::new();
        agent::put_sign_request(&mut question, &key.to_blob(), algorithm, data);
        match self.send_request(&question).await? {
            AgentAnswer::Signature(signature)
                if agent::is_requested_signature(key, algorithm, data, &signature) =>
            {
                Ok(signature)
            }
            _ => Err(AgentError::Refused),
        }
    }

    /// Binds the agent connection to the session that it will sign for; one binding covers all keys. An
    /// agent without support for this refuses it and signs nevertheless. A binding is sent once.
    ///
    /// # Errors
    /// The connection failed. [`AgentError::Refused`] if the agent does not support bindings or refuses
    /// this one.
    ///
    /// # Cancel safety
    /// Not cancel-safe: a cancelled call closes the connection to the agent.
    pub async fn bind_session(
        &self,
        session: &SessionBinding,
        used: AgentPurpose,
    ) -> Result<(), AgentError> {
        {
            let mut line = self.0.lock().await;
            if let Some((bound, bound_use)) = &line.bound
                && (bound, *bound_use) == (session, used)
            {
                return Ok(());
            }
            line.bound = Some((session.clone(), used));
        }
        let question = session.to_bind_request(used);
        let answer = timeout(LIST_TIMEOUT, self.send_request(&question)).await;
        match answer.map_err(|_| AgentError::Timeout)?? {
            AgentAnswer::Success => Ok(()),
            _ => Err(AgentError::Refused),
        }
    }

    /// Sends one request at a time. Cancelling a request closes the connection: its answer would be
    /// taken for that of the next request.
    async fn send_request(&self, question: &[u8]) -> Result<AgentAnswer, AgentError> {
        let mut line = self.0.lock().await;
        let gone = || io::Error::from(io::ErrorKind::NotConnected);
        let mut io = line.io.take().ok_or_else(gone)?;
        let answer = exchange_message(&mut *io, question).await?;
        line.io = Some(io);
        Ok(answer)
    }
}

pub(super) async fn exchange_message(
    io: &mut dyn AgentStream,
    question: &[u8],
) -> Result<AgentAnswer, AgentError> {
    io.write_all(question).await?;
    let mut bytes = Vec::new();
    loop {
        if let Some((body, _)) = agent::split_frame(&bytes)? {
            return Ok(AgentAnswer::parse(body)?);
        }
        bytes.reserve(READ_SIZE);
        if io.read_buf(&mut bytes).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Agent")
    }
}

impl AgentKey {
    /// Returns the key's comment, which may contain any characters.
    #[must_use]
    pub fn comment(&self) -> &str {
        &self.comment
    }
}

impl Identity for AgentKey {
    fn key(&self) -> AnyKey {
        self.key.clone()
    }

    fn needs_query(&self) -> bool {
        true
    }

    fn bind_session<'a>(&'a self, session: &'a SessionBinding) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // An agent that refuses will fail again at the signature, where it matters.
            let _ = self.agent.bind_session(session, AgentPurpose::Login).await;
        })
    }

    fn sign_data<'a>(
        &'a self,
        algorithm: KeyAlgorithm,
        data: &'a [u8],
    ) -> BoxFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let signed = self.agent.sign_data(&self.key, algorithm, data).await;
            signed.ok()
        })
    }
}
