//! Keys: their types, their files, and known hosts.
//!
//! The types are adit's own, with the names that russh re-exports from the crate `ssh-key`; the
//! commonly used part of that crate is in [`ssh_key`].

pub mod agent;
mod algorithm;
mod certificate;
mod error;
mod key_or_certificate;
pub mod known_hosts;
mod private;
mod private_with_hash;
mod public;
pub mod ssh_key;

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rand_core::CryptoRng;

pub use algorithm::{Algorithm, EcdsaCurve, HashAlg};
pub use certificate::Certificate;
pub use error::Error;
pub use key_or_certificate::PublicKeyOrCertificate;
pub use known_hosts::{check_known_hosts, check_known_hosts_path};
pub use private::PrivateKey;
pub use private_with_hash::PrivateKeyWithHashAlg;
pub use public::PublicKey;

/// Keys with the parameters of their signatures, under russh's name for the module.
pub mod key {
    pub use super::{PrivateKeyWithHashAlg, safe_rng};
}

/// Returns a random number generator that is suitable for keys.
#[must_use]
pub fn safe_rng() -> impl CryptoRng {
    rand::rng()
}

/// Reads a private key file, with the passphrase if it is encrypted.
///
/// # Errors
/// The file cannot be read, is not a key file, or is encrypted with another passphrase.
pub fn load_secret_key(
    path: impl AsRef<Path>,
    passphrase: Option<&str>,
) -> Result<PrivateKey, Error> {
    let text = adit_crypto::Secret::new(fs::read_to_string(path)?);
    decode_secret_key(text.expose(), passphrase)
}

/// Parses a private key file's text, with the passphrase if it is encrypted.
///
/// # Errors
/// The errors of [`load_secret_key`].
pub fn decode_secret_key(text: &str, passphrase: Option<&str>) -> Result<PrivateKey, Error> {
    PrivateKey::read_key(text, passphrase).map_err(|why| match why {
        ssh_key::Error::Key(why) => why.into(),
        other => other.into(),
    })
}

/// Reads the first key of a `.pub` file.
///
/// # Errors
/// The file cannot be read, or has no key.
pub fn load_public_key(path: impl AsRef<Path>) -> Result<PublicKey, Error> {
    let text = fs::read_to_string(path)?;
    let mut lines = text.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(PublicKey::from_openssh(
        line.ok_or(Error::CouldNotReadKey)?,
    )?)
}

/// Reads the certificate of a `-cert.pub` file.
///
/// # Errors
/// The file cannot be read, or has no certificate.
pub fn load_openssh_certificate(path: impl AsRef<Path>) -> Result<Certificate, ssh_key::Error> {
    Certificate::from_openssh(&fs::read_to_string(path)?)
}

/// Parses a public key blob in base64.
///
/// # Errors
/// The text is not a valid blob.
pub fn parse_public_key_base64(text: &str) -> Result<PublicKey, Error> {
    let blob = BASE64_STANDARD.decode(text.trim());
    let blob = blob.map_err(|_| Error::CouldNotReadKey)?;
    Ok(PublicKey::from_bytes(&blob)?)
}

/// Access to a public key blob, also in base64.
pub trait PublicKeyBase64 {
    /// Returns the blob.
    fn public_key_bytes(&self) -> Vec<u8>;

    /// Returns the blob in base64.
    fn public_key_base64(&self) -> String {
        BASE64_STANDARD.encode(self.public_key_bytes())
    }
}

impl PublicKeyBase64 for PublicKey {
    fn public_key_bytes(&self) -> Vec<u8> {
        self.inner().to_blob()
    }
}

impl PublicKeyBase64 for PrivateKey {
    fn public_key_bytes(&self) -> Vec<u8> {
        self.public_key().public_key_bytes()
    }
}

#[cfg(test)]
mod tests {
    use adit_interop::TempFolder;

    use super::*;

    #[test]
    fn files_are_read() {
        let folder = TempFolder::new("keys").unwrap();
        let file = |name: &str| folder.path().join(name);
        let key = PrivateKey::random(&mut safe_rng(), Algorithm::Ed25519).unwrap();
        let text = key.to_openssh(Some("secret")).unwrap();
        fs::write(file("id"), text.expose()).unwrap();
        let why = load_secret_key(file("id"), None).unwrap_err();
        assert!(matches!(why, Error::KeyIsEncrypted), "{why}");
        assert!(load_secret_key(file("id"), Some("wrong")).is_err());
        let read = load_secret_key(file("id"), Some("secret")).unwrap();
        assert_eq!(read.public_key(), key.public_key());

        let line = key.public_key().to_openssh().unwrap();
        fs::write(file("id.pub"), format!("# a remark\n\n{line}\n")).unwrap();
        let public = load_public_key(file("id.pub")).unwrap();
        assert_eq!(&public, key.public_key());
        let text = public.public_key_base64();
        assert_eq!(parse_public_key_base64(&text).unwrap(), public);
        fs::write(file("none"), "\n").unwrap();
        assert!(load_public_key(file("none")).is_err());
        assert!(load_openssh_certificate(file("id.pub")).is_err());
        assert!(parse_public_key_base64("AAAA").is_err());
    }
}
