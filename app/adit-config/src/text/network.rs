//! Hosts, targets and networks as text.

use core::net::IpAddr;

use adit_wire::{Host, Target};
use ipnet::IpNet;

/// A network: `10.0.0.0/8`, or an address alone. Bits behind the prefix are cleared, and
/// IPv4-mapped addresses are refused: targets are judged as IPv4.
#[must_use]
pub fn read_net(text: &str) -> Option<IpNet> {
    let net = match text.parse::<IpNet>() {
        Ok(net) => net.trunc(),
        Err(_) => IpNet::from(text.parse::<IpAddr>().ok()?),
    };
    let mapped = matches!(net, IpNet::V6(v6) if v6.addr().to_ipv4_mapped().is_some());
    (!mapped).then_some(net)
}

/// A network; a single address without its prefix.
#[must_use]
pub fn write_net(net: &IpNet) -> String {
    if net.prefix_len() == net.max_prefix_len() {
        net.addr().to_string()
    } else {
        net.to_string()
    }
}

/// A target as text that reads back as the same target (its `Display` escapes for terminals).
#[must_use]
pub fn write_target(target: &Target) -> String {
    match &target.host {
        Host::Ip(_) => target.to_string(),
        Host::Name(name) => format!("{}:{}", name.as_str(), target.port),
    }
}

/// True if the host is this machine by its form: a loopback address, or `localhost` (RFC 6761).
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
