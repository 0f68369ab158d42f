//! The proxy that programs of a desktop are to use.

use std::fmt;

use adit_cli::{Failure, FailureCode};
use adit_config::Endpoint;
use adit_wire::Host;

/// The address of a proxy, with the protocols that it speaks; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProxyAddress {
    /// A name or an IP address, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) socks: bool,
    pub(super) http: bool,
}

impl ProxyAddress {
    /// Parses the URL of a listener.
    pub(super) fn parse(url: &str) -> Result<Self, Failure> {
        let refused = |why: &str| {
            Failure::new(FailureCode::Usage, format!("{url}: {why}"))
                .with_hint("write it as `mixed://127.0.0.1:1080`, or with socks5:// or http://")
        };
        let parsed = Endpoint::parse(url).map_err(|problem| refused(&problem.to_string()))?;
        let (socks, http) = match parsed.scheme.value.as_str() {
            "mixed" => (true, true),
            "socks5" | "socks" => (true, false),
            "http" => (false, true),
            _ => return Err(refused("programs use SOCKS and HTTP proxies alone")),
        };
        if parsed.user.is_some() || parsed.secret.is_some() {
            return Err(refused("desktops do not send a password to a proxy"));
        }
        let port = match parsed.port {
            Some(port) if port.value != 0 => port.value,
            _ => return Err(refused("the port is missing")),
        };
        let host = match parsed.host.map(|host| host.value) {
            // A listener of all addresses is reached on this machine.
            None => "127.0.0.1".to_owned(),
            Some(Host::Ip(ip)) if ip.is_unspecified() => match ip.is_ipv6() {
                true => "::1".to_owned(),
                false => "127.0.0.1".to_owned(),
            },
            Some(Host::Ip(ip)) => ip.to_string(),
            Some(other) => other.to_string(),
        };
        Ok(Self {
            host,
            port,
            socks,
            http,
        })
    }

    /// Returns the host as URLs contain it.
    pub(super) fn url_host(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        }
    }
}

impl fmt::Display for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match (self.socks, self.http) {
            (true, true) => "the SOCKS and HTTP proxy",
            (true, false) => "the SOCKS proxy",
            _ => "the HTTP proxy",
        };
        write!(f, "{kind} on {}:{}", self.url_host(), self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_proxies() {
        let of = |url: &str| {
            let proxy = ProxyAddress::parse(url).unwrap();
            (proxy.host, proxy.port, proxy.socks, proxy.http)
        };
        assert_eq!(
            of("mixed://127.0.0.1:1080"),
            ("127.0.0.1".to_owned(), 1080, true, true)
        );
        assert_eq!(
            of("socks5://:1081"),
            ("127.0.0.1".to_owned(), 1081, true, false)
        );
        assert_eq!(
            of("http://[::]:8080"),
            ("::1".to_owned(), 8080, false, true)
        );
        for url in [
            "ss://aes-128-gcm:x@h:1",
            "mixed://a:b@h:1",
            "mixed://h",
            "mixed://h:0",
            "h:1",
        ] {
            assert!(ProxyAddress::parse(url).is_err(), "{url}");
        }
    }
}
