//! L3 (RFC 4418 section 5.4): an inner product modulo 2³⁶ - 5, which hashes 128 bits to 32.

use zeroize::Zeroize;

const P36: u64 = LOW36 - 4;
const LOW36: u64 = (1 << 36) - 1;

/// Key of one stream.
#[derive(Clone, Copy)]
pub(crate) struct InnerKey {
    /// Factors of the eight 16-bit digits, most significant first; less than p36
    factors: [u64; 8],
    mask: u32,
}

impl InnerKey {
    /// Number of bytes from the KDF, without the mask.
    pub(crate) const OCTETS: usize = 64;

    pub(crate) fn new(raw: &[u8; Self::OCTETS], mask: u32) -> Self {
        let mut factors = [0; 8];
        for (factor, octets) in factors.iter_mut().zip(raw.as_chunks().0) {
            *factor = u64::from_be_bytes(*octets) % P36;
        }
        Self { factors, mask }
    }

    /// Returns the hash of a value below 2⁶⁴, whose upper digits are zero: the case of all messages
    /// up to 16 MiB.
    #[inline(always)]
    pub(crate) fn hash_u64(&self, value: u64) -> u32 {
        let [_, _, _, _, a, b, c, d] = self.factors;
        self.reduce_and_mask(digit_product(value, [a, b, c, d]))
    }

    /// Returns the hash of any value.
    pub(crate) fn hash_u128(&self, value: u128) -> u32 {
        let [a, b, c, d, e, f, g, h] = self.factors;
        let [high, low] = [value >> 64, value].map(low64);
        self.reduce_and_mask(digit_product(high, [a, b, c, d]) + digit_product(low, [e, f, g, h]))
    }

    /// Reduces `sum`, which is below 2⁵⁵: eight products of 16 and 36 bits.
    #[inline(always)]
    fn reduce_and_mask(&self, sum: u64) -> u32 {
        // Because 2³⁶ = 5; the result exceeds p36 by less than p36.
        let sum = (sum & LOW36) + 5 * (sum >> 36);
        let (less, borrow) = sum.overflowing_sub(P36);
        low32(if borrow { sum } else { less }) ^ self.mask
    }
}

impl Zeroize for InnerKey {
    fn zeroize(&mut self) {
        self.factors.zeroize();
        self.mask.zeroize();
    }
}

/// Returns the sum of the products of the digits of `value`, most significant first, with
/// `factors`.
#[inline(always)]
const fn digit_product(value: u64, factors: [u64; 4]) -> u64 {
    let [a, b, c, d] = factors;
    const DIGIT: u64 = 0xffff;
    (value >> 48) * a + (value >> 32 & DIGIT) * b + (value >> 16 & DIGIT) * c + (value & DIGIT) * d
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "truncation is intended")]
const fn low32(value: u64) -> u32 {
    value as u32
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "truncation is intended")]
const fn low64(value: u128) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_greatest_sum_is_reduced() {
        let key = InnerKey {
            factors: [P36 - 1; 8],
            mask: 0,
        };
        let right = 8 * 0xffff * (P36 - 1) % P36;
        assert_eq!(key.hash_u128(u128::MAX), low32(right));
    }

    proptest! {
        #[test]
        fn reduction_is_division(raw: [[u8; 32]; 2], mask: u32, value: u128) {
            let key = InnerKey::new(raw.as_flattened().first_chunk().unwrap(), mask);
            let mut sum = 0;
            for (n, factor) in key.factors.iter().enumerate() {
                sum += low64(value >> (112 - 16 * n) & 0xffff) * factor;
            }
            prop_assert_eq!(key.hash_u128(value), low32(sum % P36) ^ mask);
            prop_assert_eq!(key.hash_u64(low64(value)), key.hash_u128(u128::from(low64(value))));
        }
    }
}
