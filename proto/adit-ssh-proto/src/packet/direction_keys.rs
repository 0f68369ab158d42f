//! Keys of one direction, as derived by a key exchange.

use adit_crypto::Secret;

use crate::algorithm::{Cipher, Compression, Mac};

/// Algorithms and keys of one direction (RFC 4253 section 7.2), to be set in a
/// [`Sealer`](super::Sealer) or an [`Opener`](super::Opener) at NEWKEYS.
#[derive(Debug)]
pub struct DirectionKeys {
    /// The cipher.
    pub cipher: Cipher,
    /// MAC; ignored if the cipher has its own tag.
    pub mac: Option<Mac>,
    /// Compression method. [`Compression::ZlibDelayed`] waits for `start_compression`.
    pub compression: Compression,
    /// Key of the cipher; its length is that of [`Cipher::key_iv_len`].
    pub key: Secret<Vec<u8>>,
    /// IV of the cipher; its length is that of [`Cipher::key_iv_len`].
    pub iv: Secret<Vec<u8>>,
    /// Key of the MAC; its length is that of [`Mac::key_tag_len`], or 0 without a MAC.
    pub mac_key: Secret<Vec<u8>>,
}
