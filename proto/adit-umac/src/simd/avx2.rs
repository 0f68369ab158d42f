//! 256-bit vectors: AVX2. A register contains the sums of two streams, or of two groups for one
//! stream.

use core::arch::x86_64::*;

use crate::nh::{Group, GroupRun, NhKey, Sums, halves};

cpufeatures::new!(cpu_has_avx2, "avx2");

/// Proof that this CPU supports AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// Returns the proof if this CPU supports AVX2.
    pub(super) fn detect() -> Option<Self> {
        cpu_has_avx2::get().then_some(Self(()))
    }

    /// Computes the contribution of `run` to the NH of its block.
    #[inline(always)]
    pub(super) fn compute_nh<const TAG: usize>(self, key: &NhKey, run: GroupRun<'_>) -> Sums {
        // SAFETY: `self` proves that the feature is available.
        unsafe {
            match TAG {
                4 => nh_one_stream(key, run),
                8 => nh_two_streams(key, run),
                _ => nh_four_streams(key, run),
            }
        }
    }
}

/// UMAC-32: a register contains the same half of two groups.
#[target_feature(enable = "avx2")]
fn nh_one_stream(key: &NhKey, run: GroupRun<'_>) -> Sums {
    let mut sum = StreamPair::zero();
    let (piece, groups) = run.groups();
    let (twos, odd) = groups.as_chunks::<2>();
    let keys = key.words_from::<8>(piece);
    for ([a, b], [k, l]) in twos.iter().zip(keys.as_chunks::<2>().0) {
        sum.add_groups(
            _mm256_add_epi32(load_group(a), load_key(k)),
            _mm256_add_epi32(load_group(b), load_key(l)),
        );
    }
    // Zeros instead of a second group contribute nothing.
    if let ([group], Some(k)) = (odd, keys.get(2 * twos.len())) {
        let keyed = _mm256_add_epi32(load_group(group), load_key(k));
        sum.add_groups(keyed, _mm256_setzero_si256());
    }
    let (piece, tail) = run.tail();
    if let Some((tail, k)) = tail.zip(key.words_from(piece).first()) {
        let keyed = _mm256_add_epi32(load_tail(tail), load_key(k));
        sum.add_groups(keyed, _mm256_setzero_si256());
    }
    let [a, b, c, d] = sum.quarters();
    [a.wrapping_add(b).wrapping_add(c).wrapping_add(d), 0, 0, 0]
}

/// UMAC-64: a register contains two streams.
#[target_feature(enable = "avx2")]
fn nh_two_streams(key: &NhKey, run: GroupRun<'_>) -> Sums {
    let keys = |piece| key.words_from(piece).iter().zip(key.words_from(piece + 1));
    let mut sum = StreamPair::zero();
    let (piece, groups) = run.groups();
    for (group, (k, l)) in groups.iter().zip(keys(piece)) {
        let (low, high) = halves(group);
        sum.add_group(broadcast_half(low), broadcast_half(high), k, l);
    }
    let (piece, tail) = run.tail();
    if let Some((tail, (k, l))) = tail.zip(keys(piece).next()) {
        let (low, high) = broadcast_tail(tail);
        sum.add_group(low, high, k, l);
    }
    let [a, b, c, d] = sum.quarters();
    [a.wrapping_add(b), c.wrapping_add(d), 0, 0]
}

/// UMAC-96 and UMAC-128: two multiplications per group.
#[target_feature(enable = "avx2")]
fn nh_four_streams(key: &NhKey, run: GroupRun<'_>) -> Sums {
    let pairs = |piece| key.words_from(piece).iter().zip(key.words_from(piece + 1));
    let keys = |piece| pairs(piece).zip(pairs(piece + 2));
    let (mut first, mut second) = (StreamPair::zero(), StreamPair::zero());
    let (piece, groups) = run.groups();
    for (group, ((k, l), (m, n))) in groups.iter().zip(keys(piece)) {
        let (low, high) = halves(group);
        let (low, high) = (broadcast_half(low), broadcast_half(high));
        first.add_group(low, high, k, l);
        second.add_group(low, high, m, n);
    }
    let (piece, tail) = run.tail();
    if let Some((tail, ((k, l), (m, n)))) = tail.zip(keys(piece).next()) {
        let (low, high) = broadcast_tail(tail);
        first.add_group(low, high, k, l);
        second.add_group(low, high, m, n);
    }
    let ([a, b, c, d], [e, f, g, h]) = (first.quarters(), second.quarters());
    [
        a.wrapping_add(b),
        c.wrapping_add(d),
        e.wrapping_add(f),
        g.wrapping_add(h),
    ]
}

/// Sums of two streams, separately for even and odd words.
struct StreamPair {
    even: __m256i,
    odd: __m256i,
}

impl StreamPair {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn zero() -> Self {
        Self {
            even: _mm256_setzero_si256(),
            odd: _mm256_setzero_si256(),
        }
    }

    /// Adds a group to two streams; their keys are `k` for the first half and `l` for the second.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn add_group(&mut self, low: __m256i, high: __m256i, k: &[u32; 8], l: &[u32; 8]) {
        self.multiply(
            _mm256_add_epi32(low, load_key(k)),
            _mm256_add_epi32(high, load_key(l)),
        );
    }

    /// Adds two groups, which already include their keys, to one stream.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn add_groups(&mut self, a: __m256i, b: __m256i) {
        self.multiply(
            _mm256_permute2x128_si256::<0x20>(a, b),
            _mm256_permute2x128_si256::<0x31>(a, b),
        );
    }

    /// Adds the products of the words. The odd ones are moved down by a shift and by a shuffle,
    /// because these use different execution ports.
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

/// Loads half a group into both halves of a register.
#[inline]
#[target_feature(enable = "avx2")]
fn broadcast_half(half: &[u8; 16]) -> __m256i {
    // SAFETY: reads the 16 bytes of `half`; no alignment is required.
    let half = unsafe { _mm_loadu_si128(half.as_ptr().cast()) };
    _mm256_broadcastsi128_si256(half)
}

/// Pads a tail with zeros, and loads each half of it into both halves of a register.
#[inline]
#[target_feature(enable = "avx2")]
fn broadcast_tail(tail: &[u8]) -> (__m256i, __m256i) {
    let group = load_tail(tail);
    (
        _mm256_permute2x128_si256::<0x00>(group, group),
        _mm256_permute2x128_si256::<0x11>(group, group),
    )
}

/// Loads a tail padded with zeros, without a copy in memory: a load that overlaps several recent
/// short stores takes longer than everything else.
#[inline]
#[target_feature(enable = "avx2")]
fn load_tail(tail: &[u8]) -> __m256i {
    let (words, rest) = tail.as_chunks::<4>();
    // A tail is shorter than a group, so it has at most seven words.
    debug_assert!(words.len() < 8, "a tail is shorter than a group");
    let count = _mm256_set1_epi32(words.len().try_into().unwrap_or(0));
    let place = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mask = _mm256_cmpgt_epi32(count, place);
    // SAFETY: reads only the words with an index below `count`, which are within `words`.
    let words = unsafe { _mm256_maskload_epi32(words.as_ptr().cast(), mask) };
    let octet = |n: usize| rest.get(n).copied().unwrap_or(0);
    let last = i32::from_le_bytes([octet(0), octet(1), octet(2), 0]);
    let last = _mm256_and_si256(_mm256_set1_epi32(last), _mm256_cmpeq_epi32(count, place));
    _mm256_or_si256(words, last)
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_group(group: &Group) -> __m256i {
    // SAFETY: reads the 32 bytes of `group`; no alignment is required.
    unsafe { _mm256_loadu_si256(group.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_key(words: &[u32; 8]) -> __m256i {
    // SAFETY: reads the 32 bytes of `words`; no alignment is required.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}
