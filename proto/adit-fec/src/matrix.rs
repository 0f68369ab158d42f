//! The parity rows of both codes, and the solver for lost shards.

use alloc::vec::Vec;

use crate::gf256::{gf_inverse, gf_mul};

/// A kind of code. The two kinds are incompatible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeMatrix {
    /// rᶜ for row r and column c, times the inverse of its upper square: the code of kcp-go.
    Vandermonde,
    /// 1 / (r xor c): the code of ISA-L, and of adit's `kcp9` mode.
    Cauchy,
}

impl CodeMatrix {
    /// Returns the parity rows, concatenated, with `data` factors each. `data` and `parity` add up to 256
    /// at most.
    pub(crate) fn parity_rows(self, data: usize, parity: usize) -> Vec<u8> {
        match self {
            Self::Vandermonde => vandermonde_rows(data, parity),
            Self::Cauchy => cauchy_rows(data, parity),
        }
    }
}

/// Multiplication with the inverse of the upper square makes the data shards the values of a polynomial at
/// 0, 1, … data-1, so parity shard r is its value at r by Lagrange's formula: column c is the product of
/// (r-j) / (c-j) over all data points j other than c. No matrix is inverted.
fn vandermonde_rows(data: usize, parity: usize) -> Vec<u8> {
    let weights: Vec<u8> = field_elements(0, data)
        .map(|c| {
            let others = field_elements(0, data).filter(|&j| j != c);
            gf_inverse(others.fold(1, |all, j| gf_mul(all, c ^ j)))
        })
        .collect();
    let mut rows = Vec::with_capacity(data * parity);
    for r in field_elements(data, parity) {
        let all = field_elements(0, data).fold(1, |all, j| gf_mul(all, r ^ j));
        rows.extend(
            field_elements(0, data)
                .zip(&weights)
                .map(|(c, weight)| gf_mul(gf_mul(all, gf_inverse(r ^ c)), *weight)),
        );
    }
    rows
}

fn cauchy_rows(data: usize, parity: usize) -> Vec<u8> {
    field_elements(data, parity)
        .flat_map(|r| field_elements(0, data).map(move |c| gf_inverse(r ^ c)))
        .collect()
}

/// Returns `count` elements of the field from `first` on.
fn field_elements(first: usize, count: usize) -> impl Iterator<Item = u8> {
    (0..=u8::MAX).skip(first).take(count)
}

/// Transforms `augmented`, rows of `square` + `right` factors, into identity and solution by Gaussian
/// elimination; returns false if the square has no inverse.
pub(crate) fn solve_equations(augmented: &mut [u8], square: usize, right: usize) -> bool {
    let width = square + right;
    for pivot in 0..square {
        let Some(found) = (pivot..square).find(|row| augmented[row * width + pivot] != 0) else {
            return false;
        };
        if found != pivot {
            let (upper, lower) = augmented.split_at_mut(found * width);
            upper[pivot * width..][..width].swap_with_slice(&mut lower[..width]);
        }
        let (before, rest) = augmented.split_at_mut(pivot * width);
        let (row, after) = rest.split_at_mut(width);
        let scale = gf_inverse(row[pivot]);
        row.iter_mut()
            .for_each(|factor| *factor = gf_mul(*factor, scale));
        let others = before.chunks_exact_mut(width);
        for other in others.chain(after.chunks_exact_mut(width)) {
            let times = other[pivot];
            if times != 0 {
                for (to, from) in other.iter_mut().zip(&*row) {
                    *to ^= gf_mul(*from, times);
                }
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, by inversion of the upper square.
    fn by_definition(data: usize, parity: usize) -> Vec<u8> {
        let power = |r: u8, c: usize| (0..c).fold(1, |p, _| gf_mul(p, r));
        let mut square = Vec::new();
        for r in field_elements(0, data) {
            square.extend((0..data).map(|c| power(r, c)));
            square.extend((0..data).map(|c| u8::from(usize::from(r) == c)));
        }
        assert!(solve_equations(&mut square, data, data));
        let mut rows = Vec::new();
        for r in field_elements(data, parity) {
            for c in 0..data {
                rows.push((0..data).fold(0, |sum, k| {
                    sum ^ gf_mul(power(r, k), square[k * 2 * data + data + c])
                }));
            }
        }
        rows
    }

    #[test]
    fn lagrange_is_the_inverted_vandermonde_matrix() {
        for (data, parity) in [(1, 1), (2, 2), (3, 1), (10, 3), (40, 9), (70, 30)] {
            assert_eq!(vandermonde_rows(data, parity), by_definition(data, parity));
        }
    }

    #[test]
    fn a_singular_square_is_refused() {
        assert!(!solve_equations(&mut [1, 2, 9, 1, 2, 9], 2, 1));
        assert!(!solve_equations(&mut [0, 7], 1, 1));
    }
}
