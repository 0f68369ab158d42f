//! The header of a message between two processes, as pure functions over its bytes.
//!
//! | offset | size | field |
//! |--:|--:|---|
//! | 0 | 4 | magic number, `adHO` |
//! | 4 | 2 | version of the framing, 1 |
//! | 6 | 2 | kind of the message |
//! | 8 | 2 | number of descriptors |
//! | 10 | 2 | reserved, 0 |
//! | 12 | 4 | size of the body in bytes |
//!
//! Numbers are big-endian. The format is private to adit.

use adit_wire::narrow_int;

use super::HandoverError;

/// Size of a header, in bytes.
pub const HEADER_BYTES: usize = 16;
/// Maximum size of a body, in bytes.
pub const MAX_BODY_BYTES: usize = 16 << 20;
/// Maximum number of descriptors of a message. The system's limit for one call is 253 (`SCM_MAX_FD`).
pub const MAX_DESCRIPTORS: usize = 64;

const MAGIC: [u8; 4] = *b"adHO";
const VERSION: u16 = 1;

/// The header of a message: its kind, and the sizes of what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHeader {
    kind: u16,
    descriptors: u16,
    body: u32,
}

impl MessageHeader {
    /// Creates the header of a message with a body of `body` bytes.
    ///
    /// # Errors
    /// [`BodyTooLarge`](HandoverError::BodyTooLarge) above [`MAX_BODY_BYTES`] and
    /// [`TooManyDescriptors`](HandoverError::TooManyDescriptors) above [`MAX_DESCRIPTORS`].
    pub fn new(kind: u16, body: usize, descriptors: usize) -> Result<Self, HandoverError> {
        if body > MAX_BODY_BYTES {
            return Err(HandoverError::BodyTooLarge { kind, bytes: body });
        }
        if descriptors > MAX_DESCRIPTORS {
            return Err(HandoverError::TooManyDescriptors { kind });
        }
        Ok(Self {
            kind,
            descriptors: narrow_int(descriptors),
            body: narrow_int(body),
        })
    }

    /// Parses a header. All sizes of the result are within their limits.
    ///
    /// # Errors
    /// Bytes that do not begin with the magic number, another version, and sizes above their limits.
    pub fn parse(bytes: [u8; HEADER_BYTES]) -> Result<Self, HandoverError> {
        let [
            m0,
            m1,
            m2,
            m3,
            v0,
            v1,
            k0,
            k1,
            d0,
            d1,
            r0,
            r1,
            b0,
            b1,
            b2,
            b3,
        ] = bytes;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(HandoverError::NotAHeader);
        }
        let version = u16::from_be_bytes([v0, v1]);
        if version != VERSION {
            return Err(HandoverError::UnknownVersion { version });
        }
        if [r0, r1] != [0; 2] {
            return Err(HandoverError::NotAHeader);
        }
        let body = u32::from_be_bytes([b0, b1, b2, b3]);
        let descriptors = u16::from_be_bytes([d0, d1]);
        Self::new(
            u16::from_be_bytes([k0, k1]),
            usize::try_from(body).unwrap_or(usize::MAX),
            usize::from(descriptors),
        )
    }

    /// Returns the header's bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let [m0, m1, m2, m3] = MAGIC;
        let [v0, v1] = VERSION.to_be_bytes();
        let [k0, k1] = self.kind.to_be_bytes();
        let [d0, d1] = self.descriptors.to_be_bytes();
        let [b0, b1, b2, b3] = self.body.to_be_bytes();
        [m0, m1, m2, m3, v0, v1, k0, k1, d0, d1, 0, 0, b0, b1, b2, b3]
    }

    /// Returns the kind of the message.
    #[must_use]
    pub fn kind(self) -> u16 {
        self.kind
    }

    /// Returns the number of descriptors, at most [`MAX_DESCRIPTORS`].
    #[must_use]
    pub fn descriptors(self) -> usize {
        usize::from(self.descriptors)
    }

    /// Returns the size of the body in bytes, at most [`MAX_BODY_BYTES`].
    #[must_use]
    pub fn body_bytes(self) -> usize {
        narrow_int(self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_the_round_trip() {
        for (kind, body, descriptors) in [(0, 0, 0), (7, 70_000, 3), (65_535, MAX_BODY_BYTES, 64)] {
            let header = MessageHeader::new(kind, body, descriptors).unwrap();
            let parsed = MessageHeader::parse(header.to_bytes()).unwrap();
            assert_eq!(parsed, header);
            let fields = (parsed.kind(), parsed.body_bytes(), parsed.descriptors());
            assert_eq!(fields, (kind, body, descriptors));
        }
    }

    #[test]
    fn a_malformed_header_is_refused() {
        let good = MessageHeader::new(7, 5, 1).unwrap().to_bytes();
        let with = |at: usize, byte: u8| {
            let mut bytes = good;
            bytes[at] = byte;
            MessageHeader::parse(bytes)
        };
        assert!(matches!(with(0, b'x'), Err(HandoverError::NotAHeader)));
        assert!(matches!(with(11, 1), Err(HandoverError::NotAHeader)));
        let version = with(5, 9);
        assert!(matches!(
            version,
            Err(HandoverError::UnknownVersion { version: 9 })
        ));
        let large = with(12, 1);
        assert!(matches!(
            large,
            Err(HandoverError::BodyTooLarge {
                kind: 7,
                bytes: 16_777_221
            })
        ));
        let many = with(9, 65);
        assert!(matches!(
            many,
            Err(HandoverError::TooManyDescriptors { kind: 7 })
        ));
        assert!(MessageHeader::new(1, MAX_BODY_BYTES + 1, 0).is_err());
        assert!(MessageHeader::new(1, 0, MAX_DESCRIPTORS + 1).is_err());
    }
}
