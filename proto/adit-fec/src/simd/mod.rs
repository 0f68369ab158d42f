//! Sums of products over GF(2⁸), as wide as the CPU allows: the one part of this crate that may contain
//! `unsafe`.
//!
//! One loop serves all kernels ([`rows`]): it iterates over the columns of a few rows at a time, with the
//! sums of all rows in registers, so that each input is loaded once for four outputs and each output is
//! written once. A kernel defines the register and its multiplication by a factor: with table look-ups of
//! the two nibbles of each byte (`PSHUFB`, `TBL`), or with a bit matrix (`GF2P8AFFINEQB`). Memory is
//! accessed through slices alone; `unsafe` states no more than that the CPU has an instruction, and a value
//! of the kernel's proof type, which only detection creates, shows that.

use adit_wire::subslice;

mod cpu;
mod portable;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod gfni;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod ssse3;

#[cfg(test)]
mod tests;

pub use cpu::{FecLevel, effective_level, limit_level};

pub(crate) use cpu::KernelPath;

/// Factors in rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FactorRows<'a> {
    rows: &'a [u8],
    columns: usize,
}

impl<'a> FactorRows<'a> {
    /// Creates factors from whole rows of `columns` factors, at least one.
    pub(crate) const fn new(rows: &'a [u8], columns: usize) -> Self {
        Self { rows, columns }
    }

    fn row_factors(self, row: usize) -> &'a [u8] {
        let start = row * self.columns;
        subslice(self.rows, start..start + self.columns)
    }
}

/// A register of `N` bytes.
///
/// Every method must be `#[inline(always)]`: only then is it compiled for the features of its kernel.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
trait Vector<const N: usize>: Copy {
    /// The proof that the CPU has the instructions.
    type Proof: Copy;
    /// A loaded register, prepared for multiplication.
    type Input: Copy;
    /// A factor, prepared for multiplication.
    type Factor: Copy;
    /// Number of registers per row in one round: as many as fit with four rows.
    const WIDE: usize;

    fn zeroed(proof: Self::Proof) -> Self;
    /// Loads a sum to continue with.
    fn load_sum(proof: Self::Proof, bytes: &[u8; N]) -> Self;
    fn load_input(proof: Self::Proof, bytes: &[u8; N]) -> Self::Input;
    fn prepare_factor(proof: Self::Proof, factor: u8) -> Self::Factor;
    /// Adds the product.
    fn add_product(self, input: Self::Input, factor: Self::Factor) -> Self;
    fn store_sum(self, bytes: &mut [u8; N]);
}

/// Computes up to four outputs at a time. All slices have the same length, `N` or more.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn sum_products<V: Vector<N>, const N: usize, const WIDE: usize>(
    proof: V::Proof,
    factors: FactorRows<'_>,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
) {
    const { assert!(WIDE == V::WIDE) };
    let mut row = 0;
    let (fours, rest) = outputs.as_chunks_mut::<4>();
    for four in fours {
        sum_rows::<V, N, 4, WIDE>(proof, factors, row, inputs, four);
        row += 4;
    }
    if let Ok(three) = <&mut [_; 3]>::try_from(&mut *rest) {
        sum_rows::<V, N, 3, WIDE>(proof, factors, row, inputs, three);
    } else if let Ok(two) = <&mut [_; 2]>::try_from(&mut *rest) {
        sum_rows::<V, N, 2, WIDE>(proof, factors, row, inputs, two);
    } else if let Ok(one) = <&mut [_; 1]>::try_from(rest) {
        sum_rows::<V, N, 1, WIDE>(proof, factors, row, inputs, one);
    }
}

/// Computes `R` outputs over their whole length: wide rounds, then single registers, and a last one that
/// ends where the slices end. This may compute some bytes twice, with the same result: inputs and outputs
/// are different memory.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn sum_rows<V: Vector<N>, const N: usize, const R: usize, const WIDE: usize>(
    proof: V::Proof,
    factors: FactorRows<'_>,
    first: usize,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]; R],
) {
    let len = outputs.first().map_or(0, |output| output.len());
    let mut chosen = [&[] as &[u8]; R];
    for (row, factors_of_row) in chosen.iter_mut().enumerate() {
        *factors_of_row = factors.row_factors(first + row);
    }
    let mut at = 0;
    while len - at >= WIDE * N {
        sum_block::<V, N, R, WIDE>(proof, &chosen, inputs, outputs, at, false);
        at += WIDE * N;
    }
    while len - at >= N {
        sum_block::<V, N, R, 1>(proof, &chosen, inputs, outputs, at, false);
        at += N;
    }
    if at < len && len >= N {
        sum_block::<V, N, R, 1>(proof, &chosen, inputs, outputs, len - N, false);
    }
}

/// Adds the products of one input to outputs, up to four at a time. All slices have the same length, a
/// multiple of `N`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn add_products<V: Vector<N>, const N: usize, const WIDE: usize>(
    proof: V::Proof,
    factors: &[u8],
    input: &[u8],
    outputs: &mut [&mut [u8]],
) {
    const { assert!(WIDE == V::WIDE) };
    let mut factors = factors.chunks(1);
    let (fours, rest) = outputs.as_chunks_mut::<4>();
    for four in fours {
        add_to_rows::<V, N, 4, WIDE>(proof, &mut factors, input, four);
    }
    if let Ok(three) = <&mut [_; 3]>::try_from(&mut *rest) {
        add_to_rows::<V, N, 3, WIDE>(proof, &mut factors, input, three);
    } else if let Ok(two) = <&mut [_; 2]>::try_from(&mut *rest) {
        add_to_rows::<V, N, 2, WIDE>(proof, &mut factors, input, two);
    } else if let Ok(one) = <&mut [_; 1]>::try_from(rest) {
        add_to_rows::<V, N, 1, WIDE>(proof, &mut factors, input, one);
    }
}

/// Adds the products of one input to `R` outputs, with the next factors.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn add_to_rows<'f, V: Vector<N>, const N: usize, const R: usize, const WIDE: usize>(
    proof: V::Proof,
    factors: &mut impl Iterator<Item = &'f [u8]>,
    input: &[u8],
    outputs: &mut [&mut [u8]; R],
) {
    let mut chosen = [&[] as &[u8]; R];
    for (chosen, factor) in chosen.iter_mut().zip(factors) {
        *chosen = factor;
    }
    let mut at = 0;
    while input.len() - at >= WIDE * N {
        sum_block::<V, N, R, WIDE>(proof, &chosen, &[input], outputs, at, true);
        at += WIDE * N;
    }
    while input.len() - at >= N {
        sum_block::<V, N, R, 1>(proof, &chosen, &[input], outputs, at, true);
        at += N;
    }
}

/// Computes `W` registers of `R` outputs at `at`; with `more` they are added to the content of the outputs.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn sum_block<V: Vector<N>, const N: usize, const R: usize, const W: usize>(
    proof: V::Proof,
    factors: &[&[u8]; R],
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]; R],
    at: usize,
    more: bool,
) {
    let mut sums = [[V::zeroed(proof); W]; R];
    if more {
        let mut r = 0;
        while r < R {
            let Some(bytes) = outputs[r].get(at..at + W * N) else {
                return;
            };
            let (chunks, _) = bytes.as_chunks::<N>();
            let mut w = 0;
            while w < W {
                sums[r][w] = V::load_sum(proof, &chunks[w]);
                w += 1;
            }
            r += 1;
        }
    }
    for (column, input) in inputs.iter().enumerate() {
        let Some(bytes) = input.get(at..at + W * N) else {
            return;
        };
        let (chunks, _) = bytes.as_chunks::<N>();
        let mut loaded = [V::load_input(proof, &chunks[0]); W];
        let mut w = 1;
        while w < W {
            loaded[w] = V::load_input(proof, &chunks[w]);
            w += 1;
        }
        let mut r = 0;
        while r < R {
            debug_assert!(
                column < factors[r].len(),
                "there must be a factor for each input"
            );
            let factor = V::prepare_factor(proof, factors[r].get(column).copied().unwrap_or(0));
            let mut w = 0;
            while w < W {
                sums[r][w] = sums[r][w].add_product(loaded[w], factor);
                w += 1;
            }
            r += 1;
        }
    }
    let mut r = 0;
    while r < R {
        let Some(bytes) = outputs[r].get_mut(at..at + W * N) else {
            return;
        };
        let (chunks, _) = bytes.as_chunks_mut::<N>();
        let mut w = 0;
        while w < W {
            sums[r][w].store_sum(&mut chunks[w]);
            w += 1;
        }
        r += 1;
    }
}
