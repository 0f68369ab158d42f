//! Private keys: made, read from files, written to files, signing.

use adit_crypto::{EcdsaKey, Ed25519Key, NistCurve, RsaKey, Secret, generate_rsa_pkcs8};
use adit_wire::Entropy;

use super::error::KeyError;
use super::file::{self, Encryption, MAX_KEY_FILE};
use super::pem::{self, Pem};
use super::public::PublicKey;
use super::{der, verify};
use crate::algorithm::KeyAlgorithm;
use crate::wire::Put;

const OPENSSH: &str = "OPENSSH PRIVATE KEY";

/// What kind of key to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Ed25519.
    Ed25519,
    /// ECDSA.
    Ecdsa(NistCurve),
    /// RSA of 2048, 3072, 4096 or 8192 bits.
    Rsa {
        /// Bits of the modulus.
        bits: usize,
    },
}

/// A private key with its comment.
#[derive(Debug)]
pub struct PrivateKey {
    inner: Inner,
    public: PublicKey,
    comment: String,
}

/// The algorithm's own key.
#[derive(Debug)]
pub(super) enum Inner {
    Ed25519(Ed25519Key),
    Ecdsa(EcdsaKey),
    Rsa(Box<RsaKey>),
}

impl Inner {
    pub(super) fn public(&self) -> PublicKey {
        match self {
            Self::Ed25519(key) => PublicKey::Ed25519(key.public_key()),
            Self::Ecdsa(key) => PublicKey::Ecdsa {
                curve: key.curve(),
                point: key.point().to_vec(),
            },
            Self::Rsa(key) => PublicKey::Rsa(key.public_key().clone()),
        }
    }
}

impl PrivateKey {
    fn new(inner: Inner, comment: String) -> Self {
        Self {
            public: inner.public(),
            inner,
            comment,
        }
    }

    /// A new key, from `chance`; RSA alone takes its chance from the provider, and up to a minute.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] for sizes of RSA that are not made; [`KeyError::Crypto`].
    pub fn generate(kind: KeyKind, chance: &mut dyn Entropy) -> Result<Self, KeyError> {
        let inner = match kind {
            KeyKind::Ed25519 => {
                let mut seed = Secret::new([0; 32]);
                chance.fill(seed.expose_mut());
                Inner::Ed25519(Ed25519Key::from_seed(seed)?)
            }
            KeyKind::Ecdsa(curve) => Inner::Ecdsa(EcdsaKey::generate(curve, chance)?),
            KeyKind::Rsa { bits } => der::pkcs8(generate_rsa_pkcs8(bits)?.expose())?,
        };
        Ok(Self::new(inner, String::new()))
    }

    /// Reads the text of a key file: OpenSSH's own, PKCS#8, PKCS#1 or SEC 1. The passphrase is
    /// used if the file is encrypted: OpenSSH's with AES in CTR, GCM or (256 bits) CBC mode, the
    /// old PEM forms with AES-128-CBC. Each round of the KDF takes some 10 ms.
    ///
    /// # Errors
    /// [`KeyError`]; [`KeyError::Encrypted`] asks for a passphrase.
    pub fn read(text: &str, passphrase: Option<&[u8]>) -> Result<Self, KeyError> {
        bounded(text)?;
        let pem = Pem::parse(text)?;
        let label = pem.label;
        let document = pem.open(passphrase)?;
        let document = document.expose();
        let (inner, comment) = match label {
            OPENSSH => file::read(document, passphrase)?,
            "RSA PRIVATE KEY" => (der::pkcs1(document)?, String::new()),
            "EC PRIVATE KEY" => (der::sec1(document, None)?, String::new()),
            "PRIVATE KEY" => (der::pkcs8(document)?, String::new()),
            "ENCRYPTED PRIVATE KEY" => {
                return Err(KeyError::Unsupported("an encrypted PKCS#8 file"));
            }
            _ => return Err(KeyError::Unsupported("this kind of key file")),
        };
        Ok(Self::new(inner, comment))
    }

    /// The public key of OpenSSH's file, which needs no passphrase: it can be offered before one
    /// is asked for.
    ///
    /// # Errors
    /// See [`PrivateKey::read`]; [`KeyError::Unsupported`] for the other formats.
    pub fn read_public(text: &str) -> Result<PublicKey, KeyError> {
        bounded(text)?;
        let pem = Pem::parse(text)?;
        if pem.label != OPENSSH {
            return Err(KeyError::Unsupported("this kind of key file"));
        }
        file::read_public(pem.open(None)?.expose())
    }

    /// The text of OpenSSH's file.
    ///
    /// # Errors
    /// [`KeyError::TooMuch`] rounds, or an empty passphrase ([`KeyError::WrongPassphrase`]).
    pub fn to_openssh(
        &self,
        encryption: Option<Encryption<'_>>,
        chance: &mut dyn Entropy,
    ) -> Result<Secret<String>, KeyError> {
        let document = file::write(&self.inner, &self.comment, encryption, chance)?;
        Ok(pem::write(OPENSSH, document.expose()))
    }

    /// The public key.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The comment.
    #[must_use]
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// The same with another comment.
    #[must_use]
    pub fn with_comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = comment.into();
        self
    }

    /// The signature of `data` as the wire has it, with its name. The algorithm's form with a
    /// certificate means the same.
    ///
    /// # Errors
    /// [`KeyError::WrongAlgorithm`] if it is not one of [`PublicKey::algorithms`];
    /// [`KeyError::Crypto`].
    pub fn sign(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, KeyError> {
        let algorithm = algorithm.plain();
        if !self.public.algorithms().contains(&algorithm) {
            return Err(KeyError::WrongAlgorithm);
        }
        let mut out = Vec::new();
        out.put_string(algorithm.name().as_bytes());
        match &self.inner {
            Inner::Ed25519(key) => out.put_string(&key.sign(data)),
            Inner::Ecdsa(key) => {
                let halves = key.sign(data)?;
                let (r, s) = halves
                    .split_at_checked(key.curve().field_len())
                    .ok_or(KeyError::Crypto)?;
                out.put_nested(|out| {
                    out.put_mpint(r);
                    out.put_mpint(s);
                });
            }
            Inner::Rsa(key) => {
                let hash = verify::rsa_hash(algorithm).ok_or(KeyError::WrongAlgorithm)?;
                out.put_string(&key.sign(hash, data)?);
            }
        }
        Ok(out)
    }
}

fn bounded(text: &str) -> Result<(), KeyError> {
    if text.len() > MAX_KEY_FILE {
        return Err(KeyError::TooMuch {
            what: "a key file",
            limit: MAX_KEY_FILE,
        });
    }
    Ok(())
}
