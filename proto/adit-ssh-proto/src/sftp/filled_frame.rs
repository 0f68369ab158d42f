//! Frames that end in a `string` that is written in place: DATA and WRITE.

use adit_wire::{narrow_int, usize_from};

use crate::wire::SshBufMut;

/// Appends a frame: the output of `head`, then a `string` of at most `most` bytes that `fill`
/// writes in place; it returns their number. If `fill` fails or returns 0, nothing is appended.
pub(super) fn put_filled_frame<E>(
    out: &mut Vec<u8>,
    most: u32,
    head: impl FnOnce(&mut Vec<u8>),
    fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
) -> Result<u32, E> {
    let start = out.len();
    out.put_u32(0);
    head(out);
    out.put_u32(0);
    let body = out.len();
    out.resize(body + usize_from(most), 0);
    let filled = match out.get_mut(body..) {
        Some(room) => {
            let most = room.len();
            fill(room).map(|len| len.min(most))
        }
        None => Ok(0),
    };
    let len = *filled.as_ref().unwrap_or(&0);
    if len == 0 {
        out.truncate(start);
        return filled.map(|_| 0);
    }
    out.truncate(body + len);
    for (from, to) in [(start, start + 4), (body - 4, body)] {
        let value = narrow_int::<u32>(out.len() - to);
        if let Some(place) = out.get_mut(from..to) {
            place.copy_from_slice(&value.to_be_bytes());
        }
    }
    Ok(narrow_int(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_if_it_were_put_whole() {
        let mut out = b"before".to_vec();
        let fill = |room: &mut [u8]| {
            assert_eq!(room.len(), 9);
            room[..4].copy_from_slice(b"text");
            Ok::<_, ()>(4)
        };
        assert_eq!(
            put_filled_frame(&mut out, 9, |out| out.put_u8(7), fill),
            Ok(4)
        );
        assert_eq!(out, b"before\0\0\0\x09\x07\0\0\0\x04text");
        let nothing = put_filled_frame(&mut out, 9, |out| out.put_u8(7), |_| Ok::<_, ()>(0));
        assert_eq!((nothing, out.len()), (Ok(0), 19));
        let failed = put_filled_frame(&mut out, 9, |out| out.put_u8(7), |_| Err("no"));
        assert_eq!((failed, out.len()), (Err("no"), 19));
    }
}
