//! HighwayHash-64 over packets: several in parallel, since a single one waits for its own multiplications.
//!
//! The function is that of Google's `highwayhash`; CPUs without AVX2 use the crate `highway`.

#[cfg(target_arch = "x86_64")]
use adit_wire::subslice;
use highway::{HighwayHash, HighwayHasher, Key};

use super::CpuPath;
#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;

/// Number of bytes that the state absorbs at a time.
#[cfg(target_arch = "x86_64")]
const BLOCK: usize = 32;

/// A message in two parts, the first of at most 32 bytes.
pub(crate) type HashMessage<'a> = (&'a [u8], &'a [u8]);

/// Returns the hash of each message; `N` of them take not much more time than one.
pub(crate) fn highway64<const N: usize>(
    path: CpuPath,
    key: &[u64; 4],
    messages: [HashMessage<'_>; N],
) -> [u64; N] {
    match path {
        #[cfg(target_arch = "x86_64")]
        CpuPath::Avx2(proof) => hash_with_avx2(proof, key, messages),
        #[cfg(target_arch = "x86_64")]
        CpuPath::Avx2Vaes(proof) => hash_with_avx2(proof.without(), key, messages),
        #[cfg(target_arch = "x86_64")]
        CpuPath::Avx512(proof) => hash_with_avx2(Avx2::from_avx512(proof), key, messages),
        #[cfg(target_arch = "x86_64")]
        CpuPath::Ifma(proof) => {
            hash_with_avx2(Avx2::from_avx512(proof.without_ifma()), key, messages)
        }
        CpuPath::Portable => messages.map(|(head, rest)| {
            let mut hasher = HighwayHasher::new(Key(*key));
            hasher.append(head);
            hasher.append(rest);
            hasher.finalize64()
        }),
    }
}

#[cfg(target_arch = "x86_64")]
fn hash_with_avx2<const N: usize>(
    _: Avx2,
    key: &[u64; 4],
    messages: [HashMessage<'_>; N],
) -> [u64; N] {
    let pieces = messages.map(MessageParts::split);
    // SAFETY: the proof shows that the feature is there.
    unsafe { kernel::hash_messages(key, &pieces) }
}

/// A message as the state absorbs it: a block that joins its parts, whole blocks, and the end.
#[cfg(target_arch = "x86_64")]
struct MessageParts<'a> {
    front: FirstBlock<'a>,
    blocks: &'a [[u8; BLOCK]],
    /// The last bytes, fewer than a block.
    end: &'a [u8],
}

/// Half a block.
#[cfg(target_arch = "x86_64")]
type Half = [u8; BLOCK / 2];

/// The first block, if it is not contiguous.
#[cfg(target_arch = "x86_64")]
enum FirstBlock<'a> {
    /// It is contiguous
    None,
    /// A nonce and the bytes after it
    Halves(&'a Half, &'a Half),
    /// From other parts
    Block([u8; BLOCK]),
    /// From other parts that form the whole message: fewer bytes than a block, and their number
    End([u8; BLOCK], usize),
}

#[cfg(target_arch = "x86_64")]
impl<'a> MessageParts<'a> {
    #[inline]
    fn split((head, rest): HashMessage<'a>) -> Self {
        if let (Ok(head), Some((front, rest))) = (head.try_into(), rest.split_first_chunk()) {
            return Self::with_front(FirstBlock::Halves(head, front), rest);
        }
        if head.is_empty() {
            return Self::with_front(FirstBlock::None, rest);
        }
        Self::join_parts(head, rest)
    }

    #[inline]
    fn with_front(front: FirstBlock<'a>, rest: &'a [u8]) -> Self {
        let (blocks, end) = rest.as_chunks();
        Self { front, blocks, end }
    }

    #[cold]
    fn join_parts(head: &'a [u8], rest: &'a [u8]) -> Self {
        debug_assert!(head.len() <= BLOCK);
        let mut first = [0; BLOCK];
        let (front, rest) = rest.split_at(rest.len().min(BLOCK - head.len().min(BLOCK)));
        for (to, byte) in first.iter_mut().zip(head.iter().chain(front)) {
            *to = *byte;
        }
        match head.len() + front.len() {
            BLOCK => Self::with_front(FirstBlock::Block(first), rest),
            len => Self::with_front(FirstBlock::End(first, len), rest),
        }
    }

    /// Returns the last bytes, fewer than a block.
    #[inline]
    fn end(&self) -> &[u8] {
        match &self.front {
            FirstBlock::End(bytes, len) => subslice(bytes, ..*len),
            _ => self.end,
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod kernel {
    //! The state in 256-bit registers.

    use core::arch::x86_64::*;

    use super::{BLOCK, FirstBlock, Half, MessageParts};

    /// Digits of π, as in the definition.
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
    pub(super) fn hash_messages<const N: usize>(
        key: &[u64; 4],
        pieces: &[MessageParts<'_>; N],
    ) -> [u64; N] {
        let mut states = [State::new(key); N];
        for at in 0..N {
            match &pieces[at].front {
                FirstBlock::None | FirstBlock::End(..) => {}
                FirstBlock::Halves(head, front) => {
                    let halves = _mm256_set_m128i(load_half(front), load_half(head));
                    states[at].absorb_block(halves);
                }
                FirstBlock::Block(block) => states[at].absorb_block(load_block(block)),
            }
        }
        // In parallel up to the length of the shortest, then individually.
        let mut least = usize::MAX;
        for piece in pieces {
            least = least.min(piece.blocks.len());
        }
        for block in 0..least {
            for at in 0..N {
                states[at].absorb_block(load_block(&pieces[at].blocks[block]));
            }
        }
        for at in 0..N {
            for block in &pieces[at].blocks[least..] {
                states[at].absorb_block(load_block(block));
            }
            let end = pieces[at].end();
            if !end.is_empty() {
                states[at].absorb_end(end);
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
    fn load_block(bytes: &[u8; BLOCK]) -> __m256i {
        // SAFETY: 32 bytes are read from a reference to as many, aligned or not.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load_half(bytes: &Half) -> __m128i {
        // SAFETY: 16 bytes are read from a reference to as many, aligned or not.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }

    /// Loads the whole words of less than 16 bytes, and zeros.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn load_whole_words(bytes: &[u8]) -> __m128i {
        let count = adit_wire::narrow_int(bytes.len() / 4);
        let mask = _mm_cmpgt_epi32(_mm_set1_epi32(count), _mm_setr_epi32(0, 1, 2, 3));
        // SAFETY: of the four words there only those inside the slice are read.
        unsafe { _mm_maskload_epi32(bytes.as_ptr().cast(), mask) }
    }

    /// Loads the end of a message, fewer bytes than a block: its words at their places, followed by the
    /// remaining bytes, which are spread if less than half a block is filled.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn load_end(end: &[u8]) -> __m256i {
        if let (Some((first, words)), Some(last)) = (end.split_first_chunk(), end.last_chunk()) {
            let high = _mm_insert_epi32::<3>(load_whole_words(words), i32::from_le_bytes(*last));
            return _mm256_set_m128i(high, load_half(first));
        }
        let odd = end.len() % 4;
        let (_, odd) = end.split_at(end.len() - odd);
        let spread = match *odd {
            [a] => [a, a, a, 0],
            [a, b] => [a, b, b, 0],
            [a, b, c] => [a, b, c, 0],
            _ => [0; 4],
        };
        let high = _mm_cvtsi32_si128(i32::from_le_bytes(spread));
        _mm256_set_m128i(high, load_whole_words(end))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    fn load_words(words: &[u64; 4]) -> __m256i {
        // SAFETY: 32 bytes are read from a reference to as many, aligned or not.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }

    impl State {
        #[target_feature(enable = "avx2")]
        #[inline]
        fn new(key: &[u64; 4]) -> Self {
            let (mul0, mul1, key) = (load_words(&FIRST), load_words(&SECOND), load_words(key));
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
        fn absorb_block(&mut self, block: __m256i) {
            // Add the block first: `mul0` is the last result of the previous round.
            let v1 = _mm256_add_epi64(keep_order(_mm256_add_epi64(self.v1, block)), self.mul0);
            let product = _mm256_mul_epu32(v1, _mm256_srli_epi64::<32>(self.v0));
            self.mul0 = _mm256_xor_si256(self.mul0, product);
            let v0 = _mm256_add_epi64(self.v0, self.mul1);
            let product = _mm256_mul_epu32(v0, _mm256_srli_epi64::<32>(v1));
            self.mul1 = _mm256_xor_si256(self.mul1, product);
            self.v0 = _mm256_add_epi64(v0, zipper_merge(v1));
            self.v1 = _mm256_add_epi64(v1, zipper_merge(self.v0));
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        fn absorb_end(&mut self, end: &[u8]) {
            let size = adit_wire::narrow_int(end.len());
            self.v0 = _mm256_add_epi64(self.v0, _mm256_set1_epi32(size));
            self.v1 = _mm256_or_si256(
                _mm256_sll_epi32(self.v1, _mm_cvtsi32_si128(size)),
                _mm256_srl_epi32(self.v1, _mm_cvtsi32_si128(32 - size)),
            );
            self.absorb_block(load_end(end));
        }

        #[target_feature(enable = "avx2")]
        #[inline]
        fn permute(&mut self) {
            let places = _mm256_setr_epi32(5, 4, 7, 6, 1, 0, 3, 2);
            self.absorb_block(_mm256_permutevar8x32_epi32(self.v0, places));
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

    /// Returns `v`, as a sum that the compiler does not reorder.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn keep_order(mut v: __m256i) -> __m256i {
        // SAFETY: there is no instruction.
        unsafe {
            core::arch::asm!("/* {0} */", inout(ymm_reg) v, options(pure, nomem, nostack, preserves_flags));
        }
        v
    }

    /// Returns the bytes of each half in the order that mixes the well-mixed ones with the others.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn zipper_merge(v: __m256i) -> __m256i {
        const HIGH: i64 = 0x0708_0609_0d0a_040b;
        const LOW: i64 = 0x000f_010e_0502_0c03;
        _mm256_shuffle_epi8(v, _mm256_set_epi64x(HIGH, LOW, HIGH, LOW))
    }
}
