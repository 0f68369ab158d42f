//! The shared secret in the form in which it is hashed, and how each method's parts become it.

use adit_crypto::{AgreementCurve, CryptoError, Secret, Sha2};

use crate::algorithm::Kex;
use crate::error::SshError;
use crate::wire::Put;

/// What a method ends in.
#[derive(Debug)]
pub struct Agreed {
    /// The method's values as they enter the exchange hash, between the host key and the secret.
    pub transcript: Vec<u8>,
    /// The secret as it enters the hashes: an `mpint`, of the hybrid methods a `string`.
    pub secret: Secret<Vec<u8>>,
}

impl Agreed {
    /// Of two public values that are strings.
    pub(super) fn of_strings(client: &[u8], server: &[u8], secret: Secret<Vec<u8>>) -> Self {
        let mut transcript = Vec::with_capacity(client.len() + server.len() + 8);
        transcript.put_string(client);
        transcript.put_string(server);
        Self { transcript, secret }
    }
}

/// The secret as an `mpint`.
pub(super) fn number(raw: &Secret<Vec<u8>>) -> Secret<Vec<u8>> {
    let mut out = Secret::new(Vec::with_capacity(raw.expose().len() + 5));
    out.expose_mut().put_mpint(raw.expose());
    out
}

/// The secret of a hybrid method: a `string` of the hash over both.
pub(super) fn hybrid(
    hash: Sha2,
    post_quantum: &[u8],
    classical: &Secret<Vec<u8>>,
) -> Secret<Vec<u8>> {
    let digest = hash.hash_parts(&[post_quantum, classical.expose()]);
    let mut out = Secret::new(Vec::with_capacity(digest.expose().len() + 4));
    out.expose_mut().put_string(digest.expose());
    out
}

/// The curve of a method that has no more than one.
pub(super) const fn curve_of(kex: Kex) -> Option<AgreementCurve> {
    match kex {
        Kex::Curve25519 | Kex::Curve25519LibSsh => Some(AgreementCurve::X25519),
        Kex::EcdhP256 => Some(AgreementCurve::P256),
        Kex::EcdhP384 => Some(AgreementCurve::P384),
        Kex::EcdhP521 => Some(AgreementCurve::P521),
        _ => None,
    }
}

/// Whose fault a failure of the primitives is.
pub(super) fn fault(why: CryptoError) -> SshError {
    match why {
        CryptoError::InvalidKey => SshError::Kex("the peer's public value is not valid"),
        _ => SshError::Crypto("the key exchange's primitives failed"),
    }
}
