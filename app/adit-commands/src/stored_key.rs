//! The server's key, stored in the user's state folder.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use adit_net::persistent_file::{self, FileOwner};
use adit_shadowsocks::{Key, Method};
use anyhow::{Context, Result};

/// Maximum size of the file, in bytes. A method and its key are shorter.
const MAX_FILE: usize = 4096;

/// A stored method and its key.
pub(crate) struct StoredKey {
    pub(crate) method: Method,
    pub(crate) secret: String,
    /// True if the key was just generated.
    pub(crate) is_new: bool,
    pub(crate) path: PathBuf,
}

/// Returns the stored key, or generates one for `method`, or for `fastest` if there is no `method`.
pub(crate) fn load_or_generate_key(
    dir: &Path,
    method: Option<Method>,
    fastest: impl FnOnce() -> Method,
) -> Result<StoredKey> {
    let path = dir.join("server.key");
    if let Some((kept, secret)) = read_or_set_aside(&path)?
        && method.is_none_or(|m| m == kept)
    {
        return Ok(StoredKey {
            method: kept,
            secret,
            is_new: false,
            path,
        });
    }
    let method = method.unwrap_or_else(fastest);
    let (_, secret) = Key::generate(method, &mut adit_net::system::SystemRng);
    persistent_file::write_atomically(&path, format!("{method} {secret}\n").as_bytes())
        .with_context(|| format!("writing the key to {}", path.display()))?;
    Ok(StoredKey {
        method,
        secret,
        is_new: true,
        path,
    })
}

/// Returns the stored key, if there is a valid one. Does not change the file.
pub(crate) fn load_key(dir: &Path) -> Result<Option<StoredKey>> {
    let path = dir.join("server.key");
    // An administrator may read the key of a service that runs as another user.
    let text = match FileOwner::current().read_secret_of_anyone(&path, MAX_FILE) {
        Ok(text) => text,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => {
            return Ok(None);
        }
        Err(e) => return Err(e).with_context(|| format!("reading {}", path.display())),
    };
    Ok(
        parse_method_and_key(&text).map(|(method, secret)| StoredKey {
            method,
            secret,
            is_new: false,
            path,
        }),
    )
}

/// Parses `METHOD KEY`.
fn parse_method_and_key(text: &str) -> Option<(Method, String)> {
    let (method, secret) = text.trim().split_once(' ')?;
    let method: Method = method.parse().ok()?;
    Key::parse(method, secret).ok()?;
    Some((method, secret.to_owned()))
}

/// Reads `METHOD KEY` from a file. A file with other content is renamed, so that nothing is lost.
fn read_or_set_aside(path: &Path) -> Result<Option<(Method, String)>> {
    let text = match FileOwner::current().read_secret(path, MAX_FILE) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) if e.kind() == ErrorKind::InvalidData => String::new(),
        Err(e) => return Err(e).with_context(|| format!("reading {}", path.display())),
    };
    let parsed = parse_method_and_key(&text);
    if parsed.is_none() {
        let aside = path.with_extension("key.broken");
        fs::rename(path, &aside).with_context(|| format!("renaming {}", path.display()))?;
        eprintln!(
            "warning: {} does not contain a valid key; it was renamed to {}, and a new key is generated",
            path.display(),
            aside.display()
        );
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("adit-state-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    #[test]
    fn a_key_is_made_once_and_readable_by_the_user_alone() {
        let dir = dir("once");
        let fastest = || Method::Blake3Aes256Gcm;
        let first = load_or_generate_key(&dir, None, fastest).unwrap();
        assert!(first.is_new);
        let again = load_or_generate_key(&dir, None, || panic!("not measured again")).unwrap();
        assert!(!again.is_new && again.secret == first.secret && again.method == first.method);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                fs::metadata(&first.path).unwrap().permissions().mode() & 0o777,
                0o600
            );
        }
        let other = load_or_generate_key(&dir, Some(Method::Blake3Aes128Gcm), fastest).unwrap();
        assert!(other.is_new && other.method == Method::Blake3Aes128Gcm);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_torn_file_is_moved_aside() {
        let dir = dir("torn");
        fs::create_dir_all(&dir).unwrap();
        let torn = b"2022-blake3-aes-128-gcm AAAA";
        persistent_file::write_atomically(&dir.join("server.key"), torn).unwrap();
        assert!(
            load_or_generate_key(&dir, None, || Method::Blake3Aes128Gcm)
                .unwrap()
                .is_new
        );
        assert!(dir.join("server.key.broken").exists());
        fs::remove_dir_all(dir).unwrap();
    }
}
