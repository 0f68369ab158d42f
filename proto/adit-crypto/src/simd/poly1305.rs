//! Poly1305 (RFC 8439 section 2.5), one block at a time, with limbs of 44, 44 and 42 bits.
//!
//! It processes whole blocks, and the rest in the form of [`MessageEnding`]. It also prepares and finishes the
//! work of the vector versions.

use super::{TagInput, wipe_stack};

const LOW44: u64 = (1 << 44) - 1;
const LOW42: u64 = (1 << 42) - 1;

/// A number modulo 2¹³⁰ - 5 in limbs of 44, 44 and 42 bits; a limb may exceed its width by a few bits.
pub(super) type Limbs = [u64; 3];

/// The state of one authentication: its key must be used for one message only.
pub(super) struct Poly1305 {
    r: Limbs,
    h: Limbs,
    pad: [u64; 2],
}

impl Poly1305 {
    #[inline(always)]
    pub(super) fn new(key: &[u8; 32]) -> Self {
        let [r0, r1, s0, s1] = to_words(key);
        // The clamp of RFC 8439 section 2.5.
        let (r0, r1) = (r0 & 0x0fff_fffc_0fff_ffff, r1 & 0x0fff_fffc_0fff_fffc);
        Self {
            r: [r0 & LOW44, (r0 >> 44 | r1 << 20) & LOW44, r1 >> 24],
            h: [0; 3],
            pad: [s0, s1],
        }
    }

    /// Returns the clamped half of the key.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) const fn r(&self) -> Limbs {
        self.r
    }

    /// Absorbs whole blocks of 16 bytes; bytes after the last whole block are ignored.
    #[inline(always)]
    pub(super) fn absorb(&mut self, data: &[u8]) {
        let mut h = self.h;
        for block in data.as_chunks::<16>().0 {
            let [lo, hi] = to_words(block);
            h[0] += lo & LOW44;
            h[1] += (lo >> 44 | hi << 20) & LOW44;
            h[2] += hi >> 24 | 1 << 40;
            h = mul_limbs(h, self.r);
        }
        self.h = h;
    }

    /// Absorbs the block of [`MessageEnding::partial_block`], which has its own one after the data.
    #[inline(always)]
    pub(super) fn absorb_partial(&mut self, block: &[u8; 16]) {
        let [lo, hi] = to_words(block);
        let h = carry_limbs(self.h);
        let h = [
            h[0] + (lo & LOW44),
            h[1] + ((lo >> 44 | hi << 20) & LOW44),
            h[2] + (hi >> 24),
        ];
        self.h = mul_limbs(h, self.r);
    }

    /// Replaces the state with the result of another implementation.
    #[cfg(any(target_arch = "x86_64", test))]
    #[inline(always)]
    pub(super) const fn replace_state(&mut self, h: Limbs) {
        self.h = h;
    }

    /// Returns the tag: the absorbed data, fully reduced, plus the other half of the key.
    #[inline(always)]
    pub(super) fn finish(self) -> [u8; 16] {
        // The first carry may leave 2^44 in the middle limb; the second cannot.
        let h = carry_limbs(carry_limbs(self.h));
        // h + 5 - 2^130 is h - p; it is negative exactly if h is already below p.
        let mut g0 = h[0] + 5;
        let mut g1 = h[1] + (g0 >> 44);
        g0 &= LOW44;
        let g2 = (h[2] + (g1 >> 44)).wrapping_sub(1 << 42);
        g1 &= LOW44;
        let keep = 0u64.wrapping_sub(g2 >> 63);
        let [h0, h1, h2] = [
            g0 ^ keep & (g0 ^ h[0]),
            g1 ^ keep & (g1 ^ h[1]),
            g2 ^ keep & (g2 ^ h[2]),
        ];
        let (lo, hi) = (h0 | h1 << 44, h1 >> 20 | h2 << 24);
        let (lo, over) = lo.overflowing_add(self.pad[0]);
        let hi = hi.wrapping_add(self.pad[1]).wrapping_add(u64::from(over));
        let mut tag = [0; 16];
        tag[..8].copy_from_slice(&lo.to_le_bytes());
        tag[8..].copy_from_slice(&hi.to_le_bytes());
        tag
    }
}

impl Drop for Poly1305 {
    #[inline(always)]
    fn drop(&mut self) {
        wipe_stack(&mut self.r);
        wipe_stack(&mut self.h);
        wipe_stack(&mut self.pad);
    }
}

/// Returns h · r modulo 2¹³⁰ - 5. Limbs may have up to 46 bits on the left and 45 on the right.
#[inline(always)]
pub(super) const fn mul_limbs(h: Limbs, r: Limbs) -> Limbs {
    // 2^132 = 4 · 2^130 = 20.
    let (s1, s2) = (r[1] * 20, r[2] * 20);
    let d0 = widening_mul(h[0], r[0]) + widening_mul(h[1], s2) + widening_mul(h[2], s1);
    let d1 =
        widening_mul(h[0], r[1]) + widening_mul(h[1], r[0]) + widening_mul(h[2], s2) + (d0 >> 44);
    let d2 =
        widening_mul(h[0], r[2]) + widening_mul(h[1], r[1]) + widening_mul(h[2], r[0]) + (d1 >> 44);
    let h0 = (d0 as u64 & LOW44) + (d2 >> 42) as u64 * 5;
    [
        h0 & LOW44,
        (d1 as u64 & LOW44) + (h0 >> 44),
        d2 as u64 & LOW42,
    ]
}

/// Carries limbs of up to 60 bits back to their widths, except for one unit in the middle.
#[inline(always)]
pub(super) const fn carry_limbs(h: Limbs) -> Limbs {
    let h1 = h[1] + (h[0] >> 44);
    let h2 = h[2] + (h1 >> 44);
    let h0 = (h[0] & LOW44) + (h2 >> 42) * 5;
    [h0 & LOW44, (h1 & LOW44) + (h0 >> 44), h2 & LOW42]
}

#[inline(always)]
const fn widening_mul(a: u64, b: u64) -> u128 {
    a as u128 * b as u128
}

#[inline(always)]
fn to_words<const BYTES: usize, const WORDS: usize>(bytes: &[u8; BYTES]) -> [u64; WORDS] {
    const { assert!(BYTES == WORDS * 8) };
    let mut out = [0; WORDS];
    for (word, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    out
}

/// The part of the input after the whole blocks of a message.
pub(super) struct MessageEnding {
    blocks: [u8; 32],
    from: usize,
    broken: bool,
}

impl MessageEnding {
    /// Returns the whole blocks of `data`, and the ending after them.
    #[inline(always)]
    pub(super) fn split(data: &[u8], form: TagInput) -> (&[u8], Self) {
        let (whole, broken) = data.split_at(data.len() & !15);
        let mut blocks = [0; 32];
        blocks[..broken.len()].copy_from_slice(broken);
        let from = match form {
            TagInput::Aead => {
                // Bytes 16..24 are the length of the associated data, 0.
                blocks[24..].copy_from_slice(&(data.len() as u64).to_le_bytes());
                if broken.is_empty() { 16 } else { 0 }
            }
            TagInput::Bare => {
                blocks[broken.len()] = 1;
                32
            }
        };
        let broken = form == TagInput::Bare && !broken.is_empty();
        let ending = Self {
            blocks,
            from,
            broken,
        };
        (whole, ending)
    }

    /// Returns an incomplete block, followed by a one and zeros; only for [`TagInput::Bare`].
    #[inline(always)]
    pub(super) fn partial_block(&self) -> Option<&[u8; 16]> {
        self.blocks.first_chunk().filter(|_| self.broken)
    }

    /// Returns whole blocks: one or two for [`TagInput::Aead`], none for [`TagInput::Bare`].
    #[inline(always)]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.blocks[self.from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2¹³⁰ + 2 · 2⁸⁸ - 1 is 2⁸⁹ + 4: the carry wraps around, and up to the last limb again.
    #[test]
    fn a_carry_goes_around_twice() {
        let mut poly = Poly1305::new(&[0; 32]);
        poly.replace_state([LOW44, LOW44, (1 << 42) + 1]);
        assert_eq!(u128::from_le_bytes(poly.finish()), (1 << 89) + 4);
    }
}
