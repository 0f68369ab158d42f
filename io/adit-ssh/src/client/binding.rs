//! What agents are told of a session (`session-bind@openssh.com`; OpenSSH's `PROTOCOL.agent`, 1).

use std::fmt;

use adit_ssh_proto::key::agent::{self, Answer};
use adit_ssh_proto::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::agent::{AgentError, LISTING, exchange};
use crate::about::Peer;

/// What an agent is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentUse {
    /// It signs for this session alone.
    Login,
    /// Programs of the host use it.
    Forwarding,
}

/// Which session an agent is used for: the host's key, the session's identifier, and the host's
/// signature of it. An agent that is told refuses keys that are not meant for the host.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionBinding {
    host_key: Vec<u8>,
    session_id: Vec<u8>,
    signature: Vec<u8>,
}

impl SessionBinding {
    /// `None` before the first keys.
    pub(super) fn of(transport: &Transport) -> Option<Self> {
        Some(Self {
            host_key: transport.host_key()?.to_vec(),
            session_id: transport.session_id()?.to_vec(),
            signature: transport.host_signature()?.to_vec(),
        })
    }

    pub(super) fn question(&self, used: AgentUse) -> Vec<u8> {
        let mut question = Vec::new();
        agent::put_session_bind(
            &mut question,
            &self.host_key,
            &self.session_id,
            &self.signature,
            used == AgentUse::Forwarding,
        );
        question
    }

    /// Tells an agent over a connection that was not used yet, and waits for its answer: what
    /// follows on it may be anybody's.
    ///
    /// # Errors
    /// The connection failed. [`AgentError::Refused`] of an agent that does not know of sessions,
    /// or does not want this one; the connection can be used nevertheless.
    pub async fn tell(
        &self,
        agent: &mut (impl AsyncRead + AsyncWrite + Send + Unpin),
        used: AgentUse,
    ) -> Result<(), AgentError> {
        let question = self.question(used);
        let answer = timeout(LISTING, exchange(agent, &question)).await;
        match answer.map_err(|_| AgentError::Timeout)?? {
            Answer::Success => Ok(()),
            _ => Err(AgentError::Refused),
        }
    }
}

impl Peer {
    /// What an agent is told of this session, on a client.
    #[must_use]
    pub fn binding(&self) -> SessionBinding {
        SessionBinding {
            host_key: self.host_key().to_vec(),
            session_id: self.session_id().to_vec(),
            signature: self.host_signature().to_vec(),
        }
    }
}

impl fmt::Debug for SessionBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionBinding")
    }
}
