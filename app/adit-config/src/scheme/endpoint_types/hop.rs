//! Hops: the servers between a listener and the target.

use core::fmt::Write;
use core::ops::RangeInclusive;
use core::time::Duration;

use adit_shadowsocks::Method;
use adit_wire::Target;

use crate::scheme::endpoint_types::{
    CarrierSettings, DatagramSupport, Plugin, SshHop, SsrHop, UdpTransport, UserPassword,
};
use crate::text::Secret;

/// A step towards the target.
#[derive(Debug, PartialEq, Eq)]
pub enum Hop {
    /// No server: a direct connection from this machine.
    Direct,
    /// Refuses every request.
    Reject,
    /// A server.
    Server(ServerHop),
}

/// A server in a chain.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerHop {
    /// The server; its port is not 0.
    pub server: Target,
    /// The protocol.
    pub kind: HopKind,
    /// Maximum time to connect to it and complete its handshake.
    pub dial: Duration,
    /// The carrier, or `None` for a TCP connection.
    pub carrier: Option<CarrierSettings>,
}

/// The protocol of a server.
#[derive(Debug, PartialEq, Eq)]
pub enum HopKind {
    /// SOCKS5.
    Socks5 {
        /// User and password, both within RFC 1929's lengths.
        login: Option<UserPassword>,
        /// True if UDP may be requested.
        udp: bool,
    },
    /// SOCKS4a; carries TCP only.
    Socks4a {
        /// The user id; may be empty.
        user: String,
    },
    /// HTTP CONNECT; carries TCP only.
    Http {
        /// User and password; the user contains no colon.
        login: Option<UserPassword>,
    },
    /// Shadowsocks.
    Shadowsocks {
        /// The method.
        method: Method,
        /// Password, or base64 key of the right length (2022 edition). With identity headers
        /// (SIP023), several such keys joined by `:`, in the order of the servers, the user's
        /// last.
        secret: Secret,
        /// The transport of datagrams.
        udp: UdpTransport,
        /// Maximum wait for first bytes that can be sent with the request.
        first_wait: Duration,
        /// True if the first bytes are sent in the SYN (TCP Fast Open); used at the first hop.
        fast_open: bool,
        /// The plugin.
        plugin: Option<Plugin>,
    },
    /// ShadowsocksR.
    ShadowsocksR(Box<SsrHop>),
    /// SSH.
    Ssh(Box<SshHop>),
    /// No protocol: everything is sent to the target that the remote end has. There is always a carrier.
    RemoteTarget,
}

impl HopKind {
    /// Returns the plugin, if there is one.
    #[must_use]
    pub const fn plugin(&self) -> Option<&Plugin> {
        match self {
            Self::Shadowsocks { plugin, .. } => plugin.as_ref(),
            Self::ShadowsocksR(ssr) => ssr.plugin.as_ref(),
            Self::Socks5 { .. }
            | Self::Socks4a { .. }
            | Self::Http { .. }
            | Self::Ssh(_)
            | Self::RemoteTarget => None,
        }
    }
}

impl ServerHop {
    /// Returns the scheme it is written with, without its carrier.
    #[must_use]
    pub const fn dialect(&self) -> &'static str {
        match (&self.kind, &self.carrier) {
            (HopKind::Socks5 { .. }, _) => "socks5",
            (HopKind::Socks4a { .. }, _) => "socks4a",
            (HopKind::Http { .. }, _) => "http",
            (HopKind::Shadowsocks { .. }, _) => "ss",
            (HopKind::ShadowsocksR(_), _) => "ssr",
            (HopKind::Ssh(_), _) => "ssh",
            (HopKind::RemoteTarget, Some(CarrierSettings::Fec(_))) => "udp",
            (HopKind::RemoteTarget, _) => "tcp",
        }
    }

    /// Returns `scheme://host:port`, for logs and errors.
    #[must_use]
    pub fn display_name(&self) -> String {
        let dialect = self.dialect();
        let mut name = match &self.carrier {
            Some(carried) => format!("{}://{}", carried.carried_scheme(dialect), self.server),
            None => format!("{dialect}://{}", self.server),
        };
        let ports = self.port_range();
        if ports.start() < ports.end() {
            // Writing to a `String` cannot fail.
            let _ = write!(name, "-{}", ports.end());
        }
        name
    }

    /// Returns the ports of the server: one, or a range of which each session uses one.
    #[must_use]
    pub const fn port_range(&self) -> RangeInclusive<u16> {
        let first = self.server.port;
        first..=CarrierSettings::last_port(self.carrier.as_ref(), first)
    }
}

impl Hop {
    /// True if its remote end has the target, so that it cannot be asked for others.
    #[must_use]
    pub const fn has_remote_target(&self) -> bool {
        matches!(self, Self::Server(server) if matches!(server.kind, HopKind::RemoteTarget))
    }

    /// Returns the carrier, or `None` for a TCP connection.
    #[must_use]
    pub const fn carrier(&self) -> Option<&CarrierSettings> {
        match self {
            Self::Server(server) => server.carrier.as_ref(),
            Self::Direct | Self::Reject => None,
        }
    }

    /// True if UDP can pass. [`Hop::Reject`] counts as passing it: it refuses every request anyway.
    #[must_use]
    pub fn carries_udp(&self) -> bool {
        self.datagram_support() != DatagramSupport::Stopped
    }
}
