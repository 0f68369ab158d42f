//! Policies for host keys.

use std::path::Path;
use std::{fmt, fs, io};

use adit_ssh_proto::algorithm::KeyAlgorithm;
use adit_ssh_proto::key::{AnyKey, HostName};

use super::known_hosts::{KnownHost, KnownHostsFiles};
use crate::{BoxFuture, HostKeyRefused};

/// A host key that the server has proved to own.
#[derive(Debug, Clone)]
pub struct HostKey {
    /// The key or its certificate. The certificate is not checked yet.
    pub key: AnyKey,
    /// The algorithm of the server's signature.
    pub algorithm: KeyAlgorithm,
}

/// A policy for the host keys of servers. It is asked once per session, before any of the user's data
/// is sent.
pub trait HostKeyPolicy: Send + Sync {
    /// Checks that the key is the host's. May take as long as a person needs to answer.
    fn verify_host_key<'a>(&'a self, key: &'a HostKey)
    -> BoxFuture<'a, Result<(), HostKeyRefused>>;
}

/// A policy that accepts only the keys that the files list for this host.
#[derive(Debug, Clone)]
pub struct KnownHostsOnly(pub KnownHost);

impl KnownHostsOnly {
    /// Reads known-hosts files for one host. Unreadable lines are skipped, as in OpenSSH; a missing
    /// file is an error.
    ///
    /// # Errors
    /// A file cannot be read or is too long, or `host` is not a valid host name.
    pub fn read(host: &str, port: u16, files: &[impl AsRef<Path>]) -> io::Result<Self> {
        let odd = || io::Error::new(io::ErrorKind::InvalidInput, "not a host name");
        let host = HostName::new(host, port).ok_or_else(odd)?;
        let paths: Vec<_> = files.iter().map(|file| file.as_ref().to_owned()).collect();
        for path in &paths {
            fs::metadata(path)?;
        }
        let files = KnownHostsFiles {
            paths,
            hashed: false,
        };
        let known = KnownHost::read_files(host, &files).map_err(io::Error::other)?;
        Ok(Self(known))
    }
}

impl HostKeyPolicy for KnownHostsOnly {
    fn verify_host_key<'a>(
        &'a self,
        key: &'a HostKey,
    ) -> BoxFuture<'a, Result<(), HostKeyRefused>> {
        let verdict = self.0.check_key(&key.key);
        let done = match self.0.explain_refusal(key.key.key(), &verdict) {
            None => Ok(()),
            Some(why) => Err(HostKeyRefused(why)),
        };
        Box::pin(std::future::ready(done))
    }
}

/// A policy that accepts only these keys, independently of the host's name.
#[derive(Debug, Clone)]
pub struct PinnedKeys(pub Vec<AnyKey>);

impl HostKeyPolicy for PinnedKeys {
    fn verify_host_key<'a>(
        &'a self,
        key: &'a HostKey,
    ) -> BoxFuture<'a, Result<(), HostKeyRefused>> {
        let pinned = self.0.iter().any(|one| one.key() == key.key.key());
        let done = if pinned {
            Ok(())
        } else {
            Err(HostKeyRefused(
                "it is not one of the pinned keys".to_owned(),
            ))
        };
        Box::pin(std::future::ready(done))
    }
}

/// A policy that calls a closure, which answers immediately.
///
/// ```
/// use adit_ssh::client::{HostKeyFn, HostKeyPolicy};
///
/// // Accepts any key: for tests only.
/// let anyone: Box<dyn HostKeyPolicy> = Box::new(HostKeyFn(|_| Ok(())));
/// ```
// The bound lets the compiler infer the closure's argument type.
pub struct HostKeyFn<F: Fn(&HostKey) -> Result<(), HostKeyRefused>>(pub F);

impl<F> HostKeyPolicy for HostKeyFn<F>
where
    F: Fn(&HostKey) -> Result<(), HostKeyRefused> + Send + Sync,
{
    fn verify_host_key<'a>(
        &'a self,
        key: &'a HostKey,
    ) -> BoxFuture<'a, Result<(), HostKeyRefused>> {
        Box::pin(std::future::ready((self.0)(key)))
    }
}

impl<F: Fn(&HostKey) -> Result<(), HostKeyRefused>> fmt::Debug for HostKeyFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostKeyFn")
    }
}
