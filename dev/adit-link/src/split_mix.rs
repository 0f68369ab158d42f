//! A random generator whose numbers follow from its seed, so that a failure is reproducible.

/// SplitMix64: short, and good enough to choose lost packets.
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub const fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns true with a probability of `share` in a thousand.
    pub const fn roll_per_mille(&mut self, share: u16) -> bool {
        self.next_number() % 1000 < share as u64
    }

    /// Returns a number of the range, or its start if the range is empty.
    pub fn pick(&mut self, range: std::ops::Range<u64>) -> u64 {
        let len = range.end.saturating_sub(range.start);
        match self.next_number().checked_rem(len) {
            Some(offset) => range.start + offset,
            None => range.start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_from_the_seed_and_stay_in_range() {
        let numbers = |seed| {
            let mut rng = SplitMix64::new(seed);
            (0..1000).map(|_| rng.pick(5..9)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        for wanted in 5..9 {
            let count = numbers(3).into_iter().filter(|n| *n == wanted).count();
            assert!((180..320).contains(&count), "{wanted}: {count}");
        }
        assert_eq!(SplitMix64::new(1).pick(7..7), 7);
        // The first number of the reference implementation for this seed.
        assert_eq!(SplitMix64::new(0).next_number(), 0xe220_a839_7b1d_cdaf);
    }
}
