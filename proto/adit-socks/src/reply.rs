//! The reply codes of SOCKS5.

use core::fmt;

/// The REP byte (RFC 1928 section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reply {
    /// The request succeeded.
    Succeeded = 0x00,
    /// Any failure without its own code.
    GeneralFailure = 0x01,
    /// The server's rules forbid the request.
    NotAllowed = 0x02,
    /// There is no route to the network.
    NetworkUnreachable = 0x03,
    /// There is no route to the host, or its name has no address.
    HostUnreachable = 0x04,
    /// The target refused or reset the connection.
    ConnectionRefused = 0x05,
    /// The target did not answer in time.
    TtlExpired = 0x06,
    /// The server does not support the command or has disabled it.
    CommandNotSupported = 0x07,
    /// The server does not support the address type.
    AddressTypeNotSupported = 0x08,
}

impl Reply {
    /// Returns the reply for a REP byte; `None` for the unassigned ones (09 to FF).
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            0x00 => Self::Succeeded,
            0x01 => Self::GeneralFailure,
            0x02 => Self::NotAllowed,
            0x03 => Self::NetworkUnreachable,
            0x04 => Self::HostUnreachable,
            0x05 => Self::ConnectionRefused,
            0x06 => Self::TtlExpired,
            0x07 => Self::CommandNotSupported,
            0x08 => Self::AddressTypeNotSupported,
            _ => return None,
        })
    }

    /// Returns the REP byte.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        self as u8
    }

    /// Returns a short description.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::GeneralFailure => "general failure",
            Self::NotAllowed => "not allowed",
            Self::NetworkUnreachable => "network unreachable",
            Self::HostUnreachable => "host unreachable",
            Self::ConnectionRefused => "connection refused",
            Self::TtlExpired => "timed out",
            Self::CommandNotSupported => "command not supported",
            Self::AddressTypeNotSupported => "address type not supported",
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip_and_the_rest_is_unassigned() {
        for byte in 0..=u8::MAX {
            match Reply::from_byte(byte) {
                Some(reply) => assert_eq!(reply.to_byte(), byte),
                None => assert!(byte > 8),
            }
        }
    }
}
