//! The keys that this host is known by.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use adit_net::ambient::SystemChance;
use adit_net::keep;
use adit_ssh::key::{Certificate, CertifiedKey, KeyKind, PrivateKey};
use anyhow::Context;

use crate::report::{Code, Failure};

/// A host key, and whether it was made just now.
pub(super) struct HostKey {
    pub(super) key: CertifiedKey,
    pub(super) new: bool,
}

/// The key of a file, with the certificate beside it if there is one; a new one if there is no
/// file.
pub(super) fn load(path: &Path) -> Result<HostKey, Failure> {
    let shown = path.display();
    match fs::read_to_string(path) {
        Ok(text) => {
            let about = fs::metadata(path).context("host key")?;
            if about.mode() & 0o077 != 0 {
                let what = format!("host key {shown}: other users can read it");
                return Err(Failure::new(Code::Key, what).hint(format!("chmod 600 {shown}")));
            }
            let read = |text: &str| -> anyhow::Result<CertifiedKey> {
                let key = PrivateKey::read(text, None)?;
                Ok(CertifiedKey::new(key, certificate(path)?)?)
            };
            let key = read(&text)
                .map_err(|why| Failure::new(Code::Key, format!("host key {shown}: {why:#}")))?;
            Ok(HostKey { key, new: false })
        }
        Err(why) if why.kind() == ErrorKind::NotFound => {
            let key = make(path).with_context(|| format!("making the host key {shown}"))?;
            Ok(HostKey { key, new: true })
        }
        Err(why) => Err(Failure::new(Code::Key, format!("host key {shown}: {why}"))),
    }
}

fn make(path: &Path) -> anyhow::Result<CertifiedKey> {
    let key = PrivateKey::generate(KeyKind::Ed25519, &mut SystemChance)?;
    let key = key.with_comment("adit sshd");
    let text = key.to_openssh(None, &mut SystemChance)?;
    keep::write(path, text.expose().as_bytes())?;
    // The public half for `known_hosts`; what stands there already is somebody's.
    let mut line = key.public().to_line(key.comment());
    line.push('\n');
    let public = beside(path, ".pub");
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o644);
    if let Ok(mut file) = options.open(public) {
        file.write_all(line.as_bytes())?;
    }
    Ok(CertifiedKey::new(key, None)?)
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The certificate of a key, as `ssh-keygen -h -s` writes it: `FILE-cert.pub`.
fn certificate(path: &Path) -> anyhow::Result<Option<Certificate>> {
    let path = beside(path, "-cert.pub");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(why).with_context(|| path.display().to_string()),
    };
    let (certificate, _) =
        Certificate::from_line(&text).with_context(|| path.display().to_string())?;
    Ok(Some(certificate))
}
