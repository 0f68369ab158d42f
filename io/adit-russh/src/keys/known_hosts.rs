//! The user's file of known hosts.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use adit_net::ambient;
use adit_ssh::key::{AnyKey, HostName, KnownHosts, Verdict};

use super::{Error, PublicKey};

fn path() -> Result<PathBuf, Error> {
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    Ok(home.ok_or(Error::NoHomeDir)?.join(".ssh/known_hosts"))
}

fn host_name(host: &str, port: u16) -> Result<HostName, Error> {
    HostName::new(host, port).ok_or(Error::InvalidParameters)
}

/// Whether the user's file has this key for the host.
///
/// # Errors
/// As [`check_known_hosts_path`]; no home folder is known.
pub fn check_known_hosts(host: &str, port: u16, key: &PublicKey) -> Result<bool, Error> {
    check_known_hosts_path(host, port, key, path()?)
}

/// Whether this file has this key for the host; a file that is not there has none.
///
/// # Errors
/// [`Error::KeyChanged`] if the file has another key of the same type for the host,
/// [`Error::KeyRevoked`] if it says that the key is not to be trusted; a file that cannot be read.
pub fn check_known_hosts_path(
    host: &str,
    port: u16,
    key: &PublicKey,
    path: impl AsRef<Path>,
) -> Result<bool, Error> {
    let host = host_name(host, port)?;
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(false),
        Err(why) => return Err(why.into()),
    };
    let mut known = KnownHosts::default();
    known.read("known_hosts", &text)?;
    let key = AnyKey::Plain(key.below().clone());
    match known.check(&host, &key, ambient::unix()) {
        Verdict::Known(_) => Ok(true),
        Verdict::Unknown { .. } => Ok(false),
        Verdict::Changed(place) => Err(Error::KeyChanged { line: place.line }),
        Verdict::Revoked(place) | Verdict::BadCertificate(place, _) => {
            Err(Error::KeyRevoked { line: place.line })
        }
    }
}

/// Adds the host's key to the user's file.
///
/// # Errors
/// As [`learn_known_hosts_path`]; no home folder is known.
pub fn learn_known_hosts(host: &str, port: u16, key: &PublicKey) -> Result<(), Error> {
    learn_known_hosts_path(host, port, key, path()?)
}

/// Adds the host's key to this file, which is made if it is not there.
///
/// # Errors
/// The file cannot be written.
pub fn learn_known_hosts_path(
    host: &str,
    port: u16,
    key: &PublicKey,
    path: impl AsRef<Path>,
) -> Result<(), Error> {
    let line = host_name(host, port)?.line(key.below(), None);
    if let Some(folder) = path.as_ref().parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(path)?;
    // The last line may have been left without its end.
    let mut last = [b'\n'];
    if file.metadata()?.len() > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let gap = if last == [b'\n'] { "" } else { "\n" };
    file.write_all(format!("{gap}{}\n", line.trim_end()).as_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use adit_interop::Folder;

    use super::*;
    use crate::keys::{Algorithm, PrivateKey};

    fn key() -> PublicKey {
        let key = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519).unwrap();
        key.public_key().clone()
    }

    #[test]
    fn what_was_learned_is_known() {
        let folder = Folder::new("known").unwrap();
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
}
