//! Clients that follow a subscription.
//!
//! ```text
//! Source ─▶ Fetcher ─▶ document ─▶ Chain ─▶ Engine::reroute
//!               │ fails      ▲
//!               └─▶ kept ────┘
//! ```
//!
//! What was fetched and understood is kept in a file, and used when nothing can be fetched. A
//! change of the servers is for new connections; open ones stay on their way.

mod document;
mod fetch;
mod source;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use adit_config::{Route, Stage};
use adit_convert::{AllowedPlugins, sip008};
use adit_engine::Engine;
use adit_net::persistent_file;
use adit_net::system::SystemRng;
use adit_wire::{Entropy, u64_from};
use tokio::time::sleep;
use tracing::{info, warn};
use zeroize::Zeroizing;

pub use document::{Document, Quota, Unusable, read};
pub use fetch::{FetchError, Fetcher, Roots};
pub use source::{BadSource, Source};

/// After a failure it is tried again this soon, or sooner if it is fetched more often anyway.
const RETRY: Duration = Duration::from_secs(300);

/// A subscription.
#[derive(Debug)]
pub struct Subscription {
    /// Where it is.
    pub source: Source,
    /// What fetches it.
    pub fetcher: Fetcher,
    /// The plugins that its servers may need (SEC-E6).
    pub plugins: AllowedPlugins,
    /// The folder in which the last good document is kept.
    pub folder: PathBuf,
    /// How often it is fetched.
    pub every: Duration,
}

/// Why there are no servers to begin with.
#[derive(Debug)]
pub struct Nothing {
    /// What was wrong with what was fetched, or with fetching.
    pub online: Failed,
    /// What was wrong with what was kept; nothing if nothing was.
    pub kept: Option<String>,
}

/// Why a document was not taken over.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// It did not come.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It is of no use.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

impl fmt::Display for Nothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.online)?;
        match &self.kept {
            None => Ok(()),
            Some(why) => write!(f, "; what was kept of it: {why}"),
        }
    }
}

impl std::error::Error for Nothing {}

impl Subscription {
    /// The servers to begin with: of now if they can be had, else of the last time.
    pub async fn begin(&self) -> Result<Document, Nothing> {
        let online = match self.fetch().await {
            Ok(document) => return Ok(document),
            Err(why) => why,
        };
        let path = self.path();
        let kept = tokio::task::spawn_blocking(move || read_kept(&path)).await;
        let kept = match kept.unwrap_or_else(|e| Err(io::Error::other(e))) {
            Ok(None) => None,
            Ok(Some(text)) => match read(&text, &self.plugins) {
                Ok(document) => {
                    warn!(
                        "{}: {online}; the servers of the last time are used",
                        self.source
                    );
                    return Ok(document);
                }
                Err(why) => Some(why.to_string()),
            },
            Err(why) => Some(why.to_string()),
        };
        Err(Nothing { online, kept })
    }

    /// Follows the subscription for ever. `route` runs in `engine`, with the chain that
    /// [`begin`](Self::begin) gave.
    pub async fn follow(&self, engine: &Engine, mut route: Route) {
        let mut wait = self.every;
        loop {
            sleep(scattered(wait)).await;
            wait = self.every;
            let document = match self.fetch().await {
                Ok(document) => document,
                Err(why) => {
                    warn!("{}: {why}; the servers stay as they were", self.source);
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
                    info!("{}: the servers have changed, {count} now", self.source);
                }
                Err(why) => {
                    warn!("{}: {why}; the servers stay as they were", self.source);
                    route.via = before;
                }
            }
        }
    }

    /// Fetches, reads, and keeps what is good.
    async fn fetch(&self) -> Result<Document, Failed> {
        let text = self.fetcher.get(&self.source).await?;
        let document = read(&text, &self.plugins)?;
        let path = self.path();
        let write = move || persistent_file::write_atomically(&path, text.as_bytes());
        let written = tokio::task::spawn_blocking(write).await;
        if let Err(why) = written.unwrap_or_else(|e| Err(io::Error::other(e))) {
            warn!(
                "{}: not kept in {}: {why}",
                self.source,
                self.folder.display()
            );
        }
        Ok(document)
    }

    /// The file of this subscription. Its address is a secret, so it has another name.
    fn path(&self) -> PathBuf {
        let hash = adit_crypto::sha256(self.source.whole().as_bytes());
        let name: String = hash.iter().take(8).map(|b| format!("{b:02x}")).collect();
        self.folder.join(format!("subscription-{name}"))
    }
}

impl Document {
    /// How many servers there are.
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
    let limit = u64_from(sip008::MAX_BODY);
    match std::fs::metadata(path) {
        Ok(meta) if meta.len() > limit => Err(io::ErrorKind::FileTooLarge.into()),
        Ok(_) => std::fs::read_to_string(path).map(|text| Some(Zeroizing::new(text))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Up to a tenth sooner, so that not all clients of a provider come at the same moment.
fn scattered(wait: Duration) -> Duration {
    let mut byte = [0];
    SystemRng.fill(&mut byte);
    wait - wait / 10 * u32::from(byte[0]) / 255
}
