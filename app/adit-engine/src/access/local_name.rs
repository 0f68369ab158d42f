//! Names that lead into a local network or to this machine, wherever they are looked up.

use std::net::{IpAddr, Ipv4Addr};

use adit_net::names::{ascii_name, is_own, spelled_v4};

/// The known meaning of a name that was not looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The name stands for this address.
    Address(IpAddr),
    /// The name belongs to the network that it is looked up in.
    Inside,
    /// The name has no known meaning.
    Unknown,
}

/// Names of the local machine in the hosts files of common systems.
const LOOPBACK: &[&str] = &[
    "localhost",
    "localhost4",
    "localhost6",
    "localhost.localdomain",
    "localhost4.localdomain4",
    "localhost6.localdomain6",
    "ip6-localhost",
    "ip6-loopback",
];
/// Names under which cloud providers serve credentials.
const METADATA: &[&str] = &[
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.tencentyun.com",
    "instance-data",
    "instance-data.ec2.internal",
];
/// Zones that no public server answers for (RFC 6761, RFC 6762, RFC 8375, and ICANN's zone for private
/// use).
const INSIDE: &[&str] = &[".localdomain", ".local", ".internal", ".home.arpa"];

/// Returns the meaning of `name`. Does not allocate for ASCII names, which most are.
pub(super) fn meaning(name: &str) -> Meaning {
    if name.is_ascii() {
        return plain(name);
    }
    // Resolvers accept digits and dots of other scripts.
    match ascii_name(name) {
        Some(name) => plain(&name),
        None => Meaning::Unknown,
    }
}

fn plain(name: &str) -> Meaning {
    let name = name.strip_suffix('.').unwrap_or(name);
    let bare = name.strip_prefix('[').unwrap_or(name);
    let bare = bare.strip_suffix(']').unwrap_or(bare);
    // An interface name follows `%`.
    let bare = bare.split('%').next().unwrap_or_default();
    if let Some(ip) = bare
        .parse()
        .ok()
        .or_else(|| spelled_v4(bare).map(IpAddr::V4))
    {
        return Meaning::Address(ip);
    }
    let is = |known: &&str| name.eq_ignore_ascii_case(known);
    let below = |zone: &&str| {
        let at = name.len().checked_sub(zone.len());
        at.and_then(|at| name.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(zone))
    };
    if LOOPBACK.iter().any(is) || below(&".localhost") || is_own(name) {
        Meaning::Address(Ipv4Addr::LOCALHOST.into())
    } else if METADATA.iter().any(is) {
        Meaning::Address(Ipv4Addr::new(169, 254, 169, 254).into())
    } else if !name.contains('.') || INSIDE.iter().any(below) {
        Meaning::Inside
    } else {
        Meaning::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_address_is_that_address() {
        for name in [
            "127.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "127.0.0.1.",
            "[127.0.0.1]",
            "１２７.0.0.1",
            "127。0。0。1",
            "localhost",
            "LocalHost.",
            "a.b.localhost",
            "ip6-localhost",
            "localhost.localdomain",
        ] {
            let loopback = Meaning::Address([127, 0, 0, 1].into());
            assert_eq!(meaning(name), loopback, "{name}");
        }
        let v6 = Meaning::Address("::1".parse().unwrap());
        for name in ["::1%lo", "[::1]", "::1"] {
            assert_eq!(meaning(name), v6, "{name}");
        }
    }

    #[test]
    fn names_of_networks_are_told_from_others() {
        let metadata = Meaning::Address([169, 254, 169, 254].into());
        for name in [
            "metadata.google.internal",
            "Metadata.Google.Internal.",
            "metadata",
        ] {
            assert_eq!(meaning(name), metadata, "{name}");
        }
        for name in [
            "router",
            "db.corp.internal",
            "printer.local",
            "x.home.arpa",
            "kubernetes",
        ] {
            assert_eq!(meaning(name), Meaning::Inside, "{name}");
        }
        for name in [
            "example.com",
            "mylocalhost.com",
            "a.locals",
            "notlocalhost.org",
            "1.2.3.4.5",
        ] {
            assert_eq!(meaning(name), Meaning::Unknown, "{name}");
        }
    }
}
