//! Signers outside of the program's memory, such as agents.

use std::future::Future;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::SendError;
use crate::keys::HashAlg;
use crate::keys::agent::AgentIdentity;
use crate::keys::agent::client::AgentClient;

/// A signer that the program has to wait for: an agent, a token, another host.
pub trait Signer: Sized {
    /// The error type of signatures, and of a login whose session is over.
    type Error: From<SendError>;

    /// Signs `to_sign`. Returns `to_sign` followed by the signature: its length (4 bytes, big-endian),
    /// and the signature with its algorithm name (RFC 4253, section 6.6). For RSA keys, `hash_alg` is
    /// the hash of the signature.
    fn auth_sign(
        &mut self,
        key: &AgentIdentity,
        hash_alg: Option<HashAlg>,
        to_sign: Vec<u8>,
    ) -> impl Future<Output = Result<Vec<u8>, Self::Error>> + Send;
}

/// The error of a login with an agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentAuthError {
    /// The session is over.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The agent failed.
    #[error(transparent)]
    Key(#[from] crate::keys::Error),
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Signer for AgentClient<S> {
    type Error = AgentAuthError;

    async fn auth_sign(
        &mut self,
        key: &AgentIdentity,
        hash_alg: Option<HashAlg>,
        to_sign: Vec<u8>,
    ) -> Result<Vec<u8>, AgentAuthError> {
        Ok(self.sign_request(key, hash_alg, to_sign).await?)
    }
}
