//! The address an end is seen under: a translation in the middle of the link, as a router makes
//! one whose address changes. Only IPv4 without options, TCP and UDP.

use std::net::Ipv4Addr;

const SOURCE: usize = 12;
const DESTINATION: usize = 16;

/// Whether this is a whole packet of IPv4.
pub(crate) fn is_v4(packet: &[u8]) -> bool {
    packet.len() >= 20 && packet.first().is_some_and(|first| first >> 4 == 4)
}

/// The source becomes `to` if it is `from`.
pub(crate) fn rewrite_source(packet: &mut [u8], from: Ipv4Addr, to: Ipv4Addr) {
    if at(packet, SOURCE) == Some(from) {
        rewrite(packet, SOURCE, from, to);
    }
}

/// The destination becomes `to` if it is `from`; false if it is `to` already, which nobody has
/// any more.
pub(crate) fn rewrite_destination(packet: &mut [u8], from: Ipv4Addr, to: Ipv4Addr) -> bool {
    match at(packet, DESTINATION) {
        Some(address) if address == from => rewrite(packet, DESTINATION, from, to),
        Some(address) => return address != to,
        None => {}
    }
    true
}

fn at(packet: &[u8], place: usize) -> Option<Ipv4Addr> {
    let bytes: [u8; 4] = packet.get(place..place + 4)?.try_into().ok()?;
    Some(bytes.into())
}

fn rewrite(packet: &mut [u8], place: usize, from: Ipv4Addr, to: Ipv4Addr) {
    if let Some(slot) = packet.get_mut(place..place + 4) {
        slot.copy_from_slice(&to.octets());
    }
    mend(packet, 10, from, to);
    // What follows the header covers both addresses with its own checksum; only the first
    // fragment has one.
    let first = packet
        .get(6..8)
        .is_some_and(|offset| u16_of(offset) & 0x1fff == 0);
    match packet.get(9) {
        Some(6) if first => mend(packet, 20 + 16, from, to),
        // 0 is none.
        Some(17) if first && packet.get(26..28).is_some_and(|sum| u16_of(sum) != 0) => {
            mend(packet, 20 + 6, from, to);
        }
        _ => {}
    }
}

/// The checksum at `place` after a change from one address to another (RFC 1624, equation 3).
fn mend(packet: &mut [u8], place: usize, from: Ipv4Addr, to: Ipv4Addr) {
    let Some(slot) = packet.get_mut(place..place + 2) else {
        return;
    };
    let mut sum = u32::from(!u16_of(slot));
    for (old, new) in from.octets().chunks(2).zip(to.octets().chunks(2)) {
        sum += u32::from(!u16_of(old)) + u32::from(u16_of(new));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let sum = !u16::try_from(sum).unwrap_or_default();
    slot.copy_from_slice(&sum.to_be_bytes());
}

fn u16_of(bytes: &[u8]) -> u16 {
    bytes
        .iter()
        .take(2)
        .fold(0, |word, byte| word << 8 | u16::from(*byte))
}
