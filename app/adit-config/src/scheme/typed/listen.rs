//! Listeners, whatever they speak.

use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::time::Duration;

use adit_wire::{Host, Target};

use crate::scheme::typed::{
    Carried, Kcp, Login, Plugin, Prefer, Private, SsServer, SshServer, SsrServer,
};
use crate::text::is_this_machine;

/// One listener.
#[derive(Debug, PartialEq, Eq)]
pub struct Listen {
    /// Where.
    pub addr: ListenAddr,
    /// What is spoken.
    pub kind: ListenKind,
    /// Times and numbers.
    pub limits: Limits,
    /// What may be reached.
    pub access: Access,
    /// Address family towards destinations.
    pub prefer: Prefer,
    /// What its clients come by, if that is not TCP and UDP as they are.
    pub carried: Option<Carried>,
    /// Whether connections come from a proxy of this machine that says who its clients are (PROXY
    /// protocol, version 2).
    pub proxy_protocol: bool,
}

/// An address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddr {
    /// The address or name; `None` means all addresses, IPv4 and IPv6.
    pub host: Option<Host>,
    /// The port; 0 means any free one.
    pub port: u16,
}

/// What a listener speaks.
#[derive(Debug, PartialEq, Eq)]
pub enum ListenKind {
    /// SOCKS, HTTP or both.
    Proxy(Proxy),
    /// A Shadowsocks server.
    Shadowsocks(SsServer),
    /// A ShadowsocksR server.
    ShadowsocksR(SsrServer),
    /// An SSH server that gives streams.
    Ssh(Box<SshServer>),
    /// A fixed target.
    Forward(Forward),
    /// Whatever the firewall turns this way.
    Transparent(Transparent),
}

impl ListenKind {
    /// True if it takes datagrams of clients.
    pub(crate) const fn offers_udp(&self) -> bool {
        match self {
            Self::Proxy(proxy) => proxy.udp,
            Self::Shadowsocks(server) => server.udp,
            Self::ShadowsocksR(server) => server.udp,
            Self::Ssh(_) => false,
            Self::Forward(forward) => forward.udp,
            Self::Transparent(transparent) => transparent.udp,
        }
    }

    /// The program before the listener.
    #[must_use]
    pub const fn plugin(&self) -> Option<&Plugin> {
        match self {
            Self::Shadowsocks(server) => server.plugin.as_ref(),
            Self::ShadowsocksR(server) => server.plugin.as_ref(),
            Self::Proxy(_) | Self::Ssh(_) | Self::Forward(_) | Self::Transparent(_) => None,
        }
    }
}

/// A proxy listener.
#[derive(Debug, PartialEq, Eq)]
pub struct Proxy {
    /// SOCKS5 is spoken.
    pub socks5: bool,
    /// SOCKS4 and SOCKS4a are spoken; never with users.
    pub socks4: bool,
    /// HTTP is spoken.
    pub http: bool,
    /// Who may use it; empty means everyone who reaches it. Names are unique.
    pub users: Vec<Login>,
    /// UDP ASSOCIATE is offered.
    pub udp: bool,
    /// BIND is offered.
    pub bind: bool,
    /// Address told to clients for UDP; else that of their control connection.
    pub udp_advertise: Option<IpAddr>,
    /// Fragments of SOCKS5 datagrams are put together.
    pub udp_reassembly: bool,
    /// UDP from everyone reaches the client, not only from whom it has written to (SEC-E3).
    pub full_cone: bool,
    /// Replies hold zeros instead of our outgoing address.
    pub hide_bind: bool,
    /// HTTP errors name their cause.
    pub verbose_errors: bool,
}

/// A port that leads to one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// TCP is forwarded.
    pub tcp: bool,
    /// UDP is forwarded; at least one of the two.
    pub udp: bool,
    /// Where to; its port is not 0. `None` leaves it to the far end of the chain's last hop.
    pub target: Option<Target>,
    /// Longest wait for first bytes that can travel with the request (TCP).
    pub first_wait: Duration,
}

/// A listener that takes what is meant for others (Linux). Its port is not 0.
#[derive(Debug, PartialEq, Eq)]
pub struct Transparent {
    /// How the firewall brings it.
    pub steering: Steering,
    /// TCP is taken; always with [`Steering::Redirect`].
    pub tcp: bool,
    /// UDP is taken; never with [`Steering::Redirect`].
    pub udp: bool,
    /// UDP from everyone reaches the client, not only from whom it has written to (SEC-E3).
    pub full_cone: bool,
}

/// How a firewall turns traffic to a transparent listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steering {
    /// `REDIRECT`: the destination is rewritten, and the kernel remembers the first one.
    Redirect,
    /// `TPROXY`: packets stay as they are.
    Tproxy,
}

/// Times and numbers of a listener. All times are longer than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From accept to the complete request.
    pub handshake: Duration,
    /// To reach the destination.
    pub dial: Duration,
    /// Without a byte in either direction.
    pub idle: Duration,
    /// The same, once one side has finished.
    pub half_close_idle: Duration,
    /// Without a packet of a UDP association.
    pub udp_idle: Duration,
    /// Connections at the same time, at least 1; `None` leaves it to the descriptor limit.
    pub max_connections: Option<usize>,
}

/// What clients of a listener may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// Destinations that are not public (SEC-E2).
    pub private: Private,
}

impl Listen {
    /// The ports: one, or a range of which the plan makes a listener each.
    pub(crate) const fn ports(&self) -> RangeInclusive<u16> {
        let first = self.addr.port;
        first..=Carried::last_port(self.carried.as_ref(), first)
    }

    /// The same on other ports; for forwarders over KCP, which alone have ranges.
    pub(crate) fn on_ports(&self, ports: &RangeInclusive<u16>) -> Option<Self> {
        let (ListenKind::Forward(forward), Some(Carried::Kcp(kcp))) = (&self.kind, &self.carried)
        else {
            return None;
        };
        let addr = ListenAddr {
            host: self.addr.host.clone(),
            port: *ports.start(),
        };
        let kcp = Kcp {
            last_port: *ports.end(),
            ..(**kcp).clone()
        };
        Some(Self {
            addr,
            kind: ListenKind::Forward(forward.clone()),
            limits: self.limits,
            access: self.access.clone(),
            prefer: self.prefer,
            carried: Some(Carried::Kcp(Box::new(kcp))),
            proxy_protocol: self.proxy_protocol,
        })
    }

    /// Whether a TCP and a UDP port are bound. UDP of a proxy has ports of its own.
    pub(crate) const fn transports(&self) -> (bool, bool) {
        if self.carried.is_some() {
            return (false, true);
        }
        match &self.kind {
            ListenKind::Proxy(_) | ListenKind::Ssh(_) => (true, false),
            ListenKind::Shadowsocks(server) => (server.tcp, server.udp),
            ListenKind::ShadowsocksR(server) => (server.tcp, server.udp),
            ListenKind::Forward(forward) => (forward.tcp, forward.udp),
            ListenKind::Transparent(transparent) => (transparent.tcp, transparent.udp),
        }
    }
}

impl ListenAddr {
    /// True if only this machine can reach it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.host.as_ref().is_some_and(is_this_machine)
    }

    /// The access rule: as written, else everything for loopback listeners without a key.
    pub(crate) fn access(&self, written: Option<Private>, keyless: bool) -> Access {
        let private = match written {
            Some(written) => written,
            None if keyless && self.is_loopback() => Private::All,
            None => Private::Deny,
        };
        Access { private }
    }
}
