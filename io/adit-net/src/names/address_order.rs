//! The order of address families for names with addresses of both (RFC 6724).

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};

/// Sorts the family first that this machine reaches better. The order within a family is kept: servers use
/// it to spread the load.
pub fn sort_by_family(addrs: &mut [SocketAddr]) {
    let first = |v6: bool| addrs.iter().find(|addr| addr.is_ipv6() == v6).copied();
    if let (Some(v6), Some(v4)) = (first(true), first(false)) {
        let prefers = prefers_v6(source_for(v6), v6.ip(), source_for(v4), v4.ip());
        addrs.sort_by_key(|addr| addr.is_ipv6() != prefers);
    }
}

/// Returns the source address for packets to `to`; nothing is sent.
fn source_for(to: SocketAddr) -> Option<IpAddr> {
    let from: IpAddr = match to {
        SocketAddr::V4(_) => [0; 4].into(),
        SocketAddr::V6(_) => [0u16; 8].into(),
    };
    let socket = UdpSocket::bind((from, 0)).ok()?;
    socket.connect((to.ip(), 9)).ok()?;
    socket.local_addr().ok().map(|addr| addr.ip())
}

/// Returns true if IPv6 is preferred by rules 1, 2, 5, 6 and 8 of section 6; the other rules do not
/// distinguish the families.
fn prefers_v6(v6_from: Option<IpAddr>, v6: IpAddr, v4_from: Option<IpAddr>, v4: IpAddr) -> bool {
    let (v6_from, v4_from) = match (v6_from, v4_from) {
        (Some(six), Some(four)) => (six, four),
        (six, _) => return six.is_some(),
    };
    let rank = |from: IpAddr, to: IpAddr| {
        let ((label, precedence), scope) = (label_and_precedence(to), multicast_scope(to));
        (
            multicast_scope(from) == scope,
            label_and_precedence(from).0 == label,
            precedence,
            std::cmp::Reverse(scope),
        )
    };
    rank(v6_from, v6) >= rank(v4_from, v4)
}

/// Returns the label and the precedence of an address from the table of section 2.1.
fn label_and_precedence(ip: IpAddr) -> (u8, u8) {
    let v6 = match ip {
        IpAddr::V4(_) => return (4, 35),
        IpAddr::V6(v6) => v6,
    };
    match v6.segments() {
        _ if v6 == Ipv6Addr::LOCALHOST => (0, 50),
        [0x2002, ..] => (2, 30),
        [0x2001, 0, ..] => (5, 5),
        [a, ..] if a & 0xfe00 == 0xfc00 => (13, 3),
        [a, ..] if a & 0xffc0 == 0xfec0 => (11, 1),
        [0x3ffe, ..] => (12, 1),
        _ => (1, 40),
    }
}

/// Returns the scope of an address as a multicast scope; private IPv4 addresses count as global (section
/// 3.2).
fn multicast_scope(ip: IpAddr) -> u8 {
    let link = match ip {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local(),
    };
    if link { 0x2 } else { 0xe }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn the_better_reached_family_is_first() {
        let (v6, v4) = (ip("2600::1").unwrap(), ip("1.1.1.1").unwrap());
        for (why, v6_from, v4_from, first) in [
            ("both", ip("2a00::1"), ip("192.168.0.2"), true),
            ("no IPv6", None, ip("192.168.0.2"), false),
            ("no IPv4", ip("2a00::1"), None, true),
            ("only a local IPv6", ip("fd00::1"), ip("192.168.0.2"), false),
            ("only a link", ip("fe80::1"), ip("192.168.0.2"), false),
            ("6to4", ip("2002:c000:201::1"), ip("192.168.0.2"), false),
        ] {
            assert_eq!(prefers_v6(v6_from, v6, v4_from, v4), first, "{why}");
        }
        let loopback = (ip("::1"), ip("127.0.0.1"));
        assert!(prefers_v6(
            loopback.0,
            loopback.0.unwrap(),
            loopback.1,
            loopback.1.unwrap()
        ));
    }
}
