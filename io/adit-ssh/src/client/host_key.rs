//! Whose key a server may have.

use std::path::Path;
use std::{fmt, fs, io};

use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::{AnyKey, HostName};

use super::known_hosts::{KnownHost, KnownHostsFiles};
use crate::{BoxFuture, HostKeyRefused};

/// A key that the server has proved to own.
#[derive(Debug, Clone)]
pub struct HostKey {
    /// The key, or its certificate, of which nothing is checked yet.
    pub key: AnyKey,
    /// The algorithm it signed with.
    pub algorithm: KeyAlgorithm,
}

/// Decides about the key of a server. Asked once for each session; nothing of the user's is sent
/// before.
pub trait HostKeyPolicy: Send + Sync {
    /// Whether the key is the host's. May take as long as a person needs.
    fn verify<'a>(&'a self, key: &'a HostKey) -> BoxFuture<'a, Result<(), HostKeyRefused>>;
}

/// Takes what the files know for this host, and nothing else.
#[derive(Debug, Clone)]
pub struct KnownHostsOnly(pub KnownHost);

impl KnownHostsOnly {
    /// Reads files of known hosts for one host. Lines that cannot be read are left out, as in
    /// OpenSSH; a file that is not there is an error.
    ///
    /// # Errors
    /// A file cannot be read or is too long, or `host` is no name of a host.
    pub fn read(host: &str, port: u16, files: &[impl AsRef<Path>]) -> io::Result<Self> {
        let odd = || io::Error::new(io::ErrorKind::InvalidInput, "not a host's name");
        let host = HostName::new(host, port).ok_or_else(odd)?;
        let paths: Vec<_> = files.iter().map(|file| file.as_ref().to_owned()).collect();
        for path in &paths {
            fs::metadata(path)?;
        }
        let files = KnownHostsFiles {
            paths,
            hashed: false,
        };
        let known = KnownHost::read(host, &files).map_err(io::Error::other)?;
        Ok(Self(known))
    }
}

impl HostKeyPolicy for KnownHostsOnly {
    fn verify<'a>(&'a self, key: &'a HostKey) -> BoxFuture<'a, Result<(), HostKeyRefused>> {
        let verdict = self.0.check(&key.key);
        let done = match self.0.objection(key.key.key(), &verdict) {
            None => Ok(()),
            Some(why) => Err(HostKeyRefused(why)),
        };
        Box::pin(std::future::ready(done))
    }
}

/// Takes these keys alone, whatever the host is called.
#[derive(Debug, Clone)]
pub struct PinnedKeys(pub Vec<AnyKey>);

impl HostKeyPolicy for PinnedKeys {
    fn verify<'a>(&'a self, key: &'a HostKey) -> BoxFuture<'a, Result<(), HostKeyRefused>> {
        let pinned = self.0.iter().any(|one| one.key() == key.key.key());
        let done = if pinned {
            Ok(())
        } else {
            Err(HostKeyRefused("it is none of the given ones".to_owned()))
        };
        Box::pin(std::future::ready(done))
    }
}

/// Asks a closure, which answers at once.
///
/// ```
/// use adit_ssh::client::{HostKeyFn, HostKeyPolicy};
///
/// // Takes whatever key comes: for tests.
/// let anyone: Box<dyn HostKeyPolicy> = Box::new(HostKeyFn(|_| Ok(())));
/// ```
// The bound is what tells the compiler the closure's argument.
pub struct HostKeyFn<F: Fn(&HostKey) -> Result<(), HostKeyRefused>>(pub F);

impl<F> HostKeyPolicy for HostKeyFn<F>
where
    F: Fn(&HostKey) -> Result<(), HostKeyRefused> + Send + Sync,
{
    fn verify<'a>(&'a self, key: &'a HostKey) -> BoxFuture<'a, Result<(), HostKeyRefused>> {
        Box::pin(std::future::ready((self.0)(key)))
    }
}

impl<F: Fn(&HostKey) -> Result<(), HostKeyRefused>> fmt::Debug for HostKeyFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostKeyFn")
    }
}
