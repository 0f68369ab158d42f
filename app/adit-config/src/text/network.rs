//! Hosts, targets and networks as text.

use core::net::IpAddr;

use adit_wire::{Host, Target};
use ipnet::IpNet;

/// Parses a network, such as `10.0.0.0/8`, or a single address. Bits after the prefix are cleared.
/// Returns `None` for IPv4-mapped addresses: targets are checked as IPv4.
#[must_use]
pub fn parse_network(text: &str) -> Option<IpNet> {
    let net = match text.parse::<IpNet>() {
        Ok(net) => net.trunc(),
        Err(_) => IpNet::from(text.parse::<IpAddr>().ok()?),
    };
    let mapped = matches!(net, IpNet::V6(v6) if v6.addr().to_ipv4_mapped().is_some());
    (!mapped).then_some(net)
}

/// Formats a network; a single address is written without its prefix.
#[must_use]
pub fn format_network(net: &IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() {
        net.addr().to_string()
    } else {
        net.to_string()
    }
}

/// Formats a target so that it parses back to the same target (its `Display` escapes for terminals).
#[must_use]
pub fn format_target(target: &Target) -> String {
    match &target.host {
        Host::Ip(_) => target.to_string(),
        Host::Name(name) => format!("{}:{}", name.as_str(), target.port),
    }
}

/// True if the host is this machine by its form: a loopback address, or `localhost` (RFC 6761). Names
/// are not resolved.
#[must_use]
pub fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Ip(ip) => ip.is_loopback(),
        Host::Name(name) => {
            let name = name.as_str().trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}
