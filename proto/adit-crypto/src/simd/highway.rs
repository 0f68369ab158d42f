//! HighwayHash-64 over packets: several side by side, since one alone waits for its own multiplications.
//!
//! The function is that of Google's `highwayhash`; every CPU without AVX2 gets the crate `highway`.

use highway::{HighwayHash, HighwayHasher, Key};

use super::Path;
#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;

/// Bytes that the state takes in at once.
const BLOCK: usize = 32;

/// A message in two pieces, the first of at most 32 bytes.
pub(crate) type Message<'a> = (&'a [u8], &'a [u8]);

/// The hash of each message; `N` of them are done in the time of not much more than one.
pub(crate) fn highway64<const N: usize>(
    path: Path,
    key: &[u64; 4],
    messages: [Message<'_>; N],
) -> [u64; N] {
    match path {
        #[cfg(target_arch = "x86_64")]
        Path::Avx2(proof) => wide(proof, key, messages),
        #[cfg(target_arch = "x86_64")]
        Path::Avx512(proof) => wide(Avx2::implied_by(proof), key, messages),
        #[cfg(target_arch = "x86_64")]
        Path::Ifma(proof) => wide(Avx2::implied_by(proof.without()), key, messages),
        Path::Portable => messages.map(|(head, rest)| {
            let mut hasher = HighwayHasher::new(Key(*key));
            hasher.append(head);
            hasher.append(rest);
            hasher.finalize64()
        }),
    }
}

#[cfg(target_arch = "x86_64")]
fn wide<const N: usize>(_: Avx2, key: &[u64; 4], messages: [Message<'_>; N]) -> [u64; N] {
    let pieces = messages.map(Pieces::of);
    // SAFETY: the proof shows that the feature is there.
    unsafe { kernel::hash(key, &pieces) }
}

/// A message as the state takes it: a block that joins its pieces, whole blocks, and the end.
#[cfg(target_arch = "x86_64")]
struct Pieces<'a> {
    joined: Option<[u8; BLOCK]>,
    blocks: &'a [[u8; BLOCK]],
    /// The last bytes, fewer than a block, as the state takes them in.
    last: [u8; BLOCK],
    /// How many those are.
    size: usize,
}

#[cfg(target_arch = "x86_64")]
impl<'a> Pieces<'a> {
    #[inline]
    fn of((head, rest): Message<'a>) -> Self {
        debug_assert!(head.len() <= BLOCK);
        let (front, rest) = rest.split_at(rest.len().min((BLOCK - head.len()) % BLOCK));
        let mut first = [0; BLOCK];
        if let (Ok(head), Ok(front)) = (head.try_into(), front.try_into()) {
            // A nonce and what follows it: copies of lengths that the compiler knows.
            let [head, front]: [[u8; BLOCK / 2]; 2] = [head, front];
            first[..BLOCK / 2].copy_from_slice(&head);
            first[BLOCK / 2..].copy_from_slice(&front);
        } else {
            for (to, byte) in first.iter_mut().zip(head.iter().chain(front)) {
                *to = *byte;
            }
        }
        let len = head.len() + front.len();
        if len % BLOCK != 0 {
            return Self {
                joined: None,
                blocks: &[],
                last: last(first.get(..len).unwrap_or_default()),
                size: len,
            };
        }
        let (blocks, tail) = rest.as_chunks();
        Self {
            joined: (len > 0).then_some(first),
            blocks,
            last: last(tail),
            size: tail.len(),
        }
    }
}

/// The end of a message, fewer bytes than a block: its words in their places, and what is left of
/// them behind, or spread where less than half a block is filled.
#[cfg(target_arch = "x86_64")]
#[inline]
fn last(end: &[u8]) -> [u8; BLOCK] {
    let mut last = [0; BLOCK];
    let (words, odd) = end.as_chunks::<4>();
    let (places, _) = last.as_chunks_mut::<4>();
    for (place, word) in places.iter_mut().zip(words) {
        *place = *word;
    }
    if end.len() >= BLOCK / 2 {
        if let (Some(place), Some(bytes)) = (places.last_mut(), end.last_chunk()) {
            *place = *bytes;
        }
    } else if let (Some(first), Some(behind)) = (odd.first(), odd.last()) {
        last[16] = *first;
        last[17] = odd.get(odd.len() / 2).copied().unwrap_or(0);
        last[18] = *behind;
    }
    last
}

#[cfg(target_arch = "x86_64")]
mod kernel {
    //! The state in 256-bit registers.

    use core::arch::x86_64::*;

    use super::{BLOCK, Pieces};

    /// Digits of π, as the definition has them.
    const FIRST: [u64; 4] = [
        0xdbe6_d5d5_fe4c_ce2f,
        0xa409_3822_299f_31d0,
        0x1319_8a2e_0370_7344,
        0x243f_6a88_85a3_08d3,
    ];
    const SECOND: [u64; 4] = [
        0x3bd3_9e10_cb0e_f593,
        0xc0ac_f169_b5f1_8a8c,
        0xbe54_66cf_34e9_0c6c,
        0x4528_21e6_38d0_1377,
    ];

    #[derive(Clone, Copy)]
    struct State {
        v0: __m256i,
        v1: __m256i,
        mul0: __m256i,
        mul1: __m256i,
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn hash<const N: usize>(key: &[u64; 4], pieces: &[Pieces<'_>; N]) -> [u64; N] {
        let mut states = [State::new(key); N];
        for at in 0..N {
            if let Some(joined) = &pieces[at].joined {
                states[at].update(load(joined));
            }
        }
        // In step as far as the shortest goes, then each for itself.
        let mut least = usize::MAX;
        for piece in pieces {
            least = least.min(piece.blocks.len());
        }
        for block in 0..least {
            for at in 0..N {
                states[at].update(load(&pieces[at].blocks[block]));
            }
        }
        for at in 0..N {
            for block in &pieces[at].blocks[least..] {
                states[at].update(load(block));
            }
            if pieces[at].size > 0 {
                states[at].remainder(&pieces[at]);
            }
        }
        for _ in 0..4 {
            for state in &mut states {
                state.permute();
            }
        }
        let mut hashes = [0; N];
        for at in 0..N {
            hashes[at] = states[at].sum();
        }
        hashes
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load(bytes: &[u8; BLOCK]) -> __m256i {
        // SAFETY: 32 bytes are read from a reference to as many, aligned or not.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn words(words: &[u64; 4]) -> __m256i {
        // SAFETY: 32 bytes are read from a reference to as many, aligned or not.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    impl State {
        #[target_feature(enable = "avx2")]
        #[inline]
        fn new(key: &[u64; 4]) -> Self {
            let (mul0, mul1, key) = (words(&FIRST), words(&SECOND), words(key));
            let turned = _mm256_shuffle_epi32::<0b10_11_00_01>(key);
            Self {
                v0: _mm256_xor_si256(mul0, key),
                v1: _mm256_xor_si256(mul1, turned),
                mul0,
                mul1,
            }
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        fn update(&mut self, block: __m256i) {
            // The block first: `mul0` is what comes last out of the round before.
            let v1 = _mm256_add_epi64(kept(_mm256_add_epi64(self.v1, block)), self.mul0);
            let product = _mm256_mul_epu32(v1, _mm256_srli_epi64::<32>(self.v0));
            self.mul0 = _mm256_xor_si256(self.mul0, product);
            let v0 = _mm256_add_epi64(self.v0, self.mul1);
            let product = _mm256_mul_epu32(v0, _mm256_srli_epi64::<32>(v1));
            self.mul1 = _mm256_xor_si256(self.mul1, product);
            self.v0 = _mm256_add_epi64(v0, zipped(v1));
            self.v1 = _mm256_add_epi64(v1, zipped(self.v0));
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        fn remainder(&mut self, piece: &Pieces<'_>) {
            // At most 31.
            let size = piece.size as i32;
            self.v0 = _mm256_add_epi64(self.v0, _mm256_set1_epi32(size));
            self.v1 = _mm256_or_si256(
                _mm256_sll_epi32(self.v1, _mm_cvtsi32_si128(size)),
                _mm256_srl_epi32(self.v1, _mm_cvtsi32_si128(32 - size)),
            );
            self.update(load(&piece.last));
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        fn permute(&mut self) {
            let places = _mm256_setr_epi32(5, 4, 7, 6, 1, 0, 3, 2);
            self.update(_mm256_permutevar8x32_epi32(self.v0, places));
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        fn sum(&self) -> u64 {
            let sum = _mm256_add_epi64(
                _mm256_add_epi64(self.v0, self.v1),
                _mm256_add_epi64(self.mul0, self.mul1),
            );
            _mm256_extract_epi64::<0>(sum).cast_unsigned()
        }
    }

    /// The same, and a sum that the compiler does not order anew.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn kept(mut v: __m256i) -> __m256i {
        // SAFETY: no instruction at all.
        unsafe {
            core::arch::asm!("/* {0} */", inout(ymm_reg) v, options(pure, nomem, nostack, preserves_flags));
        }
        v
    }

    /// Bytes of each half in the order that mixes the well mixed ones with the others.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn zipped(v: __m256i) -> __m256i {
        const HIGH: i64 = 0x0708_0609_0d0a_040b;
        const LOW: i64 = 0x000f_010e_0502_0c03;
        _mm256_shuffle_epi8(v, _mm256_set_epi64x(HIGH, LOW, HIGH, LOW))
    }
}
