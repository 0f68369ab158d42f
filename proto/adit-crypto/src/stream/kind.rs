//! The table of stream ciphers: names, lengths, and components.

use core::fmt;
use core::str::FromStr;

use crate::{CryptoError, Secret, evp_bytes_to_key};

/// A stream cipher of Shadowsocks and ShadowsocksR, named as in their configurations.
///
/// None of them authenticates: an attacker who can change the ciphertext changes the plaintext, and any
/// input decrypts. RC4, DES and the other table-based ciphers do not run in constant time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StreamKind {
    /// No encryption. Protocols over it still derive from a key of 16 bytes
    None,
    /// A byte substitution, seeded by the password itself
    Table,
    /// The same, seeded by the derived key
    TableMd5,
    /// RC4 with the key alone: every stream has the same keystream
    Rc4,
    /// RC4 with the key MD5(key ‖ IV)
    Rc4Md5,
    /// The same with an IV of 6 bytes
    Rc4Md56,
    /// AES-128, CFB with feedback of whole blocks
    Aes128Cfb,
    /// AES-128, CFB, 8-bit feedback
    Aes128Cfb8,
    /// AES-128, CFB, 1-bit feedback
    Aes128Cfb1,
    /// AES-128, counter mode, 128 bits, big-endian
    Aes128Ctr,
    /// AES-128, OFB
    Aes128Ofb,
    /// AES-192, CFB with feedback of whole blocks
    Aes192Cfb,
    /// AES-192, CFB, 8-bit feedback
    Aes192Cfb8,
    /// AES-192, CFB, 1-bit feedback
    Aes192Cfb1,
    /// AES-192, counter mode, 128 bits, big-endian
    Aes192Ctr,
    /// AES-192, OFB
    Aes192Ofb,
    /// AES-256, CFB with feedback of whole blocks
    Aes256Cfb,
    /// AES-256, CFB, 8-bit feedback
    Aes256Cfb8,
    /// AES-256, CFB, 1-bit feedback
    Aes256Cfb1,
    /// AES-256, counter mode, 128 bits, big-endian
    Aes256Ctr,
    /// AES-256, OFB
    Aes256Ofb,
    /// Camellia-128, CFB with feedback of whole blocks
    Camellia128Cfb,
    /// Camellia-128, CFB, 8-bit feedback
    Camellia128Cfb8,
    /// Camellia-128, CFB, 1-bit feedback
    Camellia128Cfb1,
    /// Camellia-128, counter mode, 128 bits, big-endian
    Camellia128Ctr,
    /// Camellia-128, OFB
    Camellia128Ofb,
    /// Camellia-192, CFB with feedback of whole blocks
    Camellia192Cfb,
    /// Camellia-192, CFB, 8-bit feedback
    Camellia192Cfb8,
    /// Camellia-192, CFB, 1-bit feedback
    Camellia192Cfb1,
    /// Camellia-192, counter mode, 128 bits, big-endian
    Camellia192Ctr,
    /// Camellia-192, OFB
    Camellia192Ofb,
    /// Camellia-256, CFB with feedback of whole blocks
    Camellia256Cfb,
    /// Camellia-256, CFB, 8-bit feedback
    Camellia256Cfb8,
    /// Camellia-256, CFB, 1-bit feedback
    Camellia256Cfb1,
    /// Camellia-256, counter mode, 128 bits, big-endian
    Camellia256Ctr,
    /// Camellia-256, OFB
    Camellia256Ofb,
    /// Blowfish, CFB
    BfCfb,
    /// CAST-128 (RFC 2144), CFB
    Cast5Cfb,
    /// Single DES, CFB; parity bits are ignored
    DesCfb,
    /// IDEA, CFB
    IdeaCfb,
    /// RC2 (RFC 2268) with an effective key of 128 bits, CFB
    Rc2Cfb,
    /// SEED (RFC 4269), CFB
    SeedCfb,
    /// Salsa20 with 20 rounds, 64-bit counter from 0
    Salsa20,
    /// XSalsa20, counter from 0
    XSalsa20,
    /// The original ChaCha20, 64-bit counter from 0
    ChaCha20,
    /// ChaCha20 of RFC 8439, 32-bit counter from 0; repeats itself after 256 GiB
    ChaCha20Ietf,
    /// HChaCha20, then the original ChaCha20, counter from 0
    XChaCha20,
}

/// Kind, name, lengths of key and IV in bytes, cipher.
type KindRow = (StreamKind, &'static str, usize, usize, Cipher);

/// The rows, in the order of the enum, which a test checks.
#[rustfmt::skip]
const ROWS: [KindRow; 47] = {
    use StreamKind as K;
    use Cipher as C;
    use Mode::{Cfb, Cfb1, Cfb8, Ctr, Ofb};
    [
        (K::None,            "none",              16,  0, C::None),
        (K::Table,           "table",             16,  0, C::Table),
        (K::TableMd5,        "table-md5",         16,  0, C::Table),
        (K::Rc4,             "rc4",               16,  0, C::Rc4),
        (K::Rc4Md5,          "rc4-md5",           16, 16, C::Rc4Md5),
        (K::Rc4Md56,         "rc4-md5-6",         16,  6, C::Rc4Md5),
        (K::Aes128Cfb,       "aes-128-cfb",       16, 16, C::Aes128(Cfb)),
        (K::Aes128Cfb8,      "aes-128-cfb8",      16, 16, C::Aes128(Cfb8)),
        (K::Aes128Cfb1,      "aes-128-cfb1",      16, 16, C::Aes128(Cfb1)),
        (K::Aes128Ctr,       "aes-128-ctr",       16, 16, C::Aes128(Ctr)),
        (K::Aes128Ofb,       "aes-128-ofb",       16, 16, C::Aes128(Ofb)),
        (K::Aes192Cfb,       "aes-192-cfb",       24, 16, C::Aes192(Cfb)),
        (K::Aes192Cfb8,      "aes-192-cfb8",      24, 16, C::Aes192(Cfb8)),
        (K::Aes192Cfb1,      "aes-192-cfb1",      24, 16, C::Aes192(Cfb1)),
        (K::Aes192Ctr,       "aes-192-ctr",       24, 16, C::Aes192(Ctr)),
        (K::Aes192Ofb,       "aes-192-ofb",       24, 16, C::Aes192(Ofb)),
        (K::Aes256Cfb,       "aes-256-cfb",       32, 16, C::Aes256(Cfb)),
        (K::Aes256Cfb8,      "aes-256-cfb8",      32, 16, C::Aes256(Cfb8)),
        (K::Aes256Cfb1,      "aes-256-cfb1",      32, 16, C::Aes256(Cfb1)),
        (K::Aes256Ctr,       "aes-256-ctr",       32, 16, C::Aes256(Ctr)),
        (K::Aes256Ofb,       "aes-256-ofb",       32, 16, C::Aes256(Ofb)),
        (K::Camellia128Cfb,  "camellia-128-cfb",  16, 16, C::Camellia128(Cfb)),
        (K::Camellia128Cfb8, "camellia-128-cfb8", 16, 16, C::Camellia128(Cfb8)),
        (K::Camellia128Cfb1, "camellia-128-cfb1", 16, 16, C::Camellia128(Cfb1)),
        (K::Camellia128Ctr,  "camellia-128-ctr",  16, 16, C::Camellia128(Ctr)),
        (K::Camellia128Ofb,  "camellia-128-ofb",  16, 16, C::Camellia128(Ofb)),
        (K::Camellia192Cfb,  "camellia-192-cfb",  24, 16, C::Camellia192(Cfb)),
        (K::Camellia192Cfb8, "camellia-192-cfb8", 24, 16, C::Camellia192(Cfb8)),
        (K::Camellia192Cfb1, "camellia-192-cfb1", 24, 16, C::Camellia192(Cfb1)),
        (K::Camellia192Ctr,  "camellia-192-ctr",  24, 16, C::Camellia192(Ctr)),
        (K::Camellia192Ofb,  "camellia-192-ofb",  24, 16, C::Camellia192(Ofb)),
        (K::Camellia256Cfb,  "camellia-256-cfb",  32, 16, C::Camellia256(Cfb)),
        (K::Camellia256Cfb8, "camellia-256-cfb8", 32, 16, C::Camellia256(Cfb8)),
        (K::Camellia256Cfb1, "camellia-256-cfb1", 32, 16, C::Camellia256(Cfb1)),
        (K::Camellia256Ctr,  "camellia-256-ctr",  32, 16, C::Camellia256(Ctr)),
        (K::Camellia256Ofb,  "camellia-256-ofb",  32, 16, C::Camellia256(Ofb)),
        (K::BfCfb,           "bf-cfb",            16,  8, C::Blowfish),
        (K::Cast5Cfb,        "cast5-cfb",         16,  8, C::Cast5),
        (K::DesCfb,          "des-cfb",            8,  8, C::Des),
        (K::IdeaCfb,         "idea-cfb",          16,  8, C::Idea),
        (K::Rc2Cfb,          "rc2-cfb",           16,  8, C::Rc2),
        (K::SeedCfb,         "seed-cfb",          16, 16, C::Seed),
        (K::Salsa20,         "salsa20",           32,  8, C::Salsa20),
        (K::XSalsa20,        "xsalsa20",          32, 24, C::XSalsa20),
        (K::ChaCha20,        "chacha20",          32,  8, C::ChaCha20),
        (K::ChaCha20Ietf,    "chacha20-ietf",     32, 12, C::ChaCha20Ietf),
        (K::XChaCha20,       "xchacha20",         32, 24, C::XChaCha20),
    ]
};

impl StreamKind {
    /// All kinds.
    pub const ALL: [Self; 47] = {
        let mut all = [Self::None; 47];
        let mut i = 0;
        while i < all.len() {
            all[i] = ROWS[i].0;
            i += 1;
        }
        all
    };

    const fn table_row(self) -> &'static KindRow {
        &ROWS[self as usize]
    }

    /// Returns the name used in configurations, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.table_row().1
    }

    /// Returns the length of the key in bytes: 16 also for [`Self::None`] and [`Self::Table`], since the
    /// protocols above them derive from such a key. These two ciphers themselves accept keys of any length:
    /// see [`Self::key_from_password`].
    #[must_use]
    pub const fn key_len(self) -> usize {
        self.table_row().2
    }

    /// Returns the length of the IV in bytes; 0 if the cipher has none.
    #[must_use]
    pub const fn iv_len(self) -> usize {
        self.table_row().3
    }

    /// Returns the key of a password, as [`crate::StreamKey::new`] expects it: the password's own bytes for
    /// [`Self::Table`], otherwise [`Self::key_len`] bytes of [`evp_bytes_to_key`].
    #[must_use]
    pub fn key_from_password(self, password: &[u8]) -> Secret<Vec<u8>> {
        if self == Self::Table {
            return Secret::new(password.to_vec());
        }
        let mut key = Secret::new(vec![0; self.key_len()]);
        evp_bytes_to_key(password, key.expose_mut());
        key
    }

    pub(super) const fn cipher(self) -> Cipher {
        self.table_row().4
    }
}

impl FromStr for StreamKind {
    type Err = CryptoError;

    /// Parses a name, ignoring case.
    fn from_str(name: &str) -> Result<Self, CryptoError> {
        ROWS.iter()
            .find(|row| row.1.eq_ignore_ascii_case(name))
            .map(|row| row.0)
            .ok_or(CryptoError::UnknownCipher)
    }
}

impl fmt::Display for StreamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The components of a kind.
#[derive(Clone, Copy)]
pub(super) enum Cipher {
    None,
    Table,
    Rc4,
    Rc4Md5,
    Aes128(Mode),
    Aes192(Mode),
    Aes256(Mode),
    Camellia128(Mode),
    Camellia192(Mode),
    Camellia256(Mode),
    Blowfish,
    Cast5,
    Des,
    Idea,
    Rc2,
    Seed,
    Salsa20,
    XSalsa20,
    ChaCha20,
    ChaCha20Ietf,
    XChaCha20,
}

/// The mode that makes a stream cipher of a block cipher.
#[derive(Clone, Copy)]
pub(super) enum Mode {
    Cfb,
    Cfb8,
    Cfb1,
    Ctr,
    Ofb,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_enum() {
        for (i, kind) in StreamKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, i);
        }
    }

    #[test]
    fn names_are_read_in_any_case() {
        for kind in StreamKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.name().to_uppercase().parse(), Ok(kind));
            assert_eq!(kind.to_string(), kind.name());
        }
        for unknown in ["", "aes-128-gcm", "aes-128-cfb ", "aes-128", "rc4-md5-16"] {
            assert_eq!(
                unknown.parse::<StreamKind>(),
                Err(CryptoError::UnknownCipher)
            );
        }
    }

    #[test]
    fn a_table_is_seeded_by_the_password() {
        let key = |kind: StreamKind| kind.key_from_password(b"barfoo!").expose().clone();
        assert_eq!(key(StreamKind::Table), b"barfoo!");
        assert_eq!(key(StreamKind::TableMd5), crate::md5(&[b"barfoo!"]));
        for kind in StreamKind::ALL {
            if kind != StreamKind::Table {
                assert_eq!(key(kind).len(), kind.key_len());
            }
        }
    }
}
