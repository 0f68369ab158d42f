//! The protocols and their names.

use core::fmt;
use core::str::FromStr;

use crate::chain_padding::ChainKind;
use crate::frame::AdlerKind;
use crate::mac::MacKind;

/// A protocol of ShadowsocksR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProtocolKind {
    /// No change to the stream.
    Origin,
    /// Frames with random bytes and a CRC-32.
    VerifySimple,
    /// Frames of compressed data.
    VerifyDeflate,
    /// The old one-time authentication: HMAC-SHA1 from client to server, nothing in the other
    /// direction.
    VerifySha1,
    /// `verify_simple` with a time and ids in the first frame.
    AuthSimple,
    /// An authenticated first message, then frames with an Adler-32.
    AuthSha1,
    /// The second version of `auth_sha1`, without a time.
    AuthSha1V2,
    /// The fourth version of `auth_sha1`.
    AuthSha1V4,
    /// Every frame authenticated with HMAC-MD5; supports users.
    AuthAes128Md5,
    /// Every frame authenticated with HMAC-SHA1; supports users.
    AuthAes128Sha1,
    /// Every frame authenticated with SipHash-1-3; supports users.
    AuthAes128Fast,
    /// RC4-encrypted frames with masked lengths, each bound to the previous one; supports users.
    AuthChainA,
    /// `auth_chain_a` with paddings from two lists.
    AuthChainB,
    /// `auth_chain_a` with paddings from one list.
    AuthChainC,
    /// `auth_chain_c` with a longer list.
    AuthChainD,
    /// `auth_chain_d` without a random choice from the list.
    AuthChainE,
    /// `auth_chain_e` with a list that changes daily. Experimental: never tested against another
    /// implementation.
    AuthChainF,
}

/// The implementation of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProtocolFamily {
    Origin,
    /// `verify_simple`, or `auth_simple`, which has ids in the first frame.
    Crc {
        auth: bool,
    },
    Deflate,
    OneTime,
    Adler(AdlerKind),
    Mac(MacKind),
    Chain(ChainKind),
}

impl ProtocolKind {
    /// All protocols, from the simplest to the latest.
    pub const ALL: [Self; 17] = [
        Self::Origin,
        Self::VerifySimple,
        Self::VerifyDeflate,
        Self::VerifySha1,
        Self::AuthSimple,
        Self::AuthSha1,
        Self::AuthSha1V2,
        Self::AuthSha1V4,
        Self::AuthAes128Md5,
        Self::AuthAes128Sha1,
        Self::AuthAes128Fast,
        Self::AuthChainA,
        Self::AuthChainB,
        Self::AuthChainC,
        Self::AuthChainD,
        Self::AuthChainE,
        Self::AuthChainF,
    ];

    /// Returns the name in configuration files, which also salts the keys.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::VerifySimple => "verify_simple",
            Self::VerifyDeflate => "verify_deflate",
            Self::VerifySha1 => "verify_sha1",
            Self::AuthSimple => "auth_simple",
            Self::AuthSha1 => "auth_sha1",
            Self::AuthSha1V2 => "auth_sha1_v2",
            Self::AuthSha1V4 => "auth_sha1_v4",
            Self::AuthAes128Md5 => "auth_aes128_md5",
            Self::AuthAes128Sha1 => "auth_aes128_sha1",
            Self::AuthAes128Fast => "auth_aes128_fast",
            Self::AuthChainA => "auth_chain_a",
            Self::AuthChainB => "auth_chain_b",
            Self::AuthChainC => "auth_chain_c",
            Self::AuthChainD => "auth_chain_d",
            Self::AuthChainE => "auth_chain_e",
            Self::AuthChainF => "auth_chain_f",
        }
    }

    /// True if the first message proves to a server that the client has the key.
    #[must_use]
    pub const fn is_authenticated(self) -> bool {
        !matches!(
            self.family(),
            ProtocolFamily::Origin | ProtocolFamily::Crc { .. } | ProtocolFamily::Deflate
        )
    }

    /// True if users with their own passwords can share a port.
    #[must_use]
    pub const fn has_users(self) -> bool {
        matches!(
            self.family(),
            ProtocolFamily::Mac(_) | ProtocolFamily::Chain(_)
        )
    }

    /// True if a server's protocol name may end in `_compatible`.
    #[must_use]
    pub const fn has_compatible(self) -> bool {
        matches!(
            self.family(),
            ProtocolFamily::OneTime | ProtocolFamily::Adler(_)
        )
    }

    /// True if opened data is in the buffer it arrived in; see [`crate::FrameOpen::open_frame`].
    #[must_use]
    pub const fn opens_in_place(self) -> bool {
        !matches!(self.family(), ProtocolFamily::Deflate)
    }

    pub(crate) const fn family(self) -> ProtocolFamily {
        match self {
            Self::Origin => ProtocolFamily::Origin,
            Self::VerifySimple => ProtocolFamily::Crc { auth: false },
            Self::AuthSimple => ProtocolFamily::Crc { auth: true },
            Self::VerifyDeflate => ProtocolFamily::Deflate,
            Self::VerifySha1 => ProtocolFamily::OneTime,
            Self::AuthSha1 => ProtocolFamily::Adler(AdlerKind::V1),
            Self::AuthSha1V2 => ProtocolFamily::Adler(AdlerKind::V2),
            Self::AuthSha1V4 => ProtocolFamily::Adler(AdlerKind::V4),
            Self::AuthAes128Md5 => ProtocolFamily::Mac(MacKind::Md5),
            Self::AuthAes128Sha1 => ProtocolFamily::Mac(MacKind::Sha1),
            Self::AuthAes128Fast => ProtocolFamily::Mac(MacKind::Fast),
            Self::AuthChainA => ProtocolFamily::Chain(ChainKind::A),
            Self::AuthChainB => ProtocolFamily::Chain(ChainKind::B),
            Self::AuthChainC => ProtocolFamily::Chain(ChainKind::C),
            Self::AuthChainD => ProtocolFamily::Chain(ChainKind::D),
            Self::AuthChainE => ProtocolFamily::Chain(ChainKind::E),
            Self::AuthChainF => ProtocolFamily::Chain(ChainKind::F),
        }
    }
}

/// A protocol as named in a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protocol {
    /// The protocol.
    pub kind: ProtocolKind,
    /// True for the suffix `_compatible`: a server treats clients that do not use the protocol as
    /// clients of `origin`. Ignored by clients.
    pub compatible: bool,
}

/// The error for a text that is not the name of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnknownProtocol {
    /// No protocol has this name.
    #[error("unknown ShadowsocksR protocol")]
    Name,
    /// The protocol exists, but not with `_compatible`.
    #[error("this protocol has no `_compatible` form")]
    Compatible,
}

impl FromStr for ProtocolKind {
    type Err = UnknownProtocol;

    /// Parses the name without a suffix; an empty text is `origin`.
    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        if text.is_empty() {
            return Ok(Self::Origin);
        }
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.name() == text)
            .ok_or(UnknownProtocol::Name)
    }
}

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        let (name, compatible) = match text.strip_suffix("_compatible") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let kind: ProtocolKind = name.parse()?;
        if compatible && !kind.has_compatible() {
            return Err(UnknownProtocol::Compatible);
        }
        Ok(Self { kind, compatible })
    }
}

impl From<ProtocolKind> for Protocol {
    fn from(kind: ProtocolKind) -> Self {
        Self {
            kind,
            compatible: false,
        }
    }
}

impl fmt::Display for ProtocolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = if self.compatible { "_compatible" } else { "" };
        write!(f, "{}{suffix}", self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for kind in ProtocolKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            let both = Protocol {
                kind,
                compatible: kind.has_compatible(),
            };
            assert_eq!(both.to_string().parse(), Ok(both));
        }
        assert_eq!("".parse(), Ok(ProtocolKind::Origin));
    }

    #[test]
    fn other_names_are_refused() {
        for name in ["auth_chain_g", "Origin", "auth_sha1_v3", "_compatible_"] {
            assert_eq!(name.parse::<Protocol>(), Err(UnknownProtocol::Name));
        }
        for name in ["auth_aes128_md5_compatible", "auth_chain_a_compatible"] {
            assert_eq!(name.parse::<Protocol>(), Err(UnknownProtocol::Compatible));
        }
    }
}
