//! Random bytes for paddings, at a few cycles each.
//!
//! A SipHash stream over a counter, with a key that is drawn once per connection. Padding is
//! visible to observers if the cipher is `none`, so it must not be predictable, and the system's
//! generator is too slow to call once per frame.

use adit_crypto::SipKey;
use adit_wire::Entropy;

pub(crate) struct NoiseRng {
    key: SipKey,
    block: u64,
}

impl NoiseRng {
    pub(crate) fn new(entropy: &mut dyn Entropy) -> Self {
        let mut seed = [0; 16];
        entropy.fill(&mut seed);
        Self {
            key: SipKey::new(seed),
            block: 0,
        }
    }

    /// Draws a number from 0 to `high`, inclusive.
    pub(crate) fn draw_up_to(&mut self, high: u16) -> usize {
        usize::from(self.in_range(0, high))
    }
}

impl Entropy for NoiseRng {
    fn fill(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(8) {
            self.block = self.block.wrapping_add(1);
            let bytes = self.key.hash_bytes(&self.block.to_le_bytes()).to_le_bytes();
            for (place, byte) in chunk.iter_mut().zip(bytes) {
                *place = byte;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_wire::FixedEntropy;

    #[test]
    fn streams_do_not_repeat() {
        let mut noise = NoiseRng::new(&mut FixedEntropy::new([7; 16]));
        let (mut a, mut b) = ([0; 64], [0; 64]);
        noise.fill(&mut a);
        noise.fill(&mut b);
        assert_ne!(a, b);
        assert!(a.chunks(8).all(|c| c != [0; 8]));
        assert!((0..100).all(|_| noise.draw_up_to(15) < 16));
    }
}
