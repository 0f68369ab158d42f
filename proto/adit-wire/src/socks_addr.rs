//! The RFC 1928 section 5 address format, used by SOCKS5, Shadowsocks and ShadowsocksR.
//!
//! The layout is `ATYP(1) ‖ ADDR ‖ PORT(2, big-endian)`. ATYP 1 is IPv4, 3 a host name with a length byte,
//! 4 IPv6.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{EndOfInput, Host, Reader, Target, unmap_ipv4};

/// Maximum length of an encoded address, in bytes: a host name of 255 bytes.
pub const MAX_ADDR_LEN: usize = 1 + 1 + 255 + 2;

const IPV4: u8 = 0x01;
const NAME: u8 = 0x03;
const IPV6: u8 = 0x04;

/// An error from decoding an address.
///
/// The enum is exhaustive: RFC 1928 defines no other part of an address, and servers have an answer for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AddrError {
    /// The input ends before the address does.
    #[error("the address is truncated")]
    Incomplete {
        /// Minimum number of bytes, from the start of the address, that the next attempt needs.
        total: usize,
    },
    /// The address type is not 1, 3 or 4.
    #[error("unknown address type {0:#04x}")]
    Type(u8),
    /// The host name is empty or contains forbidden bytes.
    #[error("invalid host name in the address")]
    Name,
}

/// Decodes the address at the front of `bytes` and returns it with its encoded length.
///
/// A host name that is an IP literal becomes that address, so that spelling cannot evade a later check.
///
/// # Errors
/// [`AddrError::Incomplete`] if `bytes` ends early, otherwise the reason why the bytes are not an address.
pub fn parse_addr(bytes: &[u8]) -> Result<(Target, usize), AddrError> {
    let total = match bytes {
        [] => return Err(AddrError::Incomplete { total: 1 }),
        [IPV4, ..] => 1 + 4 + 2,
        [IPV6, ..] => 1 + 16 + 2,
        [NAME] => return Err(AddrError::Incomplete { total: 2 }),
        [NAME, 0, ..] => return Err(AddrError::Name),
        [NAME, len, ..] => 1 + 1 + usize::from(*len) + 2,
        [other, ..] => return Err(AddrError::Type(*other)),
    };
    let field = bytes.get(..total).ok_or(AddrError::Incomplete { total })?;
    decode_field(field)
        .map_err(|EndOfInput| AddrError::Incomplete { total })?
        .map(|target| (target, total))
}

fn decode_field(field: &[u8]) -> Result<Result<Target, AddrError>, EndOfInput> {
    let mut r = Reader::new(field);
    let host = match r.u8()? {
        IPV4 => Host::Ip(IpAddr::V4(Ipv4Addr::from(r.array::<4>()?))),
        IPV6 => Host::Ip(unmap_ipv4(IpAddr::V6(Ipv6Addr::from(r.array::<16>()?)))),
        _ => {
            let len = usize::from(r.u8()?);
            let text = core::str::from_utf8(r.take(len)?).ok();
            match text.and_then(|t| Host::parse(t).ok()) {
                Some(host) => host,
                None => return Ok(Err(AddrError::Name)),
            }
        }
    };
    Ok(Ok(Target {
        host,
        port: r.u16()?,
    }))
}

/// Appends the encoded address of `target` to `out`.
pub fn encode_addr(target: &Target, out: &mut Vec<u8>) {
    match &target.host {
        Host::Ip(IpAddr::V4(ip)) => {
            out.push(IPV4);
            out.extend_from_slice(&ip.octets());
        }
        Host::Ip(IpAddr::V6(ip)) => {
            out.push(IPV6);
            out.extend_from_slice(&ip.octets());
        }
        Host::Name(name) => {
            out.push(NAME);
            // A `Name` is at most 255 bytes long by construction.
            out.push(name.as_str().len() as u8);
            out.extend_from_slice(name.as_str().as_bytes());
        }
    }
    out.extend_from_slice(&target.port.to_be_bytes());
}

impl Target {
    /// Returns the encoded length of this target (RFC 1928 section 5), in bytes.
    #[must_use]
    pub fn addr_len(&self) -> usize {
        match &self.host {
            Host::Ip(IpAddr::V4(_)) => 7,
            Host::Ip(IpAddr::V6(_)) => 19,
            Host::Name(name) => 4 + name.as_str().len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(text: &str) {
        let target: Target = text.parse().unwrap();
        let mut bytes = Vec::new();
        encode_addr(&target, &mut bytes);
        assert_eq!(bytes.len(), target.addr_len());
        for cut in 0..bytes.len() {
            assert!(
                matches!(parse_addr(&bytes[..cut]), Err(AddrError::Incomplete { total })
                if total > cut && total <= bytes.len())
            );
        }
        bytes.extend_from_slice(b"rest");
        assert_eq!(parse_addr(&bytes), Ok((target, bytes.len() - 4)));
    }

    #[test]
    fn every_form_round_trips_and_every_cut_waits() {
        for text in ["example.com:443", "192.0.2.7:8080", "[2001:db8::1]:53"] {
            round_trip(text);
        }
        round_trip(&format!("{}:1", "x".repeat(255)));
    }

    #[test]
    fn refuses_what_no_peer_may_send() {
        assert_eq!(parse_addr(&[3, 0, 0, 1]), Err(AddrError::Name));
        assert_eq!(
            parse_addr(&[0x11, 1, 2, 3, 4, 0, 1]),
            Err(AddrError::Type(0x11))
        );
        assert_eq!(parse_addr(&[3, 2, b'a', 0, 0, 1]), Err(AddrError::Name));
    }

    #[test]
    fn literals_in_names_become_addresses() {
        let (target, _) = parse_addr(b"\x03\x099.9.9.9.9\x00\x35").unwrap();
        assert!(
            matches!(target.host, Host::Name(_)),
            "five numbers are not an address"
        );
        let (target, _) = parse_addr(b"\x03\x079.9.9.9\x00\x35").unwrap();
        assert_eq!(target, "9.9.9.9:53".parse().unwrap());
        let mapped = [&[4][..], &[0; 10], &[0xff, 0xff, 127, 0, 0, 1, 0, 80]].concat();
        assert_eq!(
            parse_addr(&mapped).unwrap().0,
            "127.0.0.1:80".parse().unwrap()
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_handled(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok((target, used)) = parse_addr(&bytes) {
                prop_assert!(used <= bytes.len() && used <= MAX_ADDR_LEN);
                let mut again = Vec::new();
                encode_addr(&target, &mut again);
                prop_assert_eq!(parse_addr(&again).unwrap().0, target);
            }
        }
    }
}
