//! Key agreement: X25519 (RFC 7748), ECDH on the NIST curves, ML-KEM-768 (FIPS 203).
//!
//! Private keys of the curves are drawn from the caller's [`Entropy`], those of ML-KEM by the provider from
//! the system's generator. Every length and the form of a point are checked before they reach the provider,
//! which accepts others.

use core::fmt;

use adit_wire::Entropy;
use aws_lc_rs::agreement::{
    self, Algorithm, ECDH_P256, ECDH_P384, ECDH_P521, PrivateKey, UnparsedPublicKey, X25519,
};
use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};

use crate::{CryptoError, Secret};

/// Length of an ML-KEM-768 encapsulation key, in bytes.
pub const ML_KEM_PUBLIC_LEN: usize = 1184;
/// Length of an ML-KEM-768 ciphertext, in bytes.
pub const ML_KEM_CIPHERTEXT_LEN: usize = 1088;

/// Attempts to draw a private key before the source of randomness is considered broken: in the likeliest
/// case, P-256, a number is not below the order with a probability of 2⁻³².
const MAX_DRAWS: usize = 16;

/// A curve for key agreement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgreementCurve {
    /// Curve25519; public values have 32 bytes.
    X25519,
    /// NIST P-256; public values are uncompressed points of 65 bytes.
    P256,
    /// NIST P-384; public values have 97 bytes.
    P384,
    /// NIST P-521; public values have 133 bytes.
    P521,
}

impl AgreementCurve {
    /// Returns the length of a public value, in bytes.
    #[must_use]
    pub const fn public_len(self) -> usize {
        match self {
            Self::X25519 => 32,
            Self::P256 => 65,
            Self::P384 => 97,
            Self::P521 => 133,
        }
    }

    /// Returns the length of a private key in bytes, and a mask of the bits that may be set in the first
    /// byte.
    const fn private_key_form(self) -> (usize, u8) {
        match self {
            Self::X25519 | Self::P256 => (32, 0xff),
            Self::P384 => (48, 0xff),
            // 521 bits.
            Self::P521 => (66, 0x01),
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

/// An ephemeral key for one exchange.
///
/// # Examples
///
/// ```
/// use adit_crypto::{AgreementCurve, EcdhKey};
/// use adit_wire::FixedEntropy;
///
/// // Use the system's random numbers in a program.
/// let near = EcdhKey::generate(AgreementCurve::X25519, &mut FixedEntropy::new([1; 32]))?;
/// let far = EcdhKey::generate(AgreementCurve::X25519, &mut FixedEntropy::new([2; 32]))?;
/// assert_eq!(near.derive_secret(far.public_key())?, far.derive_secret(near.public_key())?);
/// # Ok::<(), adit_crypto::CryptoError>(())
/// ```
pub struct EcdhKey {
    curve: AgreementCurve,
    private: PrivateKey,
    public: Vec<u8>,
}

impl EcdhKey {
    /// Generates a key on `curve` from `entropy`.
    ///
    /// # Errors
    /// [`CryptoError::Provider`] if the numbers drawn are never a key, as from a broken source.
    pub fn generate(curve: AgreementCurve, entropy: &mut dyn Entropy) -> Result<Self, CryptoError> {
        let (len, first_bits) = curve.private_key_form();
        let mut number = Secret::new(vec![0; len]);
        // Numbers that are not below the order of a NIST curve are drawn again rather than reduced (FIPS
        // 186-5, A.2.2), so that all are equally likely. X25519 accepts all.
        let drawn = (0..MAX_DRAWS).find_map(|_| {
            entropy.fill(number.expose_mut());
            if let Some(first) = number.expose_mut().first_mut() {
                *first &= first_bits;
            }
            PrivateKey::from_private_key(curve.algorithm(), number.expose()).ok()
        });
        let private = drawn.ok_or(CryptoError::Provider)?;
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

    /// Returns the public value to send to the peer.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        &self.public
    }

    /// Returns the secret shared with the owner of `peer`: the 32 bytes of X25519, or the x coordinate.
    ///
    /// # Errors
    /// [`CryptoError::InvalidKey`] for a wrong length, a point that is compressed, at infinity or not on
    /// the curve, and a secret of zeros (RFC 7748 section 6.1).
    pub fn derive_secret(&self, peer: &[u8]) -> Result<Secret<Vec<u8>>, CryptoError> {
        let uncompressed = self.curve == AgreementCurve::X25519 || peer.first() == Some(&4);
        if peer.len() != self.curve.public_len() || !uncompressed {
            return Err(CryptoError::InvalidKey);
        }
        let peer = UnparsedPublicKey::new(self.curve.algorithm(), peer);
        let secret = agreement::agree(&self.private, peer, CryptoError::InvalidKey, |secret| {
            Ok(Secret::new(secret.to_vec()))
        })?;
        // The provider rejects it too, but this code does not rely on that.
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

/// An ephemeral ML-KEM-768 key for one exchange.
pub struct MlKemKey {
    private: DecapsulationKey,
    public: Vec<u8>,
}

impl MlKemKey {
    /// Generates a key.
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

    /// Returns the encapsulation key to send to the peer, [`ML_KEM_PUBLIC_LEN`] bytes.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        &self.public
    }

    /// Returns the secret inside `ciphertext`; an altered ciphertext yields another secret (FIPS 203
    /// section 7.3).
    ///
    /// # Errors
    /// [`CryptoError::InvalidKey`] if the length is not [`ML_KEM_CIPHERTEXT_LEN`].
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

/// Creates a ciphertext for the owner of `public`, and returns it with the secret inside it.
///
/// # Errors
/// [`CryptoError::InvalidKey`] if the length is not [`ML_KEM_PUBLIC_LEN`] or coefficients are not reduced
/// (FIPS 203 section 7.2).
pub fn ml_kem_encapsulate(public: &[u8]) -> Result<(Vec<u8>, Secret<Vec<u8>>), CryptoError> {
    if public.len() != ML_KEM_PUBLIC_LEN || !is_reduced(public) {
        return Err(CryptoError::InvalidKey);
    }
    let key = EncapsulationKey::new(&ML_KEM_768, public).map_err(|_| CryptoError::InvalidKey)?;
    let (ciphertext, secret) = key.encapsulate().map_err(|_| CryptoError::Provider)?;
    Ok((
        ciphertext.as_ref().to_vec(),
        Secret::new(secret.as_ref().to_vec()),
    ))
}

/// Returns true if every 12-bit coefficient is below the modulus; the last 32 bytes are a seed.
fn is_reduced(public: &[u8]) -> bool {
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

    /// Pseudorandom bytes for tests.
    struct TestRng(u64);

    impl Entropy for TestRng {
        fn fill(&mut self, out: &mut [u8]) {
            for byte in out {
                self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005) + 1;
                *byte = (self.0 >> 56) as u8;
            }
        }
    }

    const CURVES: [AgreementCurve; 4] = [
        AgreementCurve::X25519,
        AgreementCurve::P256,
        AgreementCurve::P384,
        AgreementCurve::P521,
    ];

    #[test]
    fn both_sides_get_the_same() {
        for curve in CURVES {
            let mut rng = TestRng(1);
            let (a, b) = (
                EcdhKey::generate(curve, &mut rng).unwrap(),
                EcdhKey::generate(curve, &mut rng).unwrap(),
            );
            assert_ne!(a.public_key(), b.public_key());
            assert_eq!(a.public_key().len(), curve.public_len());
            assert!(
                a.derive_secret(b.public_key()).unwrap()
                    == b.derive_secret(a.public_key()).unwrap()
            );
        }
        let key = MlKemKey::generate().unwrap();
        let (ciphertext, ours) = ml_kem_encapsulate(key.public_key()).unwrap();
        assert!(key.decapsulate(&ciphertext).unwrap() == ours);
        let mut bad = ciphertext.clone();
        bad[7] ^= 1;
        assert!(key.decapsulate(&bad).unwrap() != ours);
        assert!(key.decapsulate(&bad[1..]).is_err());
    }

    /// The classes of public failures: wrong lengths, points of small order, not on the curve, compressed,
    /// at infinity.
    #[test]
    fn public_values_that_are_refused() {
        for curve in CURVES {
            let mut rng = TestRng(2);
            let key = EcdhKey::generate(curve, &mut rng).unwrap();
            let good = EcdhKey::generate(curve, &mut rng).unwrap();
            let good = good.public_key().to_vec();
            let mut long = good.clone();
            long.push(0);
            let zeros = vec![0; good.len()];
            for bad in [&[][..], &[0], &good[1..], &long, &zeros] {
                assert_eq!(
                    key.derive_secret(bad).err(),
                    Some(CryptoError::InvalidKey),
                    "{curve:?}"
                );
            }
            if curve == AgreementCurve::X25519 {
                // The point of order 2 and p - 1, p, p + 1 (RFC 7748 section 6.1).
                let mut one = [0; 32];
                one[0] = 1;
                let mut p = [0xff; 32];
                p[31] = 0x7f;
                for last in [0xec, 0xed, 0xee] {
                    p[0] = last;
                    assert!(key.derive_secret(&p).is_err());
                }
                assert!(key.derive_secret(&one).is_err());
            } else {
                let mut off = good.clone();
                *off.last_mut().unwrap() ^= 1;
                let mut compressed = good[..=(good.len() - 1) / 2].to_vec();
                compressed[0] = 2;
                let mut hybrid = good.clone();
                hybrid[0] = 6;
                for bad in [&off, &compressed, &hybrid] {
                    assert!(key.derive_secret(bad).is_err(), "{curve:?}");
                }
            }
        }
    }

    /// The private key of RFC 7748 section 6.1 ("Bob") has the public value given there.
    #[test]
    fn a_key_is_what_was_drawn() {
        let hex = |text: &str| crate::tests::hex(&text.into());
        let key = |octets: &str| {
            let mut rng = adit_wire::FixedEntropy::new(hex(octets));
            EcdhKey::generate(AgreementCurve::X25519, &mut rng).unwrap()
        };
        let bob = key("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
        let public = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
        assert_eq!(bob.public_key(), hex(public));
    }

    /// A number that is not a key is drawn again, and a source that never returns another is an error.
    #[test]
    fn numbers_beyond_the_order_are_drawn_again() {
        for curve in [
            AgreementCurve::P256,
            AgreementCurve::P384,
            AgreementCurve::P521,
        ] {
            let (len, _) = curve.private_key_form();
            let mut octets = vec![0xff; len];
            octets.extend(vec![0x01; len]);
            let mut rng = adit_wire::FixedEntropy::new(octets);
            let key = EcdhKey::generate(curve, &mut rng).unwrap();
            let mut ones = adit_wire::FixedEntropy::new(vec![0x01; len]);
            let same = EcdhKey::generate(curve, &mut ones).unwrap();
            assert_eq!(key.public_key(), same.public_key(), "{curve:?}");
            let mut zeros = adit_wire::FixedEntropy::default();
            let none = EcdhKey::generate(curve, &mut zeros);
            assert_eq!(none.err(), Some(CryptoError::Provider), "{curve:?}");
        }
    }

    #[test]
    fn encapsulation_keys_that_are_refused() {
        let good = MlKemKey::generate().unwrap().public_key().to_vec();
        let mut above = good.clone();
        above[..3].copy_from_slice(&[0xff, 0xff, 0xff]);
        for bad in [&good[1..], &above, &[]] {
            assert_eq!(ml_kem_encapsulate(bad).err(), Some(CryptoError::InvalidKey));
        }
    }
}
