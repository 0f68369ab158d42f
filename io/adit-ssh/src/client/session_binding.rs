//! Session bindings for agents (`session-bind@openssh.com`; OpenSSH's `PROTOCOL.agent`, section 1).

use std::fmt;

use adit_ssh_proto::key::agent::{self, AgentAnswer};
use adit_ssh_proto::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::agent::{AgentError, LIST_TIMEOUT, exchange_message};
use crate::peer::Peer;

/// The purpose that an agent connection is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentPurpose {
    /// The agent signs for this session alone.
    Login,
    /// Programs on the host use the agent.
    Forwarding,
}

/// The session that an agent connection is used for: the host key, the session identifier, and the
/// host's signature of it. An agent that has a binding refuses keys that are not meant for the host.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionBinding {
    host_key: Vec<u8>,
    session_id: Vec<u8>,
    signature: Vec<u8>,
}

impl SessionBinding {
    /// Returns the binding of `transport`'s session, or `None` before the first keys.
    pub(super) fn from_transport(transport: &Transport) -> Option<Self> {
        Some(Self {
            host_key: transport.host_key()?.to_vec(),
            session_id: transport.session_id()?.to_vec(),
            signature: transport.host_signature()?.to_vec(),
        })
    }

    pub(super) fn to_bind_request(&self, used: AgentPurpose) -> Vec<u8> {
        let mut question = Vec::new();
        agent::put_session_bind(
            &mut question,
            &self.host_key,
            &self.session_id,
            &self.signature,
            used == AgentPurpose::Forwarding,
        );
        question
    }

    /// Sends the binding to an agent over an unused connection and waits for the answer, since other
    /// programs may use the connection afterwards.
    ///
    /// # Errors
    /// The connection failed. [`AgentError::Refused`] if the agent does not support bindings or refuses
    /// this one; the connection is usable nevertheless.
    ///
    /// # Cancel safety
    /// Not cancel-safe: the answer may be unread. Close the connection to the agent.
    pub async fn send_to_agent(
        &self,
        agent: &mut (impl AsyncRead + AsyncWrite + Send + Unpin),
        used: AgentPurpose,
    ) -> Result<(), AgentError> {
        let question = self.to_bind_request(used);
        let answer = timeout(LIST_TIMEOUT, exchange_message(agent, &question)).await;
        match answer.map_err(|_| AgentError::Timeout)?? {
            AgentAnswer::Success => Ok(()),
            _ => Err(AgentError::Refused),
        }
    }
}

impl Peer {
    /// Returns the binding of this session for an agent, on a client.
    #[must_use]
    pub fn session_binding(&self) -> SessionBinding {
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
