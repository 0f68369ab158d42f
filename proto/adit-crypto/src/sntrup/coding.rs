//! Encoding of polynomials as bytes: small ones with four coefficients per byte, the others with the
//! mixed-radix encoding of NTRU Prime (draft-josefsson-ntruprime-streamlined section 4).
//!
//! Encoding takes constant time. Decoding uses division: its input is public.

use adit_wire::subslice;
use zeroize::Zeroizing;

use super::ring::{P, Poly, Q};

/// Length of an encoded small polynomial, in bytes.
pub(super) const SMALL_LEN: usize = P.div_ceil(4);
/// Length of an encoded polynomial modulo q, in bytes.
pub(super) const Q_LEN: usize = 1158;
/// Length of an encoded polynomial whose coefficients are multiples of 3, in bytes.
pub(super) const ROUNDED_LEN: usize = 1007;

/// Radices from this on are reduced by a byte.
const RADIX_LIMIT: u32 = 1 << 14;

/// Encodes coefficients of -1, 0 and 1 with two bits each.
pub(super) fn encode_small(a: &[i32; P]) -> Zeroizing<[u8; SMALL_LEN]> {
    let mut out = Zeroizing::new([0u8; SMALL_LEN]);
    for (octet, four) in out.iter_mut().zip(a.chunks(4)) {
        for (x, shift) in four.iter().zip([0, 2, 4, 6]) {
            *octet |= low_byte((x + 1).cast_unsigned()) << shift;
        }
    }
    out
}

/// Encodes any coefficients modulo q.
pub(super) fn encode_q(a: &[i32; P]) -> Vec<u8> {
    let digits = a.map(|x| (x + (Q - 1) / 2).cast_unsigned());
    let mut out = Vec::with_capacity(Q_LEN);
    encode_radix(&digits, &[Q.cast_unsigned(); P], &mut out);
    out
}

/// Decodes the output of [`encode_q`]; numbers that are too large are reduced.
pub(super) fn decode_q(octets: &[u8; Q_LEN]) -> Poly {
    decode_centred(octets, Q.cast_unsigned(), 1)
}

/// Encodes coefficients that are multiples of 3.
pub(super) fn encode_rounded(a: &[i32; P]) -> Vec<u8> {
    // Division by three, as a multiplication.
    let digits = a.map(|x| (((x + (Q - 1) / 2) * 10_923) >> 15).cast_unsigned());
    let mut out = Vec::with_capacity(ROUNDED_LEN);
    encode_radix(&digits, &[Q.cast_unsigned().div_ceil(3); P], &mut out);
    out
}

/// Decodes the output of [`encode_rounded`].
pub(super) fn decode_rounded(octets: &[u8; ROUNDED_LEN]) -> Poly {
    decode_centred(octets, Q.cast_unsigned().div_ceil(3), 3)
}

fn decode_centred(octets: &[u8], modulus: u32, step: i32) -> Poly {
    let digits = decode_radix(octets, &[modulus; P]);
    let mut out = Zeroizing::new([0; P]);
    for (to, digit) in out.iter_mut().zip(digits) {
        *to = digit.cast_signed() * step - (Q - 1) / 2;
    }
    out
}

/// Combines pairs of digits into one of a larger radix and writes out the low bytes of radices of [`RADIX_LIMIT`]
/// or more, until one digit is left.
fn encode_radix(digits: &[u32], radices: &[u32], out: &mut Vec<u8>) {
    if let ([digit], [radix]) = (digits, radices) {
        let (mut digit, mut radix) = (*digit, *radix);
        while radix > 1 {
            out.push(low_byte(digit));
            digit >>= 8;
            radix = (radix + 255) >> 8;
        }
        return;
    }
    let mut digits2 = Zeroizing::new(Vec::with_capacity(digits.len().div_ceil(2)));
    let mut radices2 = Vec::with_capacity(digits.len().div_ceil(2));
    for (r, m) in digits.chunks(2).zip(radices.chunks(2)) {
        match (r, m) {
            ([r0, r1], [m0, m1]) => {
                let (mut digit, mut radix) = (r0 + r1 * m0, m0 * m1);
                while radix >= RADIX_LIMIT {
                    out.push(low_byte(digit));
                    digit >>= 8;
                    radix = (radix + 255) >> 8;
                }
                digits2.push(digit);
                radices2.push(radix);
            }
            _ => {
                digits2.extend_from_slice(r);
                radices2.extend_from_slice(m);
            }
        }
    }
    encode_radix(&digits2, &radices2, out);
}

/// Inverts [`encode_radix`]. `octets` has the length of its output: the lengths are those of the types above.
fn decode_radix(octets: &[u8], radices: &[u32]) -> Vec<u32> {
    let octet = |at: usize| {
        debug_assert!(at < octets.len(), "the encoding is too short");
        octets.get(at).copied().map_or(0, u32::from)
    };
    if let [radix] = radices {
        let value = match radix {
            ..=1 => 0,
            2..=256 => octet(0),
            _ => octet(0) | octet(1) << 8,
        };
        return vec![value % radix];
    }
    let mut at = 0;
    // For each pair, the value of its separate bytes, and the number of bits in them.
    let mut cut = Vec::with_capacity(radices.len() / 2);
    let mut radices2 = Vec::with_capacity(radices.len().div_ceil(2));
    for pair in radices.chunks(2) {
        let mut radix: u32 = pair.iter().product();
        let (mut low, mut shift) = (0, 0);
        while pair.len() == 2 && radix >= RADIX_LIMIT {
            low |= octet(at) << shift;
            at += 1;
            shift += 8;
            radix = (radix + 255) >> 8;
        }
        cut.push((low, shift));
        radices2.push(radix);
    }
    let rest = decode_radix(subslice(octets, at..), &radices2);
    let mut out = Vec::with_capacity(radices.len());
    for ((pair, digit), (low, shift)) in radices.chunks(2).zip(rest).zip(cut) {
        let value = low + (digit << shift);
        match pair {
            [m0, m1] => out.extend([value % m0, value / m0 % m1]),
            _ => out.push(value),
        }
    }
    out
}

fn low_byte(x: u32) -> u8 {
    let [octet, ..] = x.to_le_bytes();
    octet
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_is_encoded_is_decoded(seed: u32) {
            let mut state = seed;
            let mut a = [0i32; P];
            for x in &mut a {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *x = (state >> 8).cast_signed() % Q - 2295;
            }
            let octets = encode_q(&a);
            prop_assert_eq!(*decode_q(octets.as_slice().try_into().unwrap()), a);
            let thirds = a.map(|x| x.div_euclid(3) * 3 );
            let thirds = thirds.map(|x| x.clamp(-2295, 2295));
            let octets = encode_rounded(&thirds);
            prop_assert_eq!(*decode_rounded(octets.as_slice().try_into().unwrap()), thirds);
        }

        #[test]
        fn any_octets_are_in_range(octets in proptest::collection::vec(any::<u8>(), Q_LEN)) {
            let a = decode_q(octets.as_slice().try_into().unwrap());
            prop_assert!(a.iter().all(|x| (-2295..=2295).contains(x)));
        }
    }

    #[test]
    fn lengths_are_those_of_the_draft() {
        assert_eq!(encode_q(&[2295; P]).len(), Q_LEN);
        assert_eq!(encode_rounded(&[2295; P]).len(), ROUNDED_LEN);
        assert_eq!(encode_small(&[1; P])[190], 2);
    }
}
