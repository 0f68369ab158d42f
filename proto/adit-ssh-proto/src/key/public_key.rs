//! Public keys: wire blobs, lines of files, and fingerprints.

use adit_crypto::{NistCurve, RsaPublic, sha256};

use super::{base64, error::KeyError};
use crate::algorithm::KeyAlgorithm;
use crate::wire::{MessageReader, SshBufMut};

/// Maximum length of the application of a key in a security key, in bytes.
const MAX_APPLICATION: usize = 1024;

/// A public key (RFC 8709, RFC 5656, RFC 4253 section 6.6, OpenSSH's `PROTOCOL.u2f`).
///
/// Its format is valid, but a point is checked to be on its curve only when a signature is
/// verified.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PublicKey {
    /// Ed25519.
    Ed25519([u8; 32]),
    /// ECDSA.
    Ecdsa {
        /// Elliptic curve.
        curve: NistCurve,
        /// Uncompressed point.
        point: Vec<u8>,
    },
    /// RSA, 1024 to 16384 bits; see [`super::RSA_MIN_BITS`].
    Rsa(RsaPublic),
    /// Ed25519 in a security key (FIDO).
    SkEd25519 {
        /// Public key.
        key: [u8; 32],
        /// Application of the security key, such as `ssh:`.
        application: String,
    },
    /// ECDSA on P-256 in a security key (FIDO).
    SkEcdsaP256 {
        /// Uncompressed point.
        point: Vec<u8>,
        /// Application of the security key.
        application: String,
    },
}

impl PublicKey {
    /// Parses a blob without trailing bytes. Only the canonical encoding is accepted, so equal keys
    /// have equal blobs and fingerprints.
    ///
    /// # Errors
    /// [`KeyError::Malformed`] if it is not valid; [`KeyError::Unsupported`] for other types,
    /// including certificates.
    pub fn parse(blob: &[u8]) -> Result<Self, KeyError> {
        let mut r = MessageReader::new(blob, "public key");
        let name = r.read_text()?;
        let key = Self::parse_fields(name, &mut r)?;
        r.expect_end()?;
        if key.to_blob() == blob {
            Ok(key)
        } else {
            Err(KeyError::Malformed("public key"))
        }
    }

    /// Parses the fields after the type of a blob, or after the nonce of a certificate.
    pub(super) fn parse_fields(name: &str, r: &mut MessageReader<'_>) -> Result<Self, KeyError> {
        let key = match name {
            "ssh-ed25519" => Self::Ed25519(read_ed25519(r)?),
            "ssh-rsa" => {
                let (e, n) = (r.read_mpint()?, r.read_mpint()?);
                Self::Rsa(RsaPublic::new(n, e)?)
            }
            "sk-ssh-ed25519@openssh.com" => Self::SkEd25519 {
                key: read_ed25519(r)?,
                application: read_application(r)?,
            },
            "sk-ecdsa-sha2-nistp256@openssh.com" => Self::SkEcdsaP256 {
                point: read_point(NistCurve::P256, r)?,
                application: read_application(r)?,
            },
            _ => {
                let curve = curve_by_type(name).ok_or(KeyError::Unsupported("the key type"))?;
                let point = read_point(curve, r)?;
                Self::Ecdsa { curve, point }
            }
        };
        Ok(key)
    }

    /// Appends the fields after the type.
    pub(super) fn put_fields(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ed25519(key) => out.put_string(key),
            Self::Ecdsa { curve, point } => {
                out.put_string(curve_name(*curve).as_bytes());
                out.put_string(point);
            }
            Self::Rsa(key) => {
                out.put_mpint(&key.exponent().to_be_bytes());
                out.put_mpint(key.modulus());
            }
            Self::SkEd25519 { key, application } => {
                out.put_string(key);
                out.put_string(application.as_bytes());
            }
            Self::SkEcdsaP256 { point, application } => {
                out.put_string(curve_name(NistCurve::P256).as_bytes());
                out.put_string(point);
                out.put_string(application.as_bytes());
            }
        }
    }

    /// Returns the blob.
    #[must_use]
    pub fn to_blob(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.put_string(self.type_name().as_bytes());
        self.put_fields(&mut out);
        out
    }

    /// Returns the type's name in blobs and files. For RSA, it is not the name of an algorithm.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Ed25519(_) => "ssh-ed25519",
            Self::Ecdsa { curve, .. } => match curve {
                NistCurve::P256 => "ecdsa-sha2-nistp256",
                NistCurve::P384 => "ecdsa-sha2-nistp384",
                NistCurve::P521 => "ecdsa-sha2-nistp521",
            },
            Self::Rsa(_) => "ssh-rsa",
            Self::SkEd25519 { .. } => "sk-ssh-ed25519@openssh.com",
            Self::SkEcdsaP256 { .. } => "sk-ecdsa-sha2-nistp256@openssh.com",
        }
    }

    /// Returns the signature algorithms, most preferred first.
    #[must_use]
    pub const fn algorithms(&self) -> &'static [KeyAlgorithm] {
        match self {
            Self::Ed25519(_) => &[KeyAlgorithm::Ed25519],
            Self::Ecdsa { curve, .. } => match curve {
                NistCurve::P256 => &[KeyAlgorithm::EcdsaP256],
                NistCurve::P384 => &[KeyAlgorithm::EcdsaP384],
                NistCurve::P521 => &[KeyAlgorithm::EcdsaP521],
            },
            Self::Rsa(_) => &[KeyAlgorithm::RsaSha512, KeyAlgorithm::RsaSha256],
            Self::SkEd25519 { .. } => &[KeyAlgorithm::SkEd25519],
            Self::SkEcdsaP256 { .. } => &[KeyAlgorithm::SkEcdsaP256],
        }
    }

    /// Returns `SHA256:` and 43 characters, as printed by `ssh-keygen -l`.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let text = base64::encode(&sha256(&self.to_blob()));
        format!("SHA256:{}", text.trim_end_matches('='))
    }

    /// Returns the line of a `.pub` file without a line end: type, base64, and a comment if there
    /// is one.
    #[must_use]
    pub fn to_line(&self, comment: &str) -> String {
        let text = base64::encode(&self.to_blob());
        let line = format!("{} {text} {comment}", self.type_name());
        line.trim_end().to_owned()
    }

    /// Parses a line of a `.pub` file; returns the key and its comment.
    ///
    /// # Errors
    /// The errors of [`PublicKey::parse`]; also [`KeyError::Malformed`] if the type in the line
    /// differs from the type in the blob.
    pub fn from_line(line: &str) -> Result<(Self, &str), KeyError> {
        let (name, blob, comment) = split_line(line)?;
        let key = Self::parse(&blob)?;
        if key.type_name() != name {
            return Err(KeyError::Malformed("public key"));
        }
        Ok((key, comment))
    }
}

/// Returns the certificate type for a plain key's type, such as `ssh-rsa-cert-v01@openssh.com`.
#[must_use]
pub fn certificate_type(plain: &str) -> String {
    let stem = plain.strip_suffix("@openssh.com").unwrap_or(plain);
    format!("{stem}-cert-v01@openssh.com")
}

/// Splits a line of text into type, blob and comment.
pub(super) fn split_line(line: &str) -> Result<(&str, Vec<u8>, &str), KeyError> {
    let malformed = KeyError::Malformed("public key");
    let (name, rest) = line.trim().split_once([' ', '\t']).ok_or(malformed)?;
    let rest = rest.trim_start();
    let (text, comment) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    let blob = base64::decode(text).ok_or(malformed)?;
    Ok((name, blob, comment.trim_start()))
}

pub(super) fn curve_by_type(name: &str) -> Option<NistCurve> {
    match name {
        "ecdsa-sha2-nistp256" => Some(NistCurve::P256),
        "ecdsa-sha2-nistp384" => Some(NistCurve::P384),
        "ecdsa-sha2-nistp521" => Some(NistCurve::P521),
        _ => None,
    }
}

/// Returns the name of the curve (RFC 5656 section 10.1).
const fn curve_name(curve: NistCurve) -> &'static str {
    match curve {
        NistCurve::P256 => "nistp256",
        NistCurve::P384 => "nistp384",
        NistCurve::P521 => "nistp521",
    }
}

fn read_ed25519(r: &mut MessageReader<'_>) -> Result<[u8; 32], KeyError> {
    let wrong = |_| KeyError::Malformed("Ed25519 key");
    r.read_string()?.try_into().map_err(wrong)
}

fn read_point(curve: NistCurve, r: &mut MessageReader<'_>) -> Result<Vec<u8>, KeyError> {
    let (name, point) = (r.read_string()?, r.read_string()?);
    let uncompressed = point.first() == Some(&4) && point.len() == curve.point_len();
    if name != curve_name(curve).as_bytes() || !uncompressed {
        return Err(KeyError::Malformed("ECDSA key"));
    }
    Ok(point.to_vec())
}

fn read_application(r: &mut MessageReader<'_>) -> Result<String, KeyError> {
    let text = r.read_text()?;
    if text.len() > MAX_APPLICATION {
        return Err(KeyError::TooMuch {
            what: "length of a key's application",
            limit: MAX_APPLICATION,
        });
    }
    Ok(text.to_owned())
}
