//! Diffie–Hellman in the multiplicative group modulo a prime: RFC 3526's groups, and groups that a peer
//! chooses (RFC 4419).
//!
//! Exponents have 512 bits, twice the strength of any cipher in this crate, and exponentiation takes
//! constant time.

mod primes;

use core::fmt;

use adit_wire::{Entropy, trim_leading_zeros, usize_from};
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd};

use crate::{CryptoError, Secret};

/// Length of a private exponent, in bytes.
const EXPONENT_LEN: usize = 64;

/// Minimum number of set bits in a public value: one with fewer is a disguised power of two.
const MIN_ONES: u32 = 4;

/// A group of RFC 3526.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModpSize {
    /// Group 14.
    Bits2048,
    /// Group 16.
    Bits4096,
    /// Group 18.
    Bits8192,
}

/// A group: a prime and a generator.
#[derive(Clone)]
pub struct DhGroup {
    params: BoxedMontyParams,
    prime: Box<[u8]>,
    generator: BoxedUint,
}

impl DhGroup {
    /// Minimum length of the prime, in bits.
    pub const MIN_BITS: usize = 2048;
    /// Maximum length of the prime, in bits.
    pub const MAX_BITS: usize = 8192;

    /// Returns a group of RFC 3526, with generator 2.
    ///
    /// # Errors
    /// None occur: the primes are checked by a test.
    pub fn rfc3526(which: ModpSize) -> Result<Self, CryptoError> {
        let (hex, bits) = match which {
            ModpSize::Bits2048 => (primes::MODP_2048, 2048),
            ModpSize::Bits4096 => (primes::MODP_4096, 4096),
            ModpSize::Bits8192 => (primes::MODP_8192, 8192),
        };
        let prime = BoxedUint::from_be_hex(hex, bits).into_option();
        let prime = prime.ok_or(CryptoError::InvalidKey)?;
        Self::new(&prime.to_be_bytes(), &[2])
    }

    /// Creates the group of a peer's prime and generator, big-endian.
    ///
    /// The number is not checked for primality: it is sent by a server that signs it.
    ///
    /// # Errors
    /// [`CryptoError::InvalidKey`] if the modulus is even or not of
    /// [`DhGroup::MIN_BITS`]..=[`DhGroup::MAX_BITS`] bits, or the generator is not in `2..prime - 1`.
    pub fn new(prime: &[u8], generator: &[u8]) -> Result<Self, CryptoError> {
        let (prime, generator) = (trim_leading_zeros(prime), trim_leading_zeros(generator));
        let bits = bit_len(prime);
        let odd = prime.last().is_some_and(|last| last & 1 == 1);
        if !odd
            || !(Self::MIN_BITS..=Self::MAX_BITS).contains(&bits)
            || !is_in_range(generator, prime)
        {
            return Err(CryptoError::InvalidKey);
        }
        let modulus = parse_number(prime, prime.len())?;
        let modulus = Odd::new(modulus).into_option();
        Ok(Self {
            params: BoxedMontyParams::new_vartime(modulus.ok_or(CryptoError::InvalidKey)?),
            prime: prime.into(),
            generator: parse_number(generator, prime.len())?,
        })
    }

    /// Returns the prime, big-endian without leading zeros.
    #[must_use]
    pub fn prime(&self) -> &[u8] {
        &self.prime
    }

    /// Returns the generator, big-endian; it may have leading zeros.
    #[must_use]
    pub fn generator(&self) -> Box<[u8]> {
        self.generator.to_be_bytes_trimmed_vartime()
    }

    /// Returns `base` to the power of `exponent`, in a time that depends on the size of the group alone.
    fn pow(
        &self,
        base: &BoxedUint,
        exponent: &Secret<[u8; EXPONENT_LEN]>,
    ) -> Result<Secret<Vec<u8>>, CryptoError> {
        let exponent = Secret::new(parse_number(exponent.expose(), EXPONENT_LEN)?);
        let mut power = BoxedMontyForm::new(base.clone(), &self.params).pow(exponent.expose());
        let plain = Secret::new(power.retrieve());
        zeroize::Zeroize::zeroize(power.as_montgomery_mut());
        Ok(Secret::new(plain.expose().to_be_bytes().into_vec()))
    }
}

impl fmt::Debug for DhGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DhGroup({} bits)", bit_len(&self.prime))
    }
}

/// An ephemeral Diffie–Hellman key.
pub struct DhKey {
    group: DhGroup,
    exponent: Secret<[u8; EXPONENT_LEN]>,
    public: Vec<u8>,
}

impl DhKey {
    /// Generates a key of `group`.
    ///
    /// # Errors
    /// None occur for a group that was created by [`DhGroup`].
    pub fn generate(group: DhGroup, entropy: &mut dyn Entropy) -> Result<Self, CryptoError> {
        let mut exponent = Secret::new([0; EXPONENT_LEN]);
        entropy.fill(exponent.expose_mut());
        // Never 0 or 1, and always of full length.
        if let Some(top) = exponent.expose_mut().first_mut() {
            *top |= 0x80;
        }
        let public = group.pow(&group.generator, &exponent)?;
        let public = trim_leading_zeros(public.expose()).to_vec();
        Ok(Self {
            group,
            exponent,
            public,
        })
    }

    /// Returns the public value to send to the peer, big-endian without leading zeros.
    #[must_use]
    pub fn public_value(&self) -> &[u8] {
        &self.public
    }

    /// Returns the group of the key.
    #[must_use]
    pub const fn group(&self) -> &DhGroup {
        &self.group
    }

    /// Returns the secret shared with the owner of `peer`, big-endian, as long as the prime.
    ///
    /// # Errors
    /// [`CryptoError::InvalidKey`] if `peer` is not in `2..prime - 1` (RFC 8268 section 4), has fewer than
    /// four bits set, or leads to a secret that is easy to guess.
    pub fn derive_secret(&self, peer: &[u8]) -> Result<Secret<Vec<u8>>, CryptoError> {
        let (peer, prime) = (trim_leading_zeros(peer), self.group.prime());
        let ones: u32 = peer.iter().map(|b| b.count_ones()).sum();
        if !is_in_range(peer, prime) || ones < MIN_ONES {
            return Err(CryptoError::InvalidKey);
        }
        let shared = self
            .group
            .pow(&parse_number(peer, prime.len())?, &self.exponent)?;
        if is_in_range(trim_leading_zeros(shared.expose()), prime) {
            Ok(shared)
        } else {
            Err(CryptoError::InvalidKey)
        }
    }
}

impl fmt::Debug for DhKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DhKey({:?})", self.group)
    }
}

fn parse_number(bytes: &[u8], len: usize) -> Result<BoxedUint, CryptoError> {
    let bits = u32::try_from(len.saturating_mul(8)).map_err(|_| CryptoError::TooLong)?;
    BoxedUint::from_be_slice(bytes, bits).map_err(|_| CryptoError::InvalidKey)
}

fn bit_len(trimmed: &[u8]) -> usize {
    let unused = trimmed.first().map_or(0, |b| b.leading_zeros());
    (trimmed.len() * 8).saturating_sub(usize_from(unused))
}

/// Returns true if 1 < `value` < `prime` - 1; both without leading zeros, `prime` odd.
fn is_in_range(value: &[u8], prime: &[u8]) -> bool {
    let above_one = value.len() > 1 || value.first().is_some_and(|b| *b > 1);
    // The prime is odd: it and its predecessor differ only in the last bit.
    let before = match (value.split_last(), prime.split_last()) {
        (Some((last, head)), Some((prime_last, prime_head))) => {
            head == prime_head && last | 1 == *prime_last
        }
        _ => false,
    };
    let below = value.len() < prime.len() || (value.len() == prime.len() && value < prime);
    above_one && below && !before
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_wire::FixedEntropy;

    fn key(which: ModpSize, seed: u8) -> DhKey {
        let bytes: Vec<u8> = (0u8..64).map(|i| i.wrapping_mul(37) ^ seed).collect();
        let group = DhGroup::rfc3526(which).unwrap();
        DhKey::generate(group, &mut FixedEntropy::new(bytes)).unwrap()
    }

    #[test]
    fn both_sides_get_the_same() {
        for (which, len) in [
            (ModpSize::Bits2048, 256),
            (ModpSize::Bits4096, 512),
            (ModpSize::Bits8192, 1024),
        ] {
            let (a, b) = (key(which, 1), key(which, 2));
            let shared = a.derive_secret(b.public_value()).unwrap();
            assert!(shared == b.derive_secret(a.public_value()).unwrap());
            assert_eq!(shared.expose().len(), len);
            assert_eq!(a.group().prime().len(), len);
            assert_ne!(a.public_value(), b.public_value());
        }
    }

    /// 2^(2^511 + …), computed with another library's modular exponentiation.
    #[test]
    fn a_power_that_is_known() {
        let exponent = [0x80u8; 64];
        let group = DhGroup::rfc3526(ModpSize::Bits2048).unwrap();
        let key = DhKey::generate(group, &mut FixedEntropy::new(exponent)).unwrap();
        assert_eq!(
            key.public_value()[..8],
            [0xc4, 0x31, 0x52, 0x2a, 0xf2, 0xbf, 0x76, 0x2b]
        );
    }

    #[test]
    fn values_that_give_the_secret_away() {
        let own = key(ModpSize::Bits2048, 3);
        let prime = own.group().prime().to_vec();
        let mut before = prime.clone();
        *before.last_mut().unwrap() -= 1;
        let mut above = prime.clone();
        above.insert(0, 1);
        let mut sparse = vec![0; 200];
        sparse[0] = 0x80;
        for bad in [&[][..], &[0], &[1], &[2], &sparse, &prime, &before, &above] {
            assert_eq!(own.derive_secret(bad).err(), Some(CryptoError::InvalidKey));
        }
        *before.last_mut().unwrap() -= 1;
        assert!(own.derive_secret(&before).is_ok());
        let mut zeros = vec![0; 20];
        zeros.extend_from_slice(&[0x12, 0x34, 0x56]);
        assert!(
            own.derive_secret(&zeros).unwrap() == own.derive_secret(&[0x12, 0x34, 0x56]).unwrap()
        );
    }

    #[test]
    fn groups_out_of_bounds() {
        let prime = DhGroup::rfc3526(ModpSize::Bits2048)
            .unwrap()
            .prime()
            .to_vec();
        assert!(DhGroup::new(&prime, &[5]).is_ok());
        let mut even = prime.clone();
        *even.last_mut().unwrap() &= 0xfe;
        let mut long = vec![1];
        long.resize(1025, 0xff);
        for bad in [&even[..], &prime[1..], &long, &[], &[3]] {
            assert!(DhGroup::new(bad, &[2]).is_err());
        }
        for generator in [&[][..], &[0], &[1], &even, &prime] {
            assert!(DhGroup::new(&prime, generator).is_err());
        }
    }
}
