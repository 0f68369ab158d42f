//! The server's side: the protocol of a SOCKS listener.
//!
//! A handshake returns a [`Request`](crate::Request), which [`encode_reply`] answers. A handshake that
//! refuses has already appended the refusal to `tx` when it returns its [`Refusal`].

use alloc::{vec, vec::Vec};

mod refusal;
mod socks4;
mod socks5;

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use adit_wire::{Target, encode_addr};

pub use refusal::Refusal;
pub use socks4::Socks4;
pub use socks5::Socks5;

use crate::{Reply, Version};

/// SOCKS4's "request granted".
pub(crate) const GRANTED: u8 = 0x5a;
/// SOCKS4's "request rejected or failed".
pub(crate) const REJECTED: u8 = 0x5b;

/// The users of a listener.
pub trait Credentials: Send + Sync {
    /// True if users are configured.
    fn is_required(&self) -> bool;

    /// True if the pair is correct. Implementations must take the same time for all users and
    /// passwords of the same lengths. Both are opaque bytes and may be empty.
    fn check_password(&self, user: &[u8], password: &[u8]) -> bool;
}

/// Encodes the answer to a request, to be sent in one write (RFC 1928 section 6; the SOCKS4 memo).
///
/// `bound` is BND.ADDR and BND.PORT. Without it, for every failure, and for an IPv6 address in
/// SOCKS4, the address is all zeros. An IPv4-mapped address is written as IPv4. SOCKS4 has only
/// "granted" and "rejected"; its clients read the address only for [`Command::Bind`].
///
/// [`Command::Bind`]: crate::Command::Bind
#[must_use]
pub fn encode_reply(version: Version, reply: Reply, bound: Option<SocketAddr>) -> Vec<u8> {
    let zeros = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
    let granted = reply == Reply::Succeeded;
    let bound = Target::from(bound.filter(|_| granted).unwrap_or(zeros));
    match version {
        Version::V5 => {
            let mut out = Vec::with_capacity(3 + bound.addr_len());
            out.extend_from_slice(&[0x05, reply.to_byte(), 0x00]);
            encode_addr(&bound, &mut out);
            out
        }
        Version::V4 => {
            let (ip, port) = match bound.socket_addr() {
                Some(SocketAddr::V4(v4)) => (v4.ip().octets(), v4.port().to_be_bytes()),
                _ => ([0; 4], [0; 2]),
            };
            // The first byte is the version of the reply, which is 0.
            let mut out = vec![0x00, if granted { GRANTED } else { REJECTED }];
            out.extend_from_slice(&port);
            out.extend_from_slice(&ip);
            out
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_both_versions() {
        let v4: Option<SocketAddr> = Some("192.0.2.1:258".parse().unwrap());
        let v6: Option<SocketAddr> = Some("[2001:db8::1]:80".parse().unwrap());
        let mapped: Option<SocketAddr> = Some("[::ffff:192.0.2.1]:258".parse().unwrap());
        let ok = [5, 0, 0, 1, 192, 0, 2, 1, 1, 2];
        assert_eq!(encode_reply(Version::V5, Reply::Succeeded, v4), ok);
        assert_eq!(encode_reply(Version::V5, Reply::Succeeded, mapped), ok);
        assert_eq!(
            encode_reply(Version::V5, Reply::Succeeded, None),
            [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(encode_reply(Version::V5, Reply::Succeeded, v6).len(), 22);
        assert_eq!(
            encode_reply(Version::V5, Reply::ConnectionRefused, v4),
            [5, 5, 0, 1, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            encode_reply(Version::V4, Reply::Succeeded, None),
            [0, 0x5a, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            encode_reply(Version::V4, Reply::Succeeded, v4),
            [0, 0x5a, 1, 2, 192, 0, 2, 1]
        );
        assert_eq!(
            encode_reply(Version::V4, Reply::Succeeded, v6),
            [0, 0x5a, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            encode_reply(Version::V4, Reply::TtlExpired, v4),
            [0, 0x5b, 0, 0, 0, 0, 0, 0]
        );
    }
}
