//! The request of a SOCKS client, in any version.

use alloc::vec::Vec;

use adit_wire::Target;

/// The protocol version, as in the first byte of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// SOCKS5 (RFC 1928).
    V5,
    /// SOCKS4 and SOCKS4a.
    V4,
}

/// The requested operation on the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Open a stream to the target.
    Connect,
    /// Accept one stream from the target.
    Bind,
    /// Relay datagrams; the target is the address the client will send from, or zeros. SOCKS5 only.
    UdpAssociate,
}

impl Command {
    /// Returns the command of a CMD byte (RFC 1928 section 4).
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0x01 => Some(Self::Connect),
            0x02 => Some(Self::Bind),
            0x03 => Some(Self::UdpAssociate),
            _ => None,
        }
    }

    /// Returns the CMD byte.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Connect => 0x01,
            Self::Bind => 0x02,
            Self::UdpAssociate => 0x03,
        }
    }
}

/// A client's complete request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The client's version, in which [`crate::server::encode_reply`] must answer.
    pub version: Version,
    /// The requested operation.
    pub command: Command,
    /// The target. Its port is never 0 for [`Command::Connect`].
    pub target: Target,
    /// The client's user name (RFC 1929) or its SOCKS4 USERID: up to 255 opaque bytes.
    pub user: Option<Vec<u8>>,
    /// True if `user` was sent with a correct password. Otherwise use the name only in log lines.
    pub verified: bool,
}
