//! GF(2⁸) with the polynomial x⁸+x⁴+x³+x²+1 and the generator 2, and the tables of the kernels.
//!
//! All tables are computed at compile time.

/// The polynomial without its x⁸.
const POLYNOMIAL: u8 = 0x1d;

/// Powers of 2, repeated once, so that two logarithms can be added without a reduction.
static EXP: [u8; 510] = exponent_table();

/// Logarithms to the base 2; that of 0 is undefined.
static LOG: [u8; 256] = logarithm_table();

/// For each factor its products with 0..16, then with the multiples of 16: the product of a byte is the sum
/// of those of its nibbles.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", test))]
pub(crate) static NIBBLES: [[u8; 32]; 256] = nibble_tables();

/// For each factor the bit matrix of the multiplication, in the format of `GF2P8AFFINEQB`.
#[cfg(target_arch = "x86_64")]
pub(crate) static MATRICES: [u64; 256] = bit_matrices();

/// Returns a · b.
pub(crate) fn gf_mul(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    EXP[usize::from(LOG[usize::from(a)]) + usize::from(LOG[usize::from(b)])]
}

/// Returns 1 / a; zero for zero, which has no inverse.
pub(crate) fn gf_inverse(a: u8) -> u8 {
    if a == 0 {
        return 0;
    }
    EXP[255 - usize::from(LOG[usize::from(a)])]
}

/// Returns 2 · a.
const fn gf_double(a: u8) -> u8 {
    let carry = if a & 0x80 != 0 { POLYNOMIAL } else { 0 };
    (a << 1) ^ carry
}

/// Returns a · b, computed without a table.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", test))]
const fn mul_without_table(a: u8, mut b: u8) -> u8 {
    let (mut shifted, mut sum) = (a, 0);
    while b != 0 {
        if b & 1 != 0 {
            sum ^= shifted;
        }
        shifted = gf_double(shifted);
        b >>= 1;
    }
    sum
}

const fn exponent_table() -> [u8; 510] {
    let mut table = [0; 510];
    let (mut i, mut power) = (0, 1);
    while i < table.len() {
        table[i] = power;
        power = gf_double(power);
        i += 1;
    }
    table
}

const fn logarithm_table() -> [u8; 256] {
    let mut table = [0; 256];
    let (mut log, mut power) = (0u8, 1u8);
    while log < 255 {
        table[power as usize] = log;
        power = gf_double(power);
        log += 1;
    }
    table
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", test))]
const fn nibble_tables() -> [[u8; 32]; 256] {
    let mut table = [[0; 32]; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut nibble = 0u8;
        while nibble < 16 {
            // `factor` is below 256.
            table[factor][nibble as usize] = mul_without_table(nibble, factor as u8);
            table[factor][16 + nibble as usize] = mul_without_table(nibble << 4, factor as u8);
            nibble += 1;
        }
        factor += 1;
    }
    table
}

/// Computes the matrices. Bit i of a product is the parity of the input bits selected by byte 7-i: bit j of
/// that byte is set if bit i is set in factor · 2ʲ.
#[cfg(target_arch = "x86_64")]
const fn bit_matrices() -> [u64; 256] {
    let mut table = [0; 256];
    let mut factor = 0;
    while factor < 256 {
        let mut matrix = 0u64;
        let mut j = 0;
        // `factor` is below 256.
        let mut column = factor as u8;
        while j < 8 {
            let mut i = 0;
            while i < 8 {
                matrix |= ((column as u64 >> i) & 1) << (8 * (7 - i) + j);
                i += 1;
            }
            column = gf_double(column);
            j += 1;
        }
        table[factor] = matrix;
        factor += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_agree_with_long_multiplication() {
        for a in 0..=255u8 {
            for b in 0..=255u8 {
                let expected = mul_without_table(a, b);
                assert_eq!(gf_mul(a, b), expected);
                let halves = &NIBBLES[usize::from(a)];
                let sum = halves[usize::from(b & 15)] ^ halves[16 + usize::from(b >> 4)];
                assert_eq!(sum, expected);
            }
            assert_eq!(gf_mul(a, gf_inverse(a)), u8::from(a != 0));
        }
        assert_eq!(gf_mul(0x80, 2), 0x1d);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn bit_matrices_multiply() {
        for factor in 0..=255u8 {
            let rows = MATRICES[usize::from(factor)].to_be_bytes();
            for x in 0..=255u8 {
                let bits = (0..8u8).map(|i| ((rows[usize::from(i)] & x).count_ones() & 1) << i);
                assert_eq!(bits.sum::<u32>(), u32::from(gf_mul(factor, x)));
            }
        }
    }
}
