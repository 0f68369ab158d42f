//! Random bytes as an argument.

use alloc::vec::Vec;

/// A source of random bytes.
///
/// The cores never name a generator: applications pass a seeded CSPRNG, tests pass [`FixedEntropy`] and get
/// the same bytes in every run.
pub trait Entropy {
    /// Fills `out` with random bytes.
    fn fill(&mut self, out: &mut [u8]);

    /// Returns a number in `low..=high`, uniform up to a bias of 2⁻³².
    fn in_range(&mut self, low: u16, high: u16) -> u16 {
        let mut raw = [0; 8];
        self.fill(&mut raw);
        let span = u64::from(high.saturating_sub(low)) + 1;
        // The remainder is below 2¹⁶ + 1, and low + remainder is at most high.
        low.saturating_add((u64::from_le_bytes(raw) % span) as u16)
    }
}

/// A generator of predetermined bytes for tests and golden vectors; it returns zeros after the last one.
#[derive(Debug, Clone, Default)]
pub struct FixedEntropy {
    bytes: Vec<u8>,
    at: usize,
}

impl FixedEntropy {
    /// Creates a generator that returns `bytes` in order.
    #[must_use]
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: bytes.into(),
            at: 0,
        }
    }
}

impl Entropy for FixedEntropy {
    fn fill(&mut self, out: &mut [u8]) {
        for byte in out {
            *byte = self.bytes.get(self.at).copied().unwrap_or(0);
            self.at += 1;
        }
    }
}
