//! The stream ciphers of Shadowsocks before SIP004, and of ShadowsocksR: one table for both.
//!
//! A [`StreamKey`] is expanded once for a password; from it, each connection and direction, or each packet,
//! starts a [`StreamCipher`] with its own IV. `apply` works in place and continues where it stopped, at any
//! byte. Nothing is authenticated here, and `none`, `table` and `rc4` conceal nothing: these are for old
//! peers.
//!
//! Block ciphers are RustCrypto's (SEED is implemented here); their modes are written once for all of them
//! and run as one loop inside the cipher's code for this CPU. ChaCha20, Salsa20 and, on wide CPUs, AES in
//! counter mode use the keystream of [`crate::simd`].

mod block_modes;
mod counter;
pub(crate) mod feedback;
mod kind;
mod rc4;
mod seed;
mod short_cfb;
mod table;
#[cfg(test)]
mod tests;
mod word_cipher;

use core::fmt;
use std::sync::Arc;

use aes::cipher::{BlockCipherEncrypt, KeyInit, array::Array};
use aes::{Aes128Enc, Aes192Enc, Aes256Enc};
use blowfish::Blowfish;
use camellia::{Camellia128, Camellia192, Camellia256};
use cast5::Cast5;
use des::Des;
use idea::Idea;
use rc2::Rc2;

use self::{
    block_modes::Blocks, counter::CounterMode, feedback::Feedback, seed::Seed,
    table::SubstitutionTable, word_cipher::WordCipher,
};
use crate::simd::{CpuPath, CtrKey};
use crate::{CryptoError, Secret};

pub use kind::StreamKind;
pub use rc4::Rc4;

use kind::{Cipher, Mode};

/// The direction of a stream. CFB and `table` depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The input is plaintext.
    Encrypt,
    /// The input is ciphertext.
    Decrypt,
}

/// An expanded key, shared by all streams under it; cleared with the last of them.
///
/// # Examples
///
/// ```
/// use adit_crypto::{Direction, StreamKey, StreamKind};
///
/// let kind = StreamKind::Aes128Ctr;
/// let key = StreamKey::new(kind, kind.key_from_password(b"password").expose())?;
/// let iv = vec![7; kind.iv_len()]; // random in practice
///
/// let mut bytes = *b"two parts";
/// let mut encrypting = key.start_stream(&iv, Direction::Encrypt)?;
/// encrypting.apply(&mut bytes[..3]);
/// encrypting.apply(&mut bytes[3..]);
/// key.start_stream(&iv, Direction::Decrypt)?.apply(&mut bytes);
/// assert_eq!(&bytes, b"two parts");
/// # Ok::<(), adit_crypto::CryptoError>(())
/// ```
pub struct StreamKey {
    kind: StreamKind,
    inner: ExpandedKey,
}

enum ExpandedKey {
    None,
    Table(Arc<SubstitutionTable>),
    Rc4(Secret<[u8; 16]>),
    Rc4Md5(Secret<[u8; 16]>),
    Aes128(Arc<Aes128Enc>, Mode),
    Aes192(Arc<Aes192Enc>, Mode),
    Aes256(Arc<Aes256Enc>, Mode),
    AesCtr(Arc<CtrKey>),
    Camellia128(Arc<Camellia128>, Mode),
    Camellia192(Arc<Camellia192>, Mode),
    Camellia256(Arc<Camellia256>, Mode),
    Blowfish(Arc<Blowfish>),
    Cast5(Arc<Cast5>),
    Des(Arc<Des>),
    Idea(Arc<Idea>),
    Rc2(Arc<Rc2>),
    Seed(Arc<Seed>),
    Words(Cipher, Secret<[u8; 32]>),
}

impl StreamKey {
    /// Expands a key of [`StreamKind::key_len`] bytes; for `table` the password itself, and for `none` any
    /// bytes ([`StreamKind::key_from_password`] returns suitable ones).
    ///
    /// `table` costs milliseconds, Blowfish some microseconds: keep the result.
    ///
    /// # Errors
    /// [`CryptoError::KeyLength`] for a key of another length.
    pub fn new(kind: StreamKind, key: &[u8]) -> Result<Self, CryptoError> {
        let any = matches!(kind, StreamKind::None | StreamKind::Table);
        if !any && key.len() != kind.key_len() {
            return Err(CryptoError::KeyLength {
                expected: kind.key_len(),
                found: key.len(),
            });
        }
        let vectors = match kind.cipher() {
            Cipher::Aes128(Mode::Ctr) | Cipher::Aes192(Mode::Ctr) | Cipher::Aes256(Mode::Ctr) => {
                CtrKey::new(CpuPath::of_process(), key)
            }
            _ => None,
        };
        if let Some(key) = vectors {
            let inner = ExpandedKey::AesCtr(Arc::new(key));
            return Ok(Self { kind, inner });
        }
        let inner = match kind.cipher() {
            Cipher::None => ExpandedKey::None,
            Cipher::Table => ExpandedKey::Table(Arc::new(SubstitutionTable::new(key))),
            Cipher::Rc4 => ExpandedKey::Rc4(copy_key(key)?),
            Cipher::Rc4Md5 => ExpandedKey::Rc4Md5(copy_key(key)?),
            Cipher::Aes128(mode) => ExpandedKey::Aes128(expand_key(key)?, mode),
            Cipher::Aes192(mode) => ExpandedKey::Aes192(expand_key(key)?, mode),
            Cipher::Aes256(mode) => ExpandedKey::Aes256(expand_key(key)?, mode),
            Cipher::Camellia128(mode) => ExpandedKey::Camellia128(expand_key(key)?, mode),
            Cipher::Camellia192(mode) => ExpandedKey::Camellia192(expand_key(key)?, mode),
            Cipher::Camellia256(mode) => ExpandedKey::Camellia256(expand_key(key)?, mode),
            Cipher::Blowfish => ExpandedKey::Blowfish(expand_key(key)?),
            Cipher::Cast5 => ExpandedKey::Cast5(expand_key(key)?),
            Cipher::Des => ExpandedKey::Des(expand_key(key)?),
            Cipher::Idea => ExpandedKey::Idea(expand_key(key)?),
            Cipher::Rc2 => ExpandedKey::Rc2(expand_key(key)?),
            Cipher::Seed => ExpandedKey::Seed(expand_key(key)?),
            cipher @ (Cipher::Salsa20
            | Cipher::XSalsa20
            | Cipher::ChaCha20
            | Cipher::ChaCha20Ietf
            | Cipher::XChaCha20) => ExpandedKey::Words(cipher, copy_key(key)?),
        };
        Ok(Self { kind, inner })
    }

    /// Returns the cipher of this key.
    #[must_use]
    pub const fn kind(&self) -> StreamKind {
        self.kind
    }

    /// Starts a stream with an IV of [`StreamKind::iv_len`] bytes, which must not be used twice with the
    /// same key. Nothing is allocated.
    ///
    /// # Errors
    /// [`CryptoError::NonceLength`] for an IV of another length.
    pub fn start_stream(
        &self,
        iv: &[u8],
        direction: Direction,
    ) -> Result<StreamCipher, CryptoError> {
        let wrong = CryptoError::NonceLength {
            expected: self.kind.iv_len(),
            found: iv.len(),
        };
        if iv.len() != self.kind.iv_len() {
            return Err(wrong);
        }
        /// The state of a cipher with 128-bit blocks.
        macro_rules! blocks {
            ($variant:ident, $cipher:expr, $mode:expr) => {{
                let iv = iv.try_into().map_err(|_| wrong)?;
                Inner::$variant(Blocks::new($cipher, *$mode, iv, direction))
            }};
        }
        /// The state of a cipher that is only used in CFB mode.
        macro_rules! cfb {
            ($variant:ident, $cipher:expr) => {
                Inner::$variant(cfb($cipher, iv, direction)?)
            };
        }
        let inner = match &self.inner {
            ExpandedKey::None => Inner::None,
            ExpandedKey::Table(table) => Inner::Table(Arc::clone(table), direction),
            ExpandedKey::Rc4(key) => Inner::Rc4(Rc4::new(key.expose())?),
            ExpandedKey::Rc4Md5(key) => {
                let key = Secret::new(crate::md5(&[key.expose(), iv]));
                Inner::Rc4(Rc4::new(key.expose())?)
            }
            ExpandedKey::Aes128(cipher, mode) => blocks!(Aes128, cipher, mode),
            ExpandedKey::Aes192(cipher, mode) => blocks!(Aes192, cipher, mode),
            ExpandedKey::Aes256(cipher, mode) => blocks!(Aes256, cipher, mode),
            ExpandedKey::AesCtr(key) => {
                let iv = iv.try_into().map_err(|_| wrong)?;
                Inner::AesCtr(CounterMode::new(Arc::clone(key), iv))
            }
            ExpandedKey::Camellia128(cipher, mode) => blocks!(Camellia128, cipher, mode),
            ExpandedKey::Camellia192(cipher, mode) => blocks!(Camellia192, cipher, mode),
            ExpandedKey::Camellia256(cipher, mode) => blocks!(Camellia256, cipher, mode),
            ExpandedKey::Blowfish(cipher) => cfb!(Blowfish, cipher),
            ExpandedKey::Cast5(cipher) => cfb!(Cast5, cipher),
            ExpandedKey::Des(cipher) => cfb!(Des, cipher),
            ExpandedKey::Idea(cipher) => cfb!(Idea, cipher),
            ExpandedKey::Rc2(cipher) => cfb!(Rc2, cipher),
            ExpandedKey::Seed(cipher) => cfb!(Seed, cipher),
            ExpandedKey::Words(cipher, key) => {
                Inner::Words(WordCipher::new(*cipher, key.expose(), iv).ok_or(wrong)?)
            }
        };
        Ok(StreamCipher {
            kind: self.kind,
            inner,
        })
    }
}

impl fmt::Debug for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamKey({})", self.kind)
    }
}

fn copy_key<const N: usize>(key: &[u8]) -> Result<Secret<[u8; N]>, CryptoError> {
    key.try_into()
        .map(Secret::new)
        .map_err(|_| CryptoError::KeyLength {
            expected: N,
            found: key.len(),
        })
}

fn expand_key<C: KeyInit>(key: &[u8]) -> Result<Arc<C>, CryptoError> {
    // RC2 and Blowfish accept keys of many lengths, including this one.
    let cipher = C::new_from_slice(key).map_err(|_| CryptoError::KeyLength {
        expected: C::key_size(),
        found: key.len(),
    })?;
    Ok(Arc::new(cipher))
}

fn cfb<C: BlockCipherEncrypt>(
    cipher: &Arc<C>,
    iv: &[u8],
    direction: Direction,
) -> Result<Feedback<C>, CryptoError> {
    let register = Array::try_from(iv).map_err(|_| CryptoError::NonceLength {
        expected: C::block_size(),
        found: iv.len(),
    })?;
    Ok(Feedback::new(
        Arc::clone(cipher),
        register,
        direction.into(),
    ))
}

/// The state of one direction of a connection, or of one packet. Cleared on drop.
pub struct StreamCipher {
    kind: StreamKind,
    inner: Inner,
}

#[allow(
    clippy::large_enum_variant,
    reason = "half a KiB of RC4 per connection costs less than an allocation per packet"
)]
enum Inner {
    None,
    Table(Arc<SubstitutionTable>, Direction),
    Rc4(Rc4),
    Aes128(Blocks<Aes128Enc>),
    Aes192(Blocks<Aes192Enc>),
    Aes256(Blocks<Aes256Enc>),
    AesCtr(CounterMode<CtrKey>),
    Camellia128(Blocks<Camellia128>),
    Camellia192(Blocks<Camellia192>),
    Camellia256(Blocks<Camellia256>),
    Blowfish(Feedback<Blowfish>),
    Cast5(Feedback<Cast5>),
    Des(Feedback<Des>),
    Idea(Feedback<Idea>),
    Rc2(Feedback<Rc2>),
    Seed(Feedback<Seed>),
    Words(WordCipher),
}

impl StreamCipher {
    /// Creates a cipher with a key for one stream only: [`StreamKey::new`] followed by
    /// [`StreamKey::start_stream`].
    ///
    /// # Errors
    /// Those of the two functions.
    pub fn new(
        kind: StreamKind,
        key: &[u8],
        iv: &[u8],
        direction: Direction,
    ) -> Result<Self, CryptoError> {
        StreamKey::new(kind, key)?.start_stream(iv, direction)
    }

    /// Returns the cipher of this stream.
    #[must_use]
    pub const fn kind(&self) -> StreamKind {
        self.kind
    }

    /// Encrypts or decrypts the next bytes of the stream in place.
    pub fn apply(&mut self, data: &mut [u8]) {
        match &mut self.inner {
            Inner::None => {}
            Inner::Table(table, Direction::Encrypt) => table.encrypt(data),
            Inner::Table(table, Direction::Decrypt) => table.decrypt(data),
            Inner::Rc4(rc4) => rc4.apply(data),
            Inner::Aes128(blocks) => blocks.apply(data),
            Inner::Aes192(blocks) => blocks.apply(data),
            Inner::Aes256(blocks) => blocks.apply(data),
            Inner::AesCtr(counter) => counter.apply(data),
            Inner::Camellia128(blocks) => blocks.apply(data),
            Inner::Camellia192(blocks) => blocks.apply(data),
            Inner::Camellia256(blocks) => blocks.apply(data),
            Inner::Blowfish(cfb) => cfb.apply(data),
            Inner::Cast5(cfb) => cfb.apply(data),
            Inner::Des(cfb) => cfb.apply(data),
            Inner::Idea(cfb) => cfb.apply(data),
            Inner::Rc2(cfb) => cfb.apply(data),
            Inner::Seed(cfb) => cfb.apply(data),
            Inner::Words(words) => words.apply(data),
        }
    }

    /// Moves to another block of a word-based cipher.
    #[cfg(test)]
    fn seek_block(&mut self, block: u64) {
        match &mut self.inner {
            Inner::Words(words) => words.seek_block(block),
            _ => panic!("{} has no blocks", self.kind),
        }
    }
}

impl fmt::Debug for StreamCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamCipher({})", self.kind)
    }
}
