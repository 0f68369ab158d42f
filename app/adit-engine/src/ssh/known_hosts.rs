//! Files of known hosts: read whenever a connection is made, written when a new host is taken.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use adit_net::{ambient, keep};
use adit_ssh::key::{AnyKey, HostName, KnownHosts, PublicKey, Verdict};
use tracing::{info, warn};

/// Octets of a file that are read at most.
const MAX_FILE: u64 = 16 << 20;

/// The files, in the order in which they count.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) paths: Vec<PathBuf>,
    /// A host that is not known is taken, and noted down in the first.
    pub(super) accept_new: bool,
}

impl Files {
    /// All lines. A file that is not there has none.
    pub(super) fn read(&self) -> KnownHosts {
        let mut known = KnownHosts::default();
        for path in &self.paths {
            let name = path.display().to_string();
            let text = match read(path) {
                Ok(text) => text,
                Err(why) if why.kind() == io::ErrorKind::NotFound => continue,
                Err(why) => {
                    warn!("{name}: {why}");
                    continue;
                }
            };
            if let Err(why) = known.read(&name, &text) {
                warn!("{name}: {why}");
            }
        }
        known
    }

    /// Whether `key` is the host's; if not, what to tell the user.
    pub(super) fn judge(&self, host: &HostName, key: &AnyKey) -> Result<(), String> {
        let shown = key.key().fingerprint();
        let kind = key.key().type_name();
        let known = self.read();
        match known.check(host, key, ambient::unix()) {
            Verdict::Known(_) => Ok(()),
            Verdict::Unknown { other_type: None } if self.accept_new => self.note(host, key),
            Verdict::Unknown { other_type: None } => Err(format!(
                "{host} is not known; it shows the {kind} key {shown}: if that is its own, write \
                 `host_key={shown}`, or `strict=accept-new` once"
            )),
            Verdict::Unknown {
                other_type: Some(place),
            } => Err(format!(
                "{host} shows the {kind} key {shown}, and is known by a key of another type \
                 ({place})"
            )),
            Verdict::Changed(place) => Err(format!(
                "the key of {host} has changed: it shows {shown}, and {place} says {}. Somebody \
                 may be in between; if the server has a new key, remove that line",
                known
                    .key_at(&place)
                    .map_or_else(|| "another".to_owned(), PublicKey::fingerprint),
            )),
            Verdict::Revoked(place) => {
                Err(format!("the key {shown} of {host} is revoked ({place})"))
            }
            Verdict::BadCertificate(place, why) => Err(format!(
                "the certificate of {host} is not in order: {why} ({place})"
            )),
        }
    }

    fn note(&self, host: &HostName, key: &AnyKey) -> Result<(), String> {
        let Some(path) = self.paths.first() else {
            return Err("there is no file to note new hosts in".to_owned());
        };
        let line = host.line(key.key(), None);
        match keep::append_line(path, &line) {
            Ok(()) => {
                let (file, shown) = (path.display(), key.key().fingerprint());
                info!("{host} is new: its key {shown} is now in {file}");
                Ok(())
            }
            Err(why) => Err(format!(
                "{host} is new, and cannot be noted in {}: {why}",
                path.display()
            )),
        }
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?
        .take(MAX_FILE + 1)
        .read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use adit_net::ambient::SystemChance;
    use adit_ssh::key::{KeyKind, PrivateKey};

    use super::*;

    fn key(kind: KeyKind) -> AnyKey {
        let key = PrivateKey::generate(kind, &mut SystemChance);
        let key = key.unwrap_or_else(|why| panic!("{why}"));
        AnyKey::Plain(key.public().clone())
    }

    fn fresh(name: &str) -> PathBuf {
        let name = format!("adit-known-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn a_new_host_is_noted_once_and_a_changed_one_told_with_both_keys() {
        let folder = fresh("new");
        let path = folder.join("deep").join("known_hosts");
        let mut files = Files {
            paths: vec![path.clone()],
            accept_new: false,
        };
        let host = HostName::new("h.example", 2222).unwrap();
        let (one, two) = (key(KeyKind::Ed25519), key(KeyKind::Ed25519));
        let told = files.judge(&host, &one).unwrap_err();
        assert!(told.contains("[h.example]:2222 is not known"), "{told}");
        assert!(told.contains(&one.key().fingerprint()), "{told}");
        assert!(!path.exists());
        files.accept_new = true;
        assert_eq!(files.judge(&host, &one), Ok(()));
        assert_eq!(files.judge(&host, &one), Ok(()));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        let told = files.judge(&host, &two).unwrap_err();
        for part in [
            "has changed".to_owned(),
            one.key().fingerprint(),
            two.key().fingerprint(),
            format!("{}:1", path.display()),
        ] {
            assert!(told.contains(&part), "{part}: {told}");
        }
        let ecdsa = key(KeyKind::Ecdsa(adit_crypto::EcCurve::P256));
        let told = files.judge(&host, &ecdsa).unwrap_err();
        assert!(told.contains("another type"), "{told}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn hashed_hosts_and_torn_files_are_understood() {
        let folder = fresh("hashed");
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("known_hosts");
        let (host, one) = (HostName::new("h", 22).unwrap(), key(KeyKind::Ed25519));
        let hashed = host.line(one.key(), Some([7; 20]));
        // No end of the last line: the next must not be glued to it.
        fs::write(
            &path,
            format!("# mine\n@revoked * {}\n{hashed}", key_line()),
        )
        .unwrap();
        let files = Files {
            paths: vec![folder.join("none"), path.clone()],
            accept_new: true,
        };
        assert_eq!(files.judge(&host, &one), Ok(()));
        let told = files.judge(&host, &key(KeyKind::Ed25519)).unwrap_err();
        let place = format!("{}:3 says {}", path.display(), one.key().fingerprint());
        assert!(told.contains(&place), "{told}");
        let files = Files {
            paths: vec![path.clone()],
            accept_new: true,
        };
        let other = HostName::new("i", 22).unwrap();
        assert_eq!(files.judge(&other, &one), Ok(()));
        assert_eq!(files.judge(&host, &one), Ok(()));
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 4);
        fs::remove_dir_all(folder).unwrap();
    }

    fn key_line() -> String {
        key(KeyKind::Ed25519).key().to_line("")
    }
}
