//! An input as a script: the actions and their arguments. Zeros follow its end.

/// Reads an input from its front.
#[derive(Debug, Clone)]
pub struct ActionScript<'a>(&'a [u8]);

impl<'a> ActionScript<'a> {
    /// Starts at the first byte.
    #[must_use]
    pub const fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Returns true if everything was read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads one byte.
    pub fn read_u8(&mut self) -> u8 {
        let (byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *byte
    }

    /// Reads one byte and returns one of its bits.
    pub fn read_flag(&mut self) -> bool {
        self.read_u8() & 1 != 0
    }

    /// Reads two bytes, little-endian.
    pub fn read_u16(&mut self) -> u16 {
        u16::from_le_bytes([self.read_u8(), self.read_u8()])
    }

    /// Reads four bytes, little-endian.
    pub fn read_u32(&mut self) -> u32 {
        u32::from_le_bytes([
            self.read_u8(),
            self.read_u8(),
            self.read_u8(),
            self.read_u8(),
        ])
    }

    /// Reads one byte and returns a number below `bound`.
    pub fn read_below(&mut self, bound: usize) -> usize {
        usize::from(self.read_u8()) % bound
    }

    /// Returns one of these values.
    pub fn pick_one<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.read_below(all.len())]
    }

    /// Returns the next `len` bytes, or the rest.
    pub fn take_up_to(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Reads a byte with a length, and that number of bytes.
    pub fn read_bytes(&mut self) -> &'a [u8] {
        let len = usize::from(self.read_u8());
        self.take_up_to(len)
    }

    /// Returns the rest.
    pub fn take_rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }
}
