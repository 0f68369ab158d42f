//! Authenticated encryption in place, with a detached tag and without associated data.
//!
//! AES-GCM is AWS-LC's; ChaCha-Poly1305 with 8 rounds and the 24-byte nonces are implemented here, and with
//! 20 rounds the faster implementation is used. The key is an enum: a predictable branch per record, no
//! virtual call.

use core::fmt;

use aws_lc_rs::aead as lc;

use crate::{
    CpuLevel, CryptoError, Secret,
    simd::{ChaChaKey, ChaChaRounds, CpuPath},
};

/// Length of every tag in this crate, in bytes.
pub const TAG_LEN: usize = 16;

/// Maximum length of a message, in bytes. GCM allows 2³⁶ - 32 bytes and ChaCha more; this limit is far
/// below both.
const MAX_MESSAGE: usize = 1 << 30;

/// Message length, in bytes, from which ChaCha20-Poly1305, or XChaCha20-Poly1305, of this crate is used on
/// AVX-512 with IFMA: where it is faster than AWS-LC's by a fifth. Nanoseconds to seal and to open on an
/// Intel Xeon of the Emerald Rapids generation at 3.3 GHz, this crate against AWS-LC: 154/156 against
/// 163/160 at 32 bytes, 350/362 against 381/370 at 512, 423/433 against 500/524 at 768, 483/486 against
/// 612/587 at 1024, 561/558 against 818/755 at 1400, 4.1 against 7.3 us at 16 KiB. The X variant, AWS-LC
/// including its key set-up: 540/542 against 636/658 at 768 and 598/592 against 749/723 at 1024. On AVX2
/// AWS-LC is faster at every length.
///
/// CPU features decide, not a measurement at the start: on an AMD EPYC of the Zen 4 generation, whose units
/// are half as wide, the same length separates the two (to seal, 390 against 381 at 512 bytes, 570 against
/// 590 at 1024, 650 against 751 at 1400, 4.6 against 6.1 us at 16 KiB), and what a process measures in its
/// first millisecond on a busy machine is less reliable than that.
const OWN_FROM_IFMA: usize = 1024;

/// The same on AVX-512 without IFMA, measured on the same CPU without the IFMA code: 672/673 against
/// 797/757 at 1400 bytes, 1216/1221 against 1499/1462 at 3072, 1539/1547 against 1948/1898 at 4096, 5.4
/// against 7.2 us at 16 KiB.
const OWN_FROM_AVX512: usize = 4096;

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
    /// All algorithms.
    pub const ALL: [Self; 7] = [
        Self::Aes128Gcm,
        Self::Aes192Gcm,
        Self::Aes256Gcm,
        Self::ChaCha20Poly1305,
        Self::XChaCha20Poly1305,
        Self::ChaCha8Poly1305,
        Self::XChaCha8Poly1305,
    ];

    /// Returns the length of the key, in bytes.
    #[must_use]
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes192Gcm => 24,
            _ => 32,
        }
    }

    /// Returns the length of the nonce, in bytes.
    #[must_use]
    pub const fn nonce_len(self) -> usize {
        match self {
            Self::XChaCha20Poly1305 | Self::XChaCha8Poly1305 => 24,
            _ => 12,
        }
    }
}

/// An expanded AEAD key; cleared on drop. Never seal twice with the same nonce.
///
/// # Examples
///
/// ```
/// use adit_crypto::{AeadKey, AeadKind, CryptoError};
///
/// let key = AeadKey::new(AeadKind::Aes256Gcm, &[7; 32])?;
/// let mut message = *b"in place";
/// let mut tag = key.seal_in_place(&[0; 12], &mut message)?;
/// tag[0] ^= 1;
/// let opened = key.open_in_place(&[0; 12], &mut message, &tag);
/// assert_eq!(opened, Err(CryptoError::Unauthentic));
/// # Ok::<(), CryptoError>(())
/// ```
pub struct AeadKey {
    kind: AeadKind,
    inner: Inner,
}

enum Inner {
    /// AWS-LC only.
    Lc(lc::LessSafeKey),
    /// This crate's implementation only.
    Own(ChaChaKey),
    /// Either, by the length of the message.
    Both(ChaChaKey, lc::LessSafeKey),
    /// A key is derived for each nonce.
    X(ChaChaKey),
}

impl AeadKey {
    /// Expands `key`.
    ///
    /// # Errors
    /// [`CryptoError::KeyLength`] if `key` does not have exactly [`AeadKind::key_len`] bytes.
    pub fn new(kind: AeadKind, key: &[u8]) -> Result<Self, CryptoError> {
        Self::new_on_path(CpuPath::of_process(), kind, key)
    }

    pub(crate) fn new_on_path(
        path: CpuPath,
        kind: AeadKind,
        key: &[u8],
    ) -> Result<Self, CryptoError> {
        let wrong = CryptoError::KeyLength {
            expected: kind.key_len(),
            found: key.len(),
        };
        let lc = |algorithm| lc_key(algorithm, key).map_err(|_| wrong);
        let own = |rounds| {
            let secret = Secret::new(key.try_into().map_err(|_| wrong)?);
            Ok(ChaChaKey::new(secret, rounds, path))
        };
        let inner = match kind {
            AeadKind::Aes128Gcm => Inner::Lc(lc(&lc::AES_128_GCM)?),
            AeadKind::Aes192Gcm => Inner::Lc(lc(&lc::AES_192_GCM)?),
            AeadKind::Aes256Gcm => Inner::Lc(lc(&lc::AES_256_GCM)?),
            AeadKind::ChaCha20Poly1305 => {
                Inner::Both(own(ChaChaRounds::TWENTY)?, lc(&lc::CHACHA20_POLY1305)?)
            }
            AeadKind::ChaCha8Poly1305 => Inner::Own(own(ChaChaRounds::EIGHT)?),
            AeadKind::XChaCha20Poly1305 => Inner::X(own(ChaChaRounds::TWENTY)?),
            AeadKind::XChaCha8Poly1305 => Inner::X(own(ChaChaRounds::EIGHT)?),
        };
        Ok(Self { kind, inner })
    }

    /// Returns the algorithm.
    #[must_use]
    pub const fn kind(&self) -> AeadKind {
        self.kind
    }

    /// Encrypts `buf` in place and returns the tag. `nonce` has [`AeadKind::nonce_len`] bytes.
    ///
    /// # Errors
    /// [`CryptoError::NonceLength`] if the nonce has another length, [`CryptoError::TooLong`] above 2³⁰
    /// bytes.
    pub fn seal_in_place(
        &self,
        nonce: &[u8],
        buf: &mut [u8],
    ) -> Result<[u8; TAG_LEN], CryptoError> {
        if buf.len() > MAX_MESSAGE {
            return Err(CryptoError::TooLong);
        }
        Ok(match &self.inner {
            Inner::Lc(key) => lc_seal(key, self.nonce_array(nonce)?, buf)?,
            Inner::Own(own) => own.seal(&self.nonce_array(nonce)?, buf),
            Inner::Both(own, _) if prefers_own_chacha(own.path(), buf.len()) => {
                own.seal(&self.nonce_array(nonce)?, buf)
            }
            Inner::Both(_, key) => lc_seal(key, self.nonce_array(nonce)?, buf)?,
            Inner::X(own) => {
                let (own, nonce) = own.derive_for_xnonce(&self.nonce_array(nonce)?);
                if self.kind == AeadKind::XChaCha8Poly1305
                    || prefers_own_chacha(own.path(), buf.len())
                {
                    own.seal(&nonce, buf)
                } else {
                    lc_seal(&lc_derived_key(&own)?, nonce, buf)?
                }
            }
        })
    }

    /// Verifies `tag` and decrypts `ct` in place. After an error the content of `ct` is unspecified.
    ///
    /// # Errors
    /// [`CryptoError::Unauthentic`] if the tag does not match, and the errors of
    /// [`seal_in_place`](Self::seal_in_place).
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
            Inner::Lc(key) => lc_open(key, self.nonce_array(nonce)?, ct, tag),
            Inner::Own(own) => own_open(own, &self.nonce_array(nonce)?, ct, tag),
            Inner::Both(own, _) if prefers_own_chacha(own.path(), ct.len()) => {
                own_open(own, &self.nonce_array(nonce)?, ct, tag)
            }
            Inner::Both(_, key) => lc_open(key, self.nonce_array(nonce)?, ct, tag),
            Inner::X(own) => {
                let (own, nonce) = own.derive_for_xnonce(&self.nonce_array(nonce)?);
                if self.kind == AeadKind::XChaCha8Poly1305
                    || prefers_own_chacha(own.path(), ct.len())
                {
                    own_open(&own, &nonce, ct, tag)
                } else {
                    lc_open(&lc_derived_key(&own)?, nonce, ct, tag)
                }
            }
        }
    }

    fn nonce_array<const N: usize>(&self, nonce: &[u8]) -> Result<[u8; N], CryptoError> {
        nonce.try_into().map_err(|_| CryptoError::NonceLength {
            expected: self.kind.nonce_len(),
            found: nonce.len(),
        })
    }
}

/// Returns true if this crate's ChaCha20-Poly1305 is to be used instead of AWS-LC's.
const fn prefers_own_chacha(path: CpuPath, len: usize) -> bool {
    match path.level() {
        CpuLevel::Avx512 if path.has_ifma() => len >= OWN_FROM_IFMA,
        CpuLevel::Avx512 => len >= OWN_FROM_AVX512,
        CpuLevel::Avx2Vaes | CpuLevel::Avx2 | CpuLevel::Portable => false,
    }
}

/// Converts a derived key to an AWS-LC key, which is on the stack like all of its ChaCha20 keys.
fn lc_derived_key(key: &ChaChaKey) -> Result<lc::LessSafeKey, CryptoError> {
    lc_key(&lc::CHACHA20_POLY1305, key.expose()).map_err(|_| CryptoError::KeyLength {
        expected: 32,
        found: 32,
    })
}

fn lc_key(
    algorithm: &'static lc::Algorithm,
    key: &[u8],
) -> Result<lc::LessSafeKey, aws_lc_rs::error::Unspecified> {
    lc::UnboundKey::new(algorithm, key).map(lc::LessSafeKey::new)
}

fn lc_seal(
    key: &lc::LessSafeKey,
    nonce: [u8; 12],
    buf: &mut [u8],
) -> Result<[u8; TAG_LEN], CryptoError> {
    let nonce = lc::Nonce::assume_unique_for_key(nonce);
    let tag = key
        .seal_in_place_separate_tag(nonce, lc::Aad::empty(), buf)
        .map_err(|_| CryptoError::TooLong)?;
    tag.as_ref().try_into().map_err(|_| CryptoError::TooLong)
}

fn lc_open(
    key: &lc::LessSafeKey,
    nonce: [u8; 12],
    ct: &mut [u8],
    tag: &[u8],
) -> Result<(), CryptoError> {
    let nonce = lc::Nonce::assume_unique_for_key(nonce);
    key.open_in_place_separate_tag(nonce, lc::Aad::empty(), tag, ct)
        .map(|_| ())
        .map_err(|_| CryptoError::Unauthentic)
}

fn own_open(
    key: &ChaChaKey,
    nonce: &[u8; 12],
    ct: &mut [u8],
    tag: &[u8],
) -> Result<(), CryptoError> {
    match tag.try_into() {
        Ok(tag) if key.open(nonce, ct, tag) => Ok(()),
        _ => Err(CryptoError::Unauthentic),
    }
}

impl fmt::Debug for AeadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AeadKey({:?})", self.kind)
    }
}
