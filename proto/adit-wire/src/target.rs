//! Destinations of clients.

use alloc::boxed::Box;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use core::str::FromStr;

/// A host and a port as a client named them, not resolved.
///
/// # Examples
///
/// ```
/// use adit_wire::{Host, Target};
///
/// let target: Target = "[2001:db8::1]:443".parse()?;
/// assert_eq!(target.port, 443);
/// assert!(matches!(target.host, Host::Ip(ip) if ip.is_ipv6()));
/// assert_eq!(Target::new(Host::parse("example.test")?, 80).to_string(), "example.test:80");
/// # Ok::<(), adit_wire::TargetError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port; 0 has a meaning only in SOCKS BIND and UDP ASSOCIATE.
    pub port: u16,
}

/// An IP address or a host name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// An address; IPv4-mapped IPv6 addresses are stored as IPv4.
    Ip(IpAddr),
    /// A name to be resolved.
    Name(Name),
}

/// A host name: 1 to 255 bytes of UTF-8 without control characters or whitespace.
///
/// IP literals never become a `Name`; see [`Host::parse`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name(Box<str>);

/// An error from parsing a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The name is empty or longer than 255 bytes.
    #[error("a host name must have 1 to 255 bytes")]
    NameLength,
    /// The name contains whitespace, a control character or bytes that are not UTF-8.
    #[error("the host name contains whitespace or a control character")]
    NameByte,
    /// No `:port` at the end.
    #[error("the port is missing (write `host:port`, or `[v6]:port`)")]
    NoPort,
    /// The port is not a number from 0 to 65535.
    #[error("the port is not a number from 0 to 65535")]
    Port,
    /// An opening bracket without its closing one, or without an IPv6 address inside.
    #[error("not an IPv6 address in brackets")]
    Bracket,
}

/// Returns `::ffff:a.b.c.d` as `a.b.c.d` and every other address unchanged.
#[must_use]
pub fn unmap_ipv4(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// Returns the network of a source as limits count it: the IPv4 address (also of a mapped one) or the first
/// 64 bits of an IPv6 address, which is what one customer of a provider usually has.
#[must_use]
pub fn source_network(ip: IpAddr) -> IpAddr {
    match unmap_ipv4(ip) {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

impl Target {
    /// Creates a target from its parts.
    #[must_use]
    pub const fn new(host: Host, port: u16) -> Self {
        Self { host, port }
    }

    /// Returns the socket address if the host is an IP address.
    #[must_use]
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        match self.host {
            Host::Ip(ip) => Some(SocketAddr::new(ip, self.port)),
            Host::Name(_) => None,
        }
    }
}

impl From<SocketAddr> for Target {
    fn from(addr: SocketAddr) -> Self {
        Self {
            host: Host::Ip(unmap_ipv4(addr.ip())),
            port: addr.port(),
        }
    }
}

impl FromStr for Target {
    type Err = TargetError;
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (host, port) = text.rsplit_once(':').ok_or(TargetError::NoPort)?;
        let host = if host.starts_with('[') || host.ends_with(']') {
            let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
            let v6: Ipv6Addr = inner
                .ok_or(TargetError::Bracket)?
                .parse()
                .map_err(|_| TargetError::Bracket)?;
            Host::Ip(unmap_ipv4(v6.into()))
        } else if host.contains(':') {
            return Err(TargetError::Bracket);
        } else {
            Host::parse(host)?
        };
        if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) {
            return Err(TargetError::Port);
        }
        Ok(Self {
            host,
            port: port.parse().map_err(|_| TargetError::Port)?,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).fmt(f),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

impl Host {
    /// Parses an IP literal (brackets are allowed around IPv6) as an address, and anything else as a name.
    ///
    /// # Errors
    /// The text is neither an address nor a valid [`Name`].
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let bare = text
            .strip_prefix('[')
            .and_then(|t| t.strip_suffix(']'))
            .unwrap_or(text);
        match bare.parse::<IpAddr>() {
            Ok(ip) => Ok(Self::Ip(unmap_ipv4(ip))),
            Err(_) => Name::new(text).map(Self::Name),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl Name {
    /// Creates a name after checking its length and its characters.
    ///
    /// # Errors
    /// [`TargetError::NameLength`] or [`TargetError::NameByte`].
    pub fn new(text: &str) -> Result<Self, TargetError> {
        if text.is_empty() || text.len() > 255 {
            return Err(TargetError::NameLength);
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(TargetError::NameByte);
        }
        Ok(Self(text.into()))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Bidi marks and the like must not reach a terminal raw (SEC-X7).
        for c in self.0.chars() {
            if c.is_ascii_graphic() || c.is_alphanumeric() {
                write!(f, "{c}")?;
            } else {
                write!(f, "{}", c.escape_unicode())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_an_address_of_ipv4_or_64_bits_of_ipv6() {
        for (of, network) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ] {
            let ip = |text: &str| text.parse::<IpAddr>().unwrap();
            assert_eq!(source_network(ip(of)), ip(network));
        }
    }

    #[test]
    fn reads_and_writes_targets() {
        for text in [
            "example.com:443",
            "192.0.2.7:80",
            "[2001:db8::1]:53",
            "_srv.a:1",
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        assert_eq!(
            "[::ffff:10.0.0.1]:1".parse::<Target>().unwrap().to_string(),
            "10.0.0.1:1"
        );
    }

    #[test]
    fn refuses_bad_targets() {
        for (text, why) in [
            ("example.com", TargetError::NoPort),
            ("example.com:", TargetError::Port),
            ("example.com:+1", TargetError::Port),
            ("example.com:65536", TargetError::Port),
            (":80", TargetError::NameLength),
            ("a b:80", TargetError::NameByte),
            ("2001:db8::1:53", TargetError::Bracket),
            ("[2001:db8::1:53", TargetError::Bracket),
        ] {
            assert_eq!(text.parse::<Target>(), Err(why), "{text}");
        }
    }

    #[test]
    fn hostile_names_are_escaped_for_print() {
        let name = Name::new("a\u{202e}b").unwrap();
        assert_eq!(name.to_string(), "a\\u{202e}b");
    }
}
