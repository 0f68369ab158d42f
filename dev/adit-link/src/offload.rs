//! The header of a segmenting device in front of each packet that is read or written: `struct
//! virtio_net_hdr` of `linux/virtio_net.h`, in native byte order.

/// Length of the header, in bytes.
pub(crate) const HEADER_LEN: usize = 10;
/// Length of the longest read: the header and the longest IPv4 packet.
pub(crate) const MAX_PACKET_LEN: usize = HEADER_LEN + 65_535;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
const NEEDS_CSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_TCPV4`.
const TCP4: u8 = 1;

/// Returns true if the TCP or UDP checksum is left to the network card: its field holds the sum of
/// the pseudo-header, not complemented yet.
pub(crate) fn has_partial_checksum(header: &[u8]) -> bool {
    header.first().is_some_and(|flags| flags & NEEDS_CSUM != 0)
}

/// Returns the number of bytes that this complete IPv4 packet takes on the wire, where each segment
/// of a group has headers of its own.
pub(crate) fn wire_len(header: &[u8], packet: &[u8]) -> u64 {
    let most = match header {
        [_, TCP4, _, _, low, high, ..] => usize::from(u16::from_ne_bytes([*low, *high])),
        _ => 0,
    };
    // The header length in `header` is only a hint, so it is read from the packet itself.
    let ip = packet.first().map_or(0, |byte| usize::from(byte & 15) * 4);
    let tcp = packet.get(ip + 12);
    let headers = ip + tcp.map_or(0, |byte| usize::from(byte >> 4) * 4);
    let payload = packet.len().saturating_sub(headers);
    let more = match most {
        0 => 0,
        most => payload.div_ceil(most).saturating_sub(1),
    };
    u64::try_from(packet.len() + more * headers).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header for segments of 1,448 bytes, and a packet with headers of 20 and 32 bytes before
    /// this payload.
    fn group(kind: u8, payload: usize) -> ([u8; HEADER_LEN], Vec<u8>) {
        let mut header = [0; HEADER_LEN];
        (header[0], header[1]) = (NEEDS_CSUM, kind);
        header[4..6].copy_from_slice(&1448u16.to_ne_bytes());
        let mut packet = vec![0; 52 + payload];
        (packet[0], packet[32]) = (0x45, 0x80);
        (header, packet)
    }

    #[test]
    fn each_segment_has_headers_of_its_own() {
        let cases = [
            (TCP4, 0, 52),
            (TCP4, 1448, 1500),
            (TCP4, 1449, 1500 + 53),
            (TCP4, 3 * 1448, 4500),
            (0, 1448, 1500),
        ];
        for (kind, payload, size) in cases {
            let (header, packet) = group(kind, payload);
            assert!(has_partial_checksum(&header));
            assert_eq!(wire_len(&header, &packet), size, "{payload}");
        }
        // Without a segmentation header.
        let (_, packet) = group(TCP4, 5000);
        assert_eq!(
            (wire_len(&[], &packet), has_partial_checksum(&[])),
            (5052, false)
        );
    }
}
