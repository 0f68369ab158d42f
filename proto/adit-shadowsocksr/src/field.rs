//! Access to fields at fixed offsets of a frame, with bounds checks.

use core::ops::Range;

use adit_wire::{Overhead, ProtocolError};

/// Returns the `N` bytes at `at`.
pub(crate) fn get_field<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], ProtocolError> {
    let rest = bytes.get(at..).and_then(|rest| rest.first_chunk());
    rest.copied().ok_or(ProtocolError::Truncated("a field"))
}

/// Writes `field` at `at`.
pub(crate) fn put_field(bytes: &mut [u8], at: usize, field: &[u8]) -> Result<(), ProtocolError> {
    range_mut(bytes, at..at + field.len())?.copy_from_slice(field);
    Ok(())
}

/// Returns `bytes[range]` for writing.
pub(crate) fn range_mut(bytes: &mut [u8], range: Range<usize>) -> Result<&mut [u8], ProtocolError> {
    bytes.get_mut(range).ok_or(ProtocolError::NoRoom("a field"))
}

/// Returns `bytes[range]` for reading.
pub(crate) fn range_ref(bytes: &[u8], range: Range<usize>) -> Result<&[u8], ProtocolError> {
    bytes.get(range).ok_or(ProtocolError::Truncated("a field"))
}

/// Converts a length to the 16 bits of its field.
pub(crate) fn length_field(len: usize) -> Result<u16, ProtocolError> {
    let limit = usize::from(u16::MAX);
    u16::try_from(len).map_err(|_| ProtocolError::TooLong {
        what: "a frame",
        limit,
    })
}

/// Checks that a received frame length is in `low..limit`.
pub(crate) fn check_frame_len(len: u16, low: usize, limit: usize) -> Result<usize, ProtocolError> {
    let len = usize::from(len);
    if len < low {
        return Err(ProtocolError::Malformed("frame: shorter than its fields"));
    }
    if len >= limit {
        return Err(ProtocolError::TooLong {
            what: "a frame",
            limit: limit - 1,
        });
    }
    Ok(len)
}

/// Returns the range of the frame around `payload`, with `head` bytes in front and `tail` bytes
/// after it.
pub(crate) fn range_around(
    record: &[u8],
    payload: &Range<usize>,
    head: usize,
    tail: usize,
) -> Result<Range<usize>, ProtocolError> {
    let start = payload.start.checked_sub(head);
    let end = payload.end.checked_add(tail);
    match (start, end) {
        (Some(start), Some(end)) if end <= record.len() && payload.start <= payload.end => {
            Ok(start..end)
        }
        _ => Err(ProtocolError::NoRoom("a frame's fields")),
    }
}

/// Checks that `record` has the required overhead around `payload`, before any state changes.
pub(crate) fn check_overhead(
    room: Overhead,
    record: &[u8],
    payload: &Range<usize>,
) -> Result<(), ProtocolError> {
    range_around(record, payload, room.head, room.tail)?;
    if payload.len() > room.max_payload {
        return Err(ProtocolError::TooLong {
            what: "a record's payload",
            limit: room.max_payload,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::reversed_empty_ranges)]
    fn frames_stay_inside_their_record() {
        let record = [0; 20];
        assert_eq!(range_around(&record, &(4..10), 4, 10), Ok(0..20));
        for bad in [3..10, 4..11, 10..4, 4..usize::MAX] {
            assert!(range_around(&record, &bad, 4, 10).is_err(), "{bad:?}");
        }
        let room = Overhead {
            head: 4,
            tail: 10,
            max_payload: 5,
        };
        assert!(check_overhead(room, &record, &(4..10)).is_err());
        assert_eq!(check_overhead(room, &record, &(4..9)), Ok(()));
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(check_frame_len(8191, 7, 8192), Ok(8191));
        assert!(check_frame_len(8192, 7, 8192).is_err() && check_frame_len(6, 7, 8192).is_err());
        assert!(length_field(65536).is_err());
        assert!(get_field::<4>(&[0; 5], 2).is_err() && get_field::<4>(&[0; 5], 1).is_ok());
    }
}
