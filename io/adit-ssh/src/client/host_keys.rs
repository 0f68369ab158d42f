//! A server's announced host keys and their proof (OpenSSH's `UpdateHostKeys`; `PROTOCOL`, 2.5).

use adit_ssh_proto::SshError;
use adit_ssh_proto::connection::{GlobalAnswer, GlobalRequest};
use adit_ssh_proto::key::{PublicKey, check_proof};
use tokio::sync::mpsc;

use super::Session;
use crate::error::RequestError;
use crate::forwards::Arrival;

/// Number of announcements that may wait: a server announces its keys once.
pub(super) const BACKLOG: usize = 2;

/// Announcements of the server's host keys. They are not proved.
#[derive(Debug)]
pub struct ToldKeys(pub(super) mpsc::Receiver<Arrival>);

impl ToldKeys {
    /// Returns all keys that the server claims to have, without those of unknown types; `None` once the
    /// session is over.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn next(&mut self) -> Option<Vec<PublicKey>> {
        loop {
            if let Arrival::Global(GlobalRequest::HostKeys(blobs), _) = self.0.recv().await? {
                return Some(keys(&blobs));
            }
        }
    }

    /// Returns the keys that were announced already, without waiting.
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

/// The reason why announced keys are not accepted as the server's.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// The server did not answer, or refused.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The server's answer is not a valid proof.
    #[error(transparent)]
    Ssh(#[from] SshError),
}

impl Session {
    /// Returns the announcements of the server's host keys, which arrive at the start of a session.
    /// Only the first call returns them, later ones return `None`.
    #[must_use]
    pub fn told_keys(&self) -> Option<ToldKeys> {
        let mut place = self.told.lock();
        let place = place.as_deref_mut().ok()?;
        place.take().map(ToldKeys)
    }

    /// Asks the server to prove that it has these keys. RSA keys need at least `rsa_min_bits` bits.
    ///
    /// # Errors
    /// The server did not prove it; then trust none of the keys.
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
