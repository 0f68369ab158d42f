//! Logins whose signatures a [`Signer`] makes.

use std::pin::pin;

use adit_ssh::BoxFuture;
use adit_ssh::client::Identity;
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::AnyKey;
use tokio::sync::{mpsc, oneshot};

use super::login_request::LoginAttempt;
use super::{Handle, Handler};
use crate::keys::agent::{AgentIdentity, AgentSessionBinding};
use crate::keys::{Algorithm, Certificate, HashAlg, PublicKey};
use crate::{AuthResult, SendError, Signer};

impl<H: Handler> Handle<H> {
    /// Logs in with a key whose signature `signer` makes, which may be an
    /// [agent](crate::keys::agent::client::AgentClient). It is asked only if the server accepts the
    /// key. RSA keys sign with `hash_alg`, or with a hash that the server accepts, SHA-512 first.
    ///
    /// # Errors
    /// The signer's error; you may attempt to log in again. The same error from [`SendError`] if the
    /// session is over or the user is authenticated already.
    pub async fn authenticate_publickey_with<U: Into<String>, S: Signer>(
        &mut self,
        user: U,
        key: PublicKey,
        hash_alg: Option<HashAlg>,
        signer: &mut S,
    ) -> Result<AuthResult, S::Error> {
        self.attempt_with_signer(user.into(), key.into(), hash_alg, signer)
            .await
    }

    /// Logs in with a certificate for a key whose signature `signer` makes.
    ///
    /// # Errors
    /// The errors of [`Handle::authenticate_publickey_with`].
    pub async fn authenticate_certificate_with<U: Into<String>, S: Signer>(
        &mut self,
        user: U,
        cert: Certificate,
        hash_alg: Option<HashAlg>,
        signer: &mut S,
    ) -> Result<AuthResult, S::Error> {
        self.attempt_with_signer(user.into(), cert.into(), hash_alg, signer)
            .await
    }

    /// Returns the binding of this session for
    /// [an agent](crate::keys::agent::client::AgentClient::bind_session).
    #[must_use]
    pub const fn agent_session_binding(&self) -> Option<&AgentSessionBinding> {
        self.session_binding.as_ref()
    }

    async fn attempt_with_signer<S: Signer>(
        &self,
        user: String,
        key: AgentIdentity,
        hash_alg: Option<HashAlg>,
        signer: &mut S,
    ) -> Result<AuthResult, S::Error> {
        let algorithm = match key.public_key().algorithm() {
            Algorithm::Rsa { .. } => Algorithm::Rsa { hash: hash_alg },
            other => other,
        };
        let (requests, mut incoming) = mpsc::channel(1);
        let identity = SignerKey {
            key: key.to_key(),
            requests,
        };
        let attempt = LoginAttempt::with_identity(user, identity, algorithm.signature_algorithm());
        let mut attempt = pin!(self.attempt_once(attempt));
        loop {
            let request = tokio::select! {
                result = &mut attempt => {
                    return result.map_err(|_| SendError {}.into());
                }
                Some(request) = incoming.recv() => request,
            };
            let hash = match Algorithm::from_key_algorithm(request.algorithm) {
                Algorithm::Rsa { hash } => hash,
                _ => hash_alg,
            };
            let data = request.data;
            match signer.auth_sign(&key, hash, data.clone()).await {
                Ok(signed) => {
                    if let Some(signature) = signature_behind(&data, &signed) {
                        // The attempt is over if no one receives it.
                        let _ = request.reply.send(signature.to_vec());
                    }
                }
                Err(why) => {
                    // Without a signature the attempt fails, and the next one may start.
                    drop(request.reply);
                    let _ = attempt.await;
                    return Err(why);
                }
            }
        }
    }
}

/// A request for a signature. Dropping the reply declines it.
struct SignatureRequest {
    algorithm: KeyAlgorithm,
    data: Vec<u8>,
    reply: oneshot::Sender<Vec<u8>>,
}

/// A key whose signatures are requested from the handle's caller.
struct SignerKey {
    key: AnyKey,
    requests: mpsc::Sender<SignatureRequest>,
}

impl Identity for SignerKey {
    fn key(&self) -> AnyKey {
        self.key.clone()
    }

    fn needs_query(&self) -> bool {
        true
    }

    fn sign_data<'a>(
        &'a self,
        algorithm: KeyAlgorithm,
        data: &'a [u8],
    ) -> BoxFuture<'a, Option<Vec<u8>>> {
        Box::pin(async move {
            let (reply, signature) = oneshot::channel();
            let request = SignatureRequest {
                algorithm,
                data: data.to_vec(),
                reply,
            };
            self.requests.send(request).await.ok()?;
            signature.await.ok()
        })
    }
}

/// Returns the signature that follows `data` with its length.
fn signature_behind<'a>(data: &[u8], signed: &'a [u8]) -> Option<&'a [u8]> {
    let (len, signature) = signed.strip_prefix(data)?.split_first_chunk()?;
    let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
    (signature.len() == len).then_some(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_follow_their_data() {
        let signature = |signed: &'static [u8]| signature_behind(b"data", signed);
        assert_eq!(signature(b"data\0\0\0\x02ok"), Some(&b"ok"[..]));
        for wrong in [
            &b"data"[..],
            b"data\0\0\0\x03ok",
            b"data\0\0\0\x01ok",
            b"date\0\0\0\x02ok",
        ] {
            assert_eq!(signature(wrong), None);
        }
    }
}
