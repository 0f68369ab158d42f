//! MACs of packets: UMAC with the sequence number as its nonce, HMAC with it in front of the data.
//!
//! Over ciphertext, UMAC and the cipher alternate in steps of [`STRIDE`]: the bytes that one has
//! processed are still in the L1 cache for the other, and the CPU overlaps the end of one step with
//! the start of the next.

use adit_crypto::{HmacKey, HmacKind, HmacTag, StreamCipher, ct_eq};
use adit_umac::{Nonce, Tag, UmacSession};
use adit_wire::{subslice, subslice_mut};

use super::LENGTH_LEN;
use super::packet_cipher::AES_BLOCK;
use crate::SshError;
use crate::algorithm::Mac;

/// Bytes of one step: whole blocks of UMAC's hash, which are 1024 bytes long.
const STRIDE: usize = 2048;

/// MAC key of one direction.
#[allow(
    clippy::large_enum_variant,
    reason = "one per direction; boxing would cost each packet a pointer dereference"
)]
pub(super) enum MacKey {
    Umac64(UmacSession<8>),
    Umac128(UmacSession<16>),
    /// The key, and the length of its tag in bytes, which may be truncated.
    Hmac(HmacKey, usize),
}

impl MacKey {
    pub(super) fn new(mac: Mac, key: &[u8]) -> Result<Self, SshError> {
        const WRONG: SshError = SshError::Crypto("wrong length of a MAC key");
        if key.len() != mac.key_tag_len().0 {
            return Err(WRONG);
        }
        let umac = || key.try_into().map_err(|_| WRONG);
        let hmac = |kind| Self::Hmac(HmacKey::new(kind, key), mac.key_tag_len().1);
        Ok(match mac {
            Mac::Umac64 | Mac::Umac64Etm => Self::Umac64(UmacSession::new(umac()?)),
            Mac::Umac128 | Mac::Umac128Etm => Self::Umac128(UmacSession::new(umac()?)),
            Mac::HmacSha1 | Mac::HmacSha1Etm | Mac::HmacSha1Short | Mac::HmacSha1ShortEtm => {
                hmac(HmacKind::Sha1)
            }
            Mac::HmacMd5 | Mac::HmacMd5Etm | Mac::HmacMd5Short | Mac::HmacMd5ShortEtm => {
                hmac(HmacKind::Md5)
            }
            Mac::HmacSha256 | Mac::HmacSha256Etm => hmac(HmacKind::Sha256),
            Mac::HmacSha512 | Mac::HmacSha512Etm => hmac(HmacKind::Sha512),
        })
    }

    /// Writes the tag of packet `sequence`.
    #[inline]
    pub(super) fn write_tag(
        &mut self,
        sequence: u32,
        packet: &[u8],
        tag: &mut [u8],
    ) -> Result<(), SshError> {
        let nonce = Nonce::from(u64::from(sequence));
        match self {
            Self::Umac64(umac) => copy_tag(umac.compute_tag(nonce, packet).as_ref(), tag),
            Self::Umac128(umac) => copy_tag(umac.compute_tag(nonce, packet).as_ref(), tag),
            Self::Hmac(hmac, len) => copy_tag(
                truncate_tag(&hmac.tag(&[&sequence.to_be_bytes(), packet]), *len),
                tag,
            ),
        }
    }

    /// Encrypts packet `sequence` except for its length, and writes the tag of the ciphertext.
    pub(super) fn encrypt_and_write_tag(
        &mut self,
        cipher: &mut StreamCipher,
        sequence: u32,
        packet: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), SshError> {
        let nonce = Nonce::from(u64::from(sequence));
        match self {
            Self::Umac64(umac) => {
                copy_tag(encrypt_then_tag(umac, cipher, nonce, packet).as_ref(), tag)
            }
            Self::Umac128(umac) => {
                copy_tag(encrypt_then_tag(umac, cipher, nonce, packet).as_ref(), tag)
            }
            Self::Hmac(..) => {
                cipher.apply(subslice_mut(packet, LENGTH_LEN..));
                self.write_tag(sequence, packet, tag)
            }
        }
    }

    /// Decrypts packet `sequence` except for its length, and returns true if `tag` is valid. If
    /// not, the contents of `packet` are unspecified.
    pub(super) fn verify_and_decrypt(
        &mut self,
        cipher: &mut StreamCipher,
        sequence: u32,
        packet: &mut [u8],
        tag: &[u8],
    ) -> bool {
        let nonce = Nonce::from(u64::from(sequence));
        match self {
            Self::Umac64(umac) => {
                ct_eq(tag_then_decrypt(umac, cipher, nonce, packet).as_ref(), tag)
            }
            Self::Umac128(umac) => {
                ct_eq(tag_then_decrypt(umac, cipher, nonce, packet).as_ref(), tag)
            }
            Self::Hmac(..) => {
                let fits = self.verify_tag(sequence, packet, tag);
                if fits {
                    cipher.apply(subslice_mut(packet, LENGTH_LEN..));
                }
                fits
            }
        }
    }

    /// True if `tag` is the tag of packet `sequence`.
    #[inline]
    pub(super) fn verify_tag(&mut self, sequence: u32, packet: &[u8], tag: &[u8]) -> bool {
        let nonce = Nonce::from(u64::from(sequence));
        match self {
            Self::Umac64(umac) => umac.verify_tag(nonce, packet, tag).is_ok(),
            Self::Umac128(umac) => umac.verify_tag(nonce, packet, tag).is_ok(),
            Self::Hmac(hmac, len) => ct_eq(
                truncate_tag(&hmac.tag(&[&sequence.to_be_bytes(), packet]), *len),
                tag,
            ),
        }
    }
}

/// Encrypts all of `packet` except for its length; returns the tag of the ciphertext.
fn encrypt_then_tag<const TAG: usize>(
    umac: &mut UmacSession<TAG>,
    cipher: &mut StreamCipher,
    nonce: Nonce,
    packet: &mut [u8],
) -> Tag<TAG> {
    if packet.len() <= STRIDE {
        cipher.apply(subslice_mut(packet, LENGTH_LEN..));
        return umac.compute_tag(nonce, packet);
    }
    let mut hasher = umac.new_hasher();
    let (mut from, mut hashed) = (LENGTH_LEN, 0);
    while hashed < packet.len() {
        // The cipher is ahead of the hash by whole blocks, so it never stops within one.
        let to = packet.len().min(from + STRIDE);
        cipher.apply(subslice_mut(packet, from..to));
        let end = packet.len().min(hashed + STRIDE);
        hasher.update(subslice(packet, hashed..end));
        (from, hashed) = (to, end);
    }
    hasher.finish_tag(nonce)
}

/// Decrypts all of `packet` except for its length; returns the tag of the ciphertext.
fn tag_then_decrypt<const TAG: usize>(
    umac: &mut UmacSession<TAG>,
    cipher: &mut StreamCipher,
    nonce: Nonce,
    packet: &mut [u8],
) -> Tag<TAG> {
    if packet.len() <= STRIDE {
        let tag = umac.compute_tag(nonce, packet);
        cipher.apply(subslice_mut(packet, LENGTH_LEN..));
        return tag;
    }
    let mut hasher = umac.new_hasher();
    let (mut from, mut hashed) = (LENGTH_LEN, 0);
    while hashed < packet.len() {
        let end = packet.len().min(hashed + STRIDE);
        hasher.update(subslice(packet, hashed..end));
        // The cipher is behind the hash: a block that the hash has not fully processed has to wait.
        let to = match end < packet.len() {
            true => end - (AES_BLOCK - LENGTH_LEN),
            false => end,
        };
        cipher.apply(subslice_mut(packet, from..to));
        (from, hashed) = (to, end);
    }
    hasher.finish_tag(nonce)
}

/// Truncates a tag to the length of its MAC.
fn truncate_tag(tag: &HmacTag, len: usize) -> &[u8] {
    subslice(tag.as_ref(), ..len)
}

fn copy_tag(from: &[u8], to: &mut [u8]) -> Result<(), SshError> {
    if from.len() != to.len() {
        return Err(SshError::Crypto("wrong length of a tag buffer"));
    }
    to.copy_from_slice(from);
    Ok(())
}

#[cfg(test)]
mod tests {
    use adit_crypto::{Direction, StreamKind};

    use super::*;

    fn cipher() -> StreamCipher {
        StreamCipher::new(
            StreamKind::Aes128Ctr,
            &[5; 16],
            &[6; 16],
            Direction::Encrypt,
        )
        .unwrap()
    }

    /// Alternating changes no result, wherever a packet ends within a step.
    #[test]
    fn turns_make_what_two_passes_make() {
        const KEY: &[u8; 16] = b"abcdefghijklmnop";
        let (mut sealing, mut opening, mut whole) = (cipher(), cipher(), cipher());
        let mut umac = UmacSession::<8>::new(KEY);
        let blocks = (1..8).chain(120..136).chain(250..262).chain([2048, 2050]);
        for (number, blocks) in (7..).zip(blocks) {
            let nonce = Nonce::from(number);
            let plain: Vec<u8> = (0..LENGTH_LEN + blocks * AES_BLOCK)
                .map(|n| (n * n / 7) as u8)
                .collect();
            let mut expected = plain.clone();
            whole.apply(&mut expected[LENGTH_LEN..]);
            let right = umac.compute_tag(nonce, &expected);
            let mut packet = plain.clone();
            assert_eq!(
                encrypt_then_tag(&mut umac, &mut sealing, nonce, &mut packet),
                right
            );
            assert!(packet == expected, "{blocks} blocks");
            assert_eq!(
                tag_then_decrypt(&mut umac, &mut opening, nonce, &mut packet),
                right
            );
            assert!(packet == plain, "{blocks} blocks");
        }
    }
}
