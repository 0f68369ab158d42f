//! The user's known-hosts file.

use std::path::{Path, PathBuf};

use adit_ssh::client::{KnownHost, KnownHostsFiles};
use adit_ssh_proto::key::{AnyKey, HostKeyVerdict, HostName};

use super::{Error, PublicKey};

fn default_path() -> Result<PathBuf, Error> {
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    Ok(home.ok_or(Error::NoHomeDir)?.join(".ssh/known_hosts"))
}

/// Returns true if the user's file has this key for the host.
///
/// # Errors
/// The errors of [`check_known_hosts_path`]; or the home directory is unknown.
pub fn check_known_hosts(host: &str, port: u16, key: &PublicKey) -> Result<bool, Error> {
    check_known_hosts_path(host, port, key, default_path()?)
}

fn read_host(host: &str, port: u16, path: &Path) -> Result<KnownHost, Error> {
    let host = HostName::new(host, port).ok_or(Error::InvalidParameters)?;
    let files = KnownHostsFiles::new(vec![path.to_owned()]);
    Ok(KnownHost::read_files(host, &files)?)
}

/// Returns true if this file has this key for the host; a missing file has no keys.
///
/// Unlike russh's function, this one does not return `false` for a host that is known only by keys of
/// other types: programs add unknown keys, and would add the key of an interceptor.
///
/// # Errors
/// [`Error::KeyChanged`] if the file has other keys for the host, [`Error::KeyRevoked`] if it marks the
/// key as revoked; or the file cannot be read or is longer than 16 MiB.
pub fn check_known_hosts_path(
    host: &str,
    port: u16,
    key: &PublicKey,
    path: impl AsRef<Path>,
) -> Result<bool, Error> {
    let known = read_host(host, port, path.as_ref())?;
    match known.check_key(&AnyKey::Plain(key.inner().clone())) {
        HostKeyVerdict::Known(_) => Ok(true),
        HostKeyVerdict::Unknown => Ok(false),
        HostKeyVerdict::OtherType(place) | HostKeyVerdict::Changed(place) => {
            Err(Error::KeyChanged { line: place.line })
        }
        HostKeyVerdict::Revoked(place) | HostKeyVerdict::BadCertificate(place, _) => {
            Err(Error::KeyRevoked { line: place.line })
        }
    }
}

/// Adds the host's key to the user's file.
///
/// # Errors
/// The errors of [`learn_known_hosts_path`]; or the home directory is unknown.
pub fn learn_known_hosts(host: &str, port: u16, key: &PublicKey) -> Result<(), Error> {
    learn_known_hosts_path(host, port, key, default_path()?)
}

/// Adds the host's key to this file, which is created if missing. A known key is not written again.
///
/// # Errors
/// The file cannot be read or written, or has other keys for the host.
pub fn learn_known_hosts_path(
    host: &str,
    port: u16,
    key: &PublicKey,
    path: impl AsRef<Path>,
) -> Result<(), Error> {
    Ok(read_host(host, port, path.as_ref())?.add_key(key.inner())?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use adit_interop::TempFolder;

    use super::*;
    use crate::keys::{Algorithm, EcdsaCurve, PrivateKey};

    fn key() -> PublicKey {
        of_type(Algorithm::Ed25519)
    }

    fn of_type(algorithm: Algorithm) -> PublicKey {
        let key = PrivateKey::random(&mut rand::rng(), algorithm).unwrap();
        key.public_key().clone()
    }

    #[test]
    fn what_was_learned_is_known() {
        let folder = TempFolder::new("known").unwrap();
        let path = folder.path().join("made/known_hosts");
        let (one, other) = (key(), key());
        let check = |host, port, key| check_known_hosts_path(host, port, key, &path);
        assert!(!check("a.example", 22, &one).unwrap());
        learn_known_hosts_path("a.example", 22, &one, &path).unwrap();
        fs::write(&path, fs::read_to_string(&path).unwrap().trim_end()).unwrap();
        learn_known_hosts_path("b.example", 2222, &other, &path).unwrap();
        assert!(check("a.example", 22, &one).unwrap());
        assert!(check("b.example", 2222, &other).unwrap());
        assert!(!check("b.example", 22, &other).unwrap());
        let why = check("b.example", 2222, &one).unwrap_err();
        assert!(matches!(why, Error::KeyChanged { line: 2 }), "{why}");
        assert!(check("no host", 22, &one).is_err());
    }

    #[test]
    fn a_key_of_another_type_is_not_a_new_host() {
        let folder = TempFolder::new("other-type").unwrap();
        let path = folder.path().join("known_hosts");
        let curve = EcdsaCurve::NistP256;
        let (one, other) = (key(), of_type(Algorithm::Ecdsa { curve }));
        learn_known_hosts_path("a.example", 22, &one, &path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let why = check_known_hosts_path("a.example", 22, &other, &path).unwrap_err();
        assert!(matches!(why, Error::KeyChanged { line: 1 }), "{why}");
        // The other key is not added either, even if a program ignores the error.
        learn_known_hosts_path("a.example", 22, &other, &path).unwrap_err();
        learn_known_hosts_path("a.example", 22, &one, &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn a_file_that_is_too_long_is_not_read_as_empty() {
        let folder = TempFolder::new("too-long").unwrap();
        let path = folder.path().join("known_hosts");
        learn_known_hosts_path("a.example", 22, &key(), &path).unwrap();
        let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        let len = (16 << 20) + 1;
        file.set_len(len).unwrap();
        let why = check_known_hosts_path("a.example", 22, &key(), &path).unwrap_err();
        assert!(matches!(why, Error::KnownHosts(_)), "{why}");
        learn_known_hosts_path("b.example", 22, &key(), &path).unwrap_err();
        assert_eq!(file.metadata().unwrap().len(), len);
    }
}
