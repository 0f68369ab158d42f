//! Listeners and hops as short text, without secrets: for logs, messages and drawings.

use core::fmt;

use adit_wire::Host;

use crate::scheme::typed::{Hop, Listen, ListenAddr, ListenKind, Steering};

impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            None => {}
            Some(Host::Ip(ip)) if ip.is_ipv6() => write!(f, "[{ip}]")?,
            Some(host) => host.fmt(f)?,
        }
        write!(f, ":{}", self.port)
    }
}

impl Listen {
    /// Returns the scheme it is written with, without its carrier.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        match &self.kind {
            ListenKind::Proxy(proxy) if proxy.http && proxy.socks5 => "mixed",
            ListenKind::Proxy(proxy) if proxy.http => "http",
            ListenKind::Proxy(_) => "socks5",
            ListenKind::Shadowsocks(_) => "ss",
            ListenKind::ShadowsocksR(_) => "ssr",
            ListenKind::Ssh(_) => "ssh",
            ListenKind::Forward(forward) if forward.tcp && forward.udp => "tcp+udp",
            ListenKind::Forward(forward) if forward.tcp => "tcp",
            ListenKind::Forward(_) => "udp",
            ListenKind::Transparent(transparent) => match transparent.steering {
                Steering::Redirect => "redir",
                Steering::Tproxy => "tproxy",
            },
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.carried {
            Some(carried) => f.write_str(&carried.scheme(self.scheme()))?,
            None => f.write_str(self.scheme())?,
        }
        write!(f, "://{}", self.addr)?;
        let ports = self.ports();
        if ports.start() < ports.end() {
            write!(f, "-{}", ports.end())?;
        }
        match &self.kind {
            ListenKind::Forward(forward) => match &forward.target {
                Some(target) => write!(f, "/{target}"),
                None => Ok(()),
            },
            ListenKind::Proxy(_)
            | ListenKind::Shadowsocks(_)
            | ListenKind::ShadowsocksR(_)
            | ListenKind::Ssh(_)
            | ListenKind::Transparent(_) => Ok(()),
        }
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => f.write_str("direct://"),
            Self::Reject => f.write_str("reject://"),
            Self::Server(hop) => f.write_str(&hop.name()),
        }
    }
}
