//! The bytes of a key, and the keys derived from them.
//!
//! Compact on purpose: a server stores one [`KeyMaterial`] for each user and expands ciphers per
//! session.

use std::sync::LazyLock;

use adit_crypto::{
    AeadKey, AeadKind, HeaderCipher, KdfContext, Secret, blake3_hash, evp_bytes_to_key,
    hkdf_sha1_subkey,
};
use adit_wire::{Entropy, ProtocolError, subslice, subslice_mut};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::general_purpose::{GeneralPurpose, URL_SAFE_NO_PAD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};

use crate::identity::IdentityHash;
use crate::{Edition, KeyError, Method};

/// Standard base64; padding is written, and is optional when read.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

static SESSION_CONTEXT: LazyLock<KdfContext> =
    LazyLock::new(|| KdfContext::new("shadowsocks 2022 session subkey"));
static IDENTITY_CONTEXT: LazyLock<KdfContext> =
    LazyLock::new(|| KdfContext::new("shadowsocks 2022 identity subkey"));

/// A method with the bytes of a key. Compared in constant time.
#[derive(PartialEq)]
pub(crate) struct KeyMaterial {
    /// The first `method.key_len()` bytes are the key; the others are 0.
    bytes: Secret<[u8; 32]>,
    method: Method,
}

impl KeyMaterial {
    /// Returns the key as text, in the edition that configures keys instead of passwords.
    pub(crate) fn to_base64(&self) -> Option<Secret<String>> {
        let is_2022 = self.method.edition() == Edition::Aead2022;
        is_2022.then(|| Secret::new(BASE64.encode(self.bytes())))
    }

    /// Parses a key; see [`Key::parse`](crate::Key::parse).
    pub(crate) fn parse(method: Method, secret: &str) -> Result<Self, KeyError> {
        match method.edition() {
            Edition::None => Ok(Self::with_bytes(method, |_| {})),
            Edition::Aead | Edition::Stream if secret.is_empty() => Err(KeyError::Empty { method }),
            Edition::Aead | Edition::Stream => Ok(Self::with_bytes(method, |out| {
                evp_bytes_to_key(secret.as_bytes(), out);
            })),
            Edition::Aead2022 if secret.contains(':') => Err(KeyError::Several { method }),
            Edition::Aead2022 => {
                let raw = BASE64.decode(secret).map(Secret::new);
                let raw = raw.map_err(|_| KeyError::NotBase64 { method })?;
                if raw.expose().len() != method.key_len() {
                    return Err(KeyError::Length {
                        expected: method.key_len(),
                        found: raw.expose().len(),
                        method,
                    });
                }
                Ok(Self::with_bytes(method, |out| {
                    out.copy_from_slice(raw.expose());
                }))
            }
        }
    }

    /// Generates a key; see [`Key::generate`](crate::Key::generate).
    pub(crate) fn generate(method: Method, entropy: &mut dyn Entropy) -> (Self, String) {
        match method.edition() {
            Edition::None => (Self::with_bytes(method, |_| {}), String::new()),
            Edition::Aead | Edition::Stream => {
                let mut raw = Secret::new([0; 24]);
                entropy.fill(raw.expose_mut());
                let password = URL_SAFE_NO_PAD.encode(raw.expose());
                let derive = |out: &mut [u8]| evp_bytes_to_key(password.as_bytes(), out);
                (Self::with_bytes(method, derive), password)
            }
            Edition::Aead2022 => {
                let drawn = Self::with_bytes(method, |out| entropy.fill(out));
                let text = BASE64.encode(drawn.bytes());
                (drawn, text)
            }
        }
    }

    fn with_bytes(method: Method, write: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = Secret::new([0; 32]);
        write(subslice_mut(bytes.expose_mut(), ..method.key_len()));
        Self { bytes, method }
    }

    /// Returns the key of a method whose bytes are these, followed by zeros.
    pub(crate) fn from_bytes(bytes: [u8; 32], method: Method) -> Self {
        let bytes = Secret::new(bytes);
        Self { bytes, method }
    }

    /// Returns the bytes for [`Self::from_bytes`].
    pub(crate) fn copy_bytes(&self) -> Secret<[u8; 32]> {
        Secret::new(*self.bytes.expose())
    }

    pub(crate) const fn method(&self) -> Method {
        self.method
    }

    /// Returns exactly `method.key_len()` bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        subslice(self.bytes.expose(), ..self.method.key_len())
    }

    /// Derives the key of one direction of a stream, of one packet (AEAD) or of one UDP session
    /// (2022).
    pub(crate) fn derive_session_key(&self, salt: &[u8]) -> Result<AeadKey, ProtocolError> {
        let kind = match self.method {
            Method::Blake3Aes128Gcm | Method::Aes128Gcm => AeadKind::Aes128Gcm,
            Method::Aes192Gcm => AeadKind::Aes192Gcm,
            Method::Blake3Aes256Gcm | Method::Aes256Gcm => AeadKind::Aes256Gcm,
            Method::Blake3ChaCha20Poly1305 | Method::ChaCha20IetfPoly1305 => {
                AeadKind::ChaCha20Poly1305
            }
            Method::Blake3ChaCha8Poly1305 => AeadKind::ChaCha8Poly1305,
            Method::XChaCha20IetfPoly1305 => AeadKind::XChaCha20Poly1305,
            Method::None | Method::Stream(_) => {
                return Err(ProtocolError::Malformed("method: no session keys"));
            }
        };
        let mut subkey = Secret::new([0; 32]);
        let out = subkey.expose_mut().get_mut(..self.method.key_len());
        let out = out.unwrap_or_default();
        match self.method.edition() {
            Edition::Aead2022 => SESSION_CONTEXT.derive_key(&[self.bytes(), salt], out),
            _ => hkdf_sha1_subkey(self.bytes(), salt, out)?,
        }
        Ok(AeadKey::new(kind, out)?)
    }

    /// Derives the cipher of the identity header after `salt` in a stream, if this is the identity
    /// key that the header is addressed to (SIP023 section "TCP").
    pub(crate) fn derive_identity_cipher(
        &self,
        salt: &[u8],
    ) -> Result<HeaderCipher, ProtocolError> {
        let mut subkey = Secret::new([0; 32]);
        let out = subkey.expose_mut().get_mut(..self.method.key_len());
        let out = out.unwrap_or_default();
        IDENTITY_CONTEXT.derive_key(&[self.bytes(), salt], out);
        Ok(HeaderCipher::new(out)?)
    }

    /// Returns the hash that names this key in an identity header.
    pub(crate) fn identity_hash(&self) -> IdentityHash {
        IdentityHash::from_key_hash(blake3_hash(self.bytes()))
    }
}
