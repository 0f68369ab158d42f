//! Packet encryption of KCP: whole datagrams, sealed in place.
//!
//! # The format of kcp-go and kcptun
//!
//! ```text
//! nonce 16 | crc32 u32 | payload                 every cipher without a tag, encrypted from byte 0 on
//! nonce 16 | highwayhash u64 | payload           the same in mode kcp9
//! nonce 12 | AES-128-GCM(payload) | tag 16       aes-128-gcm, whichever check
//! payload                                        null
//! ```
//!
//! A [`PacketKey`] is created once from a password and shared by all tasks; sealing draws the nonce from
//! the caller's generator. Block ciphers run in CFB mode under an IV that is the same for every packet and
//! every user: the random nonce, which is encrypted first, makes packets differ. CRC-32 is over the
//! payload, in the byte order of all of KCP: little-endian.
//!
//! There is one permanent key for both directions. Packets can be replayed and reflected, and under every
//! kind except [`PacketKind::Aes128Gcm`] also modified by an attacker who knows their content;
//! [`PacketKind`] lists the kinds that do not run in constant time. Use sessions between two instances of
//! adit.
//!
//! # The format between two instances of adit
//!
//! `session_key`: keys for each session and direction, counted nonces, a replay window.

mod cfb;
mod check;
mod cipher;
mod kind;
pub mod qpp;
pub mod session;
mod side;
mod sm4;
mod tea;
mod triple_des;
mod twofish;

#[cfg(test)]
mod tests;

use core::fmt;
use core::num::NonZeroU32;
use core::ops::Range;

use adit_wire::{Entropy, Overhead};

use self::{
    check::{KeyedCheck, PacketParts},
    cipher::Cipher,
    kind::{GCM_NONCE, NONCE},
};
use crate::{
    AeadKey, AeadKind, CryptoError, Direction, Secret, TAG_LEN, pbkdf2_hmac_sha1,
    simd::{CpuPath, Crc32},
};

pub use kind::{PacketCheck, PacketKind};

const SALT: &[u8] = b"kcp-go";
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).unwrap();

/// Derives kcptun's key from a password: PBKDF2-HMAC-SHA1 with the salt `kcp-go` and 4,096 iterations. That
/// is little: passwords should be long and random. Takes milliseconds.
#[must_use]
pub fn key_from_password(password: &[u8]) -> Secret<[u8; 32]> {
    let mut key = Secret::new([0; 32]);
    pbkdf2_hmac_sha1(password, SALT, ITERATIONS, key.expose_mut());
    key
}

/// Returns the check of kcp-go's packets: CRC-32 of ITU-T V.42 (IEEE 802.3).
#[must_use]
pub fn crc32(payload: &[u8]) -> u32 {
    Crc32::new(CpuPath::of_process()).checksum(payload)
}

/// A cipher and a check with their keys, for both directions of every session; cleared on drop.
///
/// # Examples
///
/// ```
/// use adit_crypto::packet::{PacketCheck, PacketKey, PacketKind};
/// use adit_wire::FixedEntropy;
///
/// let key = PacketKey::new(PacketKind::Aes, PacketCheck::Crc32, b"password")?;
/// let space = key.overhead_layout();
/// let mut packet = vec![0; space.head];
/// packet.extend_from_slice(b"datagram");
/// packet.resize(packet.len() + space.tail, 0);
///
/// // Use the system's random numbers in a program.
/// key.seal(&mut packet, &mut FixedEntropy::new([7; 16]))?;
/// let payload = key.open(&mut packet)?;
/// assert_eq!(&packet[payload], b"datagram");
/// # Ok::<(), adit_crypto::CryptoError>(())
/// ```
pub struct PacketKey {
    kind: PacketKind,
    room: Overhead,
    inner: Inner,
}

enum Inner {
    Null,
    Aead(AeadKey),
    Checked(Cipher, KeyedCheck),
}

impl PacketKey {
    /// Creates a key from a password with [`key_from_password`].
    ///
    /// # Errors
    /// See [`from_key`](Self::from_key).
    pub fn new(kind: PacketKind, check: PacketCheck, password: &[u8]) -> Result<Self, CryptoError> {
        Self::from_key(kind, check, key_from_password(password).expose())
    }

    /// Creates a key from 32 bytes, of which ciphers with shorter keys use the first ones.
    ///
    /// # Errors
    /// The error of a cipher that refuses its key. The lengths are correct by construction, so none is expected.
    pub fn from_key(
        kind: PacketKind,
        check: PacketCheck,
        key: &[u8; 32],
    ) -> Result<Self, CryptoError> {
        Self::new_on_path(CpuPath::of_process(), kind, check, key)
    }

    fn new_on_path(
        path: CpuPath,
        kind: PacketKind,
        check: PacketCheck,
        key: &[u8; 32],
    ) -> Result<Self, CryptoError> {
        let inner = match kind {
            PacketKind::Null => Inner::Null,
            PacketKind::Aes128Gcm => {
                let (key, _) = key.split_at(AeadKind::Aes128Gcm.key_len());
                Inner::Aead(AeadKey::new(AeadKind::Aes128Gcm, key)?)
            }
            _ => Inner::Checked(
                Cipher::new(path, kind, key)?,
                KeyedCheck::new(path, check, key),
            ),
        };
        Ok(Self {
            kind,
            room: kind.overhead_layout(check),
            inner,
        })
    }

    /// Returns the cipher of this key.
    #[must_use]
    pub const fn kind(&self) -> PacketKind {
        self.kind
    }

    /// Returns the space that sealing needs before and after a payload.
    #[must_use]
    pub const fn overhead_layout(&self) -> Overhead {
        self.room
    }

    /// Returns the number of bytes that sealing adds: 20 with CRC-32, 24 with HighwayHash, 28 for
    /// `aes-128-gcm`, 0 for `null`.
    #[must_use]
    pub const fn overhead_len(&self) -> usize {
        self.room.head + self.room.tail
    }

    /// Seals `packet` in place; all of it is the datagram afterwards. The payload is between `head`
    /// and `tail` bytes that are overwritten; the nonce is drawn from `rng`.
    ///
    /// # Errors
    /// [`CryptoError::NoRoom`] and [`CryptoError::TooLong`]; the packet is unchanged then.
    pub fn seal(&self, packet: &mut [u8], rng: &mut dyn Entropy) -> Result<(), CryptoError> {
        self.check_len(packet.len())?;
        match &self.inner {
            Inner::Null => Ok(()),
            Inner::Aead(key) => seal_aead(key, packet, rng),
            Inner::Checked(cipher, checker) => {
                cipher.apply_cipher(
                    Direction::Encrypt,
                    write_nonce_and_check(checker, packet, rng),
                );
                Ok(())
            }
        }
    }

    /// Opens a datagram in place and returns the range of its payload.
    ///
    /// # Errors
    /// [`CryptoError::Unauthentic`] if it is too short, damaged, or sealed under another key; the content
    /// of `packet` is unspecified then.
    pub fn open(&self, packet: &mut [u8]) -> Result<Range<usize>, CryptoError> {
        let unauthentic = CryptoError::Unauthentic;
        self.check_len(packet.len()).map_err(|_| unauthentic)?;
        let payload = self.room.head..packet.len() - self.room.tail;
        match &self.inner {
            Inner::Null => {}
            Inner::Aead(key) => {
                let (nonce, rest) = packet.split_at_mut_checked(GCM_NONCE).ok_or(unauthentic)?;
                let (ciphertext, tag) =
                    rest.split_last_chunk_mut::<TAG_LEN>().ok_or(unauthentic)?;
                key.open_in_place(nonce, ciphertext, tag)?;
            }
            Inner::Checked(cipher, checker) => {
                cipher.apply_cipher(Direction::Decrypt, packet);
                let pieces = self.split_decrypted(checker, packet).ok_or(unauthentic)?;
                if !checker.verify_check(pieces) {
                    return Err(unauthentic);
                }
            }
        }
        Ok(payload)
    }

    /// Splits a decrypted packet into nonce, check and payload, if it is long enough.
    fn split_decrypted<'p>(
        &self,
        checker: &KeyedCheck,
        packet: &'p [u8],
    ) -> Option<PacketParts<'p>> {
        self.check_len(packet.len()).ok()?;
        let (nonce, rest) = packet.split_at_checked(NONCE)?;
        let (check, payload) = rest.split_at_checked(checker.check_kind().byte_len())?;
        Some((nonce, check, payload))
    }

    /// Seals each of the packets like [`Self::seal`], with the CFB chains of eight in parallel: three to
    /// five times as fast with AES, SM4, TEA and XTEA, about twice with the other block ciphers. The blocks
    /// of Salsa20 and the hashes of two packets are computed in parallel too.
    ///
    /// # Errors
    /// If one of the packets does not have enough space, none is sealed.
    // Not generic, or the ciphers would be compiled as the crate of the caller is: for its size, in most cases.
    pub fn seal_batch(
        &self,
        packets: &mut [&mut [u8]],
        rng: &mut dyn Entropy,
    ) -> Result<(), CryptoError> {
        for packet in &*packets {
            self.check_len(packet.len())?;
        }
        match &self.inner {
            Inner::Null => Ok(()),
            Inner::Aead(key) => packets
                .iter_mut()
                .try_for_each(|packet| seal_aead(key, packet, rng)),
            Inner::Checked(cipher, checker) => {
                for two in packets.chunks_mut(2) {
                    match two {
                        [one, other] => {
                            let packets =
                                [one, other].map(|packet| write_nonce(checker, packet, rng));
                            checker.write_two(packets);
                        }
                        alone => alone.iter_mut().for_each(|packet| {
                            write_nonce_and_check(checker, packet, rng);
                        }),
                    }
                }
                cipher.encrypt_all(packets);
                Ok(())
            }
        }
    }

    /// Opens each of the datagrams like [`Self::open`] and passes the result, with the index in `packets`,
    /// to `each`. With Salsa20 the blocks of all of them are computed in parallel, and the hashes of two;
    /// other ciphers already work on many blocks of one packet.
    // Not generic, as `seal_batch`.
    #[expect(
        clippy::type_complexity,
        reason = "a name of its own would hide what `each` takes"
    )]
    pub fn open_batch(
        &self,
        packets: &mut [&mut [u8]],
        each: &mut dyn FnMut(usize, Result<&mut [u8], CryptoError>),
    ) {
        let Inner::Checked(cipher, checker) = &self.inner else {
            for (place, packet) in packets.iter_mut().enumerate() {
                let opened = self.open(packet);
                each(place, opened.and_then(|range| slice_payload(packet, range)));
            }
            return;
        };
        let together = cipher.is_better_together();
        if together {
            let fit = packets.iter_mut().map(|packet| &mut **packet);
            cipher.decrypt_all(fit.filter(|packet| self.check_len(packet.len()).is_ok()));
        }
        for (pair, two) in packets.chunks_mut(2).enumerate() {
            let mut pieces = [None; 2];
            for (pieces, packet) in pieces.iter_mut().zip(&mut *two) {
                if !together && self.check_len(packet.len()).is_ok() {
                    cipher.apply_cipher(Direction::Decrypt, packet);
                }
                *pieces = self.split_decrypted(checker, packet);
            }
            let right = checker.verify_two(pieces);
            for (at, (packet, right)) in two.iter_mut().zip(right).enumerate() {
                let opened = if right {
                    slice_payload(packet, self.room.head..packet.len() - self.room.tail)
                } else {
                    Err(CryptoError::Unauthentic)
                };
                each(2 * pair + at, opened);
            }
        }
    }

    /// Applies the cipher alone to a whole packet, without nonce and check, for comparing speeds: kcp-go's
    /// `BlockCrypt`. `null` and `aes-128-gcm` have none, and that of `none` does nothing.
    #[doc(hidden)]
    pub fn apply_cipher(&self, direction: Direction, packet: &mut [u8]) {
        if let Inner::Checked(cipher, _) = &self.inner {
            cipher.apply_cipher(direction, packet);
        }
    }

    /// Writes only the checks of two packets that are laid out for sealing, for comparing speeds. `null`
    /// and `aes-128-gcm` have none.
    #[doc(hidden)]
    pub fn write_checks(&self, packets: [&mut [u8]; 2]) {
        let fit = packets
            .iter()
            .all(|packet| self.check_len(packet.len()).is_ok());
        if let (Inner::Checked(_, checker), true) = (&self.inner, fit) {
            checker.write_two(packets.map(|packet| {
                let (nonce, check, payload) = split_layout(checker, packet);
                (&*nonce, check, payload)
            }));
        }
    }

    /// Like [`write_checks`](Self::write_checks), for one packet.
    #[doc(hidden)]
    pub fn write_check(&self, packet: &mut [u8]) {
        if let (Inner::Checked(_, checker), Ok(())) = (&self.inner, self.check_len(packet.len())) {
            let (nonce, check, payload) = split_layout(checker, packet);
            checker.write_check(nonce, payload, check);
        }
    }

    const fn check_len(&self, len: usize) -> Result<(), CryptoError> {
        if len < self.overhead_len() {
            return Err(CryptoError::NoRoom);
        }
        if len - self.overhead_len() > self.room.max_payload {
            return Err(CryptoError::TooLong);
        }
        Ok(())
    }
}

impl fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketKey({})", self.kind)
    }
}

/// Writes nonce and check in front of the payload and returns the packet.
fn write_nonce_and_check<'p>(
    checker: &KeyedCheck,
    packet: &'p mut [u8],
    rng: &mut dyn Entropy,
) -> &'p mut [u8] {
    let (nonce, check, payload) = write_nonce(checker, packet, rng);
    checker.write_check(nonce, payload, check);
    packet
}

/// Splits the packet into a fresh nonce, the space for the check, and the payload.
fn write_nonce<'p>(
    checker: &KeyedCheck,
    packet: &'p mut [u8],
    rng: &mut dyn Entropy,
) -> (&'p [u8], &'p mut [u8], &'p [u8]) {
    let (nonce, check, payload) = split_layout(checker, packet);
    rng.fill(nonce);
    (nonce, check, payload)
}

/// Splits a packet that is laid out for sealing: the space for its nonce and its check, and the payload.
fn split_layout<'p>(
    checker: &KeyedCheck,
    packet: &'p mut [u8],
) -> (&'p mut [u8], &'p mut [u8], &'p [u8]) {
    let (nonce, rest) = packet.split_at_mut(NONCE);
    let (check, payload) = rest.split_at_mut(checker.check_kind().byte_len());
    (nonce, check, payload)
}

fn slice_payload(packet: &mut [u8], range: Range<usize>) -> Result<&mut [u8], CryptoError> {
    packet.get_mut(range).ok_or(CryptoError::NoRoom)
}

fn seal_aead(key: &AeadKey, packet: &mut [u8], rng: &mut dyn Entropy) -> Result<(), CryptoError> {
    let (nonce, rest) = packet.split_at_mut(GCM_NONCE);
    let (payload, tag) = rest.split_at_mut(rest.len() - TAG_LEN);
    rng.fill(nonce);
    tag.copy_from_slice(&key.seal_in_place(nonce, payload)?);
    Ok(())
}
