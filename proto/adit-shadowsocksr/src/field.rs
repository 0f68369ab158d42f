//! Access to fields at fixed offsets of a frame, with bounds checks.

use core::ops::Range;

use adit_wire::{Broken, Room};

/// Returns the `N` bytes at `at`.
pub(crate) fn get<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], Broken> {
    let rest = bytes.get(at..).and_then(|rest| rest.first_chunk());
    rest.copied().ok_or(Broken::Truncated("a field"))
}

/// Writes `field` at `at`.
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) -> Result<(), Broken> {
    part(bytes, at..at + field.len())?.copy_from_slice(field);
    Ok(())
}

/// Returns `bytes[range]` for writing.
pub(crate) fn part(bytes: &mut [u8], range: Range<usize>) -> Result<&mut [u8], Broken> {
    bytes.get_mut(range).ok_or(Broken::NoRoom("a field"))
}

/// Returns `bytes[range]` for reading.
pub(crate) fn view(bytes: &[u8], range: Range<usize>) -> Result<&[u8], Broken> {
    bytes.get(range).ok_or(Broken::Truncated("a field"))
}

/// Converts a length to the 16 bits of its field.
pub(crate) fn len_16(len: usize) -> Result<u16, Broken> {
    let limit = usize::from(u16::MAX);
    u16::try_from(len).map_err(|_| Broken::TooLong {
        what: "a frame",
        limit,
    })
}

/// Checks that a received frame length is in `low..limit`.
pub(crate) fn frame_len(len: u16, low: usize, limit: usize) -> Result<usize, Broken> {
    let len = usize::from(len);
    if len < low {
        return Err(Broken::Malformed("frame: shorter than its fields"));
    }
    if len >= limit {
        return Err(Broken::TooLong {
            what: "a frame",
            limit: limit - 1,
        });
    }
    Ok(len)
}

/// Returns the range of the frame around `payload`, with `head` bytes in front and `tail` bytes
/// after it.
pub(crate) fn around(
    record: &[u8],
    payload: &Range<usize>,
    head: usize,
    tail: usize,
) -> Result<Range<usize>, Broken> {
    let start = payload.start.checked_sub(head);
    let end = payload.end.checked_add(tail);
    match (start, end) {
        (Some(start), Some(end)) if end <= record.len() && payload.start <= payload.end => {
            Ok(start..end)
        }
        _ => Err(Broken::NoRoom("a frame's fields")),
    }
}

/// Checks that `record` has the required overhead around `payload`, before any state changes.
pub(crate) fn check_room(room: Room, record: &[u8], payload: &Range<usize>) -> Result<(), Broken> {
    around(record, payload, room.head, room.tail)?;
    if payload.len() > room.max {
        return Err(Broken::TooLong {
            what: "a record's payload",
            limit: room.max,
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
        assert_eq!(around(&record, &(4..10), 4, 10), Ok(0..20));
        for bad in [3..10, 4..11, 10..4, 4..usize::MAX] {
            assert!(around(&record, &bad, 4, 10).is_err(), "{bad:?}");
        }
        let room = Room {
            head: 4,
            tail: 10,
            max: 5,
        };
        assert!(check_room(room, &record, &(4..10)).is_err());
        assert_eq!(check_room(room, &record, &(4..9)), Ok(()));
    }

    #[test]
    fn lengths_are_bounded() {
        assert_eq!(frame_len(8191, 7, 8192), Ok(8191));
        assert!(frame_len(8192, 7, 8192).is_err() && frame_len(6, 7, 8192).is_err());
        assert!(len_16(65536).is_err());
        assert!(get::<4>(&[0; 5], 2).is_err() && get::<4>(&[0; 5], 1).is_ok());
    }
}
