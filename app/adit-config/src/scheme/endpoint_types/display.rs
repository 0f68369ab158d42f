//! Listeners and hops as short text, without secrets: for logs, messages and drawings.

use core::fmt;

use adit_wire::Host;

use crate::scheme::endpoint_types::{
    Hop, InterceptMethod, ListenAddr, ListenerConfig, ListenerKind,
};

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

impl ListenerConfig {
    /// Returns the scheme it is written with, without its carrier.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        match &self.kind {
            ListenerKind::Proxy(proxy) if proxy.http && proxy.socks5 => "mixed",
            ListenerKind::Proxy(proxy) if proxy.http => "http",
            ListenerKind::Proxy(_) => "socks5",
            ListenerKind::Shadowsocks(_) => "ss",
            ListenerKind::ShadowsocksR(_) => "ssr",
            ListenerKind::Ssh(_) => "ssh",
            ListenerKind::Forward(forward) if forward.tcp && forward.udp => "tcp+udp",
            ListenerKind::Forward(forward) if forward.tcp => "tcp",
            ListenerKind::Forward(_) => "udp",
            ListenerKind::Transparent(transparent) => match transparent.method {
                InterceptMethod::Redirect => "redir",
                InterceptMethod::Tproxy => "tproxy",
            },
            ListenerKind::Dns(_) => "dns",
        }
    }
}

impl fmt::Display for ListenerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.carrier {
            Some(carried) => f.write_str(&carried.carried_scheme(self.scheme()))?,
            None => f.write_str(self.scheme())?,
        }
        write!(f, "://{}", self.addr)?;
        let ports = self.port_range();
        if ports.start() < ports.end() {
            write!(f, "-{}", ports.end())?;
        }
        match &self.kind {
            ListenerKind::Forward(forward) => match &forward.target {
                Some(target) => write!(f, "/{target}"),
                None => Ok(()),
            },
            ListenerKind::Proxy(_)
            | ListenerKind::Shadowsocks(_)
            | ListenerKind::ShadowsocksR(_)
            | ListenerKind::Ssh(_)
            | ListenerKind::Transparent(_)
            | ListenerKind::Dns(_) => Ok(()),
        }
    }
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => f.write_str("direct://"),
            Self::Reject => f.write_str("reject://"),
            Self::Server(hop) => f.write_str(&hop.display_name()),
        }
    }
}
