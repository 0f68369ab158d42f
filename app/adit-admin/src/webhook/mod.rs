//! Receivers of events: signed requests, delivered at least once.
//!
//! ```text
//! API, fleet ──────────┐
//! UserRegistry ─ watch ┴─▶ WebhookHub ─▶ one queue and one task per receiver ─▶ POST, signed
//!                                           │        ▲ retries with backoff
//!                                           └─ file ─┘ outlives the process
//! ```
//!
//! Nothing waits for a receiver: an event is put into the queue of each, which is bounded and stored, and its task
//! delivers one event after the other. A receiver that fails, hangs or is gone concerns its own queue alone.
//!
//! The body of a request is JSON with `id`, `type`, `time`, `node` and `data`. An event that is delivered again, because
//! the answer was lost, has the same `id`. The header `X-Adit-Signature` is `t=TIME,v1=HMAC`, where `HMAC` is the
//! hexadecimal HMAC-SHA-256 of `TIME`, a full stop and the body.

mod delivery;
mod queue;
mod timing;
mod watch;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use adit_config::{WebhookEventKind, WebhookSettings};
use adit_engine::{NameResolver, UserRegistry};
use adit_net::system::{self, SystemRng};
use adit_wire::Entropy;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::subscription::{BadSource, Source, TrustedRoots};

pub use delivery::sign;
pub use queue::WebhookCounts;
pub use timing::WebhookTiming;

use delivery::Delivery;
use queue::EventQueue;

/// Folder of the queues in the state folder.
const FOLDER: &str = "webhooks";

/// The surroundings of receivers.
#[derive(Debug, Clone)]
pub struct WebhookContext {
    /// The name of this node in events.
    pub node: String,
    /// The folder of the stored queues; without one, events are lost at the end of the process.
    pub folder: Option<PathBuf>,
    /// Looks up the names of receivers.
    pub names: NameResolver,
    /// The authorities that are trusted.
    pub roots: TrustedRoots,
    /// The times of deliveries.
    pub timing: WebhookTiming,
}

impl WebhookContext {
    /// Returns the folder of the queues of a configuration file in the state folder. Processes with other files have
    /// other folders.
    #[must_use]
    pub fn folder_in(state: &Path, config: &Path) -> PathBuf {
        let config = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
        state
            .join(FOLDER)
            .join(short_hash(config.as_os_str().as_encoded_bytes()))
    }
}

/// The error of settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// The URL cannot be that of a receiver.
    #[error("`url` of `[[webhook]]`: {0}")]
    Url(&'static str),
}

/// Checks the URLs of receivers.
///
/// # Errors
/// One of them is not a URL, or not encrypted.
pub fn check(settings: &[WebhookSettings]) -> Result<(), WebhookError> {
    for webhook in settings {
        source_of(webhook)?;
    }
    Ok(())
}

fn source_of(webhook: &WebhookSettings) -> Result<Source, WebhookError> {
    let parsed = webhook.url.expose().parse::<Source>();
    parsed.map_err(|why| {
        WebhookError::Url(match why {
            BadSource::Plain => "events name users: it must be https, unless it is on this machine",
            BadSource::Scheme | BadSource::Form => "expected https://HOST[:PORT]/PATH",
        })
    })
}

/// The receivers of a process. Clones are the same receivers.
#[derive(Clone)]
pub struct WebhookHub(Arc<HubState>);

struct HubState {
    context: WebhookContext,
    receivers: Mutex<Receivers>,
}

#[derive(Default)]
struct Receivers {
    running: Vec<Receiver>,
    /// True while another process has the queues.
    is_closed: bool,
    /// Compares the states of users.
    watch: JoinSet<()>,
}

struct Receiver {
    settings: WebhookSettings,
    queue: Arc<EventQueue>,
    /// Delivers; it ends with this value.
    task: JoinSet<()>,
}

impl fmt::Debug for WebhookHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookHub").finish_non_exhaustive()
    }
}

/// The body of a request.
#[derive(Serialize)]
struct EventBody<'a, D> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    time: u64,
    node: &'a str,
    data: D,
}

impl WebhookHub {
    /// Creates a hub without receivers.
    #[must_use]
    pub fn new(context: WebhookContext) -> Self {
        Self(Arc::new(HubState {
            context,
            receivers: Mutex::default(),
        }))
    }

    /// Sets the receivers. Those whose settings have not changed continue; the queue of one that is gone stays stored.
    /// Reads files.
    ///
    /// # Errors
    /// One of the URLs is not that of a receiver; then nothing has changed.
    pub fn set_receivers(&self, settings: &[WebhookSettings]) -> Result<(), WebhookError> {
        let mut sources = Vec::with_capacity(settings.len());
        for webhook in settings {
            sources.push(source_of(webhook)?);
        }
        let mut receivers = self.lock();
        let mut before = std::mem::take(&mut receivers.running);
        for (webhook, source) in settings.iter().zip(sources) {
            let known = before.iter().position(|known| known.settings == *webhook);
            let receiver = match known {
                Some(at) => before.swap_remove(at),
                None => {
                    // Its task writes no file any more once it is gone.
                    let same = |known: &Receiver| known.settings.url == webhook.url;
                    let queue = before.iter().find(|known| same(known));
                    let queue = queue.map(|known| known.queue.clone());
                    before.retain(|known| !same(known));
                    self.start(webhook, source, queue)
                }
            };
            receivers.running.push(receiver);
        }
        Ok(())
    }

    fn start(
        &self,
        webhook: &WebhookSettings,
        source: Source,
        queue: Option<Arc<EventQueue>>,
    ) -> Receiver {
        let context = &self.0.context;
        let queue = queue.unwrap_or_else(|| {
            let name = short_hash(source.whole().as_bytes());
            let file = context.folder.as_ref();
            let file = file.map(|folder| folder.join(format!("{name}.json")));
            Arc::new(EventQueue::open(file, source.to_string()))
        });
        let delivery = Delivery::new(source, webhook.secret.clone(), context, queue.clone());
        let mut task = JoinSet::new();
        task.spawn(delivery.run());
        Receiver {
            settings: webhook.clone(),
            queue,
            task,
        }
    }

    /// Compares the states of the users of `registry` from now on, and reports those who have used up their quota or
    /// whose time has expired.
    pub fn watch_users(&self, registry: Arc<UserRegistry>) {
        let file = self.0.context.folder.as_ref();
        let file = file.map(|folder| folder.join("users.json"));
        let watch = watch::watch_users(self.clone(), registry, file);
        let mut receivers = self.lock();
        receivers.watch = JoinSet::new();
        receivers.watch.spawn(watch);
    }

    /// Puts an event into the queues of its receivers.
    pub fn emit(&self, kind: WebhookEventKind, data: &impl Serialize) {
        let receivers = self.lock();
        if receivers.is_closed {
            return;
        }
        let mut event = None;
        for receiver in &receivers.running {
            if !receiver.settings.events.contains(&kind) {
                continue;
            }
            let event = event.get_or_insert_with(|| self.new_event(kind, data));
            receiver.queue.push(event.clone());
        }
    }

    /// Returns true if a receiver wants one of these events.
    #[must_use]
    pub fn wants(&self, kinds: &[WebhookEventKind]) -> bool {
        let receivers = self.lock();
        let mut wanted = receivers.running.iter().flat_map(|it| &it.settings.events);
        !receivers.is_closed && wanted.any(|kind| kinds.contains(kind))
    }

    fn new_event(&self, kind: WebhookEventKind, data: &impl Serialize) -> queue::StoredEvent {
        let mut bits = [0u8; 16];
        SystemRng.fill(&mut bits);
        let digits: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
        let id = format!("evt_{digits}");
        let time = system::unix_now().0;
        let body = EventBody {
            id: &id,
            kind: kind.name(),
            time,
            node: &self.0.context.node,
            data,
        };
        queue::StoredEvent {
            // Texts and numbers alone: nothing of it can fail.
            body: serde_json::to_string(&body).unwrap_or_default(),
            kind: kind.name().to_owned(),
            id,
            time,
        }
    }

    /// Returns the counts of each receiver, in the order of the settings.
    #[must_use]
    pub fn counts(&self) -> Vec<WebhookCounts> {
        let receivers = self.lock();
        let each = receivers.running.iter();
        each.map(|receiver| receiver.queue.counts()).collect()
    }

    /// Stores all queues.
    async fn store_queues(&self) {
        let queues: Vec<Arc<EventQueue>> = {
            let receivers = self.lock();
            let running = receivers.running.iter();
            running.map(|receiver| receiver.queue.clone()).collect()
        };
        for queue in queues {
            queue.store().await;
        }
    }

    /// Stops all deliveries and stores the queues, so that another process can continue.
    pub async fn close(&self) {
        let tasks: Vec<(JoinSet<()>, Arc<EventQueue>)> = {
            let mut receivers = self.lock();
            receivers.is_closed = true;
            receivers.watch.abort_all();
            let running = receivers.running.iter_mut();
            running
                .map(|receiver| (std::mem::take(&mut receiver.task), receiver.queue.clone()))
                .collect()
        };
        for (mut task, queue) in tasks {
            task.shutdown().await;
            queue.store().await;
        }
    }

    /// Continues after [`Self::close`]: there is no other process.
    pub fn reopen(&self, registry: Arc<UserRegistry>) {
        let settings: Vec<WebhookSettings> = {
            let mut receivers = self.lock();
            receivers.is_closed = false;
            let before = std::mem::take(&mut receivers.running);
            before
                .into_iter()
                .map(|receiver| receiver.settings)
                .collect()
        };
        // They were valid before.
        let _ = self.set_receivers(&settings);
        self.watch_users(registry);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Receivers> {
        self.0
            .receivers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a file name for a text that may be secret.
fn short_hash(text: &[u8]) -> String {
    let hash = adit_crypto::sha256(text);
    hash.iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
