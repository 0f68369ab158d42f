//! Writes header fields front to back into the headroom of a record or packet.

use core::ops::Range;

use adit_wire::Broken;

/// A cursor over the bytes that are reserved for a header.
pub(crate) struct Writer<'a> {
    rest: &'a mut [u8],
}

impl<'a> Writer<'a> {
    /// Creates a writer into `buf[room]`.
    pub(crate) fn new(buf: &'a mut [u8], room: Range<usize>) -> Result<Self, Broken> {
        let rest = buf.get_mut(room).ok_or(Broken::NoRoom("a header"))?;
        Ok(Self { rest })
    }

    /// Writes `bytes` after those written before.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let (field, rest) = core::mem::take(&mut self.rest)
            .split_at_mut_checked(bytes.len())
            .ok_or(Broken::NoRoom("a header"))?;
        field.copy_from_slice(bytes);
        self.rest = rest;
        Ok(())
    }

    /// Writes a 16-bit length, big-endian.
    pub(crate) fn put_len(&mut self, len: usize) -> Result<(), Broken> {
        let len = u16::try_from(len).map_err(|_| Broken::TooLong {
            what: "a record",
            limit: usize::from(u16::MAX),
        })?;
        self.put(&len.to_be_bytes())
    }
}
