//! The families of protocols and services that a build can leave out.

use core::fmt;

use crate::text::{ConfigError, Span};

/// A family of protocols or services. Each has a feature of this crate; without it, plans with the family have an
/// error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// The methods of Shadowsocks from before its AEAD edition.
    LegacyCiphers,
    /// ShadowsocksR.
    Ssr,
    /// The carriers over UDP: KCP, and error correction for datagrams.
    Kcp,
    /// SSH.
    Ssh,
    /// DNS servers over TLS and HTTPS.
    EncryptedDns,
    /// The management API, and documents that are downloaded.
    Admin,
    /// Nodes of a fleet, and their users.
    Fleet,
    /// The export of metrics and traces over OTLP.
    Otlp,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 8] = [
        Self::LegacyCiphers,
        Self::Ssr,
        Self::Kcp,
        Self::Ssh,
        Self::EncryptedDns,
        Self::Admin,
        Self::Fleet,
        Self::Otlp,
    ];

    /// Returns the name of its feature.
    #[must_use]
    pub const fn feature(self) -> &'static str {
        match self {
            Self::LegacyCiphers => "legacy-ciphers",
            Self::Ssr => "ssr",
            Self::Kcp => "kcp",
            Self::Ssh => "ssh",
            Self::EncryptedDns => "encrypted-dns",
            Self::Admin => "admin",
            Self::Fleet => "fleet",
            Self::Otlp => "otlp",
        }
    }

    /// Returns true if this build has it.
    #[must_use]
    pub const fn is_built(self) -> bool {
        match self {
            Self::LegacyCiphers => cfg!(feature = "legacy-ciphers"),
            Self::Ssr => cfg!(feature = "ssr"),
            Self::Kcp => cfg!(feature = "kcp"),
            Self::Ssh => cfg!(feature = "ssh"),
            Self::EncryptedDns => cfg!(feature = "encrypted-dns"),
            Self::Admin => cfg!(feature = "admin"),
            Self::Fleet => cfg!(feature = "fleet"),
            Self::Otlp => cfg!(feature = "otlp"),
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::LegacyCiphers => "legacy ciphers",
            Self::Ssr => "ShadowsocksR",
            Self::Kcp => "KCP and error correction",
            Self::Ssh => "SSH",
            Self::EncryptedDns => "DNS over TLS and HTTPS",
            Self::Admin => "management API and downloads",
            Self::Fleet => "fleets",
            Self::Otlp => "export over OTLP",
        }
    }
}

/// The error of a family that this build leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOut(pub Family);

impl LeftOut {
    /// Returns the error of a text that needs the family.
    pub(crate) fn error_at(self, span: Span) -> ConfigError {
        ConfigError::new(span, self.to_string()).with_help(
            "use a build of adit with all features: `adit --version` lists those of this one",
        )
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this build of adit has no {}: it was built without the feature `{}`",
            self.0.title(),
            self.0.feature()
        )
    }
}

impl core::error::Error for LeftOut {}
