//! Five limbs of 26 bits per lane, for multipliers of 32 by 32 bits; safe code.

use super::{
    lanes::{Accumulator, Wide},
    poly1305::Limbs,
};

const LOW26: u64 = (1 << 26) - 1;

/// A number in each lane. Limbs have 26 bits and a few more.
#[derive(Clone, Copy)]
pub(super) struct Limbs26<W> {
    limbs: [W; 5],
    mask: W,
}

/// A factor r and 5 · r: what overflows 2¹³⁰ comes back times five.
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
        Factor26 {
            r,
            s: r.map(W::times5),
        }
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
        Self {
            limbs: core::array::from_fn(|i| self.limbs[i].add64(other.limbs[i])),
            mask: self.mask,
        }
    }

    #[inline(always)]
    fn mul(self, Factor26 { r, s }: Factor26<W>) -> Self {
        let h = self.limbs;
        // Limb i · limb j belongs to limb i + j, or five times to i + j - 5.
        let column = |k: usize| {
            let part = |i: usize| h[i].mul32(if i <= k { r[k - i] } else { s[5 + k - i] });
            part(0)
                .add64(part(1))
                .add64(part(2))
                .add64(part(3))
                .add64(part(4))
        };
        let mut d: [W; 5] = core::array::from_fn(column);
        // Two chains of carries, from limb 0 and from limb 3, that do not wait for each other.
        for from in [0, 3, 1, 4, 2, 0, 3] {
            let over = d[from].shr(26);
            d[from] = d[from].and(self.mask);
            if from == 4 {
                d[0] = d[0].add64(over.times5());
            } else {
                d[from + 1] = d[from + 1].add64(over);
            }
        }
        Self {
            limbs: d,
            mask: self.mask,
        }
    }

    #[inline(always)]
    fn total(self) -> Limbs {
        let [l0, l1, l2, l3, l4] = self.limbs.map(|limb| u128::from(limb.sum()));
        const LOW44: u128 = (1 << 44) - 1;
        let low = l0 + (l1 << 26) + (l2 << 52);
        let high = (low >> 44) + (l3 << 34) + (l4 << 60);
        // The last limb keeps what is above 2¹³⁰; finishing carries it.
        [
            (low & LOW44) as u64,
            (high & LOW44) as u64,
            (high >> 44) as u64,
        ]
    }
}
