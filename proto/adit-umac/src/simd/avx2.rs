//! 256-bit vectors: AVX2. A register holds the sums of two streams, or of two groups for one.

use core::arch::x86_64::*;

use crate::nh::{Group, NhKey, Run, Sums, halves};

cpufeatures::new!(cpu_has_avx2, "avx2");

/// Shows that this CPU has AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The proof, if this CPU has it.
    pub(super) fn detect() -> Option<Self> {
        cpu_has_avx2::get().then_some(Self(()))
    }

    /// What `run` adds to the NH of its block.
    #[inline(always)]
    pub(super) fn nh<const TAG: usize>(self, key: &NhKey, run: Run<'_>) -> Sums {
        // SAFETY: `self` shows that the feature is there.
        unsafe {
            match TAG {
                4 => one(key, run),
                8 => two(key, run),
                _ => four(key, run),
            }
        }
    }
}

/// UMAC-32: a register holds the same half of two groups.
#[target_feature(enable = "avx2")]
fn one(key: &NhKey, run: Run<'_>) -> Sums {
    let zero = _mm256_setzero_si256();
    let (mut sum, mut odd) = (Pair::zero(), None);
    run.each(|piece, group| {
        let this = _mm256_add_epi32(load(group), load_key(key.piece_on(piece)));
        match odd.take() {
            None => odd = Some(this),
            Some(before) => sum.multiply(
                _mm256_permute2x128_si256::<0x20>(before, this),
                _mm256_permute2x128_si256::<0x31>(before, this),
            ),
        }
    });
    if let Some(before) = odd {
        // Zeros instead of the second group add nothing.
        sum.multiply(
            _mm256_permute2x128_si256::<0x20>(before, zero),
            _mm256_permute2x128_si256::<0x31>(before, zero),
        );
    }
    let [a, b, c, d] = sum.quarters();
    [a.wrapping_add(b).wrapping_add(c).wrapping_add(d), 0, 0, 0]
}

/// UMAC-64.
#[target_feature(enable = "avx2")]
fn two(key: &NhKey, run: Run<'_>) -> Sums {
    let mut sum = Pair::zero();
    run.each(|piece, group| {
        let (low, high) = halves(group);
        sum.add(both(low), both(high), key, piece);
    });
    let [a, b, c, d] = sum.quarters();
    [a.wrapping_add(b), c.wrapping_add(d), 0, 0]
}

/// UMAC-96 and UMAC-128: two passes over each group.
#[target_feature(enable = "avx2")]
fn four(key: &NhKey, run: Run<'_>) -> Sums {
    let (mut first, mut second) = (Pair::zero(), Pair::zero());
    run.each(|piece, group| {
        let (low, high) = halves(group);
        let (low, high) = (both(low), both(high));
        first.add(low, high, key, piece);
        second.add(low, high, key, piece + 2);
    });
    let ([a, b, c, d], [e, f, g, h]) = (first.quarters(), second.quarters());
    [
        a.wrapping_add(b),
        c.wrapping_add(d),
        e.wrapping_add(f),
        g.wrapping_add(h),
    ]
}

/// The sums of two streams, those of the even and of the odd words apart.
struct Pair {
    even: __m256i,
    odd: __m256i,
}

impl Pair {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn zero() -> Self {
        Self {
            even: _mm256_setzero_si256(),
            odd: _mm256_setzero_si256(),
        }
    }

    /// Adds a group to the streams whose keys begin at `piece` and the one behind it.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn add(&mut self, low: __m256i, high: __m256i, key: &NhKey, piece: usize) {
        self.multiply(
            _mm256_add_epi32(low, load_key(key.piece_on(piece))),
            _mm256_add_epi32(high, load_key(key.piece_on(piece + 1))),
        );
    }

    /// Adds the products of the words. The odd ones come down by a shift and by a shuffle: they
    /// use different ports.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn multiply(&mut self, a: __m256i, b: __m256i) {
        let even = _mm256_mul_epu32(a, b);
        let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), _mm256_shuffle_epi32::<0xf5>(b));
        self.even = _mm256_add_epi64(self.even, even);
        self.odd = _mm256_add_epi64(self.odd, odd);
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn quarters(self) -> [u64; 4] {
        let sum = _mm256_add_epi64(self.even, self.odd);
        [
            _mm256_extract_epi64::<0>(sum).cast_unsigned(),
            _mm256_extract_epi64::<1>(sum).cast_unsigned(),
            _mm256_extract_epi64::<2>(sum).cast_unsigned(),
            _mm256_extract_epi64::<3>(sum).cast_unsigned(),
        ]
    }
}

/// Half a group in both halves of a register.
#[inline]
#[target_feature(enable = "avx2")]
fn both(half: &[u8; 16]) -> __m256i {
    // SAFETY: reads the 16 octets of `half`; the address needs no alignment.
    let half = unsafe { _mm_loadu_si128(half.as_ptr().cast()) };
    _mm256_broadcastsi128_si256(half)
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(group: &Group) -> __m256i {
    // SAFETY: reads the 32 octets of `group`; the address needs no alignment.
    unsafe { _mm256_loadu_si256(group.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_key(words: &[u32; 8]) -> __m256i {
    // SAFETY: reads the 32 octets of `words`; the address needs no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}
