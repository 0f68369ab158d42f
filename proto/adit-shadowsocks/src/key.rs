//! A key: read from a URL or password once, expanded once, shared by every session.

use core::fmt;
use std::sync::{Arc, LazyLock};

use adit_crypto::{
    AeadKey, AeadKind, HeaderCipher, KdfContext, Secret, evp_bytes_to_key, hkdf_sha1_subkey,
};
use adit_wire::{Broken, Entropy};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, URL_SAFE_NO_PAD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};

use crate::{Edition, Method};

/// Standard base64; padding is written, and may be missing when read.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

static SESSION: LazyLock<KdfContext> =
    LazyLock::new(|| KdfContext::new("shadowsocks 2022 session subkey"));
static KEY_ID: LazyLock<KdfContext> = LazyLock::new(|| KdfContext::new("adit key-id"));

/// A method with its key. Cheap to clone; cleared when the last clone is dropped.
#[derive(Clone)]
pub struct Key(Arc<Inner>);

struct Inner {
    method: Method,
    id: KeyId,
    /// The first `method.key_len()` bytes count.
    bytes: Secret<[u8; 32]>,
    packets: PacketCipher,
}

/// What the UDP packets of the 2022 edition need from the key itself.
#[allow(clippy::large_enum_variant, reason = "one per key, behind its Arc")]
pub(crate) enum PacketCipher {
    /// Hides the separate header; the body has a key per session.
    Aes(HeaderCipher),
    /// Seals whole packets.
    ChaCha(AeadKey),
    /// Another edition.
    Unused,
}

/// A short name for a key, safe to print: two sides with the same id hold the same key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId(u16);

/// Why a text is not a key. The message never holds the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// A 2022 key that is not standard base64.
    #[error(
        "the key of {method} is not base64 of {} bytes: make one with `adit keygen {method}`",
        method.key_len()
    )]
    NotBase64 {
        /// The method the key is for.
        method: Method,
    },
    /// A 2022 key of the wrong length.
    #[error(
        "the key has {found} bytes, {method} needs exactly {expected}: \
         make one with `adit keygen {method}`"
    )]
    Length {
        /// Bytes the method needs.
        expected: usize,
        /// Bytes given.
        found: usize,
        /// The method the key is for.
        method: Method,
    },
    /// Several keys joined by `:`, as identity headers (SIP023) have them.
    #[error("{method} takes one key here, not several joined by `:`")]
    Several {
        /// The method the keys are for.
        method: Method,
    },
    /// An empty password for a method that encrypts.
    #[error("the password is empty: make one with `adit keygen {method}`")]
    Empty {
        /// The method the password is for.
        method: Method,
    },
}

impl Key {
    /// Reads a key as it is written in a URL or configuration.
    ///
    /// 2022 methods take standard base64 of exactly [`Method::key_len`] bytes (missing `=` are
    /// accepted), AEAD methods a password, `none` ignores the text.
    pub fn parse(method: Method, secret: &str) -> Result<Self, KeyError> {
        let mut bytes = Secret::new([0; 32]);
        let material = bytes.expose_mut().get_mut(..method.key_len());
        let material = material.unwrap_or_default();
        match method.edition() {
            Edition::None => {}
            Edition::Aead if secret.is_empty() => return Err(KeyError::Empty { method }),
            Edition::Aead => evp_bytes_to_key(secret.as_bytes(), material),
            Edition::Aead2022 if secret.contains(':') => return Err(KeyError::Several { method }),
            Edition::Aead2022 => {
                let raw = BASE64.decode(secret).map(Secret::new);
                let raw = raw.map_err(|_| KeyError::NotBase64 { method })?;
                if raw.expose().len() != material.len() {
                    return Err(KeyError::Length {
                        expected: material.len(),
                        found: raw.expose().len(),
                        method,
                    });
                }
                material.copy_from_slice(raw.expose());
            }
        }
        Ok(Self::expand(method, bytes))
    }

    /// Makes a key; gives it with its text as it goes in a URL: base64 of the key for 2022
    /// methods, a random password of 32 characters for AEAD methods, nothing for `none`.
    pub fn generate(method: Method, entropy: &mut dyn Entropy) -> (Self, String) {
        let mut bytes = Secret::new([0; 32]);
        match method.edition() {
            Edition::None => (Self::expand(method, bytes), String::new()),
            Edition::Aead => {
                let mut raw = Secret::new([0; 24]);
                entropy.fill(raw.expose_mut());
                let password = URL_SAFE_NO_PAD.encode(raw.expose());
                let material = bytes.expose_mut().get_mut(..method.key_len());
                evp_bytes_to_key(password.as_bytes(), material.unwrap_or_default());
                (Self::expand(method, bytes), password)
            }
            Edition::Aead2022 => {
                let material = bytes.expose_mut().get_mut(..method.key_len());
                let material = material.unwrap_or_default();
                entropy.fill(material);
                let text = BASE64.encode(material);
                (Self::expand(method, bytes), text)
            }
        }
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.0.method
    }

    /// The key's printable name.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.0.id
    }

    fn expand(method: Method, bytes: Secret<[u8; 32]>) -> Self {
        let key = bytes.expose().get(..method.key_len()).unwrap_or_default();
        let mut id = [0; 2];
        KEY_ID.derive(&[method.name().as_bytes(), &[0], key], &mut id);
        // The lengths are those of the method, so neither expansion can fail.
        let packets = match method {
            Method::Blake3Aes128Gcm | Method::Blake3Aes256Gcm => {
                HeaderCipher::new(key).map_or(PacketCipher::Unused, PacketCipher::Aes)
            }
            Method::Blake3ChaCha20Poly1305 => {
                let aead = AeadKey::new(AeadKind::XChaCha20Poly1305, key);
                aead.map_or(PacketCipher::Unused, PacketCipher::ChaCha)
            }
            Method::Blake3ChaCha8Poly1305 => {
                let aead = AeadKey::new(AeadKind::XChaCha8Poly1305, key);
                aead.map_or(PacketCipher::Unused, PacketCipher::ChaCha)
            }
            _ => PacketCipher::Unused,
        };
        Self(Arc::new(Inner {
            method,
            id: KeyId(u16::from_be_bytes(id)),
            bytes,
            packets,
        }))
    }

    /// The key of one direction of a stream, of one packet (AEAD) or of one UDP session (2022).
    pub(crate) fn session(&self, salt: &[u8]) -> Result<AeadKey, Broken> {
        let inner = &*self.0;
        let len = inner.method.key_len();
        let key = inner.bytes.expose().get(..len).unwrap_or_default();
        let mut subkey = Secret::new([0; 32]);
        let out = subkey.expose_mut().get_mut(..len).unwrap_or_default();
        let kind = match inner.method {
            Method::Blake3Aes128Gcm | Method::Aes128Gcm => AeadKind::Aes128Gcm,
            Method::Aes192Gcm => AeadKind::Aes192Gcm,
            Method::Blake3Aes256Gcm | Method::Aes256Gcm => AeadKind::Aes256Gcm,
            Method::Blake3ChaCha20Poly1305 | Method::ChaCha20IetfPoly1305 => {
                AeadKind::ChaCha20Poly1305
            }
            Method::Blake3ChaCha8Poly1305 => AeadKind::ChaCha8Poly1305,
            Method::XChaCha20IetfPoly1305 => AeadKind::XChaCha20Poly1305,
            Method::None => return Err(Broken::Malformed("method: it has no keys")),
        };
        match inner.method.edition() {
            Edition::Aead2022 => SESSION.derive(&[key, salt], out),
            _ => hkdf_sha1_subkey(key, salt, out)?,
        }
        Ok(AeadKey::new(kind, out)?)
    }

    /// The ciphers of the 2022 edition's packets.
    pub(crate) fn packets(&self) -> &PacketCipher {
        &self.0.packets
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, {})", self.0.method, self.0.id)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04X}", self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use adit_wire::FixedEntropy;

    const AES: Method = Method::Blake3Aes128Gcm;
    const TEXT: &str = "AAECAwQFBgcICQoLDA0ODw==";

    #[test]
    fn reads_2022_keys_with_and_without_padding() {
        let key = Key::parse(AES, TEXT).unwrap();
        let bare = Key::parse(AES, TEXT.trim_end_matches('=')).unwrap();
        assert_eq!(
            key.0.bytes.expose()[..16],
            core::array::from_fn::<u8, 16, _>(|i| i as u8)
        );
        assert_eq!(key.id(), bare.id());
    }

    #[test]
    fn errors_say_what_to_do_and_hide_the_text() {
        let length = Key::parse(Method::Blake3Aes256Gcm, TEXT).unwrap_err();
        assert_eq!(
            length.to_string(),
            "the key has 16 bytes, 2022-blake3-aes-256-gcm needs exactly 32: \
             make one with `adit keygen 2022-blake3-aes-256-gcm`"
        );
        assert_eq!(
            Key::parse(AES, "barfoo!").unwrap_err().to_string(),
            "the key of 2022-blake3-aes-128-gcm is not base64 of 16 bytes: \
             make one with `adit keygen 2022-blake3-aes-128-gcm`"
        );
        assert_eq!(
            Key::parse(AES, "-_8CAwQFBgcICQoLDA0ODw"),
            Err(KeyError::NotBase64 { method: AES })
        );
        assert_eq!(
            Key::parse(AES, &format!("{TEXT}:{TEXT}")),
            Err(KeyError::Several { method: AES })
        );
        assert!(matches!(
            Key::parse(Method::Aes128Gcm, ""),
            Err(KeyError::Empty { .. })
        ));
        let long = Key::parse(AES, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
        assert!(matches!(
            long,
            Err(KeyError::Length {
                expected: 16,
                found: 32,
                ..
            })
        ));
        assert!(Key::parse(Method::None, "").is_ok());
    }

    #[test]
    fn ids_name_key_and_method() {
        let key = Key::parse(AES, TEXT).unwrap();
        assert_eq!(
            format!("{key:?}"),
            format!("Key(2022-blake3-aes-128-gcm, {})", key.id())
        );
        let material: [u8; 16] = core::array::from_fn(|i| i as u8);
        let mut id = [0; 2];
        let named = [&b"2022-blake3-aes-128-gcm\0"[..], &material].concat();
        KdfContext::new("adit key-id").derive(&[&named], &mut id);
        assert_eq!(key.id().to_string(), format!("{:02X}{:02X}", id[0], id[1]));
        assert_eq!(KeyId(0x00a3).to_string(), "00A3");
        let other = Key::parse(Method::Aes128Gcm, TEXT).unwrap();
        assert_ne!(key.id(), other.id());
    }

    #[test]
    fn generated_keys_read_back() {
        for method in Method::ALL {
            let mut entropy = FixedEntropy::new((0..64).collect::<Vec<u8>>());
            let (key, text) = Key::generate(method, &mut entropy);
            let again = Key::parse(method, &text).unwrap();
            assert_eq!(key.0.bytes.expose(), again.0.bytes.expose(), "{method}");
            assert_eq!(text.is_empty(), method == Method::None);
            if method.edition() == Edition::Aead {
                assert_eq!(text.len(), 32);
            }
        }
    }

    #[test]
    fn every_method_expands() {
        for method in Method::ALL {
            let (key, _) = Key::generate(method, &mut FixedEntropy::default());
            assert_eq!(key.session(&[0; 32]).is_ok(), method != Method::None);
            let packets = !matches!(key.packets(), PacketCipher::Unused);
            assert_eq!(packets, method.edition() == Edition::Aead2022);
        }
    }

    impl PartialEq for Key {
        fn eq(&self, other: &Self) -> bool {
            self.0.bytes == other.0.bytes && self.0.method == other.0.method
        }
    }
}
