//! Five limbs of 26 bits per lane, for 32-by-32-bit multipliers; safe code.

use super::{
    poly1305::Limbs,
    poly1305_lanes::{Accumulator, Wide},
};

const LOW26: u64 = (1 << 26) - 1;

/// A number in each lane. Limbs have 26 bits and a few more.
#[derive(Clone, Copy)]
pub(super) struct Limbs26<W> {
    limbs: [W; 5],
    mask: W,
}

/// A factor r and 5 · r: what exceeds 2¹³⁰ wraps around times five.
#[derive(Clone, Copy)]
pub(super) struct Factor26<W> {
    r: [W; 5],
    s: [W; 5],
}

impl<W: Wide> Accumulator for Limbs26<W> {
    type Vector = W;
    type Factor = Factor26<W>;
    type Proof = W::Proof;

    #[inline(always)]
    fn vector(proof: W::Proof) -> W::Proof {
        proof
    }

    #[inline(always)]
    fn factor(proof: W::Proof, [h0, h1, h2]: [W; 3]) -> Factor26<W> {
        let mask = W::splat64(proof, LOW26);
        let middle = h0.shr(26).add64(h1.shl(18));
        let high = middle.shr(52).add64(h2.shl(10));
        let r = [
            h0.and(mask),
            middle.and(mask),
            middle.shr(26).and(mask),
            high.and(mask),
            high.shr(26),
        ];
        let s = [
            r[0].times5(),
            r[1].times5(),
            r[2].times5(),
            r[3].times5(),
            r[4].times5(),
        ];
        Factor26 { r, s }
    }

    #[inline(always)]
    fn message(proof: W::Proof, blocks: &[u8], present: W) -> Self {
        let mask = W::splat64(proof, LOW26);
        let (lo, hi) = W::halves(proof, blocks);
        let limbs = [
            lo.and(mask),
            lo.shr(26).and(mask),
            lo.shr(52).or(hi.shl(12)).and(mask),
            hi.shr(14).and(mask),
            hi.shr(40).or(present.shl(24)),
        ];
        Self { limbs, mask }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (a, b) = (self.limbs, other.limbs);
        let limbs = [
            a[0].add64(b[0]),
            a[1].add64(b[1]),
            a[2].add64(b[2]),
            a[3].add64(b[3]),
            a[4].add64(b[4]),
        ];
        Self {
            limbs,
            mask: self.mask,
        }
    }

    #[inline(always)]
    fn mul(self, Factor26 { r, s }: Factor26<W>) -> Self {
        let h = self.limbs;
        // Limb i · limb j belongs to limb i + j, or five times to i + j - 5.
        let mut d = [
            dot_product(h, [r[0], s[4], s[3], s[2], s[1]]),
            dot_product(h, [r[1], r[0], s[4], s[3], s[2]]),
            dot_product(h, [r[2], r[1], r[0], s[4], s[3]]),
            dot_product(h, [r[3], r[2], r[1], r[0], s[4]]),
            dot_product(h, [r[4], r[3], r[2], r[1], r[0]]),
        ];
        // Two independent chains of carries, from limb 0 and from limb 3.
        self.carry_from::<0>(&mut d);
        self.carry_from::<3>(&mut d);
        self.carry_from::<1>(&mut d);
        self.carry_from::<4>(&mut d);
        self.carry_from::<2>(&mut d);
        self.carry_from::<0>(&mut d);
        self.carry_from::<3>(&mut d);
        Self {
            limbs: d,
            mask: self.mask,
        }
    }

    #[inline(always)]
    fn total(self) -> Limbs {
        let [l0, l1, l2, l3, l4] = self.lane_sums();
        const LOW44: u128 = (1 << 44) - 1;
        let low = l0 + (l1 << 26) + (l2 << 52);
        let high = (low >> 44) + (l3 << 34) + (l4 << 60);
        // The last limb keeps the excess over 2¹³⁰; finishing carries it.
        [
            (low & LOW44) as u64,
            (high & LOW44) as u64,
            (high >> 44) as u64,
        ]
    }
}

impl<W: Wide> Limbs26<W> {
    /// Carries from a limb to the next.
    #[inline(always)]
    fn carry_from<const FROM: usize>(self, d: &mut [W; 5]) {
        let over = d[FROM].shr(26);
        d[FROM] = d[FROM].and(self.mask);
        if FROM == 4 {
            d[0] = d[0].add64(over.times5());
        } else {
            d[FROM + 1] = d[FROM + 1].add64(over);
        }
    }

    #[inline(always)]
    fn lane_sums(self) -> [u128; 5] {
        let l = self.limbs;
        let sums = [l[0].sum(), l[1].sum(), l[2].sum(), l[3].sum(), l[4].sum()];
        sums.map(u128::from)
    }
}

#[inline(always)]
fn dot_product<W: Wide>(h: [W; 5], by: [W; 5]) -> W {
    h[0].mul32(by[0])
        .add64(h[1].mul32(by[1]))
        .add64(h[2].mul32(by[2]))
        .add64(h[3].mul32(by[3]))
        .add64(h[4].mul32(by[4]))
}
