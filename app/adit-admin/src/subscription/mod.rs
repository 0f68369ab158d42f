//! Clients that follow a subscription.
//!
//! ```text
//! Source ─▶ Fetcher ─▶ document ─▶ Chain ─▶ Engine::reroute
//!               │ fails      ▲
//!               └─▶ stored ──┘
//! ```
//!
//! The last valid document is stored in a file, which is used if fetching fails. Changed servers
//! apply to new connections; open ones keep their route.

mod document;
mod fetch;
mod server_filter;
mod source;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use adit_config::{Route, Stage};
use adit_convert::AllowedPlugins;
use adit_engine::{Engine, NameResolver};
use adit_net::persistent_file;
use adit_net::system::SystemRng;
use adit_wire::{Entropy, u64_from};
use tokio::time::sleep;
use tracing::{info, warn};
use zeroize::Zeroizing;

pub use document::{Document, DocumentError, Quota, read};
pub use fetch::{FetchError, Fetcher, TrustedRoots};
pub use source::{BadSource, Source};

/// Maximum size of a document, in bytes.
pub const MAX_DOCUMENT: usize = 16 << 20;
/// Maximum delay before the next try after a failure.
const RETRY: Duration = Duration::from_secs(300);

/// A subscription of a client.
#[derive(Debug)]
pub struct Subscription {
    /// The URL of the document.
    pub source: Source,
    /// Fetches the document.
    pub fetcher: Fetcher,
    /// The plugins that its servers may start (SEC-E6).
    pub plugins: AllowedPlugins,
    /// The group or server of the document that is used; `None` is the first group that a user selects from, or else
    /// all servers.
    pub select: Option<String>,
    /// The folder in which the last valid document is stored.
    pub folder: PathBuf,
    /// The interval of fetches.
    pub every: Duration,
}

/// The reason why there are no servers at the start.
#[derive(Debug)]
pub struct SubscriptionStartError {
    /// The error of fetching, or of the fetched document.
    pub online: SubscriptionError,
    /// The error of the stored document, if there is one.
    pub kept: Option<String>,
}

/// The reason why a document is not used.
#[derive(Debug, thiserror::Error)]
pub enum SubscriptionError {
    /// It was not fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It cannot be used.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

impl fmt::Display for SubscriptionStartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.online)?;
        match &self.kept {
            None => Ok(()),
            Some(why) => write!(f, "; the stored document: {why}"),
        }
    }
}

impl std::error::Error for SubscriptionStartError {}

impl Subscription {
    /// Returns the servers at the start: those of a fetched document, or else of the stored one.
    ///
    /// # Errors
    /// The document was not fetched or is not valid, and neither is the stored one.
    pub async fn begin(&self) -> Result<Document, SubscriptionStartError> {
        let online = match self.fetch().await {
            Ok(document) => return Ok(document),
            Err(why) => why,
        };
        let path = self.path();
        let kept = tokio::task::spawn_blocking(move || read_kept(&path)).await;
        let kept = match kept.unwrap_or_else(|e| Err(io::Error::other(e))) {
            Ok(None) => None,
            Ok(Some(text)) => match read(&text, &self.plugins, self.select.as_deref()) {
                Ok(document) => {
                    warn!(
                        "{}: {online}; using the servers of the stored document",
                        self.source
                    );
                    return Ok(document);
                }
                Err(why) => Some(why.to_string()),
            },
            Err(why) => Some(why.to_string()),
        };
        Err(SubscriptionStartError { online, kept })
    }

    /// Follows the subscription. Never returns. `route` runs in `engine`, with the chain of
    /// [`begin`](Self::begin).
    pub async fn follow(&self, engine: &Engine, mut route: Route) {
        let mut wait = self.every;
        loop {
            sleep(scattered(wait)).await;
            wait = self.every;
            let document = match self.fetch().await {
                Ok(document) => document,
                Err(why) => {
                    warn!("{}: {why}; the current servers stay in use", self.source);
                    wait = wait.min(RETRY);
                    continue;
                }
            };
            if document.chain == route.via {
                continue;
            }
            let count = document.servers();
            let before = std::mem::replace(&mut route.via, document.chain);
            match engine.replace_routing(&route).await {
                Ok(_) => {
                    for note in document.notes {
                        info!("{}: {note}", self.source);
                    }
                    info!(
                        "{}: the servers have changed, there are now {count}",
                        self.source
                    );
                }
                Err(why) => {
                    warn!("{}: {why}; the current servers stay in use", self.source);
                    route.via = before;
                }
            }
        }
    }

    /// Fetches and parses the document, and stores it if it is valid.
    async fn fetch(&self) -> Result<Document, SubscriptionError> {
        let text = self
            .fetcher
            .get(&self.source, &NameResolver::system())
            .await?;
        let document = read(&text, &self.plugins, self.select.as_deref())?;
        let path = self.path();
        let write = move || persistent_file::write_atomically(&path, text.as_bytes());
        let written = tokio::task::spawn_blocking(write).await;
        if let Err(why) = written.unwrap_or_else(|e| Err(io::Error::other(e))) {
            warn!(
                "{}: cannot store the document in {}: {why}",
                self.source,
                self.folder.display()
            );
        }
        Ok(document)
    }

    /// Returns the file of this subscription. Its name is a hash, because the URL is a secret.
    fn path(&self) -> PathBuf {
        let hash = adit_crypto::sha256(self.source.whole().as_bytes());
        let name: String = hash.iter().take(8).map(|b| format!("{b:02x}")).collect();
        self.folder.join(format!("subscription-{name}"))
    }
}

impl Document {
    /// Returns the number of servers.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.chain
            .stages
            .iter()
            .map(|stage: &Stage| stage.hops().len())
            .sum()
    }
}

fn read_kept(path: &Path) -> io::Result<Option<Zeroizing<String>>> {
    let limit = u64_from(MAX_DOCUMENT);
    match std::fs::metadata(path) {
        Ok(meta) if meta.len() > limit => Err(io::ErrorKind::FileTooLarge.into()),
        Ok(_) => std::fs::read_to_string(path).map(|text| Some(Zeroizing::new(text))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Shortens the wait by up to a tenth, so that clients do not fetch simultaneously.
pub(crate) fn scattered(wait: Duration) -> Duration {
    let mut byte = [0];
    SystemRng.fill(&mut byte);
    wait - wait / 10 * u32::from(byte[0]) / 255
}
