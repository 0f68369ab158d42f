//! Response codes.

use core::fmt;

/// The response code of an answer, with the upper bits of EDNS (RFC 6895 section 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ResponseCode {
    /// No error; there may be no record of the type.
    NoError,
    /// The server could not read the query.
    FormErr,
    /// The server failed.
    ServFail,
    /// The name does not exist.
    NXDomain,
    /// The server does not support this kind of query.
    NotImp,
    /// The server refuses, by policy.
    Refused,
    /// The server does not support this version of EDNS (RFC 6891).
    BadVers,
    /// Another code.
    Other(u16),
}

impl ResponseCode {
    /// Returns the number of the code.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::NoError => 0,
            Self::FormErr => 1,
            Self::ServFail => 2,
            Self::NXDomain => 3,
            Self::NotImp => 4,
            Self::Refused => 5,
            Self::BadVers => 16,
            Self::Other(number) => number,
        }
    }
}

impl From<u16> for ResponseCode {
    fn from(number: u16) -> Self {
        match number {
            0 => Self::NoError,
            1 => Self::FormErr,
            2 => Self::ServFail,
            3 => Self::NXDomain,
            4 => Self::NotImp,
            5 => Self::Refused,
            16 => Self::BadVers,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for ResponseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoError => "NOERROR",
            Self::FormErr => "FORMERR",
            Self::ServFail => "SERVFAIL",
            Self::NXDomain => "NXDOMAIN",
            Self::NotImp => "NOTIMP",
            Self::Refused => "REFUSED",
            Self::BadVers => "BADVERS",
            Self::Other(number) => return write!(f, "RCODE{number}"),
        })
    }
}
