//! Hops: what stands between a listener and the target.

use core::fmt::Write;
use core::ops::RangeInclusive;
use core::time::Duration;

use adit_shadowsocks::Method;
use adit_wire::Target;

use crate::scheme::typed::{Carried, Datagrams, Login, Plugin, SshHop, SsrHop, UdpWay};
use crate::text::Secret;

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
        let mut name = match &self.carried {
            Some(carried) => format!("{}://{}", carried.scheme(dialect), self.server),
            None => format!("{dialect}://{}", self.server),
        };
        let ports = self.ports();
        if ports.start() < ports.end() {
            // Writing to a `String` cannot fail.
            let _ = write!(name, "-{}", ports.end());
        }
        name
    }

    /// The ports of the server: one, or a range of which each session takes one.
    #[must_use]
    pub const fn ports(&self) -> RangeInclusive<u16> {
        let first = self.server.port;
        first..=Carried::last_port(self.carried.as_ref(), first)
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
        self.datagrams() != Datagrams::Stopped
    }
}
