//! The shell installer, which contains the public key of releases.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::source::PackageSource;
use super::template;
use crate::command::root;

/// The key that is used without `--release-key`.
const KEY: &str = "packaging/release-key.pub";
/// Name of the signer, in the file of allowed signers that the installer writes.
pub(super) const SIGNER: &str = "release@adit";
/// The namespace that a signature is bound to: one for another purpose does not verify.
pub(super) const NAMESPACE: &str = "adit-release";

/// Writes the installer.
pub(super) fn build(source: &PackageSource, output: &Path) -> Result<String> {
    let path = match &source.release_key {
        Some(path) => path.clone(),
        None => root().join(KEY),
    };
    let text = fs::read_to_string(&path).with_context(|| {
        format!(
            "{}: no public key of releases; `ssh-keygen -t ed25519 -f FILE` makes a key pair, then pass \
             `--release-key FILE.pub` or commit it as {KEY}",
            path.display()
        )
    })?;
    let key = parse_key(&text).with_context(|| path.display().to_string())?;
    let mut values = source.values();
    values.set("RELEASE_KEY", key);
    values.set("SIGNER", SIGNER);
    values.set("NAMESPACE", NAMESPACE);
    fs::write(
        output.join("install.sh"),
        template::fill("install.sh", &values)?,
    )?;
    Ok("install.sh".to_owned())
}

/// Returns the type and the data of a public key, without its comment.
fn parse_key(text: &str) -> Result<String> {
    let mut words = text.split_whitespace();
    let (Some(kind), Some(data)) = (words.next(), words.next()) else {
        anyhow::bail!("not a public key of OpenSSH");
    };
    let is_data = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    ensure!(
        (kind.starts_with("ssh-") || kind.starts_with("ecdsa-") || kind.starts_with("sk-"))
            && data.len() > 40
            && data.chars().all(is_data)
            && text.trim().lines().count() == 1,
        "not a public key of OpenSSH"
    );
    Ok(format!("{kind} {data}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_keys_are_accepted() {
        let data = "AAAAC3NzaC1lZDI1NTE5AAAAIJ".repeat(2);
        let key = parse_key(&format!("ssh-ed25519 {data} me@host\n")).unwrap();
        assert_eq!(key, format!("ssh-ed25519 {data}"));
        for text in [
            "",
            "ssh-ed25519",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n",
            &format!("ssh-ed25519 {data}'; true"),
            &format!("ssh-ed25519 {data}\nssh-ed25519 {data}\n"),
        ] {
            assert!(parse_key(text).is_err(), "{text}");
        }
    }
}
