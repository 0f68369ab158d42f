//! ECDSA (FIPS 186-5) on P-256, P-384 and P-521, each with the hash of its size (RFC 5656).

use core::fmt;

use adit_wire::{Entropy, trim_leading_zeros};
use aws_lc_rs::signature as lc;
use aws_lc_rs::{agreement, digest};

use crate::{CryptoError, Secret};

/// A curve, which also determines the hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NistCurve {
    /// P-256 with SHA-256.
    P256,
    /// P-384 with SHA-384.
    P384,
    /// P-521 with SHA-512.
    P521,
}

impl NistCurve {
    /// Returns the length of a coordinate, of a private key, and of each half of a signature, in bytes.
    #[must_use]
    pub const fn field_len(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    /// Returns the length of an uncompressed point (`04`, x, y), in bytes.
    #[must_use]
    pub const fn point_len(self) -> usize {
        1 + 2 * self.field_len()
    }

    fn signing_algorithm(self) -> &'static lc::EcdsaSigningAlgorithm {
        match self {
            Self::P256 => &lc::ECDSA_P256_SHA256_FIXED_SIGNING,
            Self::P384 => &lc::ECDSA_P384_SHA384_FIXED_SIGNING,
            Self::P521 => &lc::ECDSA_P521_SHA512_FIXED_SIGNING,
        }
    }

    fn digest(self, message: &[u8]) -> digest::Digest {
        let algorithm = match self {
            Self::P256 => &digest::SHA256,
            Self::P384 => &digest::SHA384,
            Self::P521 => &digest::SHA512,
        };
        digest::digest(algorithm, message)
    }

    fn verification_algorithm(self) -> &'static lc::EcdsaVerificationAlgorithm {
        match self {
            Self::P256 => &lc::ECDSA_P256_SHA256_FIXED,
            Self::P384 => &lc::ECDSA_P384_SHA384_FIXED,
            Self::P521 => &lc::ECDSA_P521_SHA512_FIXED,
        }
    }

    fn agreement_algorithm(self) -> &'static agreement::Algorithm {
        match self {
            Self::P256 => &agreement::ECDH_P256,
            Self::P384 => &agreement::ECDH_P384,
            Self::P521 => &agreement::ECDH_P521,
        }
    }
}

/// An ECDSA private key.
pub struct EcdsaKey {
    curve: NistCurve,
    pair: lc::EcdsaKeyPair,
    scalar: Secret<Vec<u8>>,
    point: Vec<u8>,
}

impl EcdsaKey {
    /// Creates the key of a private number: big-endian, with or without leading zeros.
    ///
    /// # Errors
    /// [`CryptoError::InvalidKey`] if it is zero, or not below the order of the curve.
    pub fn from_scalar(curve: NistCurve, number: &[u8]) -> Result<Self, CryptoError> {
        let invalid = CryptoError::InvalidKey;
        let digits = trim_leading_zeros(number);
        let pad = curve.field_len().checked_sub(digits.len()).ok_or(invalid)?;
        let mut scalar = Secret::new(vec![0; curve.field_len()]);
        if let Some(place) = scalar.expose_mut().get_mut(pad..) {
            place.copy_from_slice(digits);
        }
        let point =
            agreement::PrivateKey::from_private_key(curve.agreement_algorithm(), scalar.expose())
                .map_err(|_| invalid)?
                .compute_public_key()
                .map_err(|_| invalid)?;
        let pair = lc::EcdsaKeyPair::from_private_key_and_public_key(
            curve.signing_algorithm(),
            scalar.expose(),
            point.as_ref(),
        )
        .map_err(|_| invalid)?;
        Ok(Self {
            curve,
            pair,
            scalar,
            point: point.as_ref().to_vec(),
        })
    }

    /// Generates a key: the first number from `rng` that is valid for the curve (FIPS 186-5 appendix
    /// A.2.2).
    ///
    /// # Errors
    /// [`CryptoError::InvalidKey`] if `rng` returns no valid number in 64 attempts, which a random
    /// source does not do.
    pub fn generate(curve: NistCurve, rng: &mut dyn Entropy) -> Result<Self, CryptoError> {
        let mut number = Secret::new(vec![0; curve.field_len()]);
        for _ in 0..64 {
            rng.fill(number.expose_mut());
            // The order of P-521 has 521 of 528 bits.
            if let (NistCurve::P521, Some(first)) = (curve, number.expose_mut().first_mut()) {
                *first &= 1;
            }
            if let Ok(key) = Self::from_scalar(curve, number.expose()) {
                return Ok(key);
            }
        }
        Err(CryptoError::InvalidKey)
    }

    /// Returns the curve.
    #[must_use]
    pub const fn curve(&self) -> NistCurve {
        self.curve
    }

    /// Returns the public key as an uncompressed point.
    #[must_use]
    pub fn point(&self) -> &[u8] {
        &self.point
    }

    /// Returns the private number, [`NistCurve::field_len`] bytes, for writing it to a file.
    #[must_use]
    pub const fn scalar(&self) -> &Secret<Vec<u8>> {
        &self.scalar
    }

    /// Signs `message`; returns r and s, [`NistCurve::field_len`] bytes each.
    ///
    /// # Errors
    /// [`CryptoError::Provider`] if the provider's generator fails.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let signature = self
            .pair
            .sign_digest(&self.curve.digest(message))
            .map_err(|_| CryptoError::Provider)?;
        Ok(signature.as_ref().to_vec())
    }
}

impl fmt::Debug for EcdsaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EcdsaKey")
            .field("curve", &self.curve)
            .finish_non_exhaustive()
    }
}

/// Verifies a signature (r and s, [`NistCurve::field_len`] bytes each) under an uncompressed point.
///
/// # Errors
/// [`CryptoError::InvalidKey`] for a point of another form; [`CryptoError::Unauthentic`] if the point is
/// not on the curve or the signature does not match `message`.
pub fn ecdsa_verify(
    curve: NistCurve,
    point: &[u8],
    message: &[u8],
    signature: &[u8],
) -> Result<(), CryptoError> {
    if point.len() != curve.point_len() || point.first() != Some(&4) {
        return Err(CryptoError::InvalidKey);
    }
    lc::UnparsedPublicKey::new(curve.verification_algorithm(), point)
        .verify(message, signature)
        .map_err(|_| CryptoError::Unauthentic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_wire::FixedEntropy;

    #[test]
    fn what_is_signed_is_verified() {
        for curve in [NistCurve::P256, NistCurve::P384, NistCurve::P521] {
            let mut rng = FixedEntropy::new([0x5a; 400]);
            let key = EcdsaKey::generate(curve, &mut rng).unwrap();
            let signature = key.sign(b"message").unwrap();
            assert_eq!(signature.len(), 2 * curve.field_len());
            ecdsa_verify(curve, key.point(), b"message", &signature).unwrap();
            assert!(ecdsa_verify(curve, key.point(), b"massage", &signature).is_err());
            for (at, _) in signature.iter().enumerate().step_by(7) {
                let mut forged = signature.clone();
                forged[at] ^= 1;
                assert!(ecdsa_verify(curve, key.point(), b"message", &forged).is_err());
            }
            let mut off = key.point().to_vec();
            off[3] ^= 1;
            assert!(ecdsa_verify(curve, &off, b"message", &signature).is_err());
            let short = &key.point()[..curve.field_len() + 1];
            let compressed = ecdsa_verify(curve, short, b"message", &signature);
            assert_eq!(compressed, Err(CryptoError::InvalidKey));
            let again = EcdsaKey::from_scalar(curve, key.scalar().expose()).unwrap();
            assert_eq!(again.point(), key.point());
        }
    }

    #[test]
    fn numbers_outside_the_order_are_no_keys() {
        for curve in [NistCurve::P256, NistCurve::P384, NistCurve::P521] {
            let all = vec![0xff; curve.field_len()];
            assert!(EcdsaKey::from_scalar(curve, &all).is_err());
            assert!(EcdsaKey::from_scalar(curve, &[0; 32]).is_err());
            assert!(EcdsaKey::from_scalar(curve, &[1; 67]).is_err());
            assert!(EcdsaKey::from_scalar(curve, &[0, 0, 0, 9]).is_ok());
            assert!(EcdsaKey::generate(curve, &mut FixedEntropy::default()).is_err());
        }
    }
}
