//! Streamlined NTRU Prime 761, the KEM of `sntrup761x25519-sha512` (draft-josefsson-ntruprime-streamlined):
//! small keys and ciphertexts on a lattice without subfields. It is available beside ML-KEM because many
//! servers support nothing else.
//!
//! It is implemented here since the existing crate depends on a second generation of hash crates. Secrets
//! do not influence branches or indices, and are cleared on drop.

mod coding;
mod random_polynomial;
mod ring;

use core::fmt;

use adit_wire::{Entropy, narrow_int};
use zeroize::Zeroizing;

use crate::{CryptoError, Secret, Sha2};
use coding::{
    Q_LEN, ROUNDED_LEN, SMALL_LEN, decode_q, decode_rounded, encode_q, encode_rounded, encode_small,
};
use random_polynomial::{WEIGHT, random_short, random_small};
use ring::{
    Mod3, ModQ, Modulus, P, Poly, invert_polynomial, multiply_polynomials, scale_polynomial,
};

/// Length of a public key, in bytes.
pub const SNTRUP_PUBLIC_LEN: usize = Q_LEN;
/// Length of a ciphertext, in bytes.
pub const SNTRUP_CIPHERTEXT_LEN: usize = ROUNDED_LEN + HASH_LEN;

/// Length of the hashes, which are SHA-512 cut in half, in bytes.
const HASH_LEN: usize = 32;

/// Maximum number of attempts to draw a key: two in three succeed.
const MAX_DRAWS: usize = 200;

/// An ephemeral key for one exchange.
pub struct SntrupKey {
    /// A short polynomial.
    f: Poly,
    /// 1 / g modulo 3.
    g_inverse: Poly,
    public: Vec<u8>,
    /// Replaces the message if a ciphertext is invalid.
    decoy: Zeroizing<[u8; SMALL_LEN]>,
}

impl SntrupKey {
    /// Generates a key.
    ///
    /// # Errors
    /// [`CryptoError::Provider`] if `entropy` keeps returning the same bytes.
    pub fn generate(entropy: &mut dyn Entropy) -> Result<Self, CryptoError> {
        let drawn = (0..MAX_DRAWS).find_map(|_| {
            let g = random_small(entropy);
            let (inverse, exists) = invert_polynomial::<Mod3>(&g, 1);
            exists.then_some((g, inverse))
        });
        let (g, g_inverse) = drawn.ok_or(CryptoError::Provider)?;
        let f = random_short(entropy);
        // Every short polynomial has an inverse: the ring modulo q is a field.
        let (third, _) = invert_polynomial::<ModQ>(&f, 3);
        let public = encode_q(&multiply_polynomials::<ModQ>(&third, &g));
        let mut decoy = Zeroizing::new([0; SMALL_LEN]);
        entropy.fill(&mut *decoy);
        Ok(Self {
            f,
            g_inverse,
            public,
            decoy,
        })
    }

    /// Returns the public key to send to the peer, [`SNTRUP_PUBLIC_LEN`] bytes.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        &self.public
    }

    /// Returns the secret inside `ciphertext`; if it is invalid, a pseudorandom secret that is always the
    /// same.
    ///
    /// # Errors
    /// [`CryptoError::InvalidKey`] if the length is not [`SNTRUP_CIPHERTEXT_LEN`].
    pub fn decapsulate(&self, ciphertext: &[u8]) -> Result<Secret<[u8; 32]>, CryptoError> {
        let whole: &[u8; SNTRUP_CIPHERTEXT_LEN] =
            ciphertext.try_into().map_err(|_| CryptoError::InvalidKey)?;
        let (c, _) = whole.split_first_chunk().ok_or(CryptoError::InvalidKey)?;
        let r = self.decrypt_polynomial(&decode_rounded(c));
        let message = encode_small(&r);
        let public = decode_public(&self.public)?;
        let again = encapsulate_polynomial(&r, &message, &public, &self.public);
        // All ones if the peer's ciphertext is not the one of its message.
        let differ = again.iter().zip(whole).fold(0, |sum, (a, b)| sum | a ^ b);
        let wrong = 0u8.wrapping_sub(u8::from(core::hint::black_box(differ) != 0));
        let mut taken = message;
        for (m, d) in taken.iter_mut().zip(self.decoy.iter()) {
            *m ^= wrong & (*m ^ d);
        }
        Ok(session_key(1 & !wrong, &taken, whole))
    }

    fn decrypt_polynomial(&self, c: &[i32; P]) -> Poly {
        let mut e = scale_polynomial::<ModQ>(&multiply_polynomials::<ModQ>(c, &self.f), 3);
        for x in e.iter_mut() {
            *x = Mod3::reduce(*x);
        }
        let mut r = multiply_polynomials::<Mod3>(&e, &self.g_inverse);
        let weight: i32 = r.iter().map(|x| x & 1).sum();
        let off = weight - narrow_int::<i32>(WEIGHT);
        // A polynomial of another weight is replaced by a fixed one of the right weight.
        let wrong = (off | -off) >> 31;
        for (at, x) in r.iter_mut().enumerate() {
            let fixed = i32::from(at < WEIGHT);
            *x ^= wrong & (*x ^ fixed);
        }
        r
    }
}

impl fmt::Debug for SntrupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SntrupKey(***)")
    }
}

/// Creates a ciphertext for the owner of `public`, and returns it with the secret inside it.
///
/// # Errors
/// [`CryptoError::InvalidKey`] if the length is not [`SNTRUP_PUBLIC_LEN`].
pub fn sntrup_encapsulate(
    public: &[u8],
    entropy: &mut dyn Entropy,
) -> Result<(Vec<u8>, Secret<[u8; 32]>), CryptoError> {
    let h = decode_public(public)?;
    let r = random_short(entropy);
    let message = encode_small(&r);
    let ciphertext = encapsulate_polynomial(&r, &message, &h, public);
    let secret = session_key(1, &message, &ciphertext);
    Ok((ciphertext, secret))
}

fn decode_public(public: &[u8]) -> Result<Poly, CryptoError> {
    let public = public.try_into().map_err(|_| CryptoError::InvalidKey)?;
    Ok(decode_q(public))
}

/// Returns the ciphertext of `r`: h·r rounded to multiples of 3, and a hash that confirms it.
fn encapsulate_polynomial(
    r: &[i32; P],
    message: &[u8; SMALL_LEN],
    h: &[i32; P],
    public: &[u8],
) -> Vec<u8> {
    let mut product = multiply_polynomials::<ModQ>(h, r);
    for x in product.iter_mut() {
        *x -= Mod3::reduce(*x);
    }
    let mut out = encode_rounded(&product);
    out.extend_from_slice(&*tagged_hash(
        2,
        &[&*tagged_hash(3, &[message]), &*tagged_hash(4, &[public])],
    ));
    out
}

fn session_key(tag: u8, message: &[u8; SMALL_LEN], ciphertext: &[u8]) -> Secret<[u8; 32]> {
    Secret::new(*tagged_hash(
        tag,
        &[&*tagged_hash(3, &[message]), ciphertext],
    ))
}

/// Returns the first half of SHA-512 over a tag and the parts.
fn tagged_hash(tag: u8, parts: &[&[u8]]) -> Zeroizing<[u8; HASH_LEN]> {
    let mut hasher = Sha2::Sha512.new_hasher();
    hasher.update(&[tag]);
    for part in parts {
        hasher.update(part);
    }
    let whole = hasher.finish();
    let mut out = Zeroizing::new([0; HASH_LEN]);
    for (to, from) in out.iter_mut().zip(whole.expose()) {
        *to = *from;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::hex;
    use adit_wire::FixedEntropy;

    /// Pseudorandom bytes for tests.
    fn noise(seed: u8, len: usize) -> FixedEntropy {
        let mut bytes = Vec::new();
        let mut block = vec![seed; 64];
        while bytes.len() < len {
            block = Sha2::Sha512.hash_parts(&[&block]).expose().clone();
            bytes.extend_from_slice(&block);
        }
        FixedEntropy::new(bytes)
    }

    #[test]
    fn both_sides_get_the_same() {
        let key = SntrupKey::generate(&mut noise(1, 200_000)).unwrap();
        let (ciphertext, ours) = sntrup_encapsulate(key.public_key(), &mut noise(2, 4000)).unwrap();
        assert_eq!(key.public_key().len(), SNTRUP_PUBLIC_LEN);
        assert_eq!(ciphertext.len(), SNTRUP_CIPHERTEXT_LEN);
        assert!(key.decapsulate(&ciphertext).unwrap() == ours);
        // Altered anywhere: another secret, the same one each time.
        for at in [0, 1006, 1007, 1038] {
            let mut bad = ciphertext.clone();
            bad[at] ^= 1;
            let other = key.decapsulate(&bad).unwrap();
            assert!(other != ours && other == key.decapsulate(&bad).unwrap());
        }
        assert!(key.decapsulate(&ciphertext[1..]).is_err());
        assert!(sntrup_encapsulate(&key.public_key()[1..], &mut noise(3, 4000)).is_err());
    }

    #[test]
    fn entropy_that_stands_still_ends() {
        /// Always draws the zero polynomial, which has no inverse.
        struct Zeros;
        impl Entropy for Zeros {
            fn fill(&mut self, out: &mut [u8]) {
                for word in out.chunks_mut(4) {
                    word.copy_from_slice(&0x2000_0000_u32.to_le_bytes()[..word.len()]);
                }
            }
        }
        let key = SntrupKey::generate(&mut Zeros);
        assert_eq!(key.err(), Some(CryptoError::Provider));
    }

    macro_rules! known {
        ($file:literal) => {
            hex(&serde_json::Value::from(
                include_str!(concat!("../../vectors/sntrup761/", $file)).trim(),
            ))
        };
    }

    /// The known answers of the draft: a private key in the format of the reference implementation.
    #[test]
    fn known_answers() {
        for (stored, ciphertext, answer) in [
            (
                known!("kat0_sk.hex"),
                known!("kat0_ct.hex"),
                known!("kat0_ss.hex"),
            ),
            (
                known!("kat1_sk.hex"),
                known!("kat1_ct.hex"),
                known!("kat1_ss.hex"),
            ),
        ] {
            let small = |at: usize| {
                let mut out = Zeroizing::new([0; P]);
                for (i, x) in out.iter_mut().enumerate() {
                    *x = i32::from(stored[at + i / 4] >> (2 * (i % 4)) & 3) - 1;
                }
                out
            };
            let tail = 2 * SMALL_LEN + Q_LEN;
            let key = SntrupKey {
                f: small(0),
                g_inverse: small(SMALL_LEN),
                public: stored[2 * SMALL_LEN..tail].to_vec(),
                decoy: Zeroizing::new(stored[tail..tail + SMALL_LEN].try_into().unwrap()),
            };
            let secret = key.decapsulate(&ciphertext).unwrap();
            assert_eq!(secret.expose()[..], answer);
            // The public key follows from the private one.
            let (g, _) = invert_polynomial::<Mod3>(&key.g_inverse, 1);
            let (third, _) = invert_polynomial::<ModQ>(&key.f, 3);
            assert_eq!(
                encode_q(&multiply_polynomials::<ModQ>(&third, &g)),
                key.public
            );
            assert_eq!(*tagged_hash(4, &[&key.public]), stored[tail + SMALL_LEN..]);
        }
    }
}
