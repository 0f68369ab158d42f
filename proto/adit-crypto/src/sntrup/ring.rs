//! Arithmetic in `(Z/m)[x]/(x⁷⁶¹ - x - 1)` for m = 4591 and m = 3, without branches or indices that depend on
//! a coefficient.

use zeroize::Zeroizing;

/// The degree of the polynomial.
pub(super) const P: usize = 761;
/// The large modulus.
pub(super) const Q: i32 = 4591;

/// The coefficients of a polynomial, the constant one first.
pub(super) type Poly = Zeroizing<[i32; P]>;

/// The integers modulo a prime, represented by the remainders nearest to zero.
pub(super) trait Modulus {
    /// The prime.
    const PRIME: i32;
    /// Returns the remainder of `x` nearest to zero.
    fn reduce(x: i32) -> i32;
}

/// The integers modulo 4591.
pub(super) struct ModQ;
/// The integers modulo 3.
pub(super) struct Mod3;

impl Modulus for ModQ {
    const PRIME: i32 = Q;

    /// Accepts |x| up to 2²⁴. 57 / 2¹⁸ and 29235 / 2²⁷ are close to 1 / q; multiplication replaces
    /// division, since some compilers emit divisions whose time depends on the operands.
    #[inline]
    fn reduce(x: i32) -> i32 {
        let x = x - Q * ((x * 57) >> 18);
        x - Q * ((x * 29_235 + (1 << 26)) >> 27)
    }
}

impl Modulus for Mod3 {
    const PRIME: i32 = 3;

    /// Accepts |x| up to 8000.
    #[inline]
    fn reduce(x: i32) -> i32 {
        x - 3 * ((x * 10_923 + (1 << 14)) >> 15)
    }
}

/// Returns `a` times `b`. The sums must be in the range that the modulus reduces: one of the factors has
/// coefficients of -1, 0 and 1 only.
pub(super) fn multiply_polynomials<M: Modulus>(a: &[i32; P], b: &[i32; P]) -> Poly {
    let mut wide = Zeroizing::new([0i32; 2 * P]);
    for (at, factor) in b.iter().enumerate() {
        for (sum, term) in wide.iter_mut().skip(at).zip(a) {
            *sum += factor * term;
        }
    }
    // x^(761 + k) = x^(k + 1) + x^k.
    let mut out = Zeroizing::new([0; P]);
    let (low, high) = wide.split_at(P);
    let mut below = 0;
    for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
        *out = M::reduce(low + high + below);
        below = *high;
    }
    out
}

/// Returns every coefficient times `factor`.
pub(super) fn scale_polynomial<M: Modulus>(a: &[i32; P], factor: i32) -> Poly {
    let mut out = Zeroizing::new(*a);
    for x in out.iter_mut() {
        *x = M::reduce(*x * factor);
    }
    out
}

/// Returns the inverse modulo the prime, by Fermat's little theorem.
fn invert_scalar<M: Modulus>(a: i32) -> i32 {
    let mut power = a;
    for _ in 0..M::PRIME - 3 {
        power = M::reduce(power * a);
    }
    power
}

/// Returns 1 / (`divisor` · `a`), and true if `a` has an inverse, by the "divsteps" of Bernstein and Yang
/// (2019): a fixed number of steps of Euclid's algorithm on the reversed polynomials.
pub(super) fn invert_polynomial<M: Modulus>(a: &[i32; P], divisor: i32) -> (Poly, bool) {
    let mut f = Zeroizing::new([0i32; P + 1]);
    let mut g = Zeroizing::new([0i32; P + 1]);
    let mut v = Zeroizing::new([0i32; P + 1]);
    let mut r = Zeroizing::new([0i32; P + 1]);
    f[0] = 1;
    f[P - 1] = -1;
    f[P] = -1;
    for (to, from) in g.iter_mut().zip(a.iter().rev()) {
        *to = *from;
    }
    r[0] = if divisor == 1 {
        1
    } else {
        invert_scalar::<M>(divisor)
    };
    let mut delta = 1i32;
    for _ in 0..2 * P - 1 {
        v.rotate_right(1);
        v[0] = 0;
        // All ones if delta > 0 and g[0] != 0.
        let swap = ((-delta) >> 31) & ((g[0] | -g[0]) >> 31);
        delta ^= swap & (delta ^ -delta);
        delta += 1;
        swap_masked(&mut *f, &mut *g, swap);
        swap_masked(&mut *v, &mut *r, swap);
        let (f0, g0) = (f[0], g[0]);
        for (g, f) in g.iter_mut().zip(f.iter()) {
            *g = M::reduce(f0 * *g - g0 * f);
        }
        for (r, v) in r.iter_mut().zip(v.iter()) {
            *r = M::reduce(f0 * *r - g0 * v);
        }
        g.rotate_left(1);
        g[P] = 0;
    }
    let factor = invert_scalar::<M>(f[0]);
    let mut out = Zeroizing::new([0; P]);
    for (to, from) in out.iter_mut().zip(v.iter().take(P).rev()) {
        *to = M::reduce(factor * from);
    }
    (out, delta == 0)
}

/// Swaps `a` and `b` if `mask` is all ones; leaves them if it is zero.
fn swap_masked(a: &mut [i32], b: &mut [i32], mask: i32) {
    for (a, b) in a.iter_mut().zip(b) {
        let t = mask & (*a ^ *b);
        *a ^= t;
        *b ^= t;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_remainder_is_right() {
        for x in -(1 << 24)..=1 << 24 {
            let r = ModQ::reduce(x);
            assert!((-2295..=2295).contains(&r) && (x - r) % Q == 0, "{x}");
        }
        for x in -8000..=8000 {
            let r = Mod3::reduce(x);
            assert!((-1..=1).contains(&r) && (x - r) % 3 == 0, "{x}");
        }
    }

    #[test]
    fn inverses_multiply_to_one() {
        let mut small = [0i32; P];
        for (i, x) in small.iter_mut().enumerate() {
            *x = (i32::try_from(i * i % 17).unwrap() % 3) - 1;
        }
        let (third, ok) = invert_polynomial::<ModQ>(&small, 3);
        assert!(ok);
        let one = scale_polynomial::<ModQ>(&multiply_polynomials::<ModQ>(&third, &small), 3);
        assert_eq!((one[0], one[1..].iter().any(|x| *x != 0)), (1, false));
        let (inverse, ok) = invert_polynomial::<Mod3>(&small, 1);
        assert!(ok);
        let one = multiply_polynomials::<Mod3>(&inverse, &small);
        assert_eq!((one[0], one[1..].iter().any(|x| *x != 0)), (1, false));
        assert!(!invert_polynomial::<Mod3>(&[0; P], 1).1);
    }
}
