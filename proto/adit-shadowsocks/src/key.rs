//! Keys: parsed from a URL or password once, expanded once, and shared by every session.

use core::fmt;
use std::sync::{Arc, LazyLock};

use adit_crypto::{AeadKey, AeadKind, Direction, HeaderCipher, KdfContext};
use adit_wire::{Entropy, ProtocolError};

use crate::Method;
use crate::key_material::KeyMaterial;
use crate::stream_cipher::{StreamCipher, StreamKey};

static KEY_ID: LazyLock<KdfContext> = LazyLock::new(|| KdfContext::new("adit key-id"));

/// A method with its key. Cheap to clone; cleared from memory when the last clone is dropped.
#[derive(Clone)]
pub struct Key(Arc<KeyInner>);

struct KeyInner {
    material: KeyMaterial,
    id: KeyId,
    packets: PacketCipher,
    /// The expanded key, in the stream edition only.
    stream: Option<StreamKey>,
}

/// The ciphers that UDP packets of the 2022 edition use directly under the key.
#[allow(clippy::large_enum_variant, reason = "one per key, behind its Arc")]
pub(crate) enum PacketCipher {
    /// Encrypts the separate header and identity headers; bodies have a key per session.
    Aes(HeaderCipher),
    /// Seals whole packets.
    ChaCha(AeadKey),
    /// The method belongs to another edition.
    Unused,
}

/// A short identifier of a key (16 bits), safe to print: compare it to check that two sides have
/// the same key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyId(u16);

/// The reason a text is not a valid key. The message never contains the text.
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
        /// Number of bytes that the method needs.
        expected: usize,
        /// Number of bytes in the text.
        found: usize,
        /// The method the key is for.
        method: Method,
    },
    /// Several keys joined by `:`, the notation for identity headers (SIP023), where only one key
    /// is allowed or for a method without identity headers.
    #[error("{method} takes one key here, not several joined by `:`")]
    Several {
        /// The method the keys are for.
        method: Method,
    },
    /// More identity keys before the user's key than [`MAX_IDENTITIES`](crate::MAX_IDENTITIES).
    #[error("more than {limit} identity keys before the key of {method}")]
    TooMany {
        /// Maximum number of identity keys.
        limit: usize,
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
    /// Parses a key in the notation of URLs and configuration files.
    ///
    /// 2022 methods take standard base64 of exactly [`Method::key_len`] bytes (missing `=` are
    /// accepted), AEAD and legacy methods take a password, and `none` ignores the text.
    ///
    /// # Errors
    ///
    /// Fails if a 2022 key is not base64 ([`KeyError::NotBase64`]), has the wrong length
    /// ([`KeyError::Length`]) or contains a `:` ([`KeyError::Several`]), or if a password is empty
    /// ([`KeyError::Empty`]).
    pub fn parse(method: Method, secret: &str) -> Result<Self, KeyError> {
        let material = KeyMaterial::parse(method, secret)?;
        Ok(Self::with_stream_key(
            material,
            expand_stream_key(method, secret),
        ))
    }

    /// Generates a random key and returns it with its text for a URL: base64 of the key for 2022
    /// methods, a random password of 32 characters for AEAD and legacy methods, an empty string for
    /// `none`.
    pub fn generate(method: Method, entropy: &mut dyn Entropy) -> (Self, String) {
        let (material, text) = KeyMaterial::generate(method, entropy);
        (
            Self::with_stream_key(material, expand_stream_key(method, &text)),
            text,
        )
    }

    /// Returns the method.
    #[must_use]
    pub fn method(&self) -> Method {
        self.0.material.method()
    }

    /// Returns the key's printable identifier.
    #[must_use]
    pub fn id(&self) -> KeyId {
        self.0.id
    }

    /// Expands the ciphers that all sessions of the key share, in the editions that have users.
    pub(crate) fn from_material(material: KeyMaterial) -> Self {
        Self::with_stream_key(material, None)
    }

    fn with_stream_key(material: KeyMaterial, stream: Option<StreamKey>) -> Self {
        let (method, key) = (material.method(), material.bytes());
        let mut id = [0; 2];
        KEY_ID.derive_key(&[method.name().as_bytes(), &[0], key], &mut id);
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
        Self(Arc::new(KeyInner {
            id: KeyId(u16::from_be_bytes(id)),
            material,
            packets,
            stream,
        }))
    }

    /// Returns the raw bytes, from which other keys are derived.
    pub(crate) fn material(&self) -> &KeyMaterial {
        &self.0.material
    }

    /// Returns the ciphers for UDP packets of the 2022 edition.
    pub(crate) fn packet_cipher(&self) -> &PacketCipher {
        &self.0.packets
    }

    /// Starts the cipher of one direction of a stream, or of one packet, in the stream edition.
    /// `iv` has [`Method::salt_len`] bytes.
    pub(crate) fn start_cipher(
        &self,
        iv: &[u8],
        direction: Direction,
    ) -> Result<StreamCipher, ProtocolError> {
        let key = self.0.stream.as_ref().ok_or(NO_STREAM)?;
        Ok(key.start_stream(iv, direction)?)
    }

    /// Returns the header cipher, for methods with identity headers (SIP023).
    pub(crate) fn header_cipher(&self) -> Option<&HeaderCipher> {
        match &self.0.packets {
            PacketCipher::Aes(cipher) => Some(cipher),
            _ => None,
        }
    }
}

const NO_STREAM: ProtocolError = ProtocolError::Malformed("method: not a stream cipher");

/// Expands the key of a legacy method. It needs the text itself: the oldest cipher is seeded with
/// more bytes of it than [`KeyMaterial`] stores.
fn expand_stream_key(method: Method, secret: &str) -> Option<StreamKey> {
    let Method::Stream(kind) = method else {
        return None;
    };
    // The key has the kind's own length, so this cannot fail.
    StreamKey::new(kind, kind.key_from_password(secret.as_bytes()).expose()).ok()
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, {})", self.method(), self.0.id)
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
    use crate::Edition;
    use adit_wire::FixedEntropy;

    const AES: Method = Method::Blake3Aes128Gcm;
    const TEXT: &str = "AAECAwQFBgcICQoLDA0ODw==";

    #[test]
    fn reads_2022_keys_with_and_without_padding() {
        let key = Key::parse(AES, TEXT).unwrap();
        let bare = Key::parse(AES, TEXT.trim_end_matches('=')).unwrap();
        assert_eq!(
            key.material().bytes(),
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
        let old = "rc4-md5".parse().unwrap();
        assert_eq!(Key::parse(old, ""), Err(KeyError::Empty { method: old }));
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
        KdfContext::new("adit key-id").derive_key(&[&named], &mut id);
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
            assert_eq!(key.material().bytes(), again.material().bytes(), "{method}");
            assert_eq!(text.is_empty(), method == Method::None);
            if matches!(method.edition(), Edition::Aead | Edition::Stream) {
                assert_eq!(text.len(), 32);
            }
        }
    }

    #[test]
    fn every_method_expands() {
        for method in Method::ALL {
            let (key, _) = Key::generate(method, &mut FixedEntropy::default());
            let aead = matches!(method.edition(), Edition::Aead | Edition::Aead2022);
            assert_eq!(key.material().derive_session_key(&[0; 32]).is_ok(), aead);
            let iv = [0; 32];
            let stream = key.start_cipher(&iv[..method.salt_len()], Direction::Encrypt);
            assert_eq!(stream.is_ok(), method.is_legacy(), "{method}");
            let packets = !matches!(key.packet_cipher(), PacketCipher::Unused);
            assert_eq!(packets, method.edition() == Edition::Aead2022);
        }
    }

    impl PartialEq for Key {
        fn eq(&self, other: &Self) -> bool {
            self.material() == other.material()
        }
    }
}
