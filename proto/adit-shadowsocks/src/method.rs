//! Encryption methods: names, editions and sizes.

use core::fmt;
use core::str::FromStr;

use adit_crypto::StreamKind;

/// An encryption method of Shadowsocks.
///
/// Names are parsed case-insensitively. Aliases of older clients are accepted but never written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// `none`: no encryption
    None,
    /// A stream cipher from before SIP004, for legacy peers only: [`Edition::Stream`]. Without the feature
    /// `legacy-ciphers` nothing can be sealed or opened with it.
    Stream(StreamKind),
}

/// The edition of a method, which determines the wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edition {
    /// SIP022: BLAKE3 session keys, timestamps and replay protection; the key is base64.
    Aead2022,
    /// SIP004: HKDF-SHA1 session keys; the key is derived from a password.
    Aead,
    /// The address, then plaintext data.
    None,
    /// Legacy: a stream cipher over address and data, with a key derived from a password. Nothing
    /// is authenticated: an attacker who changes the ciphertext changes the plaintext, and any
    /// input decrypts to something.
    Stream,
}

/// The methods that are not legacy, recommended ones first.
const CURRENT_METHODS: [Method; 10] = [
    Method::Blake3Aes128Gcm,
    Method::Blake3Aes256Gcm,
    Method::Blake3ChaCha20Poly1305,
    Method::Blake3ChaCha8Poly1305,
    Method::Aes128Gcm,
    Method::Aes192Gcm,
    Method::Aes256Gcm,
    Method::ChaCha20IetfPoly1305,
    Method::XChaCha20IetfPoly1305,
    Method::None,
];

/// Number of stream ciphers that are legacy methods.
const LEGACY_COUNT: usize = if cfg!(feature = "legacy-ciphers") {
    44
} else {
    0
};

/// True if Shadowsocks has a name for the cipher; the others belong to ShadowsocksR.
const fn has_name(kind: StreamKind) -> bool {
    !matches!(
        kind,
        StreamKind::None | StreamKind::TableMd5 | StreamKind::XSalsa20
    )
}

/// The error for a name that is not a method.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct UnknownMethod(pub String);

impl UnknownMethod {
    /// True for the name of a legacy method in a build without the feature `legacy-ciphers`.
    #[must_use]
    pub fn is_left_out(&self) -> bool {
        let kind = self.0.parse::<StreamKind>();
        !cfg!(feature = "legacy-ciphers") && kind.is_ok_and(has_name)
    }
}

impl fmt::Display for UnknownMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.0;
        if self.is_left_out() {
            write!(
                f,
                "this build has no `{name}`: it was built without the feature `legacy-ciphers`"
            )
        } else {
            write!(f, "unknown method `{name}`")
        }
    }
}

impl Method {
    /// All methods: recommended ones first, legacy ones last. Without the feature `legacy-ciphers` there are none of
    /// the latter.
    pub const ALL: [Self; CURRENT_METHODS.len() + LEGACY_COUNT] = {
        let mut all = [Self::None; CURRENT_METHODS.len() + LEGACY_COUNT];
        let mut i = 0;
        while i < CURRENT_METHODS.len() {
            all[i] = CURRENT_METHODS[i];
            i += 1;
        }
        let mut kind = 0;
        while cfg!(feature = "legacy-ciphers") && kind < StreamKind::ALL.len() {
            if has_name(StreamKind::ALL[kind]) {
                all[i] = Self::Stream(StreamKind::ALL[kind]);
                i += 1;
            }
            kind += 1;
        }
        all
    };

    /// Returns the name as written in links and configuration files.
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
            Self::Stream(kind) => kind.name(),
        }
    }

    /// Returns the edition.
    #[must_use]
    pub const fn edition(self) -> Edition {
        match self {
            Self::Blake3Aes128Gcm
            | Self::Blake3Aes256Gcm
            | Self::Blake3ChaCha20Poly1305
            | Self::Blake3ChaCha8Poly1305 => Edition::Aead2022,
            Self::None => Edition::None,
            Self::Stream(_) => Edition::Stream,
            _ => Edition::Aead,
        }
    }

    /// Returns the length of the key in bytes.
    #[must_use]
    pub const fn key_len(self) -> usize {
        match self {
            Self::Blake3Aes128Gcm | Self::Aes128Gcm => 16,
            Self::Aes192Gcm => 24,
            Self::None => 0,
            Self::Stream(kind) => kind.key_len(),
            _ => 32,
        }
    }

    /// Returns the length in bytes of the salt at the start of a stream or packet. It equals the
    /// length of the key; in legacy methods it is the length of the cipher's IV, which may be 0.
    #[must_use]
    pub const fn salt_len(self) -> usize {
        match self {
            Self::Stream(kind) => kind.iv_len(),
            _ => self.key_len(),
        }
    }

    /// True if the method exists for legacy peers only and its cipher is broken.
    #[must_use]
    pub const fn is_legacy(self) -> bool {
        matches!(self, Self::Stream(_))
    }

    /// True if requests may have identity headers (SIP023): the 2022 methods with AES.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_any_case_and_belong_to_one_method() {
        let mut names = std::collections::BTreeSet::new();
        for method in Method::ALL {
            assert_eq!(method.name().parse(), Ok(method));
            assert_eq!(method.name().to_uppercase().parse(), Ok(method));
            assert!(names.insert(method.name()), "{method} twice");
        }
        for unknown in ["", "table-md5", "xsalsa20", "aes-256-cbc"] {
            assert!(unknown.parse::<Method>().is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_name_that_is_left_out_is_no_typing_error() {
        for name in ["rc4-md5", "nothing"] {
            let is_legacy = name == "rc4-md5";
            match name.parse::<Method>() {
                Ok(method) => assert!(is_legacy && method.is_legacy()),
                Err(why) => {
                    assert_eq!(why.is_left_out(), is_legacy);
                    assert_eq!(why.to_string().contains("`legacy-ciphers`"), is_legacy);
                }
            }
        }
    }

    #[test]
    fn the_legacy_ones_come_last() {
        let legacy = Method::ALL.iter().filter(|m| m.is_legacy());
        assert_eq!(legacy.count(), LEGACY_COUNT);
        let place = CURRENT_METHODS.len();
        assert_eq!(Method::ALL[place - 1], Method::None);
        assert!(Method::ALL[place..].iter().all(|m| m.is_legacy()));
        assert!(Method::ALL.iter().all(|m| m.salt_len() <= 32));
    }
}
