//! The table of packet ciphers, and the checks that detect a wrong key under ciphers without a tag.

use core::fmt;
use core::str::FromStr;

use adit_wire::Overhead;

use crate::{CryptoError, TAG_LEN};

/// Length of the random nonce of every packet except those of [`PacketKind::Aes128Gcm`] and
/// [`PacketKind::Null`], in bytes.
pub(super) const NONCE: usize = 16;
/// Length of the random nonce of a packet of [`PacketKind::Aes128Gcm`], in bytes.
pub(super) const GCM_NONCE: usize = 12;

/// A packet cipher, named as in kcptun.
///
/// Only [`Self::Aes128Gcm`] authenticates. Of the others, Blowfish, Twofish, CAST5, 3DES and SM4 look up
/// secrets in tables and so do not run in constant time; AES does where the CPU has instructions for it or
/// the code is bit-sliced, and so do Salsa20, TEA, XTEA and the exclusive or.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PacketKind {
    /// AES-256, CFB: kcptun's default
    Aes,
    /// AES-128, CFB
    Aes128,
    /// AES-192, CFB
    Aes192,
    /// AES-128-GCM with random nonces: at most about 2³² packets under one password
    Aes128Gcm,
    /// Salsa20 with 20 rounds
    Salsa20,
    /// Blowfish with a key of 32 bytes, CFB
    Blowfish,
    /// Twofish with a key of 32 bytes, CFB
    Twofish,
    /// CAST-128 (RFC 2144), CFB
    Cast5,
    /// Triple DES with three keys, CFB
    TripleDes,
    /// TEA with 8 cycles in place of its 32, CFB
    Tea,
    /// XTEA with 32 cycles, CFB
    Xtea,
    /// One pad over every packet: conceals nothing from an observer of two packets
    Xor,
    /// SM4 (GB/T 32907), CFB
    Sm4,
    /// No encryption, but with nonce and check
    None,
    /// Nothing: the payload is the datagram
    Null,
}

/// The names, in the order of the enum, which a test checks.
const ROWS: [(PacketKind, &str); 15] = {
    use PacketKind as K;
    [
        (K::Aes, "aes"),
        (K::Aes128, "aes-128"),
        (K::Aes192, "aes-192"),
        (K::Aes128Gcm, "aes-128-gcm"),
        (K::Salsa20, "salsa20"),
        (K::Blowfish, "blowfish"),
        (K::Twofish, "twofish"),
        (K::Cast5, "cast5"),
        (K::TripleDes, "3des"),
        (K::Tea, "tea"),
        (K::Xtea, "xtea"),
        (K::Xor, "xor"),
        (K::Sm4, "sm4"),
        (K::None, "none"),
        (K::Null, "null"),
    ]
};

impl PacketKind {
    /// All ciphers.
    pub const ALL: [Self; 15] = {
        let mut all = [Self::Aes; 15];
        let mut i = 0;
        while i < all.len() {
            all[i] = ROWS[i].0;
            i += 1;
        }
        all
    };

    /// Returns kcptun's name of the cipher.
    #[must_use]
    pub const fn name(self) -> &'static str {
        ROWS[self as usize].1
    }

    /// Returns the space around a payload. [`Overhead::max_payload`](adit_wire::Overhead::max_payload) is limited for [`Self::Xor`] alone, whose pad is
    /// finite.
    #[must_use]
    pub const fn overhead_layout(self, check: PacketCheck) -> Overhead {
        let (head, tail) = match self {
            Self::Null => (0, 0),
            Self::Aes128Gcm => (GCM_NONCE, TAG_LEN),
            _ => (NONCE + check.byte_len(), 0),
        };
        let max = match self {
            Self::Xor => super::cipher::PAD_LEN - head,
            _ => usize::MAX,
        };
        Overhead {
            head,
            tail,
            max_payload: max,
        }
    }

    /// Returns the number of bytes that sealing adds: 20 with CRC-32, 24 with HighwayHash, 28 for
    /// [`Self::Aes128Gcm`], 0 for [`Self::Null`].
    #[must_use]
    pub const fn overhead_len(self, check: PacketCheck) -> usize {
        let room = self.overhead_layout(check);
        room.head + room.tail
    }
}

impl FromStr for PacketKind {
    type Err = CryptoError;

    /// Parses a name, ignoring case. Unknown names are errors, where kcptun falls back to `aes`.
    fn from_str(name: &str) -> Result<Self, CryptoError> {
        ROWS.iter()
            .find(|row| row.1.eq_ignore_ascii_case(name))
            .map(|row| row.0)
            .ok_or(CryptoError::UnknownCipher)
    }
}

impl fmt::Display for PacketKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The check that is compared after decryption under a cipher without a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PacketCheck {
    /// CRC-32 (IEEE) of the payload, as in kcp-go: detects wrong keys and damage, but not forgery.
    #[default]
    Crc32,
    /// HighwayHash-64 over nonce and payload: the mode kcp9, between two instances of adit. Its key is the
    /// SHA-256 of `kcp9 highwayhash key v1` and the 32 bytes of the packet's key, as four little-endian
    /// words. It detects tampering, but it is not authenticated encryption and does not detect replays.
    HighwayHash,
}

impl PacketCheck {
    /// Returns its length, in bytes.
    #[must_use]
    pub const fn byte_len(self) -> usize {
        match self {
            Self::Crc32 => 4,
            Self::HighwayHash => 8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_enum() {
        for (i, kind) in PacketKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, i);
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.to_string().to_uppercase().parse(), Ok(kind));
        }
        for unknown in ["", "aes-256", "aes ", "des"] {
            assert_eq!(
                unknown.parse::<PacketKind>(),
                Err(CryptoError::UnknownCipher)
            );
        }
    }

    #[test]
    fn overheads_are_those_of_the_wire() {
        for kind in PacketKind::ALL {
            let [crc, highway] =
                [PacketCheck::Crc32, PacketCheck::HighwayHash].map(|c| kind.overhead_len(c));
            let expected = match kind {
                PacketKind::Null => (0, 0),
                PacketKind::Aes128Gcm => (28, 28),
                _ => (20, 24),
            };
            assert_eq!((crc, highway), expected, "{kind}");
        }
        assert_eq!(
            PacketKind::Xor
                .overhead_layout(PacketCheck::Crc32)
                .max_payload,
            1480
        );
    }
}
