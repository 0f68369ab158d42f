//! The host keys of the server.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use adit_cli::{Failure, FailureCode};
use adit_crypto::Secret;
use adit_net::persistent_file::{self, FileOwner};
use adit_net::system::SystemRng;
use adit_ssh_proto::key::{Certificate, CertifiedKey, KeyType, MAX_KEY_FILE, PrivateKey};
use anyhow::Context;

/// A host key; `new` is true if it was just created.
pub(super) struct LoadedHostKey {
    pub(super) key: CertifiedKey,
    pub(super) is_new: bool,
}

/// Loads a key file, with the certificate beside it if there is one; creates the key if the file is missing.
pub(super) fn load_or_create(path: &Path) -> Result<LoadedHostKey, Failure> {
    let shown = path.display();
    match FileOwner::current()
        .read_secret(path, MAX_KEY_FILE)
        .map(Secret::new)
    {
        Ok(text) => {
            let read = |text: &Secret<String>| -> anyhow::Result<CertifiedKey> {
                let key = PrivateKey::from_text(text.expose(), None)?;
                Ok(CertifiedKey::new(key, load_certificate(path)?)?)
            };
            let key = read(&text).map_err(|why| {
                Failure::new(FailureCode::Key, format!("host key {shown}: {why:#}"))
            })?;
            Ok(LoadedHostKey { key, is_new: false })
        }
        Err(why) if why.kind() == ErrorKind::NotFound => {
            let key = create_host_key(path)
                .with_context(|| format!("cannot create the host key {shown}"))?;
            Ok(LoadedHostKey { key, is_new: true })
        }
        Err(why) => Err(Failure::new(
            FailureCode::Key,
            format!("host key {shown}: {why}"),
        )),
    }
}

/// Creates a key and writes both halves.
fn create_host_key(path: &Path) -> anyhow::Result<CertifiedKey> {
    let key = PrivateKey::generate(KeyType::Ed25519, &mut SystemRng)?;
    let key = key.with_comment("adit sshd");
    let text = key.to_openssh(None, &mut SystemRng)?;
    persistent_file::write_atomically(path, text.expose().as_bytes())?;
    // The public key, for `known_hosts`; an existing file is not overwritten.
    let mut line = key.public_key().to_line(key.comment());
    line.push('\n');
    let public = append_suffix(path, ".pub");
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o644);
    if let Ok(mut file) = options.open(public) {
        file.write_all(line.as_bytes())?;
    }
    Ok(CertifiedKey::new(key, None)?)
}

/// Appends `end` to the name of a file.
pub(super) fn append_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Loads the certificate of a key from `FILE-cert.pub`, as written by `ssh-keygen -h -s`.
fn load_certificate(path: &Path) -> anyhow::Result<Option<Certificate>> {
    let path = append_suffix(path, "-cert.pub");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(why).with_context(|| path.display().to_string()),
    };
    let (certificate, _) =
        Certificate::from_line(&text).with_context(|| path.display().to_string())?;
    Ok(Some(certificate))
}
