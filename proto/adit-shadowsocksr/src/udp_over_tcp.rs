//! Datagrams in a stream (UDP over TCP), as in the original implementation.
//!
//! A client announces them with a flag in the type of its target header; the target itself is
//! ignored. Both directions then contain:
//!
//! ```text
//! frame   size(2, big-endian, itself included) ‖ 0 ‖ address (as in SOCKS5) ‖ data
//! ```
//! The address is the destination or the source of the data. A frame whose third byte is not 0 is a
//! fragment, which no known implementation sends; it is dropped.

use core::ops::Range;

use adit_wire::{AddrError, ProtocolError, Target, encode_addr, parse_addr, subslice};

/// Length of size and fragment fields.
const HEAD: usize = 3;

/// The result of parsing the front of a stream of datagrams.
#[derive(Debug, PartialEq, Eq)]
pub enum ParsedDatagram {
    /// More bytes are needed; the total is counted from the front.
    NeedMore {
        /// Total number of bytes needed, always more than in this call.
        total: usize,
    },
    /// A datagram.
    Packet {
        /// The destination or source of the datagram; `None` for a fragment.
        peer: Option<Target>,
        /// The range of the data; the frame ends with it.
        payload: Range<usize>,
    },
}

/// Appends the header of a datagram of `len` bytes to `out`.
///
/// # Errors
///
/// Fails if the frame would be longer than 65,535 bytes.
pub fn put_datagram_head(
    peer: &Target,
    len: usize,
    out: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    let size = HEAD
        .saturating_add(peer.addr_len())
        .saturating_add(len)
        .try_into();
    let size: u16 = size.map_err(|_| ProtocolError::TooLong {
        what: "a datagram",
        limit: usize::from(u16::MAX),
    })?;
    out.extend_from_slice(&size.to_be_bytes());
    out.push(0);
    encode_addr(peer, out);
    Ok(())
}

/// Parses the frame at the front of `bytes`.
///
/// # Errors
///
/// Fails if the size or the address is invalid.
pub fn parse_datagram(bytes: &[u8]) -> Result<ParsedDatagram, ProtocolError> {
    let Some(size) = bytes.first_chunk::<2>() else {
        return Ok(ParsedDatagram::NeedMore { total: 2 });
    };
    let total = usize::from(u16::from_be_bytes(*size));
    if total < HEAD {
        return Err(ProtocolError::Malformed("datagram: its size"));
    }
    let Some(frame) = bytes.get(..total) else {
        return Ok(ParsedDatagram::NeedMore { total });
    };
    if frame.get(2) != Some(&0) {
        let payload = total..total;
        return Ok(ParsedDatagram::Packet {
            peer: None,
            payload,
        });
    }
    match parse_addr(subslice(frame, HEAD..)) {
        Ok((peer, used)) => Ok(ParsedDatagram::Packet {
            peer: Some(peer),
            payload: HEAD + used..total,
        }),
        Err(AddrError::Incomplete { .. }) => Err(ProtocolError::Malformed("datagram: its size")),
        Err(_) => Err(ProtocolError::Malformed("datagram: address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(text: &str) -> Target {
        text.parse().unwrap()
    }

    #[test]
    fn the_bytes_of_a_frame() {
        let mut out = Vec::new();
        put_datagram_head(&target("127.0.0.1:53"), 2, &mut out).unwrap();
        out.extend_from_slice(b"ab");
        assert_eq!(out, [0, 12, 0, 1, 127, 0, 0, 1, 0, 53, b'a', b'b']);
        let frame = parse_datagram(&out).unwrap();
        let peer = Some(target("127.0.0.1:53"));
        assert_eq!(
            frame,
            ParsedDatagram::Packet {
                peer,
                payload: 10..12
            }
        );
        assert!(put_datagram_head(&target("a:1"), 65_535 - 3 - 5, &mut out).is_ok());
        assert!(put_datagram_head(&target("a:1"), 65_535 - 3 - 4, &mut out).is_err());
    }

    #[test]
    fn sizes_that_lie() {
        for bytes in [
            &[0, 0][..],
            &[0, 2, 0],
            &[0, 4, 0, 1],
            &[0, 9, 0, 1, 1, 2, 3, 4, 0],
        ] {
            assert!(parse_datagram(bytes).is_err(), "{bytes:?}");
        }
        let fragment = [0, 5, 1, 9, 9, 7];
        let dropped = ParsedDatagram::Packet {
            peer: None,
            payload: 5..5,
        };
        assert_eq!(parse_datagram(&fragment), Ok(dropped));
    }

    proptest! {
        #[test]
        fn frames_are_read_at_every_cut(
            ip in any::<[u8; 4]>(), port in 1..9999u16, data in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let peer = Target::from(core::net::SocketAddr::from((ip, port)));
            let mut bytes = Vec::new();
            put_datagram_head(&peer, data.len(), &mut bytes).unwrap();
            bytes.extend_from_slice(&data);
            for cut in 0..bytes.len() {
                let frame = parse_datagram(&bytes[..cut]).unwrap();
                let ParsedDatagram::NeedMore { total } = frame else { panic!("{frame:?}") };
                prop_assert!(total > cut && total <= bytes.len());
            }
            let frame = parse_datagram(&bytes).unwrap();
            let ParsedDatagram::Packet { peer: found, payload } = frame else { panic!("{frame:?}") };
            prop_assert_eq!(found, Some(peer));
            prop_assert_eq!(payload.end, bytes.len());
            prop_assert_eq!(&bytes[payload], &data[..]);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse_datagram(&bytes);
        }
    }
}
