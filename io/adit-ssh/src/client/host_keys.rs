//! Word of a server's other keys, and their proof (OpenSSH's `UpdateHostKeys`; `PROTOCOL`, 2.5).

use adit_ssh_proto::SshError;
use adit_ssh_proto::connection::{GlobalAnswer, GlobalRequest};
use adit_ssh_proto::key::{PublicKey, check_proof};
use tokio::sync::mpsc;

use super::Session;
use crate::error::RequestError;
use crate::forwards::Arrival;

/// What may wait to be looked at: a server tells its keys once.
pub(super) const BACKLOG: usize = 2;

/// Word of the server's keys. Nothing of it is proved.
#[derive(Debug)]
pub struct ToldKeys(pub(super) mpsc::Receiver<Arrival>);

impl ToldKeys {
    /// All keys that the server says it has; those of types that are not known are left out.
    /// `None` once the session is over. Cancel-safe.
    pub async fn next(&mut self) -> Option<Vec<PublicKey>> {
        loop {
            if let Arrival::Global(GlobalRequest::HostKeys(blobs), _) = self.0.recv().await? {
                return Some(keys(&blobs));
            }
        }
    }

    /// What has come already.
    pub fn take(&mut self) -> Option<Vec<PublicKey>> {
        match self.0.try_recv().ok()? {
            Arrival::Global(GlobalRequest::HostKeys(blobs), _) => Some(keys(&blobs)),
            _ => None,
        }
    }
}

fn keys(blobs: &[Vec<u8>]) -> Vec<PublicKey> {
    let known = blobs.iter().filter_map(|blob| PublicKey::parse(blob).ok());
    known.collect()
}

/// Why keys are not taken for the server's.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// It did not answer, or refused.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Its answer proves nothing.
    #[error(transparent)]
    Ssh(#[from] SshError),
}

impl Session {
    /// Word of the server's keys, which comes at the beginning of a session. Given once: `None`
    /// from then on.
    #[must_use]
    pub fn told_keys(&self) -> Option<ToldKeys> {
        let mut place = self.told.lock();
        let place = place.as_deref_mut().ok()?;
        place.take().map(ToldKeys)
    }

    /// Has the server prove that it has these keys. RSA keys need `rsa_min_bits`.
    ///
    /// # Errors
    /// It does not; then none of them is to be trusted.
    pub async fn prove_keys(
        &self,
        rsa_min_bits: usize,
        keys: &[PublicKey],
    ) -> Result<(), ProofError> {
        let blobs = keys.iter().map(PublicKey::to_blob).collect();
        let request = GlobalRequest::HostKeysProve(blobs);
        let asked = self.peer().mail.global(request, None).await?;
        let GlobalAnswer::Granted { data } = asked else {
            return Err(SshError::Malformed("proof of host keys").into());
        };
        Ok(check_proof(rsa_min_bits, self.session_id(), keys, &data)?)
    }
}
