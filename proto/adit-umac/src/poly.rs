//! L2 (RFC 4418 section 5.3): polynomials over the NH results of messages longer than one block.
//!
//! The first 2¹⁴ results (16 MiB of the message) are coefficients modulo 2⁶⁴ - 59. If there are
//! more, the value so far is the first coefficient of a second polynomial modulo 2¹²⁸ - 159, and
//! each pair of further results is another coefficient.

use zeroize::Zeroize;

use crate::kdf::STREAMS;
use crate::nh::Sums;

/// Number of NH results in the 64-bit polynomial.
const SHORT: u64 = 1 << 14;

/// 2⁶⁴ - p64 and 2¹²⁸ - p128.
const OFFSET64: u64 = 59;
const OFFSET128: u128 = 159;
const P64: u64 = 0u64.wrapping_sub(OFFSET64);
const P128: u128 = 0u128.wrapping_sub(OFFSET128);

/// Coefficients from this value on are encoded as two: the marker p - 1 and the rest.
const LIMIT64: u64 = 0xffff_ffff_0000_0000;
const LIMIT128: u128 = 0xffff_ffff << 96;

/// Points at which the two polynomials of one stream are evaluated.
#[derive(Clone, Copy)]
pub(crate) struct PolyKey {
    k64: u64,
    k128: u128,
}

impl PolyKey {
    /// Number of bytes from the KDF.
    pub(crate) const OCTETS: usize = 24;

    pub(crate) fn new(raw: &[u8; Self::OCTETS]) -> Self {
        let word = |n: usize| {
            let octets = raw.as_chunks().0.get(n).copied();
            octets.map_or(0, u64::from_be_bytes) & 0x01ff_ffff_01ff_ffff
        };
        Self {
            k64: word(0),
            k128: u128::from(word(1)) << 64 | u128::from(word(2)),
        }
    }
}

impl Zeroize for PolyKey {
    fn zeroize(&mut self) {
        self.k64.zeroize();
        self.k128.zeroize();
    }
}

/// The polynomials of all streams over the blocks read so far.
pub(crate) struct PolyState {
    /// Number of NH results absorbed
    count: u64,
    /// Below 2⁶⁴, but not always below the prime
    short: Sums,
    long: [u128; STREAMS],
    /// First half of the next coefficient of the long polynomial
    half: Sums,
}

impl PolyState {
    pub(crate) const fn new() -> Self {
        Self {
            count: 0,
            short: [1; STREAMS],
            long: [1; STREAMS],
            half: [0; STREAMS],
        }
    }

    /// True if nothing was absorbed.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Absorbs the NH result of the next block, for each stream of a tag of `TAG` bytes.
    #[inline(always)]
    pub(crate) fn absorb_block<const TAG: usize>(
        &mut self,
        keys: &[PolyKey; STREAMS],
        words: Sums,
    ) {
        if self.count < SHORT {
            let streams = self.short.iter_mut().zip(keys).zip(words).take(TAG / 4);
            for ((y, key), word) in streams {
                *y = step64(*y, key.k64, word);
            }
        } else {
            self.absorb_long(keys, words);
        }
        self.count += 1;
    }

    #[cold]
    fn absorb_long(&mut self, keys: &[PolyKey; STREAMS], words: Sums) {
        if self.count == SHORT {
            self.begin_long(keys);
        }
        if self.count.is_multiple_of(2) {
            self.half = words;
        } else {
            self.absorb_pair(keys, words);
        }
    }

    fn begin_long(&mut self, keys: &[PolyKey; STREAMS]) {
        for ((y, key), short) in self.long.iter_mut().zip(keys).zip(self.short) {
            *y = step128(*y, key.k128, u128::from(reduce64(short)));
        }
    }

    fn absorb_pair(&mut self, keys: &[PolyKey; STREAMS], second: Sums) {
        let words = self.half.iter().zip(second);
        for ((y, key), (first, second)) in self.long.iter_mut().zip(keys).zip(words) {
            let word = u128::from(*first) << 64 | u128::from(second);
            *y = step128(*y, key.k128, word);
        }
    }

    /// Returns the output of L2.
    pub(crate) fn finish_poly(&mut self, keys: &[PolyKey; STREAMS]) -> [u128; STREAMS] {
        if self.count <= SHORT {
            return self.short.map(|y| u128::from(reduce64(y)));
        }
        // The byte 0x80 and zeros complete the last coefficient.
        let end = [0x80 << 56; STREAMS];
        if self.count.is_multiple_of(2) {
            self.half = end;
            self.absorb_pair(keys, [0; STREAMS]);
        } else {
            self.absorb_pair(keys, end);
        }
        self.long.map(reduce128)
    }
}

#[inline(always)]
fn step64(y: u64, key: u64, word: u64) -> u64 {
    if word >= LIMIT64 {
        return marked64(y, key, word);
    }
    horner64(y, key, word)
}

#[cold]
fn marked64(y: u64, key: u64, word: u64) -> u64 {
    horner64(horner64(y, key, P64 - 1), key, word - OFFSET64)
}

/// Returns `y·key + word` modulo p64, below 2⁶⁴; key < 2⁵⁷ and word < p64.
#[inline(always)]
fn horner64(y: u64, key: u64, word: u64) -> u64 {
    let (low, high) = split_halves(u128::from(y) * u128::from(key));
    // Because 2⁶⁴ = 59; high < 2⁵⁷, so the product has 63 bits.
    add64(add64(low, high * OFFSET64), word)
}

/// Returns `y + word` modulo p64, below 2⁶⁴; word < p64, so there is no second carry.
#[inline(always)]
fn add64(y: u64, word: u64) -> u64 {
    let (sum, carry) = y.overflowing_add(word);
    sum.wrapping_add(OFFSET64 & 0u64.wrapping_sub(u64::from(carry)))
}

#[inline(always)]
fn reduce64(y: u64) -> u64 {
    let (less, borrow) = y.overflowing_sub(P64);
    if borrow { y } else { less }
}

fn step128(y: u128, key: u128, word: u128) -> u128 {
    if word >= LIMIT128 {
        return horner128(horner128(y, key, P128 - 1), key, word - OFFSET128);
    }
    horner128(y, key, word)
}

/// Returns `y·key + word` modulo p128, below 2¹²⁸; key < 2¹²¹ and word < p128.
fn horner128(y: u128, key: u128, word: u128) -> u128 {
    let ((y0, y1), (k0, k1)) = (split_halves(y), split_halves(key));
    let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
    // The product has 249 bits: low + high·2¹²⁸.
    let (middle, carry) = product(y0, k1).overflowing_add(product(y1, k0));
    let (low, carry_low) = product(y0, k0).overflowing_add(middle << 64);
    let high = product(y1, k1) + (middle >> 64) + (u128::from(carry) << 64) + u128::from(carry_low);
    // Because 2¹²⁸ = 159; high·159 may have 129 bits.
    let (high0, high1) = split_halves(high);
    let upper = u128::from(high1) * OFFSET128;
    let sum = add128(low, u128::from(high0) * OFFSET128);
    let sum = add128(sum, upper << 64);
    let sum = add128(sum, (upper >> 64) * OFFSET128);
    add128(sum, word)
}

/// Returns `y + word` modulo p128, below 2¹²⁸; word < p128, so there is no second carry.
fn add128(y: u128, word: u128) -> u128 {
    let (sum, carry) = y.overflowing_add(word);
    sum.wrapping_add(OFFSET128 * u128::from(carry))
}

fn reduce128(y: u128) -> u128 {
    let (less, borrow) = y.overflowing_sub(P128);
    if borrow { y } else { less }
}

/// Returns the lower and the upper half.
#[inline(always)]
#[allow(clippy::cast_possible_truncation, reason = "truncation is intended")]
const fn split_halves(wide: u128) -> (u64, u64) {
    (wide as u64, (wide >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::tests::vectors;

    fn number(value: &Value) -> u128 {
        u128::from_str_radix(value.as_str().unwrap(), 16).unwrap()
    }

    fn numbers(value: &Value) -> Vec<u128> {
        value.as_array().unwrap().iter().map(number).collect()
    }

    #[test]
    fn golden_polynomials_of_64_bits() {
        let all = vectors();
        let cases = all["poly64"].as_array().unwrap();
        assert_eq!(cases.len(), 6);
        for case in cases {
            let key = number(&case["k64"]).try_into().unwrap();
            let words = numbers(&case["words"]).into_iter();
            let y = words.fold(1, |y, word| step64(y, key, word.try_into().unwrap()));
            assert_eq!(u128::from(reduce64(y)), number(&case["y"]));
        }
    }

    #[test]
    fn golden_polynomials_of_128_bits() {
        let all = vectors();
        let cases = all["poly128"].as_array().unwrap();
        assert_eq!(cases.len(), 4);
        for case in cases {
            let key = number(&case["k128"]);
            let words = numbers(&case["words"]).into_iter();
            let y = words.fold(1, |y, word| step128(y, key, word));
            assert_eq!(reduce128(y), number(&case["y"]));
        }
    }

    /// `y·key` modulo `p` by doubling and adding, with nothing in common with the code above.
    fn slow_product(y: u128, key: u128, p: u128) -> u128 {
        let add = |a: u128, b: u128| if a >= p - b { a - (p - b) } else { a + b };
        let y = y % p;
        (0..128).rev().fold(0, |sum, bit| {
            let sum = if sum == 0 { 0 } else { add(sum, sum) };
            if key >> bit & 1 == 0 || y == 0 {
                sum
            } else {
                add(sum, y)
            }
        })
    }

    fn slow_horner(y: u128, key: u128, word: u128, p: u128) -> u128 {
        let product = slow_product(y, key, p);
        if product >= p - word {
            product - (p - word)
        } else {
            product + word
        }
    }

    const EDGE: [u128; 6] = [0, 1, u128::MAX, u128::MAX - 1, u128::MAX << 64, P128 - 1];

    fn wide() -> impl Strategy<Value = u128> {
        prop_oneof![any::<u128>(), prop::sample::select(&EDGE[..])]
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_the_primes(y in wide(), key in wide(), word in wide()) {
            let mask = 0x01ff_ffff_01ff_ffff_01ff_ffff_01ff_ffff;
            let key = key & mask;
            let word128 = word.min(P128 - 1);
            prop_assert_eq!(
                reduce128(horner128(y, key, word128)),
                slow_horner(y, key, word128, P128)
            );
            let (y, key) = (split_halves(y).0, split_halves(key).0);
            let word64 = split_halves(word).0.min(P64 - 1);
            prop_assert_eq!(
                u128::from(reduce64(horner64(y, key, word64))),
                slow_horner(y.into(), key.into(), word64.into(), P64.into())
            );
        }
    }
}
