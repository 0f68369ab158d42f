//! Addresses of peers and headers of forwarded datagrams, as pure functions over bytes.
//!
//! An address is an IPv6 address of 16 bytes, in which IPv4 is mapped (RFC 4291, 2.5.5.2), and a port.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use adit_wire::unmap_ipv4;

/// Size of an address, in bytes.
const ADDRESS_BYTES: usize = 18;
/// Maximum number of addresses in a list: it fits a [message](super::HandoverMessage).
pub const MAX_SOURCES: usize = 500_000;

/// The header of a run of datagrams from one peer: its address, and the size of each datagram (2 bytes). The
/// last datagram may be shorter; an empty one has size 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunHeader {
    /// The address of the peer; never one of IPv4 in IPv6.
    pub from: SocketAddr,
    /// The size of each datagram, in bytes.
    pub stride: u16,
}

impl RunHeader {
    /// Size of a header, in bytes.
    pub const BYTES: usize = ADDRESS_BYTES + 2;

    /// Parses a header. All bytes are one.
    #[must_use]
    pub fn parse(bytes: [u8; Self::BYTES]) -> Self {
        let (address, stride) = bytes.split_at(ADDRESS_BYTES);
        let address = address.first_chunk().copied().unwrap_or_default();
        let stride = stride.first_chunk().copied().unwrap_or_default();
        Self {
            from: parse_address(address),
            stride: u16::from_be_bytes(stride),
        }
    }

    /// Returns the header's bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (address, stride) = bytes.split_at_mut(ADDRESS_BYTES);
        address.copy_from_slice(&address_bytes(self.from));
        stride.copy_from_slice(&self.stride.to_be_bytes());
        bytes
    }
}

/// Returns the bytes of a list of addresses. Those beyond [`MAX_SOURCES`] are omitted.
#[must_use]
pub fn encode_sources(sources: &[SocketAddr]) -> Vec<u8> {
    let sources = sources.iter().take(MAX_SOURCES);
    sources.flat_map(|source| address_bytes(*source)).collect()
}

/// Parses a list of addresses; `None` if it does not end with an address or has more than [`MAX_SOURCES`].
#[must_use]
pub fn parse_sources(bytes: &[u8]) -> Option<Vec<SocketAddr>> {
    let (sources, rest) = bytes.as_chunks::<ADDRESS_BYTES>();
    let valid = rest.is_empty() && sources.len() <= MAX_SOURCES;
    valid.then(|| sources.iter().copied().map(parse_address).collect())
}

fn address_bytes(address: SocketAddr) -> [u8; ADDRESS_BYTES] {
    let ip = match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let mut bytes = [0; ADDRESS_BYTES];
    let (octets, port) = bytes.split_at_mut(16);
    octets.copy_from_slice(&ip.octets());
    port.copy_from_slice(&address.port().to_be_bytes());
    bytes
}

fn parse_address(bytes: [u8; ADDRESS_BYTES]) -> SocketAddr {
    let (octets, port) = bytes.split_at(16);
    let octets: [u8; 16] = octets.first_chunk().copied().unwrap_or_default();
    let port = port.first_chunk().copied().unwrap_or_default();
    let ip = unmap_ipv4(Ipv6Addr::from(octets).into());
    SocketAddr::new(ip, u16::from_be_bytes(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families_survive_the_round_trip() {
        let sources: Vec<SocketAddr> = ["192.0.2.1:53", "[2001:db8::7]:65535", "[::]:0"]
            .map(|text| text.parse().unwrap())
            .to_vec();
        let bytes = encode_sources(&sources);
        assert_eq!(bytes.len(), 3 * ADDRESS_BYTES);
        assert_eq!(parse_sources(&bytes), Some(sources.clone()));
        assert_eq!(parse_sources(&bytes[1..]), None);
        assert_eq!(parse_sources(b""), Some(Vec::new()));
        let mapped: SocketAddr = "[::ffff:192.0.2.1]:53".parse().unwrap();
        let same = parse_sources(&encode_sources(&[mapped])).unwrap();
        assert_eq!(same, sources[..1], "one address has one form");
        for from in sources {
            let header = RunHeader { from, stride: 1400 };
            assert_eq!(RunHeader::parse(header.to_bytes()), header);
        }
    }

    #[test]
    fn a_list_is_bounded() {
        let source: SocketAddr = "192.0.2.1:53".parse().unwrap();
        let many = vec![source; MAX_SOURCES + 1];
        let bytes = encode_sources(&many);
        assert_eq!(parse_sources(&bytes).unwrap().len(), MAX_SOURCES);
        assert_eq!(parse_sources(&[&bytes[..], &bytes[..18]].concat()), None);
    }
}
