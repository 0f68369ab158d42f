//! The integer arithmetic that RSA needs beside AWS-LC: remainders for the halves of a private exponent,
//! and exponentiation with public numbers for moduli above AWS-LC's 8192 bits.
//!
//! Numbers are 64-bit limbs, the least significant first.

use zeroize::Zeroize;

/// Returns the limbs of big-endian `bytes`, at least `len` of them.
pub(super) fn to_limbs(bytes: &[u8], len: usize) -> Vec<u64> {
    let mut out: Vec<u64> = bytes
        .rchunks(8)
        .map(|chunk| chunk.iter().fold(0, |limb, b| limb << 8 | u64::from(*b)))
        .collect();
    out.resize(out.len().max(len), 0);
    out
}

/// Returns `len` bytes of the number, big-endian.
pub(super) fn to_bytes(limbs: &[u64], len: usize) -> Vec<u8> {
    let all = limbs.iter().flat_map(|limb| limb.to_le_bytes());
    let mut out: Vec<u8> = all.chain(core::iter::repeat(0)).take(len).collect();
    out.reverse();
    out
}

/// Computes `a -= b`, modulo 2 to the number of bits of `a`; returns the borrow, 0 or 1.
fn subtract_with_borrow(a: &mut [u64], b: &[u64]) -> u64 {
    let mut borrow = 0;
    for (a, b) in a
        .iter_mut()
        .zip(b.iter().copied().chain(core::iter::repeat(0)))
    {
        let (x, one) = a.overflowing_sub(b);
        let (x, two) = x.overflowing_sub(borrow);
        (*a, borrow) = (x, u64::from(one | two));
    }
    borrow
}

/// Computes `a = if mask is all ones { b } else { a }`, without a branch.
fn select_masked(a: &mut [u64], b: &[u64], mask: u64) {
    for (a, b) in a.iter_mut().zip(b) {
        *a = (*a & !mask) | (b & mask);
    }
}

/// Returns `number mod modulus`, both big-endian; the time depends on the lengths alone.
///
/// It processes one bit at a time: some milliseconds for the largest keys, once for each key that is read.
pub(super) fn reduce_modulo(number: &[u8], modulus: &[u8]) -> Vec<u8> {
    // One limb more than the modulus, for the bit that doubling shifts out.
    let mut m = to_limbs(modulus, 0);
    m.push(0);
    let (mut rest, mut less) = (vec![0u64; m.len()], vec![0u64; m.len()]);
    for bit in number
        .iter()
        .flat_map(|b| (0..8).rev().map(move |i| b >> i & 1))
    {
        let mut carry = u64::from(bit);
        for limb in &mut rest {
            (*limb, carry) = (*limb << 1 | carry, *limb >> 63);
        }
        less.copy_from_slice(&rest);
        let below = subtract_with_borrow(&mut less, &m);
        // Borrowed: the remainder was already below the modulus.
        select_masked(&mut rest, &less, below.wrapping_sub(1));
    }
    let out = to_bytes(&rest, modulus.len());
    m.zeroize();
    rest.zeroize();
    less.zeroize();
    out
}

/// Returns `base` to the power of `exponent` modulo `modulus`, `modulus.len()` bytes, for public numbers.
/// Returns `None` if the modulus is even or the base not below it.
pub(super) fn public_power(base: &[u8], exponent: u64, modulus: &[u8]) -> Option<Vec<u8>> {
    let n = to_limbs(modulus, 0);
    let base = to_limbs(base, n.len());
    let low = *n.first()?;
    let mut probe = base.clone();
    if low & 1 == 0 || base.len() > n.len() || subtract_with_borrow(&mut probe, &n) == 0 {
        return None;
    }
    // Newton's method: each step doubles the number of correct bits of 1/low modulo 2⁶⁴.
    let mut inverse = low;
    for _ in 0..6 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(low.wrapping_mul(inverse)));
    }
    let montgomery = Montgomery {
        n: &n,
        negated: inverse.wrapping_neg(),
    };
    // 2^(64 limbs) and its square modulo n: 1 and, as a factor, the conversion of the base in the
    // Montgomery domain.
    let one = power_of_two(64 * n.len(), modulus, n.len());
    let square = power_of_two(128 * n.len(), modulus, n.len());
    let base = montgomery.montgomery_multiply(&base, &square);
    let mut power = one;
    for i in (0..64 - exponent.leading_zeros()).rev() {
        power = montgomery.montgomery_multiply(&power, &power);
        if exponent >> i & 1 == 1 {
            power = montgomery.montgomery_multiply(&power, &base);
        }
    }
    let mut plain = vec![0; n.len()];
    if let Some(first) = plain.first_mut() {
        *first = 1;
    }
    Some(to_bytes(
        &montgomery.montgomery_multiply(&power, &plain),
        modulus.len(),
    ))
}

fn power_of_two(bits: usize, modulus: &[u8], len: usize) -> Vec<u64> {
    let mut number = vec![0; bits / 8 + 1];
    if let Some(first) = number.first_mut() {
        *first = 1;
    }
    to_limbs(&reduce_modulo(&number, modulus), len)
}

/// Multiplication modulo an odd number, of numbers with a factor of 2^(64 limbs).
struct Montgomery<'a> {
    n: &'a [u64],
    /// −1/n modulo 2⁶⁴.
    negated: u64,
}

impl Montgomery<'_> {
    fn montgomery_multiply(&self, a: &[u64], b: &[u64]) -> Vec<u64> {
        let mut t = vec![0u64; self.n.len() + 2];
        for a in a {
            add_product(&mut t, b, *a);
            let m = t.first().map_or(0, |low| low.wrapping_mul(self.negated));
            add_product(&mut t, self.n, m);
            // The lowest limb is zero by the choice of m.
            t.rotate_left(1);
            if let Some(top) = t.last_mut() {
                *top = 0;
            }
        }
        let mut less = t.clone();
        if subtract_with_borrow(&mut less, self.n) == 0 {
            t = less;
        }
        t.truncate(self.n.len());
        t
    }
}

/// Computes `t += b * factor`.
fn add_product(t: &mut [u64], b: &[u64], factor: u64) {
    let mut carry = 0u128;
    for (t, b) in t
        .iter_mut()
        .zip(b.iter().copied().chain(core::iter::repeat(0)))
    {
        let sum = u128::from(*t) + u128::from(b) * u128::from(factor) + carry;
        // The low half; the high half is the carry.
        *t = (sum & u128::from(u64::MAX)) as u64;
        carry = sum >> 64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(bytes: &[u8]) -> u128 {
        bytes.iter().fold(0, |n, b| n << 8 | u128::from(*b))
    }

    fn power(base: u64, exponent: u64, modulus: u64) -> u64 {
        let (mut out, m) = (1u128, u128::from(modulus));
        for i in (0..64).rev() {
            out = out * out % m;
            if exponent >> i & 1 == 1 {
                out = out * u128::from(base) % m;
            }
        }
        out as u64
    }

    proptest! {
        #[test]
        fn remainders(a: u128, m in 1u128..) {
            let got = reduce_modulo(&a.to_be_bytes(), &m.to_be_bytes());
            prop_assert_eq!(number(&got), a % m);
        }

        #[test]
        fn powers(base: u64, exponent: u64, modulus in 1u64..) {
            let (modulus, base) = (modulus | 1, base % (modulus | 1));
            let got = public_power(&base.to_be_bytes(), exponent, &modulus.to_be_bytes()).unwrap();
            prop_assert_eq!(number(&got), u128::from(power(base, exponent, modulus) % modulus));
        }

        /// a^(i+j) = a^i · a^j, at a size with many limbs.
        #[test]
        fn powers_of_many_limbs(a in prop::array::uniform32(any::<u8>()), i in 0u64..999, j in 1u64..99) {
            let mut n = [0xab; 48];
            n[47] |= 1;
            let mut base = vec![0; 16];
            base.extend(a);
            let ai = public_power(&base, i, &n).unwrap();
            let aij = public_power(&base, i * j, &n).unwrap();
            prop_assert_eq!(public_power(&ai, j, &n).unwrap(), aij);
        }
    }

    #[test]
    fn even_moduli_and_large_bases_are_refused() {
        assert_eq!(public_power(&[3], 3, &[10]), None);
        assert_eq!(public_power(&[11], 3, &[11]), None);
        assert_eq!(public_power(&[10], 2, &[11]), Some(vec![1]));
        assert_eq!(public_power(&[10], 2, &[]), None);
    }
}
