//! Datagram buffers with space around the payload, so that headers are added and removed in place.

use std::ops::Range;

use adit_wire::{subslice, subslice_mut};

/// Space before a received datagram, in bytes: any address and every header of every dialect, twice.
pub const HEAD_SPACE: usize = 2048;
/// Space after a received datagram, in bytes: tags and padding for each of several layers.
pub const TAIL_SPACE: usize = 512;
/// Maximum UDP payload, in bytes.
pub const MAX_PAYLOAD: usize = 65_507;

/// A reusable datagram buffer.
///
/// # Examples
///
/// ```
/// use adit_net::PacketBuf;
///
/// let mut packet = PacketBuf::from_payload(b"header and text");
/// packet.narrow_to(11..15);
/// assert_eq!(packet.payload(), b"text");
/// ```
#[derive(Debug)]
pub struct PacketBuf {
    bytes: Box<[u8]>,
    payload: Range<usize>,
}

impl Default for PacketBuf {
    fn default() -> Self {
        Self::with_capacity(MAX_PAYLOAD)
    }
}

impl PacketBuf {
    /// Creates a buffer for payloads of up to `max` bytes.
    #[must_use]
    pub fn with_capacity(max: usize) -> Self {
        Self {
            bytes: vec![0; HEAD_SPACE + max + TAIL_SPACE].into(),
            payload: HEAD_SPACE..HEAD_SPACE,
        }
    }

    /// Creates a buffer with a copy of `payload`.
    #[must_use]
    pub fn from_payload(payload: &[u8]) -> Self {
        let mut packet = Self::with_capacity(payload.len());
        packet.receive_space().copy_from_slice(payload);
        packet.set_len(payload.len());
        packet
    }

    /// Returns the whole buffer and the payload's range, for codecs that work in place.
    pub fn buffer_and_range(&mut self) -> (&mut [u8], Range<usize>) {
        (&mut self.bytes, self.payload.clone())
    }

    /// Returns the payload.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        subslice(&self.bytes, self.payload.clone())
    }

    /// Returns the payload as a mutable slice.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        subslice_mut(&mut self.bytes, self.payload.clone())
    }

    /// Sets the payload's range in the whole buffer; clamped to the buffer.
    pub fn set_payload(&mut self, range: Range<usize>) {
        let end = range.end.min(self.bytes.len());
        self.payload = range.start.min(end)..end;
    }

    /// Narrows the payload to a range of itself; clamped.
    pub fn narrow_to(&mut self, part: Range<usize>) {
        let base = self.payload.start;
        let end = base.saturating_add(part.end).min(self.payload.end);
        self.payload = base.saturating_add(part.start).min(end)..end;
    }

    /// Copies a datagram into the buffer as its payload; returns false if it is too long.
    pub fn copy_from(&mut self, datagram: &[u8]) -> bool {
        match self.receive_space().get_mut(..datagram.len()) {
            Some(space) => {
                space.copy_from_slice(datagram);
                self.set_len(datagram.len());
                true
            }
            None => false,
        }
    }

    /// Returns the space for the next datagram: everything between [`HEAD_SPACE`] and [`TAIL_SPACE`].
    pub fn receive_space(&mut self) -> &mut [u8] {
        let end = self.bytes.len() - TAIL_SPACE;
        subslice_mut(&mut self.bytes, HEAD_SPACE..end)
    }

    /// Makes the first `n` bytes of [`receive_space`](Self::receive_space) the payload.
    pub fn set_len(&mut self, n: usize) {
        self.set_payload(HEAD_SPACE..HEAD_SPACE + n);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_clamped() {
        let mut p = PacketBuf::from_payload(b"hello");
        assert_eq!(p.payload(), b"hello");
        p.narrow_to(1..3);
        assert_eq!(p.payload(), b"el");
        p.narrow_to(5..9);
        assert_eq!(p.payload(), b"");
        p.set_payload(usize::MAX - 1..usize::MAX);
        assert_eq!(p.payload(), b"");
    }
}
