//! Agreement on a secret: X25519 (RFC 7748), ECDH on the NIST curves, ML-KEM-768 (FIPS 203).
//!
//! The provider draws the private keys from the system's generator. Every length and the form of a
//! point are checked before the provider sees them: it would take others.

use core::fmt;

use aws_lc_rs::agreement::{
    self, Algorithm, ECDH_P256, ECDH_P384, ECDH_P521, PrivateKey, UnparsedPublicKey, X25519,
};
use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};

use crate::{CryptoError, Secret};

/// Octets of an encapsulation key of ML-KEM-768.
pub const ML_KEM_PUBLIC_LEN: usize = 1184;
/// Octets of a ciphertext of ML-KEM-768.
pub const ML_KEM_CIPHERTEXT_LEN: usize = 1088;

/// A curve to agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    /// Curve25519; public values are 32 octets.
    X25519,
    /// NIST P-256; public values are uncompressed points of 65 octets.
    P256,
    /// NIST P-384, 97 octets.
    P384,
    /// NIST P-521, 133 octets.
    P521,
}

impl Curve {
    /// Octets of a public value.
    #[must_use]
    pub const fn public_len(self) -> usize {
        match self {
            Self::X25519 => 32,
            Self::P256 => 65,
            Self::P384 => 97,
            Self::P521 => 133,
        }
    }

    const fn algorithm(self) -> &'static Algorithm {
        match self {
            Self::X25519 => &X25519,
            Self::P256 => &ECDH_P256,
            Self::P384 => &ECDH_P384,
            Self::P521 => &ECDH_P521,
        }
    }
}

/// A key that is used for one exchange.
pub struct EcdhKey {
    curve: Curve,
    private: PrivateKey,
    public: Vec<u8>,
}

impl EcdhKey {
    /// A new key on `curve`.
    ///
    /// # Errors
    /// [`CryptoError::Provider`] if the system has no randomness.
    pub fn generate(curve: Curve) -> Result<Self, CryptoError> {
        let private = PrivateKey::generate(curve.algorithm()).map_err(|_| CryptoError::Provider)?;
        let public = private
            .compute_public_key()
            .map_err(|_| CryptoError::Provider)?
            .as_ref()
            .to_vec();
        Ok(Self {
            curve,
            private,
            public,
        })
    }

    /// What the peer is told.
    #[must_use]
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// The secret shared with the owner of `peer`: the 32 octets of X25519, or the coordinate x.
    ///
    /// # Errors
    /// [`CryptoError::InvalidKey`] for another length, a point that is compressed, at infinity or
    /// off the curve, and (RFC 7748 section 6.1) a secret of zeros.
    pub fn agree(&self, peer: &[u8]) -> Result<Secret<Vec<u8>>, CryptoError> {
        let uncompressed = self.curve == Curve::X25519 || peer.first() == Some(&4);
        if peer.len() != self.curve.public_len() || !uncompressed {
            return Err(CryptoError::InvalidKey);
        }
        let peer = UnparsedPublicKey::new(self.curve.algorithm(), peer);
        let secret = agreement::agree(&self.private, peer, CryptoError::InvalidKey, |secret| {
            Ok(Secret::new(secret.to_vec()))
        })?;
        // The provider refuses it too; nothing of ours rests on that.
        let any = secret.expose().iter().fold(0, |any, b| any | b);
        if any == 0 {
            return Err(CryptoError::InvalidKey);
        }
        Ok(secret)
    }
}

impl fmt::Debug for EcdhKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EcdhKey({:?})", self.curve)
    }
}

/// A key of ML-KEM-768 that is used for one exchange.
pub struct MlKemKey {
    private: DecapsulationKey,
    public: Vec<u8>,
}

impl MlKemKey {
    /// A new key.
    ///
    /// # Errors
    /// [`CryptoError::Provider`] if the system has no randomness.
    pub fn generate() -> Result<Self, CryptoError> {
        let private = DecapsulationKey::generate(&ML_KEM_768).map_err(|_| CryptoError::Provider)?;
        let public = private
            .encapsulation_key()
            .and_then(|key| key.key_bytes())
            .map_err(|_| CryptoError::Provider)?
            .as_ref()
            .to_vec();
        Ok(Self { private, public })
    }

    /// What the peer is told, [`ML_KEM_PUBLIC_LEN`] octets.
    #[must_use]
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// The secret inside `ciphertext`; of one that was altered, another one (FIPS 203 section 7.3).
    ///
    /// # Errors
    /// [`CryptoError::InvalidKey`] for another length than [`ML_KEM_CIPHERTEXT_LEN`].
    pub fn decapsulate(&self, ciphertext: &[u8]) -> Result<Secret<Vec<u8>>, CryptoError> {
        if ciphertext.len() != ML_KEM_CIPHERTEXT_LEN {
            return Err(CryptoError::InvalidKey);
        }
        let secret = self
            .private
            .decapsulate(Ciphertext::from(ciphertext))
            .map_err(|_| CryptoError::InvalidKey)?;
        Ok(Secret::new(secret.as_ref().to_vec()))
    }
}

impl fmt::Debug for MlKemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MlKemKey(***)")
    }
}

/// A ciphertext for the owner of `public`, and the secret inside it.
///
/// # Errors
/// [`CryptoError::InvalidKey`] for another length than [`ML_KEM_PUBLIC_LEN`] and for coefficients
/// that are not reduced (FIPS 203 section 7.2).
pub fn ml_kem_encapsulate(public: &[u8]) -> Result<(Vec<u8>, Secret<Vec<u8>>), CryptoError> {
    if public.len() != ML_KEM_PUBLIC_LEN || !reduced(public) {
        return Err(CryptoError::InvalidKey);
    }
    let key = EncapsulationKey::new(&ML_KEM_768, public).map_err(|_| CryptoError::InvalidKey)?;
    let (ciphertext, secret) = key.encapsulate().map_err(|_| CryptoError::Provider)?;
    Ok((
        ciphertext.as_ref().to_vec(),
        Secret::new(secret.as_ref().to_vec()),
    ))
}

/// Whether every coefficient, 12 bits each, is below the modulus; the last 32 octets are a seed.
fn reduced(public: &[u8]) -> bool {
    const MODULUS: u16 = 3329;
    let (coefficients, _) = public.as_chunks::<3>();
    coefficients.iter().take(384).all(|[a, b, c]| {
        let low = u16::from(*a) | u16::from(b & 0x0f) << 8;
        let high = u16::from(b >> 4) | u16::from(*c) << 4;
        low < MODULUS && high < MODULUS
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURVES: [Curve; 4] = [Curve::X25519, Curve::P256, Curve::P384, Curve::P521];

    #[test]
    fn both_sides_get_the_same() {
        for curve in CURVES {
            let (a, b) = (
                EcdhKey::generate(curve).unwrap(),
                EcdhKey::generate(curve).unwrap(),
            );
            assert_eq!(a.public().len(), curve.public_len());
            assert!(a.agree(b.public()).unwrap() == b.agree(a.public()).unwrap());
        }
        let key = MlKemKey::generate().unwrap();
        let (ciphertext, ours) = ml_kem_encapsulate(key.public()).unwrap();
        assert!(key.decapsulate(&ciphertext).unwrap() == ours);
        let mut bad = ciphertext.clone();
        bad[7] ^= 1;
        assert!(key.decapsulate(&bad).unwrap() != ours);
        assert!(key.decapsulate(&bad[1..]).is_err());
    }

    /// The classes of public failures: wrong lengths, points of small order, off the curve,
    /// compressed, at infinity.
    #[test]
    fn public_values_that_are_refused() {
        for curve in CURVES {
            let key = EcdhKey::generate(curve).unwrap();
            let good = EcdhKey::generate(curve).unwrap().public().to_vec();
            let mut long = good.clone();
            long.push(0);
            let zeros = vec![0; good.len()];
            for bad in [&[][..], &[0], &good[1..], &long, &zeros] {
                assert_eq!(
                    key.agree(bad).err(),
                    Some(CryptoError::InvalidKey),
                    "{curve:?}"
                );
            }
            if curve == Curve::X25519 {
                // The point of order 2 and p - 1, p, p + 1 (RFC 7748 section 6.1).
                let mut one = [0; 32];
                one[0] = 1;
                let mut p = [0xff; 32];
                p[31] = 0x7f;
                for last in [0xec, 0xed, 0xee] {
                    p[0] = last;
                    assert!(key.agree(&p).is_err());
                }
                assert!(key.agree(&one).is_err());
            } else {
                let mut off = good.clone();
                *off.last_mut().unwrap() ^= 1;
                let mut compressed = good[..=(good.len() - 1) / 2].to_vec();
                compressed[0] = 2;
                let mut hybrid = good.clone();
                hybrid[0] = 6;
                for bad in [&off, &compressed, &hybrid] {
                    assert!(key.agree(bad).is_err(), "{curve:?}");
                }
            }
        }
    }

    #[test]
    fn encapsulation_keys_that_are_refused() {
        let good = MlKemKey::generate().unwrap().public().to_vec();
        let mut above = good.clone();
        above[..3].copy_from_slice(&[0xff, 0xff, 0xff]);
        for bad in [&good[1..], &above, &[]] {
            assert_eq!(ml_kem_encapsulate(bad).err(), Some(CryptoError::InvalidKey));
        }
    }
}
