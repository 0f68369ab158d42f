//! Sums of products over GF(2⁸), as wide as the CPU allows: the one part of this crate that may contain
//! `unsafe`.
//!
//! One loop serves all kernels ([`sum_rows`]): it iterates over the columns of a few rows at a time, with the
//! sums of all rows in registers, so that each input is loaded once for four outputs and each output is
//! written once for 16 inputs. Long shards are processed in tiles that stay in the caches. A kernel defines the register and its multiplication by a factor: with table look-ups of
//! the two nibbles of each byte (`PSHUFB`, `TBL`), or with a bit matrix (`GF2P8AFFINEQB`). Memory is
//! accessed through slices alone; `unsafe` states no more than that the CPU has an instruction, and a value
//! of the kernel's proof type, which only detection creates, shows that.

use adit_wire::subslice;

/// True if this CPU has the feature, or, without `std`, if every CPU of the target has it.
#[cfg(target_arch = "x86_64")]
macro_rules! cpu_has {
    ($feature:tt) => {{
        #[cfg(feature = "std")]
        let has = std::arch::is_x86_feature_detected!($feature);
        #[cfg(not(feature = "std"))]
        let has = cfg!(target_feature = $feature);
        has
    }};
}

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

/// Number of bytes of each shard that are processed before the next ones.
///
/// A tile of all outputs (50 of 2 KiB) stays in the second-level cache and one of [`INPUTS_AT_ONCE`] inputs
/// (32 KiB) in the first, while an input is read in runs that are long enough for the prefetcher and the
/// TLB. Without tiles, each group of four outputs reads all inputs from memory, 64 bytes of every page in
/// turn: 200+50 shards of 64 KiB took 126 ms with AVX2 on Zen 3, and take 15.5 ms with tiles. Tiles of
/// 1 to 4 KiB differ by 5 %; with 2 KiB, a datagram is a single one.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const TILE: usize = 2048;

/// Number of inputs that are summed up before the sums are written.
///
/// Of 8, 16 and 32 with AVX2 on Zen 3, 8 is 10 % slower for the usual 10+3 shards, which then take two
/// passes, and 32 is not faster for any code, while its tiles exceed the first-level cache. Loads and stores
/// of the sums are about 3 % of the work with 16.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const INPUTS_AT_ONCE: usize = 16;

/// Maximum number of inputs that are summed up in one pass if all of them stay in the first-level cache: with GFNI and
/// AVX-512 on Zen 4, a second pass for the last four of 20 inputs of 1,400 bytes takes 9 % more time.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const MAX_INPUTS_AT_ONCE: usize = 32;
/// Maximum size of these inputs in bytes: that of the first-level cache of most processors.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const MAX_CACHED: usize = 32 << 10;

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

/// Computes all outputs: tile by tile, in a tile some inputs after others, and of these up to four outputs
/// at a time. All slices have the same length, `N` or more.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn sum_products<V: Vector<N>, const N: usize, const WIDE: usize>(
    proof: V::Proof,
    factors: FactorRows<'_>,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
) {
    const { assert!(WIDE == V::WIDE && TILE.is_multiple_of(WIDE * N)) };
    let len = outputs.first().map_or(0, |output| output.len());
    if inputs.len() <= MAX_INPUTS_AT_ONCE && len < TILE + N && inputs.len() * len <= MAX_CACHED {
        // A group of datagrams is one tile: for the smallest ones, dividing it would take a third of the time.
        return sum_part::<V, N, WIDE, false>(proof, factors, 0, inputs, 0, outputs);
    }
    // Sums that are continued with further inputs end at a whole register. The rest is a tile of its own,
    // which ends where the slices end: some sums begin anew and have the same result, because inputs and
    // outputs are different memory.
    let once = inputs.len() <= INPUTS_AT_ONCE;
    let whole = if once { len } else { len - len % N };
    let mut start = 0;
    while start < len {
        let tile = if start == whole {
            len - N..len
        } else if whole - start < TILE + N {
            start..whole
        } else {
            start..start + TILE
        };
        for (nth, inputs) in inputs.chunks(INPUTS_AT_ONCE).enumerate() {
            let first = nth * INPUTS_AT_ONCE;
            let mut parts = [&[] as &[u8]; INPUTS_AT_ONCE];
            for (part, input) in parts.iter_mut().zip(inputs) {
                *part = subslice(input, tile.clone());
            }
            let parts = subslice(&parts, ..inputs.len());
            if first == 0 {
                sum_part::<V, N, WIDE, false>(proof, factors, first, parts, tile.start, outputs);
            } else {
                sum_part::<V, N, WIDE, true>(proof, factors, first, parts, tile.start, outputs);
            }
        }
        start = tile.end;
    }
}

/// Computes the part of the outputs from `start` on for the parts of some inputs, of which `first` is the
/// index of the first one. With `MORE`, the products are added to the content of the outputs.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn sum_part<V: Vector<N>, const N: usize, const WIDE: usize, const MORE: bool>(
    proof: V::Proof,
    factors: FactorRows<'_>,
    first: usize,
    inputs: &[&[u8]],
    start: usize,
    outputs: &mut [&mut [u8]],
) {
    let columns = first..first + inputs.len();
    let mut rows =
        (0..outputs.len()).map(|row| subslice(factors.row_factors(row), columns.clone()));
    let (fours, rest) = outputs.as_chunks_mut::<4>();
    for four in fours {
        sum_rows::<V, N, 4, WIDE, MORE>(proof, &mut rows, inputs, start, four);
    }
    if let Ok(three) = <&mut [_; 3]>::try_from(&mut *rest) {
        sum_rows::<V, N, 3, WIDE, MORE>(proof, &mut rows, inputs, start, three);
    } else if let Ok(two) = <&mut [_; 2]>::try_from(&mut *rest) {
        sum_rows::<V, N, 2, WIDE, MORE>(proof, &mut rows, inputs, start, two);
    } else if let Ok(one) = <&mut [_; 1]>::try_from(rest) {
        sum_rows::<V, N, 1, WIDE, MORE>(proof, &mut rows, inputs, start, one);
    }
}

/// Computes a part of the `R` outputs, with the next rows of factors: wide rounds, then single registers,
/// and a last one that ends where the part ends. The inputs are as long as the part; with `MORE`, a multiple
/// of `N`.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn sum_rows<
    'f,
    V: Vector<N>,
    const N: usize,
    const R: usize,
    const WIDE: usize,
    const MORE: bool,
>(
    proof: V::Proof,
    rows: &mut impl Iterator<Item = &'f [u8]>,
    inputs: &[&[u8]],
    start: usize,
    outputs: &mut [&mut [u8]; R],
) {
    let mut chosen = [&[] as &[u8]; R];
    for (row, factors) in chosen.iter_mut().zip(rows) {
        debug_assert_eq!(
            factors.len(),
            inputs.len(),
            "there must be a factor for each input"
        );
        *row = factors;
    }
    // The factors of an input side by side: the loop over the inputs needs one pointer for all rows. Those of one row
    // are that already.
    let mut transposed;
    let columns = if R == 1 {
        chosen[0].as_chunks::<R>().0
    } else {
        transposed = [[0; R]; MAX_INPUTS_AT_ONCE];
        for (r, row) in chosen.iter().enumerate() {
            for (column, factor) in transposed.iter_mut().zip(*row) {
                column[r] = *factor;
            }
        }
        &transposed[..]
    };
    let len = inputs.first().map_or(0, |input| input.len());
    let mut at = 0;
    while len - at >= WIDE * N {
        sum_block::<V, N, R, WIDE, MORE>(proof, columns, inputs, at, outputs, start + at);
        at += WIDE * N;
    }
    while len - at >= N {
        sum_block::<V, N, R, 1, MORE>(proof, columns, inputs, at, outputs, start + at);
        at += N;
    }
    if !MORE && at < len {
        sum_block::<V, N, R, 1, MORE>(proof, columns, inputs, len - N, outputs, start + len - N);
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
    sum_part::<V, N, WIDE, true>(proof, FactorRows::new(factors, 1), 0, &[input], 0, outputs);
}

/// Computes `W` registers of `R` outputs at `to` from those of the inputs at `from`; with `MORE`, the
/// products are added to the content of the outputs.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn sum_block<V: Vector<N>, const N: usize, const R: usize, const W: usize, const MORE: bool>(
    proof: V::Proof,
    columns: &[[u8; R]],
    inputs: &[&[u8]],
    from: usize,
    outputs: &mut [&mut [u8]; R],
    to: usize,
) {
    let mut sums = [[V::zeroed(proof); W]; R];
    if MORE {
        let mut r = 0;
        while r < R {
            let Some(bytes) = outputs[r].get(to..to + W * N) else {
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
    for (input, factors) in inputs.iter().zip(columns) {
        let Some(bytes) = input.get(from..from + W * N) else {
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
            let factor = V::prepare_factor(proof, factors[r]);
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
        let Some(bytes) = outputs[r].get_mut(to..to + W * N) else {
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
