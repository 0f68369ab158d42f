//! Authenticated encryption, in place with a detached tag, no associated data.
//!
//! AES-GCM and ChaCha20-Poly1305 come from AWS-LC, the 8-round variants from RustCrypto, the
//! 24-byte nonces from our HChaCha. One enum: a predictable branch per record, no virtual call.

use core::fmt;

use aws_lc_rs::aead as lc;
use chacha20poly1305::{ChaCha8Poly1305, KeyInit, aead::AeadInOut};

use crate::{CryptoError, Secret, chacha};

/// Length of every tag here, in bytes.
pub const TAG_LEN: usize = 16;

/// The most one call seals or opens: 2³⁶ - 32 bytes is GCM's bound, ChaCha's lies above; ours is
/// far below either.
const MAX_MESSAGE: usize = 1 << 30;

/// An AEAD algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AeadKind {
    /// AES-128-GCM (NIST SP 800-38D)
    Aes128Gcm,
    /// AES-192-GCM
    Aes192Gcm,
    /// AES-256-GCM
    Aes256Gcm,
    /// ChaCha20-Poly1305 (RFC 8439)
    ChaCha20Poly1305,
    /// XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha)
    XChaCha20Poly1305,
    /// RFC 8439 with 8 rounds
    ChaCha8Poly1305,
    /// XChaCha with 8 rounds in both steps
    XChaCha8Poly1305,
}

impl AeadKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Aes128Gcm,
        Self::Aes192Gcm,
        Self::Aes256Gcm,
        Self::ChaCha20Poly1305,
        Self::XChaCha20Poly1305,
        Self::ChaCha8Poly1305,
        Self::XChaCha8Poly1305,
    ];

    /// Length of the key in bytes.
    #[must_use]
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes192Gcm => 24,
            _ => 32,
        }
    }

    /// Length of the nonce in bytes.
    #[must_use]
    pub const fn nonce_len(self) -> usize {
        match self {
            Self::XChaCha20Poly1305 | Self::XChaCha8Poly1305 => 24,
            _ => 12,
        }
    }
}

/// A key, expanded once; cleared on drop. Never use one nonce twice for sealing.
pub struct AeadKey {
    kind: AeadKind,
    inner: Inner,
}

enum Inner {
    Lc(lc::LessSafeKey),
    ChaCha8(ChaCha8Poly1305),
    /// The key itself: each nonce derives another.
    X(Secret<[u8; 32]>),
}

impl AeadKey {
    /// Expands `key`, which has exactly [`AeadKind::key_len`] bytes.
    pub fn new(kind: AeadKind, key: &[u8]) -> Result<Self, CryptoError> {
        let wrong = CryptoError::KeyLength {
            expected: kind.key_len(),
            found: key.len(),
        };
        let with = |algorithm| {
            lc::UnboundKey::new(algorithm, key)
                .map(|k| Inner::Lc(lc::LessSafeKey::new(k)))
                .map_err(|_| wrong)
        };
        let inner = match kind {
            AeadKind::Aes128Gcm => with(&lc::AES_128_GCM)?,
            AeadKind::Aes192Gcm => with(&lc::AES_192_GCM)?,
            AeadKind::Aes256Gcm => with(&lc::AES_256_GCM)?,
            AeadKind::ChaCha20Poly1305 => with(&lc::CHACHA20_POLY1305)?,
            AeadKind::ChaCha8Poly1305 => {
                Inner::ChaCha8(ChaCha8Poly1305::new_from_slice(key).map_err(|_| wrong)?)
            }
            AeadKind::XChaCha20Poly1305 | AeadKind::XChaCha8Poly1305 => {
                Inner::X(Secret::new(key.try_into().map_err(|_| wrong)?))
            }
        };
        Ok(Self { kind, inner })
    }

    /// The algorithm.
    #[must_use]
    pub const fn kind(&self) -> AeadKind {
        self.kind
    }

    /// Encrypts `buf` in place and gives the tag. `nonce` has [`AeadKind::nonce_len`] bytes.
    pub fn seal_in_place(
        &self,
        nonce: &[u8],
        buf: &mut [u8],
    ) -> Result<[u8; TAG_LEN], CryptoError> {
        if buf.len() > MAX_MESSAGE {
            return Err(CryptoError::TooLong);
        }
        match &self.inner {
            Inner::Lc(key) => {
                let nonce = lc::Nonce::assume_unique_for_key(self.nonce(nonce)?);
                let tag = key
                    .seal_in_place_separate_tag(nonce, lc::Aad::empty(), buf)
                    .map_err(|_| CryptoError::TooLong)?;
                tag.as_ref().try_into().map_err(|_| CryptoError::TooLong)
            }
            Inner::ChaCha8(key) => key
                .encrypt_inout_detached(&self.nonce::<12>(nonce)?.into(), &[], buf.into())
                .map(Into::into)
                .map_err(|_| CryptoError::TooLong),
            Inner::X(key) => {
                let (inner, short) = self.extend(key, nonce)?;
                inner.seal_in_place(&short, buf)
            }
        }
    }

    /// Checks `tag` and decrypts `ct` in place. After an error `ct` holds nothing of use.
    pub fn open_in_place(
        &self,
        nonce: &[u8],
        ct: &mut [u8],
        tag: &[u8],
    ) -> Result<(), CryptoError> {
        if ct.len() > MAX_MESSAGE {
            return Err(CryptoError::TooLong);
        }
        match &self.inner {
            Inner::Lc(key) => {
                let nonce = lc::Nonce::assume_unique_for_key(self.nonce(nonce)?);
                key.open_in_place_separate_tag(nonce, lc::Aad::empty(), tag, ct)
                    .map(|_| ())
                    .map_err(|_| CryptoError::Unauthentic)
            }
            Inner::ChaCha8(key) => {
                let nonce = self.nonce::<12>(nonce)?;
                let tag: [u8; TAG_LEN] = tag.try_into().map_err(|_| CryptoError::Unauthentic)?;
                key.decrypt_inout_detached(&nonce.into(), &[], ct.into(), &tag.into())
                    .map_err(|_| CryptoError::Unauthentic)
            }
            Inner::X(key) => {
                let (inner, short) = self.extend(key, nonce)?;
                inner.open_in_place(&short, ct, tag)
            }
        }
    }

    fn nonce<const N: usize>(&self, nonce: &[u8]) -> Result<[u8; N], CryptoError> {
        nonce.try_into().map_err(|_| CryptoError::NonceLength {
            expected: self.kind.nonce_len(),
            found: nonce.len(),
        })
    }

    fn extend(
        &self,
        key: &Secret<[u8; 32]>,
        nonce: &[u8],
    ) -> Result<(Self, [u8; 12]), CryptoError> {
        let nonce = self.nonce(nonce)?;
        let (kind, (key, short)) = match self.kind {
            AeadKind::XChaCha8Poly1305 => (
                AeadKind::ChaCha8Poly1305,
                chacha::extend::<8>(key.expose(), &nonce),
            ),
            _ => (
                AeadKind::ChaCha20Poly1305,
                chacha::extend::<20>(key.expose(), &nonce),
            ),
        };
        Ok((Self::new(kind, key.expose())?, short))
    }
}

impl fmt::Debug for AeadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AeadKey({:?})", self.kind)
    }
}
