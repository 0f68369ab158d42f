//! OpenSSH's private key file format, `openssh-key-v1` (OpenSSH's `PROTOCOL.key`).

use adit_crypto::{
    AeadKey, AeadKind, Direction, EcdsaKey, Ed25519Key, RsaKey, RsaParts, Secret, StreamCipher,
    StreamKind, TAG_LEN, aes256_cbc_decrypt, bcrypt_pbkdf,
};
use adit_wire::{Entropy, usize_from};

use super::error::KeyError;
use super::private_key::AlgorithmKey;
use super::public_key::{PublicKey, curve_by_type};
use crate::wire::{MessageReader, SshBufMut};

/// Maximum size of a key file, in bytes of text.
pub const MAX_KEY_FILE: usize = 65_536;

const MAGIC: &[u8] = b"openssh-key-v1\0";
/// Maximum number of KDF rounds that a file may require: about half a minute.
const MAX_ROUNDS: u32 = 2048;
const MAX_SALT: usize = 64;

/// Encryption of a new key file, always with AES-256-CTR.
#[derive(Clone, Copy)]
pub struct Encryption<'a> {
    /// Passphrase, which must not be empty.
    pub passphrase: &'a [u8],
    /// Number of KDF rounds, about 10 ms each; OpenSSH's default is 24.
    pub rounds: u32,
}

impl core::fmt::Debug for Encryption<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Encryption")
            .field("rounds", &self.rounds)
            .finish_non_exhaustive()
    }
}

/// Fields of a file before its private section.
struct KeyFileEnvelope<'a> {
    cipher: FileCipher,
    /// Salt and rounds, if there is a KDF.
    kdf: Option<(&'a [u8], u32)>,
    public: PublicKey,
    section: &'a [u8],
    tag: &'a [u8],
}

impl<'a> KeyFileEnvelope<'a> {
    fn parse(document: &'a [u8]) -> Result<Self, KeyError> {
        let mut r = MessageReader::new(document, "private key file");
        if r.take_bytes(MAGIC.len())? != MAGIC {
            return Err(KeyError::Malformed("private key file"));
        }
        let cipher = FileCipher::by_name(r.read_string()?)?;
        let (kdf, mut options) = (
            r.read_string()?,
            MessageReader::new(r.read_string()?, "private key file"),
        );
        let kdf = match kdf {
            b"none" if cipher == FileCipher::None => None,
            b"bcrypt" if cipher != FileCipher::None => {
                Some((options.read_string()?, options.read_u32()?))
            }
            b"none" | b"bcrypt" => return Err(KeyError::Malformed("private key file")),
            _ => return Err(KeyError::Unsupported("the key derivation of the key file")),
        };
        options.expect_end()?;
        if r.read_u32()? != 1 {
            return Err(KeyError::Unsupported("a key file with more than one key"));
        }
        let public = PublicKey::parse(r.read_string()?)?;
        let section = r.read_string()?;
        let tag = r.take_bytes(cipher.tag_len())?;
        r.expect_end()?;
        Ok(Self {
            cipher,
            kdf,
            public,
            section,
            tag,
        })
    }

    fn decrypt_section(&self, passphrase: Option<&[u8]>) -> Result<Secret<Vec<u8>>, KeyError> {
        let mut section = Secret::new(self.section.to_vec());
        let Some((salt, rounds)) = self.kdf else {
            return Ok(section);
        };
        for (what, found, limit) in [
            (
                "number of rounds of a key file",
                usize_from(rounds),
                MAX_ROUNDS as usize,
            ),
            ("length of the salt of a key file", salt.len(), MAX_SALT),
        ] {
            if found > limit {
                return Err(KeyError::TooMuch { what, limit });
            }
        }
        let passphrase = passphrase.ok_or(KeyError::Encrypted)?;
        let material = self.cipher.derive_key_iv(passphrase, salt, rounds)?;
        self.cipher
            .decrypt_in_place(material.expose(), section.expose_mut(), self.tag)?;
        Ok(section)
    }
}

/// Reads the document of a file; returns the key and its comment.
pub(super) fn read_document(
    document: &[u8],
    passphrase: Option<&[u8]>,
) -> Result<(AlgorithmKey, String), KeyError> {
    let envelope = KeyFileEnvelope::parse(document)?;
    let section = envelope.decrypt_section(passphrase)?;
    let mut r = MessageReader::new(section.expose(), "private key");
    if r.read_u32()? != r.read_u32()? {
        return Err(match envelope.kdf {
            Some(_) => KeyError::WrongPassphrase,
            None => KeyError::Malformed("private key"),
        });
    }
    let inner = read_private_fields(&mut r)?;
    let comment = String::from_utf8_lossy(r.read_string()?).into_owned();
    let counted = (1u8..=255).zip(r.remaining()).all(|(n, b)| n == *b);
    if r.remaining().len() > 255 || !counted || inner.public_key() != envelope.public {
        return Err(KeyError::Malformed("private key"));
    }
    Ok((inner, comment))
}

/// Reads the public key, which is not encrypted.
pub(super) fn read_public(document: &[u8]) -> Result<PublicKey, KeyError> {
    KeyFileEnvelope::parse(document).map(|envelope| envelope.public)
}

fn read_private_fields(r: &mut MessageReader<'_>) -> Result<AlgorithmKey, KeyError> {
    let malformed = KeyError::Malformed("private key");
    match r.read_text()? {
        "ssh-ed25519" => {
            let (public, pair) = (r.read_string()?, r.read_string()?);
            let (seed, twin) = pair.split_first_chunk().ok_or(malformed)?;
            let key = Ed25519Key::from_seed(Secret::new(*seed))?;
            if public != key.public_key() || twin != key.public_key() {
                return Err(malformed);
            }
            Ok(AlgorithmKey::Ed25519(key))
        }
        "ssh-rsa" => {
            let (n, e, d) = (r.read_mpint()?, r.read_mpint()?, r.read_mpint()?);
            let (q_inverse, p, q) = (r.read_mpint()?, r.read_mpint()?, r.read_mpint()?);
            let parts = RsaParts {
                n,
                e,
                d,
                p,
                q,
                q_inverse,
            };
            Ok(AlgorithmKey::Rsa(Box::new(RsaKey::from_parts(&parts)?)))
        }
        name if name.starts_with("sk-") => Err(KeyError::Unsupported("a key in a security key")),
        name => {
            let curve = curve_by_type(name).ok_or(KeyError::Unsupported("the key type"))?;
            let (_, point) = (r.read_string()?, r.read_string()?);
            let key = EcdsaKey::from_scalar(curve, r.read_mpint()?)?;
            if key.point() == point {
                Ok(AlgorithmKey::Ecdsa(key))
            } else {
                Err(malformed)
            }
        }
    }
}

/// Writes the document of a file.
pub(super) fn write_document(
    inner: &AlgorithmKey,
    comment: &str,
    encryption: Option<Encryption<'_>>,
    rng: &mut dyn Entropy,
) -> Result<Secret<Vec<u8>>, KeyError> {
    // Allocated at full size, so that no copy is left behind: the largest key and its surroundings.
    let mut section = Secret::new(Vec::with_capacity(8192 + comment.len()));
    let mut check = [0; 4];
    rng.fill(&mut check);
    let out = section.expose_mut();
    out.put_raw(&check);
    out.put_raw(&check);
    write_private_fields(inner, out);
    out.put_string(comment.as_bytes());
    let cipher = match encryption {
        Some(_) => FileCipher::Aes256Ctr,
        None => FileCipher::None,
    };
    for n in 1u8..=255 {
        if out.len() % cipher.block_len() == 0 {
            break;
        }
        out.push(n);
    }
    let mut salt = [0; 16];
    let mut options = Vec::new();
    if let Some(Encryption { passphrase, rounds }) = encryption {
        if rounds > MAX_ROUNDS {
            return Err(KeyError::TooMuch {
                what: "number of rounds of a key file",
                limit: MAX_ROUNDS as usize,
            });
        }
        rng.fill(&mut salt);
        options.put_string(&salt);
        options.put_u32(rounds);
        let material = cipher.derive_key_iv(passphrase, &salt, rounds)?;
        cipher.decrypt_in_place(material.expose(), out, &[])?;
    }
    let mut document = Secret::new(Vec::with_capacity(out.len() + 4096));
    let file = document.expose_mut();
    file.put_raw(MAGIC);
    file.put_string(cipher.name().as_bytes());
    file.put_string(if encryption.is_some() {
        b"bcrypt"
    } else {
        b"none"
    });
    file.put_string(&options);
    file.put_u32(1);
    file.put_string(&inner.public_key().to_blob());
    file.put_string(out);
    Ok(document)
}

fn write_private_fields(inner: &AlgorithmKey, out: &mut Vec<u8>) {
    let public = inner.public_key();
    out.put_string(public.type_name().as_bytes());
    match inner {
        AlgorithmKey::Ed25519(key) => {
            let public = key.public_key();
            out.put_string(&public);
            out.put_nested(|out| {
                out.put_raw(key.seed().expose());
                out.put_raw(&public);
            });
        }
        AlgorithmKey::Ecdsa(key) => {
            public.put_fields(out);
            out.put_mpint(key.scalar().expose());
        }
        AlgorithmKey::Rsa(key) => {
            let [d, p, q, q_inverse] = key.secret_parts();
            out.put_mpint(key.public_key().modulus());
            out.put_mpint(&key.public_key().exponent().to_be_bytes());
            for number in [d, q_inverse, p, q] {
                out.put_mpint(number.expose());
            }
        }
    }
}

/// Ciphers of key files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileCipher {
    None,
    Aes128Ctr,
    Aes192Ctr,
    Aes256Ctr,
    Aes128Gcm,
    Aes256Gcm,
    Aes256Cbc,
}

impl FileCipher {
    const ALL: [Self; 7] = [
        Self::None,
        Self::Aes128Ctr,
        Self::Aes192Ctr,
        Self::Aes256Ctr,
        Self::Aes128Gcm,
        Self::Aes256Gcm,
        Self::Aes256Cbc,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Aes128Ctr => "aes128-ctr",
            Self::Aes192Ctr => "aes192-ctr",
            Self::Aes256Ctr => "aes256-ctr",
            Self::Aes128Gcm => "aes128-gcm@openssh.com",
            Self::Aes256Gcm => "aes256-gcm@openssh.com",
            Self::Aes256Cbc => "aes256-cbc",
        }
    }

    fn by_name(name: &[u8]) -> Result<Self, KeyError> {
        let found = Self::ALL.into_iter().find(|c| c.name().as_bytes() == name);
        found.ok_or(KeyError::Unsupported("the cipher of the key file"))
    }

    const fn key_iv_len(self) -> (usize, usize) {
        match self {
            Self::None => (0, 0),
            Self::Aes128Ctr => (16, 16),
            Self::Aes192Ctr => (24, 16),
            Self::Aes256Ctr | Self::Aes256Cbc => (32, 16),
            Self::Aes128Gcm => (16, 12),
            Self::Aes256Gcm => (32, 12),
        }
    }

    const fn tag_len(self) -> usize {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => TAG_LEN,
            _ => 0,
        }
    }

    const fn block_len(self) -> usize {
        match self {
            Self::None => 8,
            _ => 16,
        }
    }

    /// Derives the key and IV.
    fn derive_key_iv(
        self,
        passphrase: &[u8],
        salt: &[u8],
        rounds: u32,
    ) -> Result<Secret<Vec<u8>>, KeyError> {
        let (key, iv) = self.key_iv_len();
        let mut material = Secret::new(vec![0; key + iv]);
        if passphrase.is_empty() {
            return Err(KeyError::WrongPassphrase);
        }
        bcrypt_pbkdf(passphrase, salt, rounds, material.expose_mut())?;
        Ok(material)
    }

    /// Decrypts in place; in counter mode, this also encrypts.
    fn decrypt_in_place(
        self,
        material: &[u8],
        data: &mut [u8],
        tag: &[u8],
    ) -> Result<(), KeyError> {
        let malformed = KeyError::Malformed("private key file");
        let (key, iv) = material
            .split_at_checked(self.key_iv_len().0)
            .ok_or(KeyError::Crypto)?;
        let ctr = |kind, data: &mut [u8]| {
            StreamCipher::new(kind, key, iv, Direction::Decrypt)?.apply(data);
            Ok(())
        };
        let gcm = |kind, data: &mut [u8]| {
            let tag: &[u8; TAG_LEN] = tag.try_into().map_err(|_| malformed)?;
            let opened = AeadKey::new(kind, key)?.open_in_place(iv, data, tag);
            opened.map_err(|_| KeyError::WrongPassphrase)
        };
        match self {
            Self::None => Ok(()),
            Self::Aes128Ctr => ctr(StreamKind::Aes128Ctr, data),
            Self::Aes192Ctr => ctr(StreamKind::Aes192Ctr, data),
            Self::Aes256Ctr => ctr(StreamKind::Aes256Ctr, data),
            Self::Aes128Gcm => gcm(AeadKind::Aes128Gcm, data),
            Self::Aes256Gcm => gcm(AeadKind::Aes256Gcm, data),
            Self::Aes256Cbc => {
                let key = key.try_into().map_err(|_| KeyError::Crypto)?;
                let iv = iv.try_into().map_err(|_| KeyError::Crypto)?;
                aes256_cbc_decrypt(key, iv, data).map_err(|_| malformed)
            }
        }
    }
}
