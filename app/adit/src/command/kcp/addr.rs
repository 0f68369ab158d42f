//! Addresses as kcptun writes them: `host:port`, `:port` for every address, `host:min-max`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use adit_cli::{Code, Failure};
use adit_wire::{Host, Target};

/// A host, or all addresses of this one, and its ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Addr {
    host: Option<Host>,
    pub(super) ports: RangeInclusive<u16>,
}

impl Addr {
    /// Reads what was given as the option `name`.
    pub(super) fn parse(name: &str, text: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::new(Code::Config, format!("--{name} {text}: {why}"));
        let (host, ports) = text
            .rsplit_once(':')
            .ok_or_else(|| wrong("HOST:PORT is needed; Unix sockets are not supported"))?;
        let host = match host.trim_start_matches('[').trim_end_matches(']') {
            "" => None,
            name => Some(Host::parse(name).map_err(|why| wrong(&why.to_string()))?),
        };
        let port = |text: &str| {
            text.parse::<u16>()
                .map_err(|_| wrong("a port is a number up to 65535"))
        };
        let ports = match ports.split_once('-') {
            Some((min, max)) => port(min)?..=port(max)?,
            None => port(ports)?..=port(ports)?,
        };
        if ports.is_empty() {
            return Err(wrong("the range of ports is empty"));
        }
        Ok(Self { host, ports })
    }

    /// The one port of an end that has no range.
    pub(super) fn single(&self, name: &str) -> Result<u16, Failure> {
        if self.ports.start() == self.ports.end() {
            return Ok(*self.ports.start());
        }
        let what = format!("--{name}: a range of ports is for KCP only");
        Err(Failure::new(Code::Config, what))
    }

    /// Where to listen; names are not for that.
    pub(super) fn local(&self, name: &str, port: u16) -> Result<SocketAddr, Failure> {
        let ip = match &self.host {
            None => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            Some(Host::Ip(ip)) => *ip,
            Some(Host::Name(host)) if host.as_str() == "localhost" => [127, 0, 0, 1].into(),
            Some(Host::Name(_)) => {
                let what = format!("--{name}: an address to listen on must be an IP address");
                return Err(Failure::new(Code::Config, what));
            }
        };
        Ok(SocketAddr::new(ip, port))
    }

    /// Where to go.
    pub(super) fn target(&self, name: &str, port: u16) -> Result<Target, Failure> {
        let missing = || Failure::new(Code::Config, format!("--{name}: no host is named"));
        let host = self.host.clone().ok_or_else(missing)?;
        Ok(Target { host, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kcptuns_spellings_are_read() {
        let read = |text| Addr::parse("x", text).unwrap();
        let all = read(":29900");
        assert_eq!(
            all.local("x", 29900).unwrap(),
            "[::]:29900".parse().unwrap()
        );
        assert!(all.target("x", 1).is_err());
        let range = read("vps.example:3000-3010");
        assert_eq!(range.ports, 3000..=3010);
        assert!(range.single("x").is_err() && range.local("x", 1).is_err());
        assert_eq!(
            range.target("x", 3005).unwrap().to_string(),
            "vps.example:3005"
        );
        assert_eq!(read("[::1]:80").single("x").unwrap(), 80);
        for wrong in ["80", "/run/socket", "h:", "h:70000", "h:9-8", "h:1-", "-:1"] {
            let read = Addr::parse("x", wrong);
            assert!(read.is_err() || wrong == "-:1", "{wrong}");
        }
    }
}
