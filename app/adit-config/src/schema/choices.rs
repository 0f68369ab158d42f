//! Value types with a fixed set of choices, shared by several schemes.

use adit_wire::Target;
use ipnet::IpNet;

use crate::schema::{Typed, words};
use crate::text::{format_network, format_target, parse_network};

/// The reaction to a connection that fails before it is authenticated (SEC-P1): the same for all causes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectPolicy {
    /// Stays silent until the peer gives up or a deadline passes.
    Drain,
    /// Resets the connection.
    Reset,
    /// Closes the connection in an orderly way.
    Close,
    /// Forwards the bytes to another server, which answers.
    Forward(Target),
}

/// The key in front of the users' keys at a listener with users of the fleet (SIP023).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetIdentity {
    /// A key of this node: a request for another node is not accepted here.
    Node,
    /// A key of the realm, for nodes behind one address.
    Shared,
}

/// The treatment of requests from before the start of the server (SEC-R3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Refuses them: the replay filter does not know them.
    Strict,
    /// Serves them.
    Lenient,
}

/// The allowed destinations that are not public: loopback, link-local, RFC 1918 and the like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrivateAccess {
    /// None of them.
    Deny,
    /// All of them.
    All,
    /// Only these networks.
    Nets(Vec<IpNet>),
}

/// The networks of made-up addresses: at most one of each family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FakeIpNets(pub(crate) Vec<IpNet>);

/// The preferred address family towards destinations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressPreference {
    /// The resolver's order.
    Auto,
    /// IPv4 first.
    V4,
    /// IPv6 first.
    V6,
    /// IPv4 only.
    V4Only,
    /// IPv6 only.
    V6Only,
}

/// The transports that go through a plugin (SIP003u).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PluginMode {
    /// Connections only.
    TcpOnly,
    /// Datagrams only.
    UdpOnly,
    /// Both.
    TcpAndUdp,
}

/// The transport of datagrams to a Shadowsocks server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UdpTransport {
    /// UDP packets.
    Native,
    /// A connection: UDP-over-TCP version 2, as in sing-box.
    OverTcp,
    /// None: datagrams are not carried.
    Off,
}

impl PluginMode {
    /// True if connections go through the plugin.
    #[must_use]
    pub const fn tcp(self) -> bool {
        matches!(self, Self::TcpOnly | Self::TcpAndUdp)
    }

    /// True if datagrams go through the plugin.
    #[must_use]
    pub const fn udp(self) -> bool {
        matches!(self, Self::UdpOnly | Self::TcpAndUdp)
    }
}

words!(
    AddressPreference, "auto|v4|v6|v4only|v6only",
    "auto" => Self::Auto, "v4" => Self::V4, "v6" => Self::V6,
    "v4only" => Self::V4Only, "v6only" => Self::V6Only,
);
words!(
    FleetIdentity, "node|shared",
    "node" => Self::Node, "shared" => Self::Shared,
);
words!(
    RestartPolicy, "strict|lenient",
    "strict" => Self::Strict, "lenient" => Self::Lenient,
);
words!(
    UdpTransport, "true|false|over-tcp",
    "true" => Self::Native, "false" => Self::Off, "over-tcp" => Self::OverTcp,
);
words!(
    PluginMode, "tcp_only|udp_only|tcp_and_udp",
    "tcp_only" => Self::TcpOnly, "udp_only" => Self::UdpOnly,
    "tcp_and_udp" => Self::TcpAndUdp,
);

impl Typed for PrivateAccess {
    const NAME: &'static str = "all|none|networks";

    fn read(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            "none" => Ok(Self::Deny),
            list => list
                .split(',')
                .map(|item| {
                    parse_network(item).ok_or_else(|| {
                        "expected `all`, `none` or networks like `10.0.0.0/8,fd00::/8`".to_owned()
                    })
                })
                .collect::<Result<_, _>>()
                .map(Self::Nets),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Deny => "none".to_owned(),
            Self::Nets(nets) => nets
                .iter()
                .map(format_network)
                .collect::<Vec<_>>()
                .join(","),
        }
    }
}

impl Typed for FakeIpNets {
    const NAME: &'static str = "networks";

    fn read(text: &str) -> Result<Self, String> {
        let expected = || {
            "expected an IPv4 network of /8 to /30, an IPv6 network of /32 to /124, or both: \
             `198.18.0.0/15,fd00:ad17::/64`"
                .to_owned()
        };
        let mut nets: Vec<IpNet> = Vec::new();
        for item in text.split(',') {
            let net = parse_network(item).ok_or_else(expected)?;
            let sizes = match net {
                IpNet::V4(_) => 8..=30,
                IpNet::V6(_) => 32..=124,
            };
            let is_v4 = |net: &IpNet| matches!(net, IpNet::V4(_));
            if !sizes.contains(&net.prefix_len())
                || nets.iter().any(|other| is_v4(other) == is_v4(&net))
            {
                return Err(expected());
            }
            nets.push(net);
        }
        nets.sort_by_key(|net| matches!(net, IpNet::V6(_)));
        Ok(Self(nets))
    }

    fn write(&self) -> String {
        let nets: Vec<String> = self.0.iter().map(format_network).collect();
        nets.join(",")
    }
}

impl Typed for RejectPolicy {
    const NAME: &'static str = "drain|reset|close|forward:HOST:PORT";

    fn read(text: &str) -> Result<Self, String> {
        let target = |text: &str| {
            text.parse::<Target>()
                .ok()
                .filter(|target| target.port != 0)
        };
        match text {
            "drain" => Ok(Self::Drain),
            "reset" => Ok(Self::Reset),
            "close" => Ok(Self::Close),
            other => other
                .strip_prefix("forward:")
                .and_then(target)
                .map(Self::Forward)
                .ok_or_else(|| format!("expected one of {}", Self::NAME)),
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Drain => "drain".to_owned(),
            Self::Reset => "reset".to_owned(),
            Self::Close => "close".to_owned(),
            Self::Forward(target) => format!("forward:{}", format_target(target)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn networks_are_read_and_written() {
        for (text, canonical) in [
            ("all", "all"),
            ("none", "none"),
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("10.0.0.1,fd00::/8", "10.0.0.1,fd00::/8"),
            ("10.0.0.1/32", "10.0.0.1"),
        ] {
            assert_eq!(PrivateAccess::read(text).unwrap().write(), canonical);
        }
        for text in [
            "",
            "10.0.0.0/33",
            "lan",
            "10.0.0.0/8,",
            "::ffff:10.0.0.0/104",
        ] {
            assert!(PrivateAccess::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fake_networks_are_one_of_each_family() {
        for (text, canonical) in [
            ("198.18.0.0/15", "198.18.0.0/15"),
            (
                "fd00:ad17::/64,198.19.2.3/16",
                "198.19.0.0/16,fd00:ad17::/64",
            ),
        ] {
            assert_eq!(FakeIpNets::read(text).unwrap().write(), canonical);
        }
        for text in [
            "",
            "198.18.0.1",
            "0.0.0.0/0",
            "198.18.0.0/16,198.19.0.0/16",
            "fd00::/8",
        ] {
            assert!(FakeIpNets::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn policies_are_read_and_written() {
        for text in [
            "drain",
            "reset",
            "close",
            "forward:example.com:443",
            "forward:[::1]:80",
        ] {
            assert_eq!(RejectPolicy::read(text).unwrap().write(), text);
        }
        for text in ["", "forward:", "forward:a", "forward:a:0", "Drain"] {
            assert!(RejectPolicy::read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn words_are_read_and_written() {
        assert_eq!(UdpTransport::read("over-tcp"), Ok(UdpTransport::OverTcp));
        assert_eq!(PluginMode::TcpAndUdp.write(), "tcp_and_udp");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,20}") {
            let _ = PrivateAccess::read(&text);
            let _ = FakeIpNets::read(&text);
            let _ = RejectPolicy::read(&text);
        }
    }
}
