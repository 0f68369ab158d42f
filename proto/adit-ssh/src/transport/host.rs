//! The host key, seen from the transport: who signs, who verifies, what a client is asked.

use adit_wire::Entropy;
use std::sync::Arc;

use crate::algorithm::KeyAlgorithm;
use crate::error::SshError;
use crate::wire::Reader;

/// A server's host keys.
pub trait HostKeySigner: Send + Sync {
    /// What can be signed with, one entry for each algorithm of each key.
    fn algorithms(&self) -> Vec<KeyAlgorithm>;

    /// The public blob of the key (or certificate) for `algorithm`.
    fn blob(&self, algorithm: KeyAlgorithm) -> Vec<u8>;

    /// The signature blob over `data`, with the algorithm's name inside.
    ///
    /// # Errors
    /// [`SshError::Crypto`] if the key cannot sign.
    fn sign(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, SshError>;
}

/// A client's check of the signature. Whether the key is the right one is asked by
/// [`Event::HostKey`](super::Event::HostKey), after the signature was found valid.
pub trait HostKeyVerifier: Send + Sync {
    /// Whether `signature` over `hash` was made by the key of `blob` with `algorithm`. The types
    /// named inside the blob and the signature must be those of `algorithm`.
    ///
    /// # Errors
    /// [`SshError::Kex`] if it was not; [`SshError::Malformed`] for blobs that are none.
    fn verify(
        &self,
        algorithm: KeyAlgorithm,
        blob: &[u8],
        hash: &[u8],
        signature: &[u8],
    ) -> Result<(), SshError>;
}

/// Our side's part.
#[derive(Clone)]
pub(super) enum Host {
    Signer(Arc<dyn HostKeySigner>),
    Verifier(Arc<dyn HostKeyVerifier>),
}

/// Chance, owned by the transport: cookies, exponents and keys are drawn at any moment.
pub(super) type Chance = Box<dyn Entropy + Send>;

/// Refuses RSA keys with a modulus below `least` bits. Certificates are looked into by those who
/// verify them.
pub(super) fn check_rsa(blob: &[u8], least: usize) -> Result<(), SshError> {
    let mut r = Reader::new(blob, "host key");
    if r.string()? != b"ssh-rsa" {
        return Ok(());
    }
    r.mpint()?;
    let modulus = r.mpint()?;
    let unused = modulus.first().map_or(0, |b| b.leading_zeros());
    let bits = modulus.len() * 8;
    let bits = bits.saturating_sub(usize::try_from(unused).unwrap_or(0));
    if bits < least {
        return Err(SshError::Policy("the RSA host key is too short"));
    }
    Ok(())
}
