//! A bounds-checked reader over a byte slice.

/// An error: the input ends before the field does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndOfInput;

/// A reader of big-endian fields in a slice, front to back.
///
/// # Examples
///
/// ```
/// use adit_wire::{EndOfInput, Reader};
///
/// let mut reader = Reader::new(&[0, 2, b'h', b'i', 9]);
/// let len = reader.u16()?;
/// assert_eq!(reader.take(len.into())?, b"hi");
/// assert_eq!(reader.u16(), Err(EndOfInput));
/// assert_eq!(reader.rest(), [9]);
/// # Ok::<(), EndOfInput>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            total: bytes.len(),
        }
    }

    /// Returns the bytes that have not been read.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the number of bytes read so far.
    #[must_use]
    pub const fn consumed(&self) -> usize {
        self.total - self.rest.len()
    }

    /// Reads the next `n` bytes.
    ///
    /// # Errors
    /// [`EndOfInput`] if fewer than `n` bytes are left; nothing is read then.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], EndOfInput> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(EndOfInput)?;
        self.rest = tail;
        Ok(head)
    }

    /// Reads the next `N` bytes as an array.
    ///
    /// # Errors
    /// [`EndOfInput`] if fewer than `N` bytes are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], EndOfInput> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(EndOfInput)?;
        self.rest = tail;
        Ok(*head)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`EndOfInput`] if no byte is left.
    pub fn u8(&mut self) -> Result<u8, EndOfInput> {
        self.array::<1>().map(|[b]| b)
    }

    /// Reads two bytes as a big-endian number.
    ///
    /// # Errors
    /// [`EndOfInput`] if fewer than two bytes are left.
    pub fn u16(&mut self) -> Result<u16, EndOfInput> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads eight bytes as a big-endian number.
    ///
    /// # Errors
    /// [`EndOfInput`] if fewer than eight bytes are left.
    pub fn u64(&mut self) -> Result<u64, EndOfInput> {
        self.array().map(u64::from_be_bytes)
    }
}

/// Returns a big-endian number without its leading zeros: an empty slice for zero.
#[must_use]
pub const fn trim_leading_zeros(mut number: &[u8]) -> &[u8] {
    while let [0, rest @ ..] = number {
        number = rest;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_in_front_are_no_digits() {
        assert_eq!(trim_leading_zeros(&[0, 0, 1, 0]), [1, 0]);
        assert_eq!(trim_leading_zeros(&[0, 0]), [0; 0]);
        assert_eq!(trim_leading_zeros(&[7]), [7]);
    }
}
