//! RSA with PKCS#1 v1.5 padding (RFC 8017 section 8.2), SHA-256 and SHA-512.

use core::fmt;

use adit_wire::trim_leading_zeros;
use aws_lc_rs::digest;
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::{KeyPair, KeyPairComponents, KeySize, PublicKeyComponents};
use aws_lc_rs::signature as lc;

use super::bignum;
use crate::{CryptoError, Secret, ct_eq};

/// The hash function of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RsaHash {
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl RsaHash {
    fn digest(self, message: &[u8]) -> digest::Digest {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, message)
    }

    /// Returns the hash as a DigestInfo, with the algorithm in front (RFC 8017 section 9.2, note 1).
    fn digest_info(self, message: &[u8]) -> Vec<u8> {
        let (kind, len) = match self {
            Self::Sha256 => (1, 32),
            Self::Sha512 => (3, 64),
        };
        let mut out = vec![0x30, 17 + len, 0x30, 13, 6, 9];
        out.extend([0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, kind, 5, 0, 4, len]);
        out.extend(self.digest(message).as_ref());
        out
    }
}

/// An RSA public key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RsaPublic {
    n: Vec<u8>,
    e: u64,
}

impl RsaPublic {
    /// Minimum length of the modulus in bits, unless configured otherwise.
    pub const MIN_BITS: usize = 2048;

    /// Creates the key of a modulus and an exponent, big-endian, with or without leading zeros.
    ///
    /// # Errors
    /// [`CryptoError::InvalidKey`] if the modulus is even or has less than 1024 or more than 16384 bits, or
    /// the exponent is even or not in 3..=2³²+1.
    pub fn new(n: &[u8], e: &[u8]) -> Result<Self, CryptoError> {
        let invalid = CryptoError::InvalidKey;
        let (n, e) = (trim_leading_zeros(n), trim_leading_zeros(e));
        if e.len() > 8 {
            return Err(invalid);
        }
        let e = e.iter().fold(0, |e, b| e << 8 | u64::from(*b));
        let key = Self { n: n.to_vec(), e };
        let odd = n.last().is_some_and(|b| b & 1 == 1) && e & 1 == 1;
        let sizes = (1024..=16384).contains(&key.bits()) && (3..=(1 << 32) + 1).contains(&e);
        (odd && sizes).then_some(key).ok_or(invalid)
    }

    /// Returns the length of the modulus, in bits.
    #[must_use]
    pub fn bits(&self) -> usize {
        bit_len(&self.n)
    }

    /// Returns the modulus, without leading zeros.
    #[must_use]
    pub fn modulus(&self) -> &[u8] {
        &self.n
    }

    /// Returns the exponent.
    #[must_use]
    pub const fn exponent(&self) -> u64 {
        self.e
    }

    /// Verifies a signature. One shorter than the modulus is padded with leading zeros, which some signers
    /// omit. Takes up to some milliseconds for moduli above 8192 bits.
    ///
    /// # Errors
    /// [`CryptoError::Unauthentic`] if it is not this key's signature of `message`.
    pub fn verify(
        &self,
        hash: RsaHash,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        let len = self.n.len();
        let pad = len
            .checked_sub(signature.len())
            .ok_or(CryptoError::Unauthentic)?;
        let mut padded = vec![0; pad];
        padded.extend_from_slice(signature);
        if self.bits() > 8192 {
            return self.verify_wide(hash, message, &padded);
        }
        let exponent = self.e.to_be_bytes();
        let key = PublicKeyComponents {
            n: &*self.n,
            e: trim_leading_zeros(&exponent),
        };
        let parameters = match hash {
            RsaHash::Sha256 => &lc::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
            RsaHash::Sha512 => &lc::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
        };
        key.verify(parameters, message, &padded)
            .map_err(|_| CryptoError::Unauthentic)
    }

    /// Verifies by constructing the encoded message and comparing (RFC 8017 section 8.2.2).
    fn verify_wide(
        &self,
        hash: RsaHash,
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        let wrong = CryptoError::Unauthentic;
        let found = bignum::public_power(signature, self.e, &self.n).ok_or(wrong)?;
        let info = hash.digest_info(message);
        let fill = self.n.len().checked_sub(info.len() + 3).ok_or(wrong)?;
        let mut expected = vec![0, 1];
        expected.resize(2 + fill, 0xff);
        expected.push(0);
        expected.extend(info);
        ct_eq(&found, &expected).then_some(()).ok_or(wrong)
    }
}

/// The numbers of a private key (RFC 8017 section 3.2), big-endian, with or without leading zeros.
#[derive(Clone, Copy)]
pub struct RsaParts<'a> {
    /// The modulus.
    pub n: &'a [u8],
    /// The public exponent.
    pub e: &'a [u8],
    /// The private exponent.
    pub d: &'a [u8],
    /// The first prime.
    pub p: &'a [u8],
    /// The second prime.
    pub q: &'a [u8],
    /// 1/q modulo p.
    pub q_inverse: &'a [u8],
}

impl fmt::Debug for RsaParts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RsaParts(***)")
    }
}

/// An RSA private key of 2048 to 8192 bits.
pub struct RsaKey {
    pair: KeyPair,
    public: RsaPublic,
    d: Secret<Vec<u8>>,
    p: Secret<Vec<u8>>,
    q: Secret<Vec<u8>>,
    q_inverse: Secret<Vec<u8>>,
}

impl RsaKey {
    /// Creates a key from its numbers, which are checked against each other.
    ///
    /// # Errors
    /// [`CryptoError::InvalidKey`] if they don't belong together, or the modulus has less than 2048 or more
    /// than 8192 bits.
    pub fn from_parts(parts: &RsaParts<'_>) -> Result<Self, CryptoError> {
        let public = RsaPublic::new(parts.n, parts.e)?;
        // Numbers longer than the modulus are invalid, and checking them would only cost time.
        let private = [parts.d, parts.p, parts.q, parts.q_inverse].map(trim_leading_zeros);
        let [d, p, q, q_inverse] = private;
        if !(2048..=8192).contains(&public.bits())
            || private
                .iter()
                .any(|part| part.is_empty() || part.len() > public.n.len())
        {
            return Err(CryptoError::InvalidKey);
        }
        let d_p = Secret::new(bignum::reduce_modulo(d, subtract_one(p)?.expose()));
        let d_q = Secret::new(bignum::reduce_modulo(d, subtract_one(q)?.expose()));
        let exponent = public.e.to_be_bytes();
        let pair = KeyPair::from_components(&KeyPairComponents {
            public_key: PublicKeyComponents {
                n: &*public.n,
                e: trim_leading_zeros(&exponent),
            },
            d,
            p,
            q,
            dP: d_p.expose(),
            dQ: d_q.expose(),
            qInv: q_inverse,
        })
        .map_err(|_| CryptoError::InvalidKey)?;
        Ok(Self {
            pair,
            public,
            d: Secret::new(d.to_vec()),
            p: Secret::new(p.to_vec()),
            q: Secret::new(q.to_vec()),
            q_inverse: Secret::new(q_inverse.to_vec()),
        })
    }

    /// Returns the public key.
    #[must_use]
    pub const fn public_key(&self) -> &RsaPublic {
        &self.public
    }

    /// Returns d, p, q and 1/q modulo p, for writing them to a file.
    #[must_use]
    pub const fn secret_parts(&self) -> [&Secret<Vec<u8>>; 4] {
        [&self.d, &self.p, &self.q, &self.q_inverse]
    }

    /// Returns the signature of `message`, as long as the modulus.
    ///
    /// # Errors
    /// [`CryptoError::Provider`] if the provider fails.
    pub fn sign(&self, hash: RsaHash, message: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let encoding: &'static dyn lc::RsaEncoding = match hash {
            RsaHash::Sha256 => &lc::RSA_PKCS1_SHA256,
            RsaHash::Sha512 => &lc::RSA_PKCS1_SHA512,
        };
        let mut signature = vec![0; self.pair.public_modulus_len()];
        self.pair
            .sign_digest(encoding, &hash.digest(message), &mut signature)
            .map_err(|_| CryptoError::Provider)?;
        Ok(signature)
    }
}

impl fmt::Debug for RsaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RsaKey")
            .field("bits", &self.public.bits())
            .finish_non_exhaustive()
    }
}

/// Generates a key of 2048, 3072, 4096 or 8192 bits with the provider's generator, and returns it as a
/// PKCS#8 document (RFC 5208). Takes from a tenth of a second to a minute.
///
/// # Errors
/// [`CryptoError::InvalidKey`] for other sizes, [`CryptoError::Provider`] if the provider fails.
pub fn generate_rsa_pkcs8(bits: usize) -> Result<Secret<Vec<u8>>, CryptoError> {
    let size = match bits {
        2048 => KeySize::Rsa2048,
        3072 => KeySize::Rsa3072,
        4096 => KeySize::Rsa4096,
        8192 => KeySize::Rsa8192,
        _ => return Err(CryptoError::InvalidKey),
    };
    let document = KeyPair::generate(size)
        .and_then(|pair| pair.as_der())
        .map_err(|_| CryptoError::Provider)?;
    Ok(Secret::new(document.as_ref().to_vec()))
}

fn bit_len(number: &[u8]) -> usize {
    let first = number.first().map_or(8, |b| b.leading_zeros() as usize);
    (8 * number.len()).saturating_sub(first)
}

/// Returns `prime - 1`: a prime is odd, so one bit changes.
fn subtract_one(prime: &[u8]) -> Result<Secret<Vec<u8>>, CryptoError> {
    let mut out = Secret::new(prime.to_vec());
    match out.expose_mut().last_mut() {
        Some(last) if *last & 1 == 1 => *last ^= 1,
        _ => return Err(CryptoError::InvalidKey),
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key generated by the provider; its numbers are read in adit-ssh, which has the DER reader.
    fn pair() -> (KeyPair, RsaPublic) {
        use lc::KeyPair as _;
        let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
        // RSAPublicKey: a sequence, an integer of 257 bytes, another of 3.
        let der = pair.public_key().as_ref().to_vec();
        let (n, e) = (&der[9..265], &der[267..]);
        let public = RsaPublic::new(n, e).unwrap();
        (pair, public)
    }

    /// Both methods of verification agree.
    #[test]
    fn wide_verification_is_the_providers() {
        let (pair, public) = pair();
        for (hash, encoding) in [
            (RsaHash::Sha256, &lc::RSA_PKCS1_SHA256),
            (RsaHash::Sha512, &lc::RSA_PKCS1_SHA512),
        ] {
            let mut signature = vec![0; 256];
            pair.sign_digest(encoding, &hash.digest(b"m"), &mut signature)
                .unwrap();
            public.verify(hash, b"m", &signature).unwrap();
            public.verify_wide(hash, b"m", &signature).unwrap();
            for at in [0, 100, 255] {
                signature[at] ^= 1;
                assert!(public.verify(hash, b"m", &signature).is_err());
                assert!(public.verify_wide(hash, b"m", &signature).is_err());
                signature[at] ^= 1;
            }
            assert!(public.verify_wide(hash, b"n", &signature).is_err());
            assert!(public.verify(hash, b"n", &signature).is_err());
            signature.insert(0, 0);
            assert!(public.verify(hash, b"m", &signature).is_err());
        }
        assert!(
            public
                .verify_wide(RsaHash::Sha256, b"m", public.modulus())
                .is_err()
        );
    }

    #[test]
    fn bounds_of_public_keys() {
        let odd = |bits: usize| {
            let mut n = vec![0x80u8; bits / 8];
            *n.last_mut().unwrap() = 1;
            n
        };
        for (n, e, fine) in [
            (odd(2048), &[1, 0, 1][..], true),
            (odd(1024), &[3], true),
            (odd(16384), &[1, 0, 0, 0, 1], true),
            (odd(1016), &[3], false),
            (odd(16392), &[3], false),
            (odd(2048), &[1], false),
            (odd(2048), &[4], false),
            (odd(2048), &[1, 0, 0, 0, 3], false),
            (odd(2048), &[1; 9], false),
            (vec![0x80; 256], &[3], false),
            (Vec::new(), &[], false),
        ] {
            assert_eq!(RsaPublic::new(&n, e).is_ok(), fine, "{} {e:?}", n.len());
        }
        assert_eq!(RsaPublic::new(&odd(2048), &[3]).unwrap().bits(), 2048);
        assert!(generate_rsa_pkcs8(1024).is_err());
    }
}
