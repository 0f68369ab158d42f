//! `RSV(2) ‖ FRAG(1) ‖ ATYP(1) ‖ ADDR ‖ PORT(2)` in front of the data.

use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::Range;

use adit_wire::{
    AddrError, Host, MAX_ADDR_LEN, ProtocolError, Target, narrow_int, parse_addr, unmap_ipv4,
};

/// Length of RSV and FRAG.
const FIXED_LEN: usize = 3;

/// Maximum length of a header in bytes: one with a name of 255 bytes. A header with an IPv6 address
/// has 22.
pub const MAX_HEADER: usize = FIXED_LEN + MAX_ADDR_LEN;

/// A parsed header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatagramHeader {
    /// 0 for an unfragmented datagram; otherwise see [`super::Reassembly`].
    pub frag: u8,
    /// From client to server: the destination. From server to client: the source.
    pub target: Target,
    /// The range of the data in the packet; may be empty.
    pub payload: Range<usize>,
}

/// Parses the header of `packet`.
///
/// # Errors
/// Returns [`ProtocolError`] for a short packet, an RSV other than 0, an unknown address type or an
/// invalid name. Drop such a datagram without an answer.
///
/// # Examples
///
/// ```
/// use adit_socks::udp::{parse_header, put_header};
///
/// let mut packet = Vec::new();
/// put_header(&"192.0.2.1:53".parse().unwrap(), &mut packet);
/// packet.extend_from_slice(b"query");
///
/// let header = parse_header(&packet)?;
/// assert_eq!(header.target.to_string(), "192.0.2.1:53");
/// assert!(packet.ends_with(b"query"));
/// # Ok::<(), adit_wire::ProtocolError>(())
/// ```
pub fn parse_header(packet: &[u8]) -> Result<DatagramHeader, ProtocolError> {
    let (frag, addr) = match packet {
        [0, 0, frag, addr @ ..] => (*frag, addr),
        [_, _, _, ..] => return Err(ProtocolError::Malformed("RSV of a SOCKS datagram")),
        _ => return Err(ProtocolError::Truncated("the SOCKS datagram header")),
    };
    let (target, len) = parse_addr(addr).map_err(|why| match why {
        AddrError::Incomplete { .. } => ProtocolError::Truncated("the SOCKS datagram header"),
        AddrError::Type(_) => ProtocolError::Malformed("address type of a SOCKS datagram"),
        AddrError::Name => ProtocolError::Malformed("host name of a SOCKS datagram"),
    })?;
    Ok(DatagramHeader {
        frag,
        target,
        payload: FIXED_LEN + len..packet.len(),
    })
}

/// Returns the length in bytes of the header that [`put_header`] and [`write_in_place`] write for
/// `target`.
#[must_use]
pub fn header_len(target: &Target) -> usize {
    match target.host {
        Host::Ip(ip) if unmap_ipv4(ip).is_ipv4() => FIXED_LEN + 7,
        _ => FIXED_LEN + target.addr_len(),
    }
}

/// Appends the header of an unfragmented datagram to `out`.
pub fn put_header(target: &Target, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + header_len(target), 0);
    if let Some(header) = out.get_mut(start..) {
        fill_header(target, header);
    }
}

/// Writes the header of an unfragmented datagram directly in front of the payload at
/// `payload_start`, and returns the new start of the packet.
///
/// # Errors
/// Returns [`ProtocolError::NoRoom`] if there are fewer than [`header_len`] bytes in front of the payload.
pub fn write_in_place(
    packet: &mut [u8],
    payload_start: usize,
    target: &Target,
) -> Result<usize, ProtocolError> {
    let no_room = ProtocolError::NoRoom("the SOCKS datagram header");
    let start = payload_start
        .checked_sub(header_len(target))
        .ok_or(no_room)?;
    let header = packet.get_mut(start..payload_start).ok_or(no_room)?;
    fill_header(target, header);
    Ok(start)
}

/// Fills `header`, which has exactly [`header_len`] bytes.
fn fill_header(target: &Target, header: &mut [u8]) {
    let port = target.port.to_be_bytes();
    match &target.host {
        Host::Ip(ip) => match unmap_ipv4(*ip) {
            IpAddr::V4(ip) => copy_parts(header, &[&[0, 0, 0, 1], &ip.octets(), &port]),
            IpAddr::V6(ip) => copy_parts(header, &[&[0, 0, 0, 4], &ip.octets(), &port]),
        },
        Host::Name(name) => {
            let name = name.as_str().as_bytes();
            // A `Name` has at most 255 bytes by construction.
            let len = narrow_int(name.len());
            copy_parts(header, &[&[0, 0, 0, 3, len], name, &port]);
        }
    }
}

fn copy_parts(header: &mut [u8], parts: &[&[u8]]) {
    let bytes = parts.iter().flat_map(|part| part.iter());
    for (to, from) in header.iter_mut().zip(bytes) {
        *to = *from;
    }
}
