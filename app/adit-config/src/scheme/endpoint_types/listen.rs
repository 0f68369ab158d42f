//! Listeners of all protocols.

use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::time::Duration;
use std::path::PathBuf;

use adit_wire::{Host, Target};
use ipnet::IpNet;

use crate::scheme::endpoint_types::{
    AddressPreference, CarrierSettings, KcpSettings, Plugin, PrivateAccess, SsRole, SsServer,
    SshServer, SsrServer, UserPassword,
};
use crate::text::is_this_machine;

/// A listener with its settings.
#[derive(Debug, PartialEq, Eq)]
pub struct ListenerConfig {
    /// The address.
    pub addr: ListenAddr,
    /// The protocol.
    pub kind: ListenerKind,
    /// Timeouts and maximum numbers.
    pub limits: ListenerLimits,
    /// The allowed destinations.
    pub access: AccessRules,
    /// Preferred address family towards destinations.
    pub prefer: AddressPreference,
    /// The carrier, or `None` for plain TCP and UDP.
    pub carrier: Option<CarrierSettings>,
    /// True if connections come from a proxy on this machine that sends the addresses of its clients
    /// (PROXY protocol, version 2).
    pub proxy_protocol: bool,
    /// True if rules see the name in a client's first bytes when it requests an address.
    pub sniff: bool,
}

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddr {
    /// The address or name. `None` means all addresses, IPv4 and IPv6.
    pub host: Option<Host>,
    /// The port. 0 means any free port.
    pub port: u16,
}

/// The protocol of a listener.
#[derive(Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// SOCKS, HTTP or both.
    Proxy(ProxyListener),
    /// A Shadowsocks server.
    Shadowsocks(SsServer),
    /// A ShadowsocksR server.
    ShadowsocksR(SsrServer),
    /// An SSH server that opens streams to targets.
    Ssh(Box<SshServer>),
    /// A port that forwards to a fixed target.
    Forward(ForwardListener),
    /// Traffic that the firewall redirects.
    Transparent(TransparentListener),
    /// A DNS server.
    Dns(DnsListener),
}

impl ListenerKind {
    /// True if it accepts datagrams from clients.
    pub(crate) const fn offers_udp(&self) -> bool {
        match self {
            Self::Proxy(proxy) => proxy.udp,
            Self::Shadowsocks(server) => server.udp,
            Self::ShadowsocksR(server) => server.udp,
            Self::Ssh(_) => false,
            Self::Forward(forward) => forward.udp,
            Self::Transparent(transparent) => transparent.udp,
            // It answers queries and relays no datagrams.
            Self::Dns(_) => false,
        }
    }

    /// Returns true if it has users of the fleet.
    #[must_use]
    pub const fn has_fleet_users(&self) -> bool {
        match self {
            Self::Proxy(proxy) => proxy.fleet_users,
            Self::Shadowsocks(server) => matches!(server.role, SsRole::Fleet { .. }),
            Self::ShadowsocksR(server) => server.fleet_users,
            Self::Ssh(server) => server.fleet_users,
            Self::Forward(_) | Self::Transparent(_) | Self::Dns(_) => false,
        }
    }

    /// Returns true if it has users of the fleet, who log in with passwords.
    #[must_use]
    pub const fn has_fleet_logins(&self) -> bool {
        // The keys of Shadowsocks are in a table of each listener.
        self.has_fleet_users() && !matches!(self, Self::Shadowsocks(_))
    }

    /// Returns the plugin, if there is one.
    #[must_use]
    pub const fn plugin(&self) -> Option<&Plugin> {
        match self {
            Self::Shadowsocks(server) => server.plugin.as_ref(),
            Self::ShadowsocksR(server) => server.plugin.as_ref(),
            Self::Proxy(_)
            | Self::Ssh(_)
            | Self::Forward(_)
            | Self::Transparent(_)
            | Self::Dns(_) => None,
        }
    }
}

/// A proxy listener.
#[derive(Debug, PartialEq, Eq)]
pub struct ProxyListener {
    /// True if SOCKS5 is accepted.
    pub socks5: bool,
    /// True if SOCKS4 and SOCKS4a are accepted; never with users.
    pub socks4: bool,
    /// True if HTTP is accepted.
    pub http: bool,
    /// The users, with unique names, the user of the URL first. Empty means everyone who can reach the listener.
    pub users: Vec<UserPassword>,
    /// The file that all users but that of the URL were read from.
    pub users_file: Option<PathBuf>,
    /// True if the first user is that of the URL.
    pub has_url_user: bool,
    /// True if the users of the fleet are accepted too.
    pub fleet_users: bool,
    /// True if UDP ASSOCIATE is offered.
    pub udp: bool,
    /// True if BIND is offered.
    pub bind: bool,
    /// The address to which clients should send UDP. `None` means that of their control connection.
    pub udp_advertise: Option<IpAddr>,
    /// True if fragments of SOCKS5 datagrams are reassembled.
    pub udp_reassembly: bool,
    /// True if UDP from any address reaches the client, not only from those it has contacted (SEC-E3).
    pub full_cone: bool,
    /// True if replies contain zeros instead of the server's outgoing address.
    pub hide_bind: bool,
    /// True if HTTP errors report their cause.
    pub verbose_errors: bool,
}

/// A port that forwards to one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardListener {
    /// True if TCP is forwarded. At least one of `tcp` and `udp` is true.
    pub tcp: bool,
    /// True if UDP is forwarded.
    pub udp: bool,
    /// The target, whose port is not 0. `None` leaves it to the remote end of the chain's last hop.
    pub target: Option<Target>,
    /// Maximum wait for first bytes that can be sent with the request (TCP).
    pub first_wait: Duration,
}

/// A listener for redirected traffic to other destinations (Linux). Its port is not 0.
#[derive(Debug, PartialEq, Eq)]
pub struct TransparentListener {
    /// The method of redirection.
    pub method: InterceptMethod,
    /// True if TCP is accepted; always with [`InterceptMethod::Redirect`].
    pub tcp: bool,
    /// True if UDP is accepted; never with [`InterceptMethod::Redirect`].
    pub udp: bool,
    /// True if UDP from any address reaches the client, not only from those it has contacted (SEC-E3).
    pub full_cone: bool,
}

/// A DNS server. At least one of `tcp` and `udp` is true.
#[derive(Debug, PartialEq, Eq)]
pub struct DnsListener {
    /// True if TCP is served.
    pub tcp: bool,
    /// True if UDP is served.
    pub udp: bool,
    /// The networks of the addresses that stand for names: at most one of each family. Empty if answers have the
    /// addresses of the names.
    pub fake_ip: Vec<IpNet>,
    /// The file that keeps the names of these addresses; only with `fake_ip`.
    pub state: Option<PathBuf>,
}

/// The method by which a firewall redirects traffic to a transparent listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterceptMethod {
    /// `REDIRECT`: the destination is rewritten, and the kernel stores the original one.
    Redirect,
    /// `TPROXY`: packets stay unchanged.
    Tproxy,
}

/// Timeouts and maximum numbers of a listener. All timeouts are longer than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Maximum time from accepting a connection to its complete request.
    pub handshake: Duration,
    /// Maximum time to connect to the destination.
    pub dial: Duration,
    /// Maximum time without data in either direction.
    pub idle: Duration,
    /// Like `idle`, once one side has finished sending.
    pub half_close_idle: Duration,
    /// Maximum time without a packet of a UDP association.
    pub udp_idle: Duration,
    /// Maximum number of simultaneous connections, at least 1. `None` derives it from the descriptor limit.
    pub max_connections: Option<usize>,
}

/// The destinations that clients of a listener may reach, in addition to public ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRules {
    /// The allowed private destinations (SEC-E2).
    pub private: PrivateAccess,
}

impl ListenerConfig {
    /// Returns the ports: one, or a range that the plan splits into one listener per port.
    pub(crate) const fn port_range(&self) -> RangeInclusive<u16> {
        let first = self.addr.port;
        first..=CarrierSettings::last_port(self.carrier.as_ref(), first)
    }

    /// Returns the same listener on other ports, or `None` unless it is a forwarder over KCP: only these
    /// have ranges.
    pub(crate) fn with_ports(&self, ports: &RangeInclusive<u16>) -> Option<Self> {
        let (ListenerKind::Forward(forward), Some(CarrierSettings::Kcp(kcp))) =
            (&self.kind, &self.carrier)
        else {
            return None;
        };
        let addr = ListenAddr {
            host: self.addr.host.clone(),
            port: *ports.start(),
        };
        let kcp = KcpSettings {
            last_port: *ports.end(),
            ..(**kcp).clone()
        };
        Some(Self {
            addr,
            kind: ListenerKind::Forward(forward.clone()),
            limits: self.limits,
            access: self.access.clone(),
            prefer: self.prefer,
            carrier: Some(CarrierSettings::Kcp(Box::new(kcp))),
            proxy_protocol: self.proxy_protocol,
            sniff: self.sniff,
        })
    }

    /// Returns two flags: true if a TCP port, and true if a UDP port is bound. UDP of a proxy uses other
    /// ports.
    pub(crate) const fn bound_transports(&self) -> (bool, bool) {
        if self.carrier.is_some() {
            return (false, true);
        }
        match &self.kind {
            ListenerKind::Proxy(_) | ListenerKind::Ssh(_) => (true, false),
            ListenerKind::Shadowsocks(server) => (server.tcp, server.udp),
            ListenerKind::ShadowsocksR(server) => (server.tcp, server.udp),
            ListenerKind::Forward(forward) => (forward.tcp, forward.udp),
            ListenerKind::Transparent(transparent) => (transparent.tcp, transparent.udp),
            ListenerKind::Dns(dns) => (dns.tcp, dns.udp),
        }
    }
}

impl ListenAddr {
    /// True if only this machine can reach it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.host.as_ref().is_some_and(is_this_machine)
    }

    /// Returns the access rules: as configured, otherwise everything for loopback listeners without a key.
    pub(crate) fn access_rules(
        &self,
        written: Option<PrivateAccess>,
        keyless: bool,
    ) -> AccessRules {
        let private = match written {
            Some(written) => written,
            None if keyless && self.is_loopback() => PrivateAccess::All,
            None => PrivateAccess::Deny,
        };
        AccessRules { private }
    }
}
