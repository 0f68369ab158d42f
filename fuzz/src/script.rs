//! An input as a script: the actions and their arguments. Zeros follow its end.

/// Reads an input from its front.
#[derive(Debug, Clone)]
pub struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// Starts at the first byte.
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Returns true if everything was read.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads one byte.
    pub fn byte(&mut self) -> u8 {
        let (byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *byte
    }

    /// Reads one byte and returns one of its bits.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 != 0
    }

    /// Reads two bytes, little-endian.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Reads four bytes, little-endian.
    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// Reads one byte and returns a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// Returns one of these values.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// Returns the next `len` bytes, or the rest.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Reads a byte with a length, and that number of bytes.
    pub fn bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.byte());
        self.take(len)
    }

    /// Returns the rest.
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }
}
