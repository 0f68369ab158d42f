//! The methods: names, classes and sizes.

use core::fmt;
use core::str::FromStr;

/// An encryption method of Shadowsocks.
///
/// Names are matched without regard to case; the aliases of older clients are read, never written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Method {
    /// `2022-blake3-aes-128-gcm`
    Blake3Aes128Gcm,
    /// `2022-blake3-aes-256-gcm`
    Blake3Aes256Gcm,
    /// `2022-blake3-chacha20-poly1305`
    Blake3ChaCha20Poly1305,
    /// `2022-blake3-chacha8-poly1305`
    Blake3ChaCha8Poly1305,
    /// `aes-128-gcm`
    Aes128Gcm,
    /// `aes-192-gcm`
    Aes192Gcm,
    /// `aes-256-gcm`
    Aes256Gcm,
    /// `chacha20-ietf-poly1305`
    ChaCha20IetfPoly1305,
    /// `xchacha20-ietf-poly1305`
    XChaCha20IetfPoly1305,
    /// `none`: no encryption at all
    None,
}

/// The edition a method belongs to; it decides the wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edition {
    /// SIP022: BLAKE3 session keys, timestamps, replay protection; the key is base64.
    Aead2022,
    /// SIP004: HKDF-SHA1 session keys; the key comes from a password.
    Aead,
    /// Address, then raw data.
    None,
}

/// A name that is no method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown method `{0}`")]
pub struct UnknownMethod(pub String);

impl Method {
    /// Every method, the recommended ones first.
    pub const ALL: [Self; 10] = [
        Self::Blake3Aes128Gcm,
        Self::Blake3Aes256Gcm,
        Self::Blake3ChaCha20Poly1305,
        Self::Blake3ChaCha8Poly1305,
        Self::Aes128Gcm,
        Self::Aes192Gcm,
        Self::Aes256Gcm,
        Self::ChaCha20IetfPoly1305,
        Self::XChaCha20IetfPoly1305,
        Self::None,
    ];

    /// The name as it is written in links and configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blake3Aes128Gcm => "2022-blake3-aes-128-gcm",
            Self::Blake3Aes256Gcm => "2022-blake3-aes-256-gcm",
            Self::Blake3ChaCha20Poly1305 => "2022-blake3-chacha20-poly1305",
            Self::Blake3ChaCha8Poly1305 => "2022-blake3-chacha8-poly1305",
            Self::Aes128Gcm => "aes-128-gcm",
            Self::Aes192Gcm => "aes-192-gcm",
            Self::Aes256Gcm => "aes-256-gcm",
            Self::ChaCha20IetfPoly1305 => "chacha20-ietf-poly1305",
            Self::XChaCha20IetfPoly1305 => "xchacha20-ietf-poly1305",
            Self::None => "none",
        }
    }

    /// The edition.
    #[must_use]
    pub const fn edition(self) -> Edition {
        match self {
            Self::Blake3Aes128Gcm
            | Self::Blake3Aes256Gcm
            | Self::Blake3ChaCha20Poly1305
            | Self::Blake3ChaCha8Poly1305 => Edition::Aead2022,
            Self::None => Edition::None,
            _ => Edition::Aead,
        }
    }

    /// Length of the key, and of the salt, in bytes.
    #[must_use]
    pub const fn key_len(self) -> usize {
        match self {
            Self::Blake3Aes128Gcm | Self::Aes128Gcm => 16,
            Self::Aes192Gcm => 24,
            Self::None => 0,
            _ => 32,
        }
    }

    /// Whether requests may carry identity headers (SIP023): the 2022 methods with AES.
    #[must_use]
    pub const fn has_identities(self) -> bool {
        matches!(self, Self::Blake3Aes128Gcm | Self::Blake3Aes256Gcm)
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;
    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        let lower = text.to_ascii_lowercase();
        let name = match lower.as_str() {
            "aead_aes_128_gcm" => "aes-128-gcm",
            "aead_aes_256_gcm" => "aes-256-gcm",
            "aead_chacha20_poly1305" | "chacha20-poly1305" => "chacha20-ietf-poly1305",
            "xchacha20-poly1305" => "xchacha20-ietf-poly1305",
            "plain" => "none",
            other => other,
        };
        Self::ALL
            .into_iter()
            .find(|m| m.name() == name)
            .ok_or_else(|| UnknownMethod(text.to_owned()))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
