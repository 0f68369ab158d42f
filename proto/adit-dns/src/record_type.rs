//! Types of records.

use core::fmt;

/// The type of a record or a question, as registered with IANA.
///
/// It is displayed by its name, or as `TYPE` and its number (RFC 3597).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordType(pub u16);

/// The types that have a name here.
const NAMES: [(RecordType, &str); 15] = [
    (RecordType::A, "A"),
    (RecordType::NS, "NS"),
    (RecordType::CNAME, "CNAME"),
    (RecordType::SOA, "SOA"),
    (RecordType::PTR, "PTR"),
    (RecordType::MX, "MX"),
    (RecordType::TXT, "TXT"),
    (RecordType::AAAA, "AAAA"),
    (RecordType::SRV, "SRV"),
    (RecordType::OPT, "OPT"),
    (RecordType::SVCB, "SVCB"),
    (RecordType::HTTPS, "HTTPS"),
    (RecordType::CAA, "CAA"),
    (RecordType::AXFR, "AXFR"),
    (RecordType::ANY, "ANY"),
];

impl RecordType {
    /// An IPv4 address.
    pub const A: Self = Self(1);
    /// A name server.
    pub const NS: Self = Self(2);
    /// An alias.
    pub const CNAME: Self = Self(5);
    /// The start of a zone.
    pub const SOA: Self = Self(6);
    /// The name of an address.
    pub const PTR: Self = Self(12);
    /// A mail server.
    pub const MX: Self = Self(15);
    /// Text.
    pub const TXT: Self = Self(16);
    /// An IPv6 address (RFC 3596).
    pub const AAAA: Self = Self(28);
    /// The place of a service (RFC 2782).
    pub const SRV: Self = Self(33);
    /// The pseudo-record of EDNS (RFC 6891).
    pub const OPT: Self = Self(41);
    /// A binding of a service (RFC 9460).
    pub const SVCB: Self = Self(64);
    /// A binding of a web server (RFC 9460).
    pub const HTTPS: Self = Self(65);
    /// Authorities that may issue certificates (RFC 8659).
    pub const CAA: Self = Self(257);
    /// The transfer of a zone.
    pub const AXFR: Self = Self(252);
    /// All types (RFC 8482).
    pub const ANY: Self = Self(255);

    /// True for addresses of both families.
    #[must_use]
    pub const fn is_address(self) -> bool {
        matches!(self, Self::A | Self::AAAA)
    }

    /// True for types that only questions or only pseudo-records have, which a forwarder does not support:
    /// transfers, signatures of transactions, and all types at once (RFC 6895 section 3.1).
    pub(crate) const fn is_meta(self) -> bool {
        matches!(self.0, 0 | 41 | 128..=255)
    }
}

impl fmt::Display for RecordType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(kind, _)| kind == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "TYPE{}", self.0),
        }
    }
}
