//! CRC-32 of ITU-T V.42 over packets, 64 bytes per step: carry-less multiplication on 512-bit vectors. For
//! 256-bit vectors see [`super::clmul256`], which uses the constants from here.
//!
//! Bits are in the reflected order of the wire, so that the first byte of a message has the highest powers.
//! To shift a register by n bits it is multiplied by xⁿ modulo the polynomial, its two halves by separate
//! constants (`shift_factor`); then the data at that position is added. At the end 128 bits are left, which are
//! reduced with Barrett's method. Shorter messages, and CPUs without `VPCLMULQDQ`, use the crate
//! `crc32fast`.

#[cfg(target_arch = "x86_64")]
pub(super) use wide::{reduce_128, shift_factors};

#[cfg(target_arch = "x86_64")]
use super::{CpuPath, clmul256::Clmul256};

/// The check with the code for this CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Crc32 {
    /// Any CPU
    Library,
    /// AVX-512 and `VPCLMULQDQ`
    #[cfg(target_arch = "x86_64")]
    Wide(wide::Clmul512),
    /// AVX2 and `VPCLMULQDQ`
    #[cfg(target_arch = "x86_64")]
    Half(Clmul256),
}

impl Crc32 {
    /// Returns the fastest code on this path.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn new(path: CpuPath) -> Self {
        let proof = match path {
            CpuPath::Portable | CpuPath::Avx2(_) => None,
            CpuPath::Avx2Vaes(proof) => return Self::Half(proof),
            CpuPath::Avx512(proof) => wide::Clmul512::detect(proof),
            CpuPath::Ifma(proof) => wide::Clmul512::detect(proof.without_ifma()),
        };
        proof.map_or(Self::Library, Self::Wide)
    }

    /// Returns the fastest code on this path.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) const fn new(_: super::CpuPath) -> Self {
        Self::Library
    }

    /// Returns the checksum of `data`.
    #[inline]
    pub(crate) fn checksum(self, data: &[u8]) -> u32 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Wide(proof) if data.len() >= wide::SHORTEST => proof.crc32(data),
            #[cfg(target_arch = "x86_64")]
            Self::Half(proof) => proof.crc32(data),
            _ => crc32fast::hash(data),
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use core::arch::x86_64::*;

    use super::super::avx512::Avx512;

    /// Size of a register, in bytes.
    const BLOCK: usize = 64;
    /// Minimum length for which it is faster, in bytes; at least two registers, since the first may be
    /// nearly empty.
    pub(super) const SHORTEST: usize = 2 * BLOCK;

    /// The polynomial, reflected, without its x³².
    const POLYNOMIAL: u32 = 0xedb8_8320;
    /// The polynomial with its x³², and ⌊x⁶⁴ / P⌋, both reflected.
    const WHOLE: i64 = 0x1_db71_0641;
    const QUOTIENT: i64 = 0x1_f701_1641;

    /// The initial register, added to the first bytes of the message; followed by zeros.
    static START: [u8; 2 * BLOCK] = {
        let mut start = [0; 2 * BLOCK];
        let mut at = 0;
        while at < 4 {
            start[at] = 0xff;
            at += 1;
        }
        start
    };

    /// Returns xⁿ modulo the polynomial, reflected, and shifted by one bit: a carry-less product of
    /// reflected numbers is one bit too low.
    const fn shift_factor(n: u32) -> i64 {
        let (mut power, mut at) = (1u32 << 31, 0);
        while at < n {
            let carry = if power & 1 != 0 { POLYNOMIAL } else { 0 };
            power = (power >> 1) ^ carry;
            at += 1;
        }
        // A number of 33 bits.
        (power as i64) << 1
    }

    /// Returns the factors that shift both halves of 128 bits by `n` bits: the first half precedes the
    /// second.
    pub(in crate::simd) const fn shift_factors(n: u32) -> [i64; 2] {
        [shift_factor(n + 32), shift_factor(n - 32)]
    }

    /// The proof that this CPU has AVX-512 F, BW, DQ and VL, and `VPCLMULQDQ`.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Clmul512(());

    impl Clmul512 {
        /// Returns the proof if this CPU has all of these features.
        pub(super) fn detect(_: Avx512) -> Option<Self> {
            (is_x86_feature_detected!("vpclmulqdq") && is_x86_feature_detected!("pclmulqdq"))
                .then_some(Self(()))
        }

        /// Returns the checksum of [`SHORTEST`] bytes or more.
        #[inline]
        pub(super) fn crc32(self, data: &[u8]) -> u32 {
            // SAFETY: `self` shows that the features are there.
            unsafe { crc32(data) }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,vpclmulqdq,pclmulqdq")]
    fn crc32(data: &[u8]) -> u32 {
        // The first block is the short one, at the end of a register of zeros, which change nothing.
        let odd = match data.len() % BLOCK {
            0 => BLOCK,
            odd => odd,
        };
        let (head, rest) = data.split_at(odd);
        let (start, beyond) = START.split_at(odd);
        let first = _mm512_xor_si512(load_at_end(head), load_at_end(start));
        let (blocks, _) = rest.as_chunks::<BLOCK>();
        let Some((second, blocks)) = blocks.split_first() else {
            return crc32fast::hash(data);
        };
        // After a head of less than four bytes the initial value continues.
        let beyond = beyond.first_chunk().unwrap_or(&[0; BLOCK]);
        let second = _mm512_xor_si512(load_register(second), load_register(beyond));
        let near = broadcast_factors(const { shift_factors(512) });
        let (mut sum, rest) = if let [third, fourth, blocks @ ..] = blocks {
            let far = broadcast_factors(const { shift_factors(2048) });
            let mut sums = [first, second, load_register(third), load_register(fourth)];
            let (fours, rest) = blocks.as_chunks::<4>();
            for four in fours {
                for (sum, block) in sums.iter_mut().zip(four) {
                    *sum = fold(*sum, far, load_register(block));
                }
            }
            let [a, b, c, d] = sums;
            (fold(fold(fold(a, near, b), near, c), near, d), rest)
        } else {
            (fold(first, near, second), blocks)
        };
        for block in rest {
            sum = fold(sum, near, load_register(block));
        }
        !reduce(sum)
    }

    /// Returns `sum` shifted by the bits of the factors, plus `block`.
    #[target_feature(enable = "avx512f,vpclmulqdq")]
    #[inline]
    fn fold(sum: __m512i, factors: __m512i, block: __m512i) -> __m512i {
        let front = _mm512_clmulepi64_epi128::<0x00>(sum, factors);
        let back = _mm512_clmulepi64_epi128::<0x11>(sum, factors);
        // 0x96 is the exclusive or of all three.
        _mm512_ternarylogic_epi64::<0x96>(front, back, block)
    }

    /// Returns the register modulo the polynomial.
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,vpclmulqdq,pclmulqdq")]
    #[inline]
    fn reduce(sum: __m512i) -> u32 {
        // Fold the four quarters onto the last.
        let [a, b] = const { shift_factors(384) };
        let [c, d] = const { shift_factors(256) };
        let [e, f] = const { shift_factors(128) };
        let last = _mm512_maskz_mov_epi64(0b1100_0000, sum);
        let sum = fold(sum, _mm512_setr_epi64(a, b, c, d, e, f, 0, 0), last);
        let (low, high) = (
            _mm512_castsi512_si256(sum),
            _mm512_extracti64x4_epi64::<1>(sum),
        );
        let half = _mm256_xor_si256(low, high);
        let (low, high) = (
            _mm256_castsi256_si128(half),
            _mm256_extracti128_si256::<1>(half),
        );
        reduce_128(_mm_xor_si128(low, high))
    }

    /// Returns the remaining 128 bits modulo the polynomial.
    #[target_feature(enable = "sse4.1,pclmulqdq")]
    #[inline]
    pub(in crate::simd) fn reduce_128(sum: __m128i) -> u32 {
        // 128 bits to 96 and to 64, with the 32 of the checksum still to come.
        let word = _mm_setr_epi32(-1, 0, 0, 0);
        let by = _mm_set_epi64x(const { shift_factor(64) }, const { shift_factor(96) });
        let sum = _mm_xor_si128(
            _mm_clmulepi64_si128::<0x00>(sum, by),
            _mm_srli_si128::<8>(sum),
        );
        let front = _mm_and_si128(sum, word);
        let sum = _mm_xor_si128(
            _mm_clmulepi64_si128::<0x10>(front, by),
            _mm_srli_si128::<4>(sum),
        );
        let by = _mm_set_epi64x(WHOLE, QUOTIENT);
        let times = _mm_clmulepi64_si128::<0x00>(_mm_and_si128(sum, word), by);
        let whole = _mm_clmulepi64_si128::<0x10>(_mm_and_si128(times, word), by);
        _mm_extract_epi32::<1>(_mm_xor_si128(sum, whole)).cast_unsigned()
    }

    /// Returns factors for every quarter of a register.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn broadcast_factors([front, back]: [i64; 2]) -> __m512i {
        _mm512_setr_epi64(front, back, front, back, front, back, front, back)
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load_register(bytes: &[u8; BLOCK]) -> __m512i {
        // SAFETY: 64 bytes are read from a reference to as many, aligned or not.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    /// Loads at most 64 bytes to the end of a register of zeros.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn load_at_end(bytes: &[u8]) -> __m512i {
        let before = BLOCK - bytes.len().min(BLOCK);
        let mask = u64::MAX.checked_shl(adit_wire::narrow_int(before));
        let from = bytes.as_ptr().wrapping_sub(before);
        // SAFETY: of the 64 bytes from there on only those in the mask are read: the last ones, which are
        // the slice. The others may belong to other objects and are not touched.
        unsafe { _mm512_maskz_loadu_epi8(mask.unwrap_or(0), from.cast()) }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        /// The factors published for the polynomial.
        #[test]
        fn known_factors() {
            assert_eq!(shift_factors(512), [0x1_5444_2bd4, 0x1_c6e4_1596]);
            assert_eq!(shift_factors(128), [0x1_7519_97d0, 0x0_ccaa_009e]);
            assert_eq!(shift_factor(64), 0x1_63cd_6124);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CpuPath;
    use super::*;

    #[test]
    fn every_length_and_place() {
        let bytes: Vec<u8> = (0..3000u32).map(|n| ((n * n) >> 3) as u8 ^ 0x5a).collect();
        for path in CpuPath::available() {
            let crc = Crc32::new(path);
            assert_eq!(crc.checksum(b"123456789"), 0xcbf4_3926);
            for len in 0..bytes.len() {
                let data = &bytes[len % 67..][..len.min(bytes.len() - 67)];
                assert_eq!(crc.checksum(data), crc32fast::hash(data), "{crc:?}, {len}");
            }
        }
    }
}
