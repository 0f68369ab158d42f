//! AVX-512 with IFMA: the keystream of [`super::avx512`], Poly1305 with 52-bit multipliers.

use core::arch::x86_64::*;

use super::{
    ChaChaRounds, Kernel, SalsaBlocks, TagInput, Task,
    avx512::{Avx512, Z},
    poly1305::Limbs,
    poly1305_lanes::{self, Accumulator, Wide},
};

const LOW44: u64 = (1 << 44) - 1;
const LOW42: u64 = (1 << 42) - 1;

/// Minimum number of blocks for which the vectors are faster than the scalar Poly1305.
const SHORTEST: usize = 16;

/// The proof that this CPU has AVX-512 F, BW, DQ, VL and IFMA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ifma(Avx512);

impl Ifma {
    /// Returns the proof if this CPU has all of these features.
    pub(super) fn detect() -> Option<Self> {
        Avx512::detect()
            .filter(|_| is_x86_feature_detected!("avx512ifma"))
            .map(Self)
    }

    /// Returns the proof without IFMA.
    pub(super) const fn without_ifma(self) -> Avx512 {
        self.0
    }
}

impl Kernel for Ifma {
    #[inline(always)]
    fn enter<T: Task>(self, task: T) -> T::Output {
        // SAFETY: `self` shows that the features are there.
        unsafe { run_with_ifma(self, task) }
    }

    #[inline(always)]
    fn xor_chacha(self, state: &[u32; 16], rounds: ChaChaRounds, buf: &mut [u8]) {
        self.0.xor_chacha(state, rounds, buf);
    }

    #[inline(always)]
    fn xor_salsa(self, state: &[u32; 16], buf: &mut [u8]) {
        self.0.xor_salsa(state, buf);
    }

    #[inline(always)]
    fn xor_salsa_blocks(self, state: &[u32; 16], pieces: SalsaBlocks<'_, '_>) {
        self.0.xor_salsa_blocks(state, pieces);
    }

    #[inline(always)]
    fn poly1305_tag(self, key: &[u8; 32], data: &[u8], form: TagInput) -> [u8; 16] {
        // SAFETY: `self` shows that the features are there.
        unsafe { poly1305_tag(self, key, data, form) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma")]
fn run_with_ifma<T: Task>(proof: Ifma, task: T) -> T::Output {
    task.run_on(proof)
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512ifma")]
#[inline(never)]
fn poly1305_tag(proof: Ifma, key: &[u8; 32], data: &[u8], form: TagInput) -> [u8; 16] {
    poly1305_lanes::tag_in_lanes::<Limbs44>(proof, SHORTEST, key, data, form)
}

/// A number in each lane, with limbs of 44, 44 and 42 bits and a few more.
#[derive(Clone, Copy)]
struct Limbs44 {
    limbs: [Z; 3],
    proof: Ifma,
}

/// A factor r; and 20 · r, since 2¹³² wraps around times twenty.
#[derive(Clone, Copy)]
struct Factor44 {
    r: [Z; 3],
    s1: Z,
    s2: Z,
}

impl Ifma {
    /// Returns `sum` plus the low 52 bits of a · b. Only the low 52 bits of the factors are used.
    #[inline(always)]
    fn add_low_product(self, sum: Z, a: Z, b: Z) -> Z {
        // SAFETY: `self` shows that the feature is there.
        Z::from_raw(self.0, unsafe {
            _mm512_madd52lo_epu64(sum.raw(), a.raw(), b.raw())
        })
    }

    /// Returns `sum` plus the bits of a · b above the low 52.
    #[inline(always)]
    fn add_high_product(self, sum: Z, a: Z, b: Z) -> Z {
        // SAFETY: `self` shows that the feature is there.
        Z::from_raw(self.0, unsafe {
            _mm512_madd52hi_epu64(sum.raw(), a.raw(), b.raw())
        })
    }

    /// Returns the sums of the low and of the high halves of three products.
    #[inline(always)]
    fn dot_product(self, h: [Z; 3], by: [Z; 3]) -> (Z, Z) {
        let zero = Z::splat64(self.0, 0);
        let low = self.add_low_product(self.add_low_product(zero, h[0], by[0]), h[1], by[1]);
        let high = self.add_high_product(self.add_high_product(zero, h[0], by[0]), h[1], by[1]);
        (
            self.add_low_product(low, h[2], by[2]),
            self.add_high_product(high, h[2], by[2]),
        )
    }
}

impl Accumulator for Limbs44 {
    type Vector = Z;
    type Factor = Factor44;
    type Proof = Ifma;

    #[inline(always)]
    fn vector(proof: Ifma) -> Avx512 {
        proof.0
    }

    #[inline(always)]
    fn factor(_: Ifma, r: [Z; 3]) -> Factor44 {
        Factor44 {
            r,
            s1: r[1].times5().shl(2),
            s2: r[2].times5().shl(2),
        }
    }

    #[inline(always)]
    fn message(proof: Ifma, blocks: &[u8], present: Z) -> Self {
        let mask = Z::splat64(proof.0, LOW44);
        let (lo, hi) = Z::halves(proof.0, blocks);
        let limbs = [
            lo.and(mask),
            lo.shr(44).or(hi.shl(20)).and(mask),
            hi.shr(24).or(present.shl(40)),
        ];
        Self { limbs, proof }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (a, b) = (self.limbs, other.limbs);
        Self {
            limbs: [a[0].add64(b[0]), a[1].add64(b[1]), a[2].add64(b[2])],
            proof: self.proof,
        }
    }

    #[inline(always)]
    fn mul(self, Factor44 { r, s1, s2 }: Factor44) -> Self {
        let Self { limbs: h, proof } = self;
        let (mask44, mask42) = (Z::splat64(proof.0, LOW44), Z::splat64(proof.0, LOW42));
        let (l0, g0) = proof.dot_product(h, [r[0], s2, s1]);
        let (l1, g1) = proof.dot_product(h, [r[1], r[0], s2]);
        let (l2, g2) = proof.dot_product(h, [r[2], r[1], r[0]]);
        // A high half has the weight 2^52: 2^8 of the next limb of 44 bits, and above the last limb 2^(88 +
        // 52) = 2^10 · 2^130 = 2^10 · 5.
        let d1 = l1.add64(g0.shl(8)).add64(l0.shr(44));
        let d2 = l2.add64(g1.shl(8)).add64(d1.shr(44));
        let d0 = l0.and(mask44).add64(g2.shl(10).add64(d2.shr(42)).times5());
        let limbs = [
            d0.and(mask44),
            d1.and(mask44).add64(d0.shr(44)),
            d2.and(mask42),
        ];
        Self { limbs, proof }
    }

    #[inline(always)]
    fn total(self) -> Limbs {
        let [l0, l1, l2] = self.limbs;
        [l0.sum(), l1.sum(), l2.sum()]
    }
}
