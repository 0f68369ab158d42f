//! One host in the known-hosts files: reads them, checks the host's key, and adds it. Commands, hops
//! and the library share this code.
//!
//! ```text
//! files ─▶ KnownHost::read ─▶ check ─▶ Verdict ─▶ learn, if it is new ─▶ the first file
//!            all or nothing                        under a lock, read and checked again
//! ```
//!
//! A file that cannot be read completely is an error, and is never treated as empty: without its lines
//! a known host would look new.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use adit_net::persistent_file::{self, LineFile};
use adit_net::system::{self, SystemRng};
use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::{
    AnyKey, HostKeyVerdict, HostName, KnownHosts, MAX_KNOWN_HOSTS, PublicKey, SkippedLine,
};
use adit_wire::Entropy;

/// The known-hosts files to use.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct KnownHostsFiles {
    /// The paths in order of precedence. A missing file has no lines. New hosts are added to the first
    /// one.
    pub paths: Vec<PathBuf>,
    /// True if the names of new hosts are written as hashes.
    pub hashed: bool,
}

impl KnownHostsFiles {
    /// Uses these files, and writes the names of new hosts in clear.
    #[must_use]
    pub const fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            hashed: false,
        }
    }
}

/// An error of the known-hosts files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KnownHostsError {
    /// A file cannot be read, or is too long.
    #[error("{}: {why}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The I/O error.
        why: io::Error,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {why}", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// The I/O error.
        why: io::Error,
    },
    /// The files contradict the key meanwhile; nothing was written.
    #[error("{0}")]
    Contradicted(String),
}

/// One host, and the contents of the files when they were read.
#[derive(Debug, Clone)]
pub struct KnownHost {
    files: KnownHostsFiles,
    name: HostName,
    lines: KnownHosts,
    problems: Vec<SkippedLine>,
}

impl KnownHost {
    /// Reads the files. Malformed lines are skipped, as in OpenSSH.
    ///
    /// # Errors
    /// Returns [`KnownHostsError::Read`] unless the file does not exist.
    pub fn read_files(name: HostName, files: &KnownHostsFiles) -> Result<Self, KnownHostsError> {
        let mut host = Self {
            files: files.clone(),
            name,
            lines: KnownHosts::default(),
            problems: Vec::new(),
        };
        for path in &files.paths {
            match read_into(&mut host.lines, path) {
                Ok(problems) => host.problems.extend(problems),
                Err(why) if why.kind() == io::ErrorKind::NotFound => {}
                Err(why) => {
                    let file = path.clone();
                    return Err(KnownHostsError::Read { file, why });
                }
            }
        }
        Ok(host)
    }

    /// Returns the host's name and port.
    #[must_use]
    pub const fn name(&self) -> &HostName {
        &self.name
    }

    /// Returns all lines, including those of other hosts.
    #[must_use]
    pub const fn lines(&self) -> &KnownHosts {
        &self.lines
    }

    /// Returns the lines that were skipped.
    #[must_use]
    pub fn skipped_lines(&self) -> &[SkippedLine] {
        &self.problems
    }

    /// Returns the file that new hosts are added to.
    #[must_use]
    pub fn write_path(&self) -> Option<&Path> {
        self.files.paths.first().map(PathBuf::as_path)
    }

    /// Returns what the files say about a key that the host presents.
    #[must_use]
    pub fn check_key(&self, key: &AnyKey) -> HostKeyVerdict {
        self.lines.check_host(&self.name, key, system::unix_now())
    }

    /// Returns `offered` with the algorithms of the host's known keys first, so that the host presents
    /// one of them if it can.
    #[must_use]
    pub fn prefer_known(&self, offered: &[KeyAlgorithm]) -> Vec<KeyAlgorithm> {
        self.lines.prefer_known(&self.name, offered)
    }

    /// Returns the reason to refuse a key with this verdict, in one line; `None` for a known key.
    #[must_use]
    pub fn explain_refusal(&self, key: &PublicKey, verdict: &HostKeyVerdict) -> Option<String> {
        let (host, shown) = (&self.name, DisplayKey(key));
        Some(match verdict {
            HostKeyVerdict::Known(_) => return None,
            HostKeyVerdict::Unknown => format!("{host} is unknown; it presents {shown}"),
            HostKeyVerdict::OtherType(place) => format!(
                "the key of {host} has a different type than the known one: it presents \
                 {shown}, the known key is {}. Someone may be intercepting the connection; if the \
                 server has a new key, remove that line",
                self.lines.describe_key_at(place)
            ),
            HostKeyVerdict::Changed(place) => format!(
                "the key of {host} has changed: it presents {shown}, the known key is {}. Someone \
                 may be intercepting the connection; if the server has a new key, remove that line",
                self.lines.describe_key_at(place)
            ),
            HostKeyVerdict::Revoked(place) => {
                format!("the key {shown} of {host} is revoked ({place})")
            }
            HostKeyVerdict::BadCertificate(place, why) => {
                format!("the certificate of {host} is invalid: {why} ({place})")
            }
        })
    }

    /// Adds a line for a new host's key to the first file, if there is one. The files are read again
    /// first, since other programs write to them and a person takes time to answer: a key that was
    /// added meanwhile is not written twice.
    ///
    /// # Errors
    /// The file cannot be read or written, or the host has another known key by now.
    pub fn add_key(&self, key: &PublicKey) -> Result<(), KnownHostsError> {
        let Some(path) = self.write_path() else {
            return Ok(());
        };
        let failed = |why| KnownHostsError::Write {
            file: path.to_owned(),
            why,
        };
        let mut file = LineFile::open(path).map_err(failed)?;
        let now = Self::read_files(self.name.clone(), &self.files)?;
        match now.check_key(&AnyKey::Plain(key.clone())) {
            HostKeyVerdict::Known(_) => Ok(()),
            HostKeyVerdict::Unknown => file.append_line(&self.format_line(key)).map_err(failed),
            verdict => {
                let why = now.explain_refusal(key, &verdict).unwrap_or_default();
                Err(KnownHostsError::Contradicted(why))
            }
        }
    }

    /// Rewrites one of the files: removes the lines that belong to this host alone and have one of the
    /// keys in `gone`, and appends the keys in `new`.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn rewrite_file(
        &self,
        path: &Path,
        new: &[PublicKey],
        gone: &[PublicKey],
    ) -> Result<(), KnownHostsError> {
        let failed = |why| KnownHostsError::Write {
            file: path.to_owned(),
            why,
        };
        let file = LineFile::open(path).map_err(failed)?;
        let text = persistent_file::read_bounded(path, MAX_KNOWN_HOSTS).map_err(failed)?;
        let mut lines = KnownHosts::default();
        lines
            .add_file(&path.to_string_lossy(), &text)
            .map_err(|why| failed(io::Error::other(why)))?;
        let known: Vec<_> = lines.keys_of(&self.name).collect();
        let is_gone = |line: usize| {
            let of_line = known.iter().find(|key| key.place.line == line);
            of_line.is_some_and(|key| key.alone && gone.contains(key.key))
        };
        let mut out = Vec::with_capacity(text.len() + 1024);
        for (at, line) in text.split_inclusive(|octet| *octet == b'\n').enumerate() {
            if !is_gone(at + 1) {
                out.extend_from_slice(line);
            }
        }
        if out.last().is_some_and(|last| *last != b'\n') {
            out.push(b'\n');
        }
        for key in new {
            if !known.iter().any(|known| known.key == key) {
                out.extend_from_slice(self.format_line(key).as_bytes());
                out.push(b'\n');
            }
        }
        file.replace_content(&out).map_err(failed)
    }

    /// Returns the line that makes the key known.
    fn format_line(&self, key: &PublicKey) -> String {
        let salt = self.files.hashed.then(|| {
            let mut salt = [0; 20];
            SystemRng.fill(&mut salt);
            salt
        });
        self.name.known_hosts_line(key, salt)
    }
}

/// Reads a file into `lines`, after what was read before.
fn read_into(lines: &mut KnownHosts, path: &Path) -> io::Result<Vec<SkippedLine>> {
    let text = persistent_file::read_bounded(path, MAX_KNOWN_HOSTS)?;
    let problems = lines.add_file(&path.to_string_lossy(), &text);
    problems.map_err(io::Error::other)
}

/// A key's type and fingerprint, for messages.
struct DisplayKey<'a>(&'a PublicKey);

impl fmt::Display for DisplayKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0.type_name(), self.0.fingerprint())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use adit_crypto::NistCurve;
    use adit_interop::TempFolder;
    use adit_ssh_proto::key::{KeyType, PrivateKey};

    use super::*;

    fn key(kind: KeyType) -> PublicKey {
        let key = PrivateKey::generate(kind, &mut SystemRng).unwrap();
        key.public_key().clone()
    }

    fn host(name: &str, files: &[&Path]) -> Result<KnownHost, KnownHostsError> {
        let files = KnownHostsFiles {
            paths: files.iter().map(|file| file.to_path_buf()).collect(),
            hashed: false,
        };
        KnownHost::read_files(HostName::new(name, 22).unwrap(), &files)
    }

    #[test]
    fn a_host_is_learned_once_and_no_other_key_after_it() {
        let folder = TempFolder::new("learned").unwrap();
        let path = folder.path().join("deep/known_hosts");
        let (one, two) = (key(KeyType::Ed25519), key(KeyType::Ed25519));
        let other = key(KeyType::Ecdsa(NistCurve::P256));
        // Both have read the files before one of them writes.
        let (first, second) = (host("h", &[&path]).unwrap(), host("h", &[&path]).unwrap());
        assert_eq!(
            first.check_key(&AnyKey::Plain(one.clone())),
            HostKeyVerdict::Unknown
        );
        first.add_key(&one).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        second.add_key(&one).unwrap();
        for key in [&two, &other] {
            let why = second.add_key(key).unwrap_err();
            assert!(matches!(why, KnownHostsError::Contradicted(_)), "{why}");
            assert!(why.to_string().contains(&one.fingerprint()), "{why}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let now = host("h", &[&path]).unwrap();
        let judged = |key: &PublicKey| now.check_key(&AnyKey::Plain(key.clone()));
        assert!(matches!(judged(&one), HostKeyVerdict::Known(_)));
        assert!(matches!(judged(&two), HostKeyVerdict::Changed(_)));
        assert!(matches!(judged(&other), HostKeyVerdict::OtherType(_)));
    }

    #[test]
    fn what_cannot_be_read_whole_is_not_empty() {
        let folder = TempFolder::new("unread").unwrap();
        let (long, missing) = (folder.path().join("long"), folder.path().join("missing"));
        let one = key(KeyType::Ed25519);
        let before = host("h", &[&long]).unwrap();
        let file = fs::File::create(&long).unwrap();
        file.set_len(16 << 20).unwrap();
        host("h", &[&missing, &long]).unwrap();
        file.set_len((16 << 20) + 1).unwrap();
        for path in [&*long, folder.path()] {
            let why = host("h", &[&missing, path]).unwrap_err();
            assert!(matches!(why, KnownHostsError::Read { .. }), "{why}");
            assert!(why.to_string().contains(&path.display().to_string()));
        }
        // The file is not written to either.
        before.add_key(&one).unwrap_err();
        assert_eq!(file.metadata().unwrap().len(), (16 << 20) + 1);
    }
}
