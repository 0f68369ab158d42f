//! UDP over TCP, versions 1 and 2, compatible with sing-box: datagrams as frames in a stream.
//!
//! A client requests a reserved target name from its server ([`reserved_target`]). The stream then contains:
//!
//! ```text
//! version 2  request   connected(1) ‖ address (as in SOCKS5)
//!            frame     [address, unless connected] ‖ length(2) ‖ data
//! version 1  frame     address ‖ length(2) ‖ data
//! ```
//! A frame's address has its own type bytes: 0 IPv4, 1 IPv6, 2 a name. Answers have the same
//! format; their address is their source. Nothing here is encrypted: the stream below encrypts.

use core::ops::Range;

use adit_wire::{AddrError, Host, ProtocolError, Target, encode_addr, parse_addr};

/// Maximum number of bytes in front of a frame's data: address and length.
pub const HEAD_MAX: usize = adit_wire::MAX_ADDR_LEN + 2;

const V1: &str = "sp.udp-over-tcp.arpa";
const V2: &str = "sp.v2.udp-over-tcp.arpa";

/// The format version of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// No request; every frame has an address.
    V1,
    /// A request, then frames.
    V2,
}

/// A client's request in version 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// True if frames have no address: all are sent to `target`, and only its answers are returned.
    pub connected: bool,
    /// The single target, or the first of several.
    pub target: Target,
}

/// The result of parsing the front of a stream of frames.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// The frame is incomplete.
    NeedMore {
        /// Minimum number of bytes needed, counted from the front.
        total: usize,
    },
    /// A datagram.
    Packet {
        /// The destination or source of the datagram; `None` in a connected stream.
        peer: Option<Target>,
        /// The range of the data; the frame ends with it.
        payload: Range<usize>,
    },
}

/// Returns the reserved target that requests a stream of this version.
#[must_use]
pub fn reserved_target(version: Version) -> Option<Target> {
    let name = match version {
        Version::V1 => V1,
        Version::V2 => V2,
    };
    Some(Target::new(Host::parse(name).ok()?, 0))
}

/// Returns the version that `target` requests. `None` for a real target.
#[must_use]
pub fn requested_version(target: &Target) -> Option<Version> {
    match &target.host {
        Host::Name(name) if name.as_str() == V2 => Some(Version::V2),
        Host::Name(name) if name.as_str() == V1 => Some(Version::V1),
        _ => None,
    }
}

/// Appends a request of version 2 to `out`.
pub fn put_request(request: &Request, out: &mut Vec<u8>) {
    out.push(u8::from(request.connected));
    encode_addr(&request.target, out);
}

/// Parses a request of version 2. Returns it with its length, or `Err` with the total number of
/// bytes needed.
///
/// # Errors
///
/// Fails if the first byte is neither 0 nor 1 or if the address is malformed.
pub fn parse_request(bytes: &[u8]) -> Result<Result<(Request, usize), usize>, ProtocolError> {
    let Some((connected, rest)) = bytes.split_first() else {
        return Ok(Err(1));
    };
    let connected = match connected {
        0 => false,
        1 => true,
        _ => {
            return Err(ProtocolError::Malformed("UDP-over-TCP request"));
        }
    };
    match parse_addr(rest) {
        Ok((target, len)) => Ok(Ok((Request { connected, target }, 1 + len))),
        Err(AddrError::Incomplete { total }) => Ok(Err(1 + total)),
        Err(_) => Err(ProtocolError::Malformed("address")),
    }
}

/// Appends the header of a datagram of `len` bytes to `out`; `peer` is omitted in a connected
/// stream.
///
/// # Errors
///
/// Fails if the datagram is longer than 65,535 bytes.
pub fn put_head(peer: Option<&Target>, len: usize, out: &mut Vec<u8>) -> Result<(), ProtocolError> {
    let len = u16::try_from(len).map_err(|_| ProtocolError::TooLong {
        what: "a datagram",
        limit: usize::from(u16::MAX),
    })?;
    if let Some(peer) = peer {
        let at = out.len();
        encode_addr(peer, out);
        if let Some(kind) = out.get_mut(at) {
            *kind = match *kind {
                1 => 0,
                4 => 1,
                _ => 2,
            };
        }
    }
    out.extend_from_slice(&len.to_be_bytes());
    Ok(())
}

/// Parses the frame at the front of `bytes`, which are unchanged afterwards.
///
/// # Errors
///
/// Fails if the address is malformed.
pub fn parse_frame(bytes: &mut [u8], connected: bool) -> Result<Frame, ProtocolError> {
    let (peer, used) = if connected {
        (None, 0)
    } else {
        let Some(kind) = bytes.first().copied() else {
            return Ok(Frame::NeedMore { total: 1 });
        };
        set_address_type(
            bytes,
            match kind {
                0 => 1,
                1 => 4,
                2 => 3,
                _ => return Err(ProtocolError::Malformed("address")),
            },
        );
        let parsed = parse_addr(bytes);
        set_address_type(bytes, kind);
        match parsed {
            Ok((peer, used)) => (Some(peer), used),
            Err(AddrError::Incomplete { total }) => return Ok(Frame::NeedMore { total }),
            Err(_) => return Err(ProtocolError::Malformed("address")),
        }
    };
    let start = used + 2;
    let Some(len) = bytes.get(used..start).and_then(|b| b.first_chunk::<2>()) else {
        return Ok(Frame::NeedMore { total: start });
    };
    let payload = start..start + usize::from(u16::from_be_bytes(*len));
    if bytes.len() < payload.end {
        return Ok(Frame::NeedMore { total: payload.end });
    }
    Ok(Frame::Packet { peer, payload })
}

fn set_address_type(bytes: &mut [u8], kind: u8) {
    if let Some(first) = bytes.first_mut() {
        *first = kind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(text: &str) -> Target {
        text.parse().unwrap()
    }

    /// The bytes of the published description, for each type of address.
    #[test]
    fn the_bytes_of_a_frame() {
        let mut out = Vec::new();
        put_head(Some(&target("127.0.0.1:53")), 6, &mut out).unwrap();
        assert_eq!(out, [0, 127, 0, 0, 1, 0, 53, 0, 6]);
        out.clear();
        put_head(Some(&target("[::1]:53")), 0, &mut out).unwrap();
        assert_eq!((out[0], out.len()), (1, 1 + 16 + 2 + 2));
        out.clear();
        put_head(Some(&target("a.b:1")), 0, &mut out).unwrap();
        assert_eq!(out, [2, 3, b'a', b'.', b'b', 0, 1, 0, 0]);
        out.clear();
        put_head(None, 513, &mut out).unwrap();
        assert_eq!(out, [2, 1]);
        assert!(put_head(None, 65_536, &mut out).is_err());
    }

    #[test]
    fn requests_are_read_as_they_come() {
        let request = Request {
            connected: true,
            target: target("127.0.0.1:53"),
        };
        let mut out = Vec::new();
        put_request(&request, &mut out);
        assert_eq!(out, [1, 1, 127, 0, 0, 1, 0, 53]);
        for cut in 0..out.len() {
            let need = parse_request(&out[..cut]).unwrap().unwrap_err();
            assert!(need > cut && need <= out.len());
        }
        assert_eq!(parse_request(&out).unwrap(), Ok((request, 8)));
        assert!(parse_request(&[2, 1]).is_err());
        assert!(parse_request(&[0, 9]).is_err());
    }

    #[test]
    fn names_are_told_apart() {
        for v in [Version::V1, Version::V2] {
            assert_eq!(requested_version(&reserved_target(v).unwrap()), Some(v));
        }
        assert_eq!(requested_version(&target("udp-over-tcp.arpa:0")), None);
    }

    proptest! {
        #[test]
        fn frames_are_read_at_every_cut(
            ip in any::<[u8; 4]>(), port in 1..9999u16, data in prop::collection::vec(any::<u8>(), 0..300),
            connected in any::<bool>(),
        ) {
            let peer = Target::from(core::net::SocketAddr::from((ip, port)));
            let mut bytes = Vec::new();
            put_head((!connected).then_some(&peer), data.len(), &mut bytes).unwrap();
            bytes.extend_from_slice(&data);
            for cut in 0..bytes.len() {
                let frame = parse_frame(&mut bytes[..cut], connected).unwrap();
                let Frame::NeedMore { total } = frame else { panic!("{frame:?}") };
                prop_assert!(total > cut && total <= bytes.len());
            }
            let frame = parse_frame(&mut bytes, connected).unwrap();
            let Frame::Packet { peer: found, payload } = frame else { panic!("{frame:?}") };
            prop_assert_eq!(found, (!connected).then_some(peer));
            prop_assert_eq!(payload.end, bytes.len());
            prop_assert_eq!(&bytes[payload], &data[..]);
        }

        #[test]
        fn no_bytes_panic_and_none_change(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut copy = bytes.clone();
            let _ = parse_frame(&mut copy, false);
            let _ = parse_frame(&mut copy, true);
            let _ = parse_request(&copy);
            prop_assert_eq!(copy, bytes);
        }
    }
}
