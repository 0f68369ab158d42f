//! Verification of signatures in their wire format (RFC 8709, RFC 5656 section 3.1.2, RFC 8332,
//! OpenSSH's `PROTOCOL.u2f`).

use adit_crypto::{NistCurve, RsaHash, ecdsa_verify, ed25519_verify, sha256};

use super::{error::KeyError, public_key::PublicKey};
use crate::algorithm::KeyAlgorithm;
use crate::wire::{MessageReader, SshBufMut};

/// Default minimum size of an RSA modulus, in bits.
pub const RSA_MIN_BITS: usize = 2048;

/// User presence, as reported by a security key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserPresence {
    /// The user touched the security key.
    pub touched: bool,
    /// The security key verified its user by a PIN or a fingerprint.
    pub verified: bool,
    /// Signature counter; a decrease hints at a copy of the security key.
    pub counter: u32,
}

impl PublicKey {
    /// Verifies that `signature` (the blob with its algorithm name) is this key's signature of
    /// `data` with `algorithm`; certificate algorithms are equivalent to plain ones. For a key in a
    /// security key, returns the reported user presence, which the caller has to check.
    ///
    /// # Errors
    /// [`KeyError::WrongAlgorithm`] if the key or the signature uses another algorithm,
    /// [`KeyError::ShortRsa`] below [`RSA_MIN_BITS`], [`KeyError::Malformed`],
    /// [`KeyError::BadSignature`].
    pub fn verify_signature(
        &self,
        algorithm: KeyAlgorithm,
        data: &[u8],
        signature: &[u8],
    ) -> Result<Option<UserPresence>, KeyError> {
        self.verify_with(RSA_MIN_BITS, algorithm, data, signature)
    }

    /// Like [`PublicKey::verify_signature`], with another minimum for RSA, for old devices; 1024 bits remain
    /// the absolute minimum.
    ///
    /// # Errors
    /// The errors of [`PublicKey::verify_signature`].
    pub fn verify_with(
        &self,
        rsa_min_bits: usize,
        algorithm: KeyAlgorithm,
        data: &[u8],
        signature: &[u8],
    ) -> Result<Option<UserPresence>, KeyError> {
        let algorithm = algorithm.without_certificate();
        let mut r = MessageReader::new(signature, "signature");
        if !self.algorithms().contains(&algorithm)
            || r.read_string()? != algorithm.name().as_bytes()
        {
            return Err(KeyError::WrongAlgorithm);
        }
        let body = r.read_string()?;
        let presence = match self {
            Self::SkEd25519 { .. } | Self::SkEcdsaP256 { .. } => {
                Some((r.read_u8()?, r.read_u32()?))
            }
            _ => None,
        };
        r.expect_end()?;
        match self {
            Self::Ed25519(key) => ed25519_verify(key, data, body)?,
            Self::Ecdsa { curve, point } => {
                ecdsa_verify(*curve, point, data, &fixed_len_signature(*curve, body)?)?;
            }
            Self::Rsa(key) => {
                let (bits, least) = (key.bits(), rsa_min_bits);
                if bits < least {
                    return Err(KeyError::ShortRsa { bits, least });
                }
                let hash = rsa_hash(algorithm).ok_or(KeyError::WrongAlgorithm)?;
                key.verify(hash, data, body)?;
            }
            Self::SkEd25519 { key, application } => {
                ed25519_verify(key, &security_key_data(application, presence, data), body)?;
            }
            Self::SkEcdsaP256 { point, application } => {
                let data = security_key_data(application, presence, data);
                let body = fixed_len_signature(NistCurve::P256, body)?;
                ecdsa_verify(NistCurve::P256, point, &data, &body)?;
            }
        }
        Ok(presence.map(|(flags, counter)| UserPresence {
            touched: flags & 1 != 0,
            verified: flags & 4 != 0,
            counter,
        }))
    }
}

/// Returns the hash of an RSA algorithm.
pub(super) const fn rsa_hash(algorithm: KeyAlgorithm) -> Option<RsaHash> {
    match algorithm {
        KeyAlgorithm::RsaSha256 => Some(RsaHash::Sha256),
        KeyAlgorithm::RsaSha512 => Some(RsaHash::Sha512),
        _ => None,
    }
}

/// Converts r and s from mpints to a fixed length.
fn fixed_len_signature(curve: NistCurve, body: &[u8]) -> Result<Vec<u8>, KeyError> {
    let mut r = MessageReader::new(body, "ECDSA signature");
    let halves = [r.read_mpint()?, r.read_mpint()?];
    r.expect_end()?;
    let mut out = Vec::with_capacity(2 * curve.field_len());
    for half in halves {
        let pad = curve.field_len().checked_sub(half.len());
        let pad = pad.ok_or(KeyError::Malformed("ECDSA signature"))?;
        out.resize(out.len() + pad, 0);
        out.extend_from_slice(half);
    }
    Ok(out)
}

/// Returns the data that a security key signs.
fn security_key_data(application: &str, presence: Option<(u8, u32)>, data: &[u8]) -> Vec<u8> {
    let (flags, counter) = presence.unwrap_or_default();
    let mut out = Vec::with_capacity(69);
    out.put_raw(&sha256(application.as_bytes()));
    out.put_u8(flags);
    out.put_u32(counter);
    out.put_raw(&sha256(data));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_crypto::{EcdsaKey, Ed25519Key, Secret};
    use adit_wire::FixedEntropy;

    fn token_signature(name: &str, body: &[u8], flags: u8, counter: u32) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_string(name.as_bytes());
        out.put_string(body);
        out.put_u8(flags);
        out.put_u32(counter);
        out
    }

    #[test]
    fn tokens_of_both_kinds() {
        let soft = Ed25519Key::from_seed(Secret::new([7; 32])).unwrap();
        let key = PublicKey::SkEd25519 {
            key: soft.public_key(),
            application: "ssh:".into(),
        };
        let algorithm = KeyAlgorithm::SkEd25519;
        let body = soft.sign(&security_key_data("ssh:", Some((5, 9)), b"data"));
        let signature = token_signature(algorithm.name(), &body, 5, 9);
        let presence = key
            .verify_signature(algorithm, b"data", &signature)
            .unwrap();
        let said = |touched, verified, counter| UserPresence {
            touched,
            verified,
            counter,
        };
        assert_eq!(presence, Some(said(true, true, 9)));
        // Neither the flags nor the counter nor the application can be changed afterwards.
        let flags = token_signature(algorithm.name(), &body, 1, 9);
        let counter = token_signature(algorithm.name(), &body, 5, 10);
        for forged in [flags, counter] {
            let got = key.verify_signature(algorithm, b"data", &forged);
            assert_eq!(got, Err(KeyError::BadSignature));
        }
        let other = PublicKey::SkEd25519 {
            key: soft.public_key(),
            application: "ssh:x".into(),
        };
        assert!(
            other
                .verify_signature(algorithm, b"data", &signature)
                .is_err()
        );

        let soft = EcdsaKey::generate(NistCurve::P256, &mut FixedEntropy::new([3; 64])).unwrap();
        let key = PublicKey::SkEcdsaP256 {
            point: soft.point().to_vec(),
            application: "ssh:".into(),
        };
        let halves = soft
            .sign(&security_key_data("ssh:", Some((0, 1)), b"data"))
            .unwrap();
        let mut body = Vec::new();
        body.put_mpint(&halves[..32]);
        body.put_mpint(&halves[32..]);
        let algorithm = KeyAlgorithm::SkEcdsaP256;
        let signature = token_signature(algorithm.name(), &body, 0, 1);
        let presence = key
            .verify_signature(algorithm, b"data", &signature)
            .unwrap();
        assert_eq!(presence, Some(said(false, false, 1)));
        // The blobs of both can be parsed again.
        for key in [key, other] {
            assert_eq!(PublicKey::parse(&key.to_blob()), Ok(key));
        }
    }
}
