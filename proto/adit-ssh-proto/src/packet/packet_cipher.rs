//! Protection of the packets of one direction: a cipher and its authentication.
//!
//! | cover | length on the wire | tag over |
//! |---|---|---|
//! | none | readable | (none) |
//! | GCM | readable | length, ciphertext |
//! | ChaCha20-Poly1305 | encrypted with a separate key | encrypted length, ciphertext |
//! | CTR, encrypt then MAC | readable | length, ciphertext |
//! | CTR and MAC (RFC 4253) | in the first block of ciphertext | length, plaintext |

use adit_crypto::{Direction, SshChaCha, SshGcm, StreamCipher, StreamKind};
use adit_wire::subslice;

use super::{DirectionKeys, LENGTH_LEN, packet_mac::MacKey};
use crate::SshError;
use crate::algorithm::Cipher;

/// Block length of AES, in bytes.
pub(super) const AES_BLOCK: usize = 16;

/// Cipher state of one direction.
#[allow(
    clippy::large_enum_variant,
    reason = "one per direction; boxing would cost each packet a pointer dereference"
)]
pub(super) enum PacketCipher {
    /// No encryption, before the first NEWKEYS.
    Clear,
    /// AES-GCM.
    Gcm(SshGcm),
    /// ChaCha20-Poly1305.
    ChaCha(SshChaCha),
    /// AES-CTR, encrypt then MAC.
    Etm(CtrWithMac),
    /// AES-CTR, encrypt and MAC.
    EncryptAndMac(CtrWithMac),
}

/// AES-CTR and a MAC.
pub(super) struct CtrWithMac {
    /// Its key stream continues from packet to packet.
    pub(super) cipher: StreamCipher,
    pub(super) mac: MacKey,
    tag_len: usize,
}

impl PacketCipher {
    pub(super) fn new(keys: &DirectionKeys) -> Result<Self, SshError> {
        const WRONG: SshError = SshError::Crypto("wrong length of a cipher key or IV");
        let (key, iv) = (keys.key.expose().as_slice(), keys.iv.expose().as_slice());
        if (key.len(), iv.len()) != keys.cipher.key_iv_len() {
            return Err(WRONG);
        }
        let kind = match keys.cipher {
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => {
                let iv = iv.try_into().map_err(|_| WRONG)?;
                return SshGcm::new(key, iv).map(Self::Gcm).map_err(|_| WRONG);
            }
            Cipher::ChaCha20Poly1305 => {
                let key = key.try_into().map_err(|_| WRONG)?;
                return Ok(Self::ChaCha(SshChaCha::new(key)));
            }
            Cipher::Aes128Ctr => StreamKind::Aes128Ctr,
            Cipher::Aes192Ctr => StreamKind::Aes192Ctr,
            Cipher::Aes256Ctr => StreamKind::Aes256Ctr,
        };
        let mac = keys
            .mac
            .ok_or(SshError::Crypto("the cipher requires a MAC"))?;
        let counter = CtrWithMac {
            // Encryption and decryption are the same in counter mode.
            cipher: StreamCipher::new(kind, key, iv, Direction::Encrypt).map_err(|_| WRONG)?,
            mac: MacKey::new(mac, keys.mac_key.expose())?,
            tag_len: mac.key_tag_len().1,
        };
        Ok(if mac.is_etm() {
            Self::Etm(counter)
        } else {
            Self::EncryptAndMac(counter)
        })
    }

    /// Returns a name for logs.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Gcm(_) => "gcm",
            Self::ChaCha(_) => "chacha20-poly1305",
            Self::Etm(_) => "ctr, encrypt then mac",
            Self::EncryptAndMac(_) => "ctr and mac",
        }
    }

    /// Returns the block length in bytes; packets are padded to a multiple of it.
    #[inline]
    pub(super) const fn block_len(&self) -> usize {
        match self {
            Self::Clear | Self::ChaCha(_) => 8,
            _ => AES_BLOCK,
        }
    }

    /// Number of bytes required to read the length.
    pub(super) const fn first_len(&self) -> usize {
        match self {
            Self::EncryptAndMac(_) => AES_BLOCK,
            _ => LENGTH_LEN,
        }
    }

    /// Number of bytes in front that padding does not count: the length, if it is protected
    /// separately.
    #[inline]
    pub(super) const fn unpadded_len(&self) -> usize {
        match self {
            Self::Clear | Self::EncryptAndMac(_) => 0,
            _ => LENGTH_LEN,
        }
    }

    /// Length of the tag after the padding, in bytes.
    #[inline]
    pub(super) const fn tag_len(&self) -> usize {
        match self {
            Self::Clear => 0,
            Self::Gcm(_) | Self::ChaCha(_) => adit_crypto::TAG_LEN,
            Self::Etm(counter) | Self::EncryptAndMac(counter) => counter.tag_len,
        }
    }

    /// Seals a packet in place; `packet` is everything but the tag.
    pub(super) fn seal(
        &mut self,
        sequence: u32,
        packet: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), SshError> {
        let made = match self {
            Self::Clear => return Ok(()),
            Self::Gcm(gcm) => gcm.seal(packet),
            Self::ChaCha(chacha) => chacha.seal(sequence, packet),
            Self::Etm(CtrWithMac { cipher, mac, .. }) => {
                return mac.encrypt_and_write_tag(cipher, sequence, packet, tag);
            }
            Self::EncryptAndMac(CtrWithMac { cipher, mac, .. }) => {
                mac.write_tag(sequence, packet, tag)?;
                cipher.apply(packet);
                return Ok(());
            }
        };
        let made = made.map_err(|_| SshError::Crypto("sealing a packet"))?;
        tag.copy_from_slice(subslice(&made, ..tag.len()));
        Ok(())
    }

    /// Verifies a packet and decrypts it in place, except for the length, which the caller has
    /// already read. With [`PacketCipher::EncryptAndMac`], the first block is already plaintext. After an error,
    /// the contents of the packet are unspecified.
    pub(super) fn open(
        &mut self,
        sequence: u32,
        packet: &mut [u8],
        tag: &[u8],
    ) -> Result<(), SshError> {
        let opened = match self {
            Self::Clear => true,
            Self::Gcm(gcm) => gcm.open(packet, tag).is_ok(),
            Self::ChaCha(chacha) => chacha.open(sequence, packet, tag).is_ok(),
            Self::Etm(CtrWithMac { cipher, mac, .. }) => {
                mac.verify_and_decrypt(cipher, sequence, packet, tag)
            }
            Self::EncryptAndMac(CtrWithMac { cipher, mac, .. }) => {
                if let Some((_, body)) = packet.split_at_mut_checked(AES_BLOCK) {
                    cipher.apply(body);
                }
                mac.verify_tag(sequence, packet, tag)
            }
        };
        opened.then_some(()).ok_or(SshError::BadTag)
    }
}
