//! Names that lead into a local network or to this machine, wherever they are looked up.

use std::net::{IpAddr, Ipv4Addr};

use adit_net::names::{is_own_host_name, parse_numeric_v4, to_ascii_name};

/// The known meaning of a name that was not looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameMeaning {
    /// The name stands for this address.
    Address(IpAddr),
    /// The name belongs to the network that it is looked up in.
    LocalNetwork,
    /// The name has no known meaning.
    Unknown,
}

/// Names of the local machine in the hosts files of common systems.
const LOOPBACK_NAMES: &[&str] = &[
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
const METADATA_NAMES: &[&str] = &[
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.tencentyun.com",
    "instance-data",
    "instance-data.ec2.internal",
];
/// Zones that no public server answers for (RFC 6761, RFC 6762, RFC 8375, and ICANN's zone for private
/// use).
const PRIVATE_ZONES: &[&str] = &[".localdomain", ".local", ".internal", ".home.arpa"];

/// Returns the meaning of `name`. Does not allocate for ASCII names, which most are.
pub(super) fn classify_name(name: &str) -> NameMeaning {
    if name.is_ascii() {
        return classify_ascii_name(name);
    }
    // Resolvers accept digits and dots of other scripts.
    match to_ascii_name(name) {
        Some(name) => classify_ascii_name(&name),
        None => NameMeaning::Unknown,
    }
}

fn classify_ascii_name(name: &str) -> NameMeaning {
    let name = name.strip_suffix('.').unwrap_or(name);
    let bare = name.strip_prefix('[').unwrap_or(name);
    let bare = bare.strip_suffix(']').unwrap_or(bare);
    // An interface name follows `%`.
    let bare = bare.split('%').next().unwrap_or_default();
    if let Some(ip) = bare
        .parse()
        .ok()
        .or_else(|| parse_numeric_v4(bare).map(IpAddr::V4))
    {
        return NameMeaning::Address(ip);
    }
    let is = |known: &&str| name.eq_ignore_ascii_case(known);
    let below = |zone: &&str| {
        let at = name.len().checked_sub(zone.len());
        at.and_then(|at| name.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(zone))
    };
    if LOOPBACK_NAMES.iter().any(is) || below(&".localhost") || is_own_host_name(name) {
        NameMeaning::Address(Ipv4Addr::LOCALHOST.into())
    } else if METADATA_NAMES.iter().any(is) {
        NameMeaning::Address(Ipv4Addr::new(169, 254, 169, 254).into())
    } else if !name.contains('.') || PRIVATE_ZONES.iter().any(below) {
        NameMeaning::LocalNetwork
    } else {
        NameMeaning::Unknown
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
            let loopback = NameMeaning::Address([127, 0, 0, 1].into());
            assert_eq!(classify_name(name), loopback, "{name}");
        }
        let v6 = NameMeaning::Address("::1".parse().unwrap());
        for name in ["::1%lo", "[::1]", "::1"] {
            assert_eq!(classify_name(name), v6, "{name}");
        }
    }

    #[test]
    fn names_of_networks_are_told_from_others() {
        let metadata = NameMeaning::Address([169, 254, 169, 254].into());
        for name in [
            "metadata.google.internal",
            "Metadata.Google.Internal.",
            "metadata",
        ] {
            assert_eq!(classify_name(name), metadata, "{name}");
        }
        for name in [
            "router",
            "db.corp.internal",
            "printer.local",
            "x.home.arpa",
            "kubernetes",
        ] {
            assert_eq!(classify_name(name), NameMeaning::LocalNetwork, "{name}");
        }
        for name in [
            "example.com",
            "mylocalhost.com",
            "a.locals",
            "notlocalhost.org",
            "1.2.3.4.5",
        ] {
            assert_eq!(classify_name(name), NameMeaning::Unknown, "{name}");
        }
    }
}
