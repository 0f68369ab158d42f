//! The shared secret as it enters the hashes, and its derivation from each method's parts.

use adit_crypto::{AgreementCurve, CryptoError, Secret, Sha2};

use crate::algorithm::Kex;
use crate::error::SshError;
use crate::wire::SshBufMut;

/// Result of a key exchange method.
#[derive(Debug)]
pub struct KexSecret {
    /// Values of the method as they enter the exchange hash, between the host key and the secret.
    pub transcript: Vec<u8>,
    /// Secret as it enters the hashes: an `mpint`, or a `string` for the hybrid methods.
    pub secret: Secret<Vec<u8>>,
}

impl KexSecret {
    /// Creates the result from two public values that are strings.
    pub(super) fn from_public_strings(
        client: &[u8],
        server: &[u8],
        secret: Secret<Vec<u8>>,
    ) -> Self {
        let mut transcript = Vec::with_capacity(client.len() + server.len() + 8);
        transcript.put_string(client);
        transcript.put_string(server);
        Self { transcript, secret }
    }
}

/// Encodes the secret as an `mpint`.
pub(super) fn encode_mpint(raw: &Secret<Vec<u8>>) -> Secret<Vec<u8>> {
    let mut out = Secret::new(Vec::with_capacity(raw.expose().len() + 5));
    out.expose_mut().put_mpint(raw.expose());
    out
}

/// Combines the secrets of a hybrid method into a `string`, the hash of both.
pub(super) fn combine_hybrid_secret(
    hash: Sha2,
    post_quantum: &[u8],
    classical: &Secret<Vec<u8>>,
) -> Secret<Vec<u8>> {
    let digest = hash.hash_parts(&[post_quantum, classical.expose()]);
    let mut out = Secret::new(Vec::with_capacity(digest.expose().len() + 4));
    out.expose_mut().put_string(digest.expose());
    out
}

/// Returns the curve of a method that uses nothing but ECDH.
pub(super) const fn curve_of(kex: Kex) -> Option<AgreementCurve> {
    match kex {
        Kex::Curve25519 | Kex::Curve25519LibSsh => Some(AgreementCurve::X25519),
        Kex::EcdhP256 => Some(AgreementCurve::P256),
        Kex::EcdhP384 => Some(AgreementCurve::P384),
        Kex::EcdhP521 => Some(AgreementCurve::P521),
        _ => None,
    }
}

/// Converts an error of the primitives: invalid public values are the peer's fault, all else is
/// local.
pub(super) fn to_ssh_error(why: CryptoError) -> SshError {
    match why {
        CryptoError::InvalidKey => SshError::Kex("the peer's public value is not valid"),
        _ => SshError::Crypto("the key exchange's primitives failed"),
    }
}
