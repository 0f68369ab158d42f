//! What a key exchange leaves for one direction.

use adit_crypto::Secret;

use crate::algorithm::{Cipher, Compression, Mac};

/// The algorithms and keys of one direction (RFC 4253 section 7.2), to be given to a
/// [`Sealer`](super::Sealer) or an [`Opener`](super::Opener) at NEWKEYS.
#[derive(Debug)]
pub struct DirectionKeys {
    /// The cipher.
    pub cipher: Cipher,
    /// The MAC; not looked at with a cipher that has a tag of its own.
    pub mac: Option<Mac>,
    /// Compression. [`Compression::ZlibDelayed`] waits for `start_compression`.
    pub compression: Compression,
    /// The cipher's key: as many octets as [`Cipher::key_iv_len`] says.
    pub key: Secret<Vec<u8>>,
    /// The cipher's IV, likewise.
    pub iv: Secret<Vec<u8>>,
    /// The MAC's key: as many octets as [`Mac::key_tag_len`] says; empty without a MAC.
    pub mac_key: Secret<Vec<u8>>,
}
