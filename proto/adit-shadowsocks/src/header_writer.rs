//! Writes header fields front to back into the headroom of a record or packet.

use core::ops::Range;

use adit_wire::ProtocolError;

/// A cursor over the bytes that are reserved for a header.
pub(crate) struct HeaderWriter<'a> {
    rest: &'a mut [u8],
}

impl<'a> HeaderWriter<'a> {
    /// Creates a writer into `buf[room]`.
    pub(crate) fn new(buf: &'a mut [u8], room: Range<usize>) -> Result<Self, ProtocolError> {
        let rest = buf.get_mut(room).ok_or(ProtocolError::NoRoom("a header"))?;
        Ok(Self { rest })
    }

    /// Writes `bytes` after those written before.
    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        let (field, rest) = core::mem::take(&mut self.rest)
            .split_at_mut_checked(bytes.len())
            .ok_or(ProtocolError::NoRoom("a header"))?;
        field.copy_from_slice(bytes);
        self.rest = rest;
        Ok(())
    }

    /// Writes a 16-bit length, big-endian.
    pub(crate) fn put_len(&mut self, len: usize) -> Result<(), ProtocolError> {
        let len = u16::try_from(len).map_err(|_| ProtocolError::TooLong {
            what: "a record",
            limit: usize::from(u16::MAX),
        })?;
        self.put_bytes(&len.to_be_bytes())
    }
}
