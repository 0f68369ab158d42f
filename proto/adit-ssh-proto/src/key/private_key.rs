//! Private keys: generation, reading and writing of files, signing.

use adit_crypto::{EcdsaKey, Ed25519Key, NistCurve, RsaKey, Secret, generate_rsa_pkcs8};
use adit_wire::Entropy;

use super::error::KeyError;
use super::openssh_file::{self, Encryption, MAX_KEY_FILE};
use super::pem::{self, PemDocument};
use super::public_key::PublicKey;
use super::{der, verify};
use crate::algorithm::KeyAlgorithm;
use crate::wire::SshBufMut;

const OPENSSH: &str = "OPENSSH PRIVATE KEY";

/// Type of key to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyType {
    /// Ed25519.
    Ed25519,
    /// ECDSA.
    Ecdsa(NistCurve),
    /// RSA of 2048, 3072, 4096 or 8192 bits.
    Rsa {
        /// Size of the modulus, in bits.
        bits: usize,
    },
}

/// A private key with its comment.
///
/// # Examples
///
/// ```
/// use adit_ssh_proto::key::{KeyType, PrivateKey};
/// use adit_wire::FixedEntropy;
///
/// // Use the system's random numbers in a program.
/// let mut entropy = FixedEntropy::new([7; 64]);
/// let key = PrivateKey::generate(KeyType::Ed25519, &mut entropy)?.with_comment("me@example.test");
/// let file = key.to_openssh(None, &mut entropy)?;
///
/// let read = PrivateKey::from_text(file.expose(), None)?;
/// assert_eq!(read.public_key(), key.public_key());
/// assert_eq!(read.comment(), "me@example.test");
/// # Ok::<(), adit_ssh_proto::key::KeyError>(())
/// ```
#[derive(Debug)]
pub struct PrivateKey {
    inner: AlgorithmKey,
    public: PublicKey,
    comment: String,
}

/// Key of the specific algorithm.
#[derive(Debug)]
pub(super) enum AlgorithmKey {
    Ed25519(Ed25519Key),
    Ecdsa(EcdsaKey),
    Rsa(Box<RsaKey>),
}

impl AlgorithmKey {
    pub(super) fn public_key(&self) -> PublicKey {
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
    fn new(inner: AlgorithmKey, comment: String) -> Self {
        Self {
            public: inner.public_key(),
            inner,
            comment,
        }
    }

    /// Generates a new key from `rng`. RSA uses the provider's random generator instead, and
    /// takes up to a minute.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] if the RSA size is not supported; [`KeyError::Crypto`] if generation
    /// fails.
    pub fn generate(kind: KeyType, rng: &mut dyn Entropy) -> Result<Self, KeyError> {
        let inner = match kind {
            KeyType::Ed25519 => {
                let mut seed = Secret::new([0; 32]);
                rng.fill(seed.expose_mut());
                AlgorithmKey::Ed25519(Ed25519Key::from_seed(seed)?)
            }
            KeyType::Ecdsa(curve) => AlgorithmKey::Ecdsa(EcdsaKey::generate(curve, rng)?),
            KeyType::Rsa { bits } => der::parse_pkcs8(generate_rsa_pkcs8(bits)?.expose())?,
        };
        Ok(Self::new(inner, String::new()))
    }

    /// Reads the text of a key file in OpenSSH's format, PKCS#8, PKCS#1 or SEC 1. The passphrase is
    /// used if the file is encrypted: OpenSSH's format with AES in CTR, GCM or (256 bits) CBC mode,
    /// the legacy PEM formats with AES-128-CBC. Each KDF round takes about 10 ms.
    ///
    /// # Errors
    /// [`KeyError`] if the file cannot be read; [`KeyError::Encrypted`] if a passphrase is
    /// required.
    pub fn from_text(text: &str, passphrase: Option<&[u8]>) -> Result<Self, KeyError> {
        check_file_size(text)?;
        let pem = PemDocument::parse(text)?;
        let label = pem.label;
        let document = pem.decrypt(passphrase)?;
        let document = document.expose();
        let (inner, comment) = match label {
            OPENSSH => openssh_file::read_document(document, passphrase)?,
            "RSA PRIVATE KEY" => (der::parse_pkcs1(document)?, String::new()),
            "EC PRIVATE KEY" => (der::parse_sec1(document, None)?, String::new()),
            "PRIVATE KEY" => (der::parse_pkcs8(document)?, String::new()),
            "ENCRYPTED PRIVATE KEY" => {
                return Err(KeyError::Unsupported("an encrypted PKCS#8 file"));
            }
            _ => return Err(KeyError::Unsupported("the key file format")),
        };
        Ok(Self::new(inner, comment))
    }

    /// Reads the public key of a file in OpenSSH's format, without a passphrase: the key can be
    /// offered before the user is asked for one.
    ///
    /// # Errors
    /// The errors of [`PrivateKey::from_text`]; [`KeyError::Unsupported`] for the other formats.
    pub fn public_from_text(text: &str) -> Result<PublicKey, KeyError> {
        check_file_size(text)?;
        let pem = PemDocument::parse(text)?;
        if pem.label != OPENSSH {
            return Err(KeyError::Unsupported("the key file format"));
        }
        openssh_file::read_public(pem.decrypt(None)?.expose())
    }

    /// Returns the text of a file in OpenSSH's format.
    ///
    /// # Errors
    /// [`KeyError::TooMuch`] if there are too many rounds, [`KeyError::WrongPassphrase`] if the
    /// passphrase is empty.
    pub fn to_openssh(
        &self,
        encryption: Option<Encryption<'_>>,
        rng: &mut dyn Entropy,
    ) -> Result<Secret<String>, KeyError> {
        let document = openssh_file::write_document(&self.inner, &self.comment, encryption, rng)?;
        Ok(pem::encode_pem(OPENSSH, document.expose()))
    }

    /// Returns the public key.
    #[must_use]
    pub const fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Returns the comment.
    #[must_use]
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// Replaces the comment.
    #[must_use]
    pub fn with_comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = comment.into();
        self
    }

    /// Returns the signature of `data` in its wire format, with the algorithm name. Certificate
    /// algorithms are equivalent to plain ones.
    ///
    /// # Errors
    /// [`KeyError::WrongAlgorithm`] if it is not one of [`PublicKey::algorithms`];
    /// [`KeyError::Crypto`] if signing fails.
    pub fn sign(&self, algorithm: KeyAlgorithm, data: &[u8]) -> Result<Vec<u8>, KeyError> {
        let algorithm = algorithm.without_certificate();
        if !self.public.algorithms().contains(&algorithm) {
            return Err(KeyError::WrongAlgorithm);
        }
        let mut out = Vec::new();
        out.put_string(algorithm.name().as_bytes());
        match &self.inner {
            AlgorithmKey::Ed25519(key) => out.put_string(&key.sign(data)),
            AlgorithmKey::Ecdsa(key) => {
                let halves = key.sign(data)?;
                let (r, s) = halves
                    .split_at_checked(key.curve().field_len())
                    .ok_or(KeyError::Crypto)?;
                out.put_nested(|out| {
                    out.put_mpint(r);
                    out.put_mpint(s);
                });
            }
            AlgorithmKey::Rsa(key) => {
                let hash = verify::rsa_hash(algorithm).ok_or(KeyError::WrongAlgorithm)?;
                out.put_string(&key.sign(hash, data)?);
            }
        }
        Ok(out)
    }
}

fn check_file_size(text: &str) -> Result<(), KeyError> {
    if text.len() > MAX_KEY_FILE {
        return Err(KeyError::TooMuch {
            what: "size of a key file",
            limit: MAX_KEY_FILE,
        });
    }
    Ok(())
}
