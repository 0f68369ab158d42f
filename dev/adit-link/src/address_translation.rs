//! Address translation in the middle of the link, as a router does whose address changes. Handles
//! only IPv4 without options, TCP and UDP; `partial` means that their checksum is left to the
//! network card.

use std::net::Ipv4Addr;

const SOURCE: usize = 12;
const DESTINATION: usize = 16;

/// Returns true if this is a complete IPv4 packet.
pub(crate) fn is_v4(packet: &[u8]) -> bool {
    packet.len() >= 20 && packet.first().is_some_and(|first| first >> 4 == 4)
}

/// Replaces the source address by `to` if it is `from`.
pub(crate) fn rewrite_source(packet: &mut [u8], from: Ipv4Addr, to: Ipv4Addr, partial: bool) {
    if address_at(packet, SOURCE) == Some(from) {
        replace_address(packet, SOURCE, from, to, partial);
    }
}

/// Replaces the destination address by `to` if it is `from`. Returns false if it is `to` already:
/// that address belongs to no host any more.
pub(crate) fn rewrite_destination(
    packet: &mut [u8],
    from: Ipv4Addr,
    to: Ipv4Addr,
    partial: bool,
) -> bool {
    match address_at(packet, DESTINATION) {
        Some(address) if address == from => replace_address(packet, DESTINATION, from, to, partial),
        Some(address) => return address != to,
        None => {}
    }
    true
}

fn address_at(packet: &[u8], place: usize) -> Option<Ipv4Addr> {
    let bytes: [u8; 4] = packet.get(place..place + 4)?.try_into().ok()?;
    Some(bytes.into())
}

fn replace_address(packet: &mut [u8], place: usize, from: Ipv4Addr, to: Ipv4Addr, partial: bool) {
    if let Some(slot) = packet.get_mut(place..place + 4) {
        slot.copy_from_slice(&to.octets());
    }
    adjust_checksum(packet, 10, from, to, false);
    // The payload's checksum also covers both addresses; only the first fragment has one.
    let first = packet
        .get(6..8)
        .is_some_and(|offset| read_u16(offset) & 0x1fff == 0);
    match packet.get(9) {
        Some(6) if first => adjust_checksum(packet, 20 + 16, from, to, partial),
        // A UDP checksum of 0 means "none".
        Some(17) if first && packet.get(26..28).is_some_and(|sum| read_u16(sum) != 0) => {
            adjust_checksum(packet, 20 + 6, from, to, partial);
        }
        _ => {}
    }
}

/// Updates the checksum at `place` after an address has changed (RFC 1624, equation 3). A partial
/// checksum is a sum that has not been complemented yet.
fn adjust_checksum(packet: &mut [u8], place: usize, from: Ipv4Addr, to: Ipv4Addr, partial: bool) {
    let Some(slot) = packet.get_mut(place..place + 2) else {
        return;
    };
    let flip = if partial { 0 } else { 0xffff };
    let mut sum = u32::from(read_u16(slot) ^ flip);
    for (old, new) in from.octets().chunks(2).zip(to.octets().chunks(2)) {
        sum += u32::from(!read_u16(old)) + u32::from(read_u16(new));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let sum = u16::try_from(sum).unwrap_or_default() ^ flip;
    slot.copy_from_slice(&sum.to_be_bytes());
}

fn read_u16(bytes: &[u8]) -> u16 {
    bytes
        .iter()
        .take(2)
        .fold(0, |word, byte| word << 8 | u16::from(*byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(bytes: &[u8]) -> u16 {
        let words = bytes.chunks(2).map(|pair| match pair {
            [high] => u32::from(*high) << 8,
            pair => u32::from(read_u16(pair)),
        });
        let all: u32 = words.sum();
        let all = (all & 0xffff) + (all >> 16);
        u16::try_from((all & 0xffff) + (all >> 16)).unwrap()
    }

    /// A TCP or UDP packet whose checksum field holds the sum of its pseudo-header.
    fn packet(protocol: u8, source: [u8; 4], destination: [u8; 4], rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0];
        packet.extend([source, destination].concat());
        let header = sum(&packet);
        packet[10..12].copy_from_slice(&(!header).to_be_bytes());
        packet.extend(rest);
        let len = u16::try_from(rest.len()).unwrap().to_be_bytes();
        let pseudo = [&packet[12..20], &[0, protocol], &len].concat();
        let place = place(protocol);
        packet[place..place + 2].copy_from_slice(&sum(&pseudo).to_be_bytes());
        packet
    }

    const fn place(protocol: u8) -> usize {
        20 + if protocol == 6 { 16 } else { 6 }
    }

    /// Completes the checksum, as a network card does.
    fn finish(packet: &mut [u8], protocol: u8) {
        let sum = match !sum(&packet[20..]) {
            0 => 0xffff,
            sum => sum,
        };
        packet[place(protocol)..][..2].copy_from_slice(&sum.to_be_bytes());
    }

    proptest! {
        #[test]
        fn checksums_hold_finished_or_not(
            near: [u8; 4], seen: [u8; 4], far: [u8; 4], udp: bool,
            rest in prop::collection::vec(any::<u8>(), 20..100),
        ) {
            let protocol = if udp { 17 } else { 6 };
            let mut expected = packet(protocol, seen, far, &rest);
            let mut partial = packet(protocol, near, far, &rest);
            let mut complete = partial.clone();
            rewrite_source(&mut partial, near.into(), seen.into(), true);
            prop_assert_eq!(&partial, &expected);
            finish(&mut expected, protocol);
            finish(&mut complete, protocol);
            rewrite_source(&mut complete, near.into(), seen.into(), false);
            // 0 and 0xffff are the same sum in one's complement.
            for place in [10, place(protocol)] {
                let at = |packet: &[u8]| read_u16(&packet[place..]) % 0xffff;
                prop_assert_eq!(at(&complete), at(&expected));
            }
            let mut answer = packet(protocol, far, seen, &rest);
            prop_assert!(rewrite_destination(&mut answer, seen.into(), near.into(), true));
            prop_assert_eq!(answer, packet(protocol, far, near, &rest));
        }
    }
}
