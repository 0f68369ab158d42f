//! An input as a script: what to do next, and with what. Behind its end there are zeros.

/// Reads an input from its front.
#[derive(Debug, Clone)]
pub struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// From the first byte.
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Whether everything was read.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        let (byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *byte
    }

    /// One bit of a byte.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 != 0
    }

    /// Two bytes, little-endian.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Four bytes, little-endian.
    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// A number below `bound`, of one byte.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// The next `len` bytes, or what is left.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A byte that tells a length, and so many bytes.
    pub fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte());
        self.take(len)
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }
}
