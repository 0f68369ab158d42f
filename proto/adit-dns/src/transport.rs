//! Transports of queries.

/// A transport of queries to servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Datagrams, and a stream for answers that do not fit (RFC 1035, RFC 7766).
    Udp,
    /// A stream (RFC 7766).
    Tcp,
    /// TLS (RFC 7858).
    Tls,
    /// HTTPS (RFC 8484).
    Https,
}

impl Transport {
    /// All transports.
    pub const ALL: [Self; 4] = [Self::Udp, Self::Tcp, Self::Tls, Self::Https];

    /// Returns the scheme of the transport in URLs.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Https => "https",
        }
    }

    /// Returns the port of servers without another one.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Udp | Self::Tcp => 53,
            Self::Tls => 853,
            Self::Https => 443,
        }
    }

    /// True if the server proves its name with a certificate.
    #[must_use]
    pub const fn has_certificate(self) -> bool {
        matches!(self, Self::Tls | Self::Https)
    }
}
