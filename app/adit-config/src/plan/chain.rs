//! The way of a request: stages of hops, and what can pass them.

use core::time::Duration;

use adit_shadowsocks::Method;
use adit_wire::Target;

use crate::plan::{Carried, Login, Plugin, SshHop, SsrHop, UdpWay};
use crate::text::Secret;

/// Hops in the order they are passed. Empty means: straight to the target.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// The stages, from the near end to the far one. [`Hop::Direct`] occurs only in a group that
    /// is the first stage, [`Hop::Reject`] only as the one stage of its chain.
    pub hops: Vec<Stage>,
}

/// One step of a chain.
#[derive(Debug, PartialEq, Eq)]
pub enum Stage {
    /// One hop.
    One(Hop),
    /// Failover: the first that works, in this order; at least two.
    Group(Vec<Hop>),
}

/// A way to reach the next stage.
#[derive(Debug, PartialEq, Eq)]
pub enum Hop {
    /// No server: straight from this machine.
    Direct,
    /// Nothing is reached.
    Reject,
    /// A server.
    Server(ServerHop),
}

/// A server on the way.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerHop {
    /// The server; its port is not 0.
    pub server: Target,
    /// What is spoken with it.
    pub kind: HopKind,
    /// Time to reach it and to be through its handshake.
    pub dial: Duration,
    /// What leads to it, if that is not a connection.
    pub carried: Option<Carried>,
}

/// What is spoken with a server.
#[derive(Debug, PartialEq, Eq)]
pub enum HopKind {
    /// SOCKS5.
    Socks5 {
        /// User and password, both within RFC 1929's lengths.
        login: Option<Login>,
        /// UDP may be asked for.
        udp: bool,
    },
    /// SOCKS4a; carries TCP alone.
    Socks4a {
        /// The user id; may be empty.
        user: String,
    },
    /// HTTP CONNECT; carries TCP alone.
    Http {
        /// User and password; the user holds no colon.
        login: Option<Login>,
    },
    /// Shadowsocks.
    Shadowsocks {
        /// The method.
        method: Method,
        /// Password, or base64 key of the right length (2022 edition). With identity headers
        /// (SIP023) several such keys joined by `:`, in the order they are passed, the user's
        /// last.
        secret: Secret,
        /// The way of datagrams.
        udp: UdpWay,
        /// Longest wait for first bytes that can travel with the request.
        first_wait: Duration,
        /// First bytes travel with the SYN (TCP Fast Open), at the first hop.
        fast_open: bool,
        /// The program before the server.
        plugin: Option<Plugin>,
    },
    /// ShadowsocksR.
    ShadowsocksR(Box<SsrHop>),
    /// SSH.
    Ssh(Box<SshHop>),
    /// Nothing: all goes to the target that the server's end has. There is always a carrier.
    Far,
}

impl Chain {
    /// True if UDP can pass: every stage has a hop that carries it.
    #[must_use]
    pub fn carries_udp(&self) -> bool {
        self.hops.iter().all(Stage::carries_udp)
    }
}

impl Stage {
    /// The hops of the stage: one, or those of the group.
    #[must_use]
    pub fn hops(&self) -> &[Hop] {
        match self {
            Self::One(hop) => core::slice::from_ref(hop),
            Self::Group(hops) => hops,
        }
    }

    /// True if one of its hops carries UDP.
    #[must_use]
    pub fn carries_udp(&self) -> bool {
        self.hops().iter().any(Hop::carries_udp)
    }
}

impl HopKind {
    /// The program before the server.
    #[must_use]
    pub const fn plugin(&self) -> Option<&Plugin> {
        match self {
            Self::Shadowsocks { plugin, .. } => plugin.as_ref(),
            Self::ShadowsocksR(ssr) => ssr.plugin.as_ref(),
            Self::Socks5 { .. }
            | Self::Socks4a { .. }
            | Self::Http { .. }
            | Self::Ssh(_)
            | Self::Far => None,
        }
    }
}

impl ServerHop {
    /// The scheme it is written with, without its carrier.
    #[must_use]
    pub const fn dialect(&self) -> &'static str {
        match (&self.kind, &self.carried) {
            (HopKind::Socks5 { .. }, _) => "socks5",
            (HopKind::Socks4a { .. }, _) => "socks4a",
            (HopKind::Http { .. }, _) => "http",
            (HopKind::Shadowsocks { .. }, _) => "ss",
            (HopKind::ShadowsocksR(_), _) => "ssr",
            (HopKind::Ssh(_), _) => "ssh",
            (HopKind::Far, Some(Carried::Fec(_))) => "udp",
            (HopKind::Far, _) => "tcp",
        }
    }

    /// `scheme://host:port`, for logs and errors.
    #[must_use]
    pub fn name(&self) -> String {
        let dialect = self.dialect();
        match &self.carried {
            Some(carried) => format!("{}://{}", carried.scheme(dialect), self.server),
            None => format!("{dialect}://{}", self.server),
        }
    }
}

impl Hop {
    /// True if nothing is asked of it: its far end has a target of its own.
    #[must_use]
    pub const fn is_far(&self) -> bool {
        matches!(self, Self::Server(server) if matches!(server.kind, HopKind::Far))
    }

    /// What leads to it, if that is not a connection.
    #[must_use]
    pub const fn carried(&self) -> Option<&Carried> {
        match self {
            Self::Server(server) => server.carried.as_ref(),
            Self::Direct | Self::Reject => None,
        }
    }

    /// True if UDP can pass. A hop that rejects stops nothing but what it is asked for.
    #[must_use]
    pub fn carries_udp(&self) -> bool {
        match self {
            Self::Direct | Self::Reject => true,
            Self::Server(server) => match &server.kind {
                HopKind::Socks5 { udp, .. } => *udp,
                HopKind::ShadowsocksR(hop) => hop.udp != UdpWay::Off,
                HopKind::Ssh(hop) => hop.udp,
                HopKind::Shadowsocks { udp, .. } => !matches!(udp, UdpWay::Off),
                HopKind::Socks4a { .. } | HopKind::Http { .. } => false,
                HopKind::Far => matches!(server.carried, Some(Carried::Fec(_))),
            },
        }
    }
}
