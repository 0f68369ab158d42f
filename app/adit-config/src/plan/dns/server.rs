//! The servers of a `[dns.NAME]` table as text: `udp://9.9.9.9`, `tls://9.9.9.9?name=dns.quad9.net`,
//! `https://dns.quad9.net/dns-query?addr=9.9.9.9`, `system`.

use core::fmt;
use core::net::IpAddr;

use adit_dns::Transport;
use adit_wire::{Host, Target};

use super::SYSTEM_DNS;
use crate::family::{Family, LeftOut};
use crate::grammar::parse_address;
use crate::text::{ConfigError, Span};

/// Maximum length of the URL of a server, in bytes.
const MAX_LEN: usize = 2048;
/// The path of DNS over HTTPS, if the URL has none (RFC 8484).
const DEFAULT_PATH: &str = "/dns-query";
/// The form of all URLs.
const FORM: &str = "write `udp://9.9.9.9`, `tcp://9.9.9.9`, `tls://9.9.9.9?name=dns.quad9.net`, \
                    `https://dns.quad9.net/dns-query?addr=9.9.9.9` or `system`";

/// A server that names are looked up with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsServer {
    /// The system's resolver.
    System,
    /// A server with a URL.
    Remote(RemoteDnsServer),
}

/// A server with a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteDnsServer {
    /// The transport.
    pub transport: Transport,
    /// Where queries are sent: the host of the URL, or its `addr`. The port is not 0.
    pub server: Target,
    /// The host of the URL, as certificates and HTTP name it: a name, or an address.
    pub host: Host,
    /// The name in the certificate, if it is not that of the host.
    pub server_name: Option<String>,
    /// The path of DNS over HTTPS, with its query; empty for other transports.
    pub path: String,
}

impl DnsServer {
    /// Parses a server.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] has the part of the text that is wrong.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        if text == SYSTEM_DNS {
            return Ok(Self::System);
        }
        let all = Span::new(0, text.len());
        if text.len() > MAX_LEN {
            let title = format!("the URL of a DNS server has at most {MAX_LEN} bytes");
            return Err(ConfigError::new(all, title));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            // An address alone is the usual form elsewhere.
            let flaw = ConfigError::new(all, format!("`{text}` is not a DNS server"));
            return Err(match text.parse::<IpAddr>() {
                Ok(IpAddr::V4(_)) => flaw.with_help(format!("write `udp://{text}`")),
                Ok(IpAddr::V6(_)) => flaw.with_help(format!("write `udp://[{text}]`")),
                Err(_) => flaw.with_help(FORM),
            });
        };
        let mut transports = Transport::ALL.into_iter();
        let Some(transport) = transports.find(|known| known.scheme() == scheme) else {
            return Err(unknown_scheme(scheme));
        };
        let is_encrypted = matches!(transport, Transport::Tls | Transport::Https);
        if is_encrypted && !Family::EncryptedDns.is_built() {
            let span = Span::new(0, scheme.len());
            return Err(LeftOut(Family::EncryptedDns).error_at(span));
        }
        parse_remote(text, transport, rest).map(Self::Remote)
    }
}

fn unknown_scheme(scheme: &str) -> ConfigError {
    let title = format!("unknown scheme `{scheme}` of a DNS server");
    let flaw = ConfigError::new(Span::new(0, scheme.len()), title);
    let names = Transport::ALL.map(Transport::scheme);
    let flaw = flaw.with_nearest(scheme, names);
    flaw.with_help(FORM)
}

/// Parses the part after the scheme.
fn parse_remote(
    text: &str,
    transport: Transport,
    rest: &str,
) -> Result<RemoteDnsServer, ConfigError> {
    let start = text.len() - rest.len();
    let (before, query) = match rest.split_once('?') {
        Some((before, query)) => (before, Some(query)),
        None => (rest, None),
    };
    let (authority, path) = match before.find('/') {
        Some(at) => before.split_at(at),
        None => (before, ""),
    };
    let authority_span = Span::new(start, start + authority.len());
    let path_span = Span::new(authority_span.end, authority_span.end + path.len());
    let (host, port) = parse_address(authority, authority_span)?;
    let Some(host) = host.map(|host| host.value) else {
        let flaw = ConfigError::new(authority_span, "the host of the DNS server is missing");
        return Err(flaw.with_help(FORM));
    };
    if let Some(port) = port.as_ref().filter(|port| port.value == 0) {
        return Err(ConfigError::new(
            port.span,
            "the port of a server cannot be 0",
        ));
    }
    let port = port.map_or_else(|| transport.default_port(), |port| port.value);
    let query = parse_query(transport, query, start + before.len() + 1)?;
    let path = match (transport, path) {
        (Transport::Https, "" | "/") => DEFAULT_PATH.to_owned(),
        (Transport::Https, path) => {
            if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
                let title = "the path of the URL has bytes that need escapes";
                return Err(ConfigError::new(path_span, title).with_help("write them as `%XX`"));
            }
            path.to_owned()
        }
        (_, "" | "/") => String::new(),
        (_, _) => {
            let title = format!("a `{}` server has no path", transport.scheme());
            return Err(ConfigError::new(path_span, title).with_help("remove it"));
        }
    };
    let at = query.addr.map_or_else(|| host.clone(), Host::Ip);
    Ok(RemoteDnsServer {
        transport,
        server: Target::new(at, port),
        host,
        server_name: query.name,
        path,
    })
}

/// The keys of a URL.
#[derive(Default)]
struct ServerQuery {
    addr: Option<IpAddr>,
    name: Option<String>,
}

/// Parses the keys after `?`; `start` is the position of the first one.
fn parse_query(
    transport: Transport,
    query: Option<&str>,
    start: usize,
) -> Result<ServerQuery, ConfigError> {
    let mut found = ServerQuery::default();
    let mut at = start;
    for pair in query.into_iter().flat_map(|query| query.split('&')) {
        let span = Span::new(at, at + pair.len());
        at += pair.len() + 1;
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match key {
            "addr" if transport.has_certificate() && found.addr.is_none() => {
                let bare = value.trim_start_matches('[').trim_end_matches(']');
                let ip = bare.parse().map_err(|_| {
                    ConfigError::new(span, "`addr` must be an IP address")
                        .with_help("such as `addr=9.9.9.9`")
                })?;
                found.addr = Some(adit_wire::unmap_ipv4(ip));
            }
            "name" if transport.has_certificate() && found.name.is_none() => {
                let is_name = matches!(Host::parse(value), Ok(Host::Name(_))) && value.is_ascii();
                if !is_name {
                    let title = "`name` must be the name in the server's certificate";
                    return Err(
                        ConfigError::new(span, title).with_help("such as `name=dns.quad9.net`")
                    );
                }
                found.name = Some(value.to_ascii_lowercase());
            }
            "addr" | "name" if transport.has_certificate() => {
                return Err(ConfigError::new(span, format!("`{key}` is written twice")));
            }
            _ => {
                let flaw = ConfigError::unknown_key(span, key);
                return Err(match transport.has_certificate() {
                    true => flaw.with_nearest(key, ["addr", "name"]).with_help(
                        "keys: `addr`, the address of the server, and `name`, that in its certificate",
                    ),
                    false => flaw.with_help("`addr` and `name` are keys of `tls` and `https` servers"),
                });
            }
        }
    }
    Ok(found)
}

/// Formats the URL, without the path: it can contain a secret.
impl fmt::Display for DnsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str(SYSTEM_DNS),
            Self::Remote(server) => server.fmt(f),
        }
    }
}

/// Formats the URL, without the path: it can contain a secret.
impl fmt::Display for RemoteDnsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.transport.scheme())?;
        match &self.host {
            Host::Ip(ip) if ip.is_ipv6() => write!(f, "[{ip}]")?,
            host => host.fmt(f)?,
        }
        if self.server.port != self.transport.default_port() {
            write!(f, ":{}", self.server.port)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(text: &str) -> RemoteDnsServer {
        match DnsServer::parse(text) {
            Ok(DnsServer::Remote(server)) => server,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn servers_are_read() {
        for (text, server, shown, path) in [
            ("udp://9.9.9.9", "9.9.9.9:53", "udp://9.9.9.9", ""),
            (
                "tcp://[2620:fe::fe]:5353/",
                "[2620:fe::fe]:5353",
                "tcp://[2620:fe::fe]:5353",
                "",
            ),
            (
                "tls://dns.quad9.net",
                "dns.quad9.net:853",
                "tls://dns.quad9.net",
                "",
            ),
            (
                "https://dns.quad9.net",
                "dns.quad9.net:443",
                "https://dns.quad9.net",
                "/dns-query",
            ),
            (
                "https://dns.example:8443/token/q?addr=[2620:fe::fe]",
                "[2620:fe::fe]:8443",
                "https://dns.example:8443",
                "/token/q",
            ),
        ] {
            let found = remote(text);
            assert_eq!(found.server.to_string(), server, "{text}");
            assert_eq!(found.to_string(), shown);
            assert_eq!(found.path, path, "{text}");
        }
        let found = remote("tls://9.9.9.9?name=DNS.quad9.net");
        assert_eq!(found.server_name.as_deref(), Some("dns.quad9.net"));
        assert_eq!(DnsServer::parse("system"), Ok(DnsServer::System));
    }

    #[test]
    fn mistakes_are_marked() {
        for (text, title, marked) in [
            ("9.9.9.9", "`9.9.9.9` is not a DNS server", "9.9.9.9"),
            ("", "`` is not a DNS server", ""),
            (
                "dot://9.9.9.9",
                "unknown scheme `dot` of a DNS server",
                "dot",
            ),
            ("udp://", "the host of the DNS server is missing", ""),
            ("udp://9.9.9.9:0", "the port of a server cannot be 0", "0"),
            ("udp://9.9.9.9/x", "a `udp` server has no path", "/x"),
            ("udp://9.9.9.9?name=a", "unknown key `name`", "name=a"),
            ("tls://a?addr=b", "`addr` must be an IP address", "addr=b"),
            (
                "tls://a?name=1.1.1.1",
                "`name` must be the name in the server's certificate",
                "name=1.1.1.1",
            ),
            (
                "https://a/q?addr=1.1.1.1&addr=2.2.2.2",
                "`addr` is written twice",
                "addr=2.2.2.2",
            ),
            ("https://a/q?sni=a", "unknown key `sni`", "sni=a"),
        ] {
            let flaw = DnsServer::parse(text).unwrap_err();
            assert_eq!(flaw.title, title, "{text}");
            assert_eq!(&text[flaw.span.start..flaw.span.end], marked, "{text}");
        }
    }
}
