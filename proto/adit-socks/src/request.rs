//! What a SOCKS client asks for, whatever version it speaks.

use adit_wire::Target;

/// The version of the protocol, as the first byte of a connection names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// SOCKS5 (RFC 1928).
    V5,
    /// SOCKS4 and SOCKS4a.
    V4,
}

/// What is to be done with the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Open a stream to the target.
    Connect,
    /// Accept one stream from the target.
    Bind,
    /// Relay datagrams; the target is where the client will send from, or zeros. SOCKS5 alone.
    UdpAssociate,
}

impl Command {
    /// The command of a CMD byte (RFC 1928 section 4).
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0x01 => Some(Self::Connect),
            0x02 => Some(Self::Bind),
            0x03 => Some(Self::UdpAssociate),
            _ => None,
        }
    }

    /// The CMD byte.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Connect => 0x01,
            Self::Bind => 0x02,
            Self::UdpAssociate => 0x03,
        }
    }
}

/// A complete request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The version it came in, and in which [`crate::server::reply`] answers it.
    pub version: Version,
    /// What to do.
    pub command: Command,
    /// Where to. The port is never 0 for [`Command::Connect`].
    pub target: Target,
    /// The user name the client gave (RFC 1929) or its SOCKS4 USERID: up to 255 opaque bytes.
    pub user: Option<Vec<u8>>,
    /// Whether `user` came with a password that was right. Without this the name is good for a
    /// log line and nothing else.
    pub verified: bool,
}
