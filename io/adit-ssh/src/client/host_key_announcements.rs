//! A server's announced host keys and their proof (OpenSSH's `UpdateHostKeys`; `PROTOCOL`, 2.5).

use adit_ssh_proto::SshError;
use adit_ssh_proto::connection::{GlobalAnswer, GlobalRequest};
use adit_ssh_proto::key::{PublicKey, verify_host_key_proof};
use tokio::sync::mpsc;

use super::Session;
use crate::error::RequestError;
use crate::routes::PeerRequest;

/// Number of announcements that may wait: a server announces its keys once.
pub(super) const BACKLOG: usize = 2;

/// Announcements of the server's host keys. They are not proved.
#[derive(Debug)]
pub struct HostKeyAnnouncements(pub(super) mpsc::Receiver<PeerRequest>);

impl HostKeyAnnouncements {
    /// Returns all keys that the server claims to have, without those of unknown types; `None` once the
    /// session is over.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn next_keys(&mut self) -> Option<Vec<PublicKey>> {
        loop {
            if let PeerRequest::Global(GlobalRequest::HostKeys(blobs), _) = self.0.recv().await? {
                return Some(parse_known_types(&blobs));
            }
        }
    }

    /// Returns the keys that were announced already, without waiting.
    pub fn try_next_keys(&mut self) -> Option<Vec<PublicKey>> {
        match self.0.try_recv().ok()? {
            PeerRequest::Global(GlobalRequest::HostKeys(blobs), _) => {
                Some(parse_known_types(&blobs))
            }
            _ => None,
        }
    }
}

fn parse_known_types(blobs: &[Vec<u8>]) -> Vec<PublicKey> {
    let known = blobs.iter().filter_map(|blob| PublicKey::parse(blob).ok());
    known.collect()
}

/// The reason why announced keys are not accepted as the server's.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HostKeyProofError {
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
    pub fn host_key_announcements(&self) -> Option<HostKeyAnnouncements> {
        let mut place = self.host_keys.lock();
        let place = place.as_deref_mut().ok()?;
        place.take().map(HostKeyAnnouncements)
    }

    /// Asks the server to prove that it has these keys. RSA keys need at least `rsa_min_bits` bits.
    ///
    /// # Errors
    /// The server did not prove it; then trust none of the keys.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn request_host_key_proof(
        &self,
        rsa_min_bits: usize,
        keys: &[PublicKey],
    ) -> Result<(), HostKeyProofError> {
        let blobs = keys.iter().map(PublicKey::to_blob).collect();
        let request = GlobalRequest::HostKeysProve(blobs);
        let asked = self
            .peer()
            .shared
            .send_global_request(request, None)
            .await?;
        let GlobalAnswer::Granted { data } = asked else {
            return Err(SshError::Malformed("proof of host keys").into());
        };
        Ok(verify_host_key_proof(
            rsa_min_bits,
            self.session_id(),
            keys,
            &data,
        )?)
    }
}
