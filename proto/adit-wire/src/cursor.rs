//! A reader that cannot over-read.

/// The bytes ended before the field did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short;

/// Reads big-endian fields from a slice, front to back.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
    start: usize,
}

impl<'a> Reader<'a> {
    /// Reads from the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            start: bytes.len(),
        }
    }

    /// Bytes not read yet.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Number of bytes read so far.
    #[must_use]
    pub const fn consumed(&self) -> usize {
        self.start - self.rest.len()
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Short> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(Short)?;
        self.rest = tail;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(Short)?;
        self.rest = tail;
        Ok(*head)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Short> {
        self.array::<1>().map(|[b]| b)
    }

    /// Two bytes, big-endian.
    pub fn u16(&mut self) -> Result<u16, Short> {
        self.array().map(u16::from_be_bytes)
    }

    /// Eight bytes, big-endian.
    pub fn u64(&mut self) -> Result<u64, Short> {
        self.array().map(u64::from_be_bytes)
    }
}

/// A big-endian number without the zeros in front of it; nothing for zero itself.
#[must_use]
pub const fn without_zeros(mut number: &[u8]) -> &[u8] {
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
        assert_eq!(without_zeros(&[0, 0, 1, 0]), [1, 0]);
        assert_eq!(without_zeros(&[0, 0]), [0; 0]);
        assert_eq!(without_zeros(&[7]), [7]);
    }
}
