//! The events that one receiver has not confirmed: bounded, and stored in a file.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adit_net::persistent_file;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tracing::{error, warn};

/// Events of a queue at most. The oldest are dropped.
pub(super) const MAX_EVENTS: usize = 1000;
/// Maximum size of a file, in bytes.
const MAX_FILE: usize = 4 << 20;
/// The version of the file.
const VERSION: u32 = 1;

/// An event that is to be delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredEvent {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) time: u64,
    /// The body of the request, as it was signed first.
    pub(super) body: String,
}

/// The counters of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookCounts {
    /// Scheme, host and port of the receiver.
    pub receiver: String,
    /// Events that wait.
    pub queued: usize,
    /// Events that the receiver has confirmed.
    pub delivered: u64,
    /// Requests that have failed.
    pub failed: u64,
    /// Events that were given up: too old, or too many.
    pub dropped: u64,
}

/// The queue of a receiver.
pub(super) struct EventQueue {
    file: Option<PathBuf>,
    receiver: String,
    state: Mutex<QueueState>,
    changed: Notify,
    /// Held while the file is written.
    writing: Arc<tokio::sync::Mutex<WriteState>>,
    delivered: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Default)]
struct QueueState {
    events: VecDeque<StoredEvent>,
    /// The number of changes.
    change: u64,
}

#[derive(Default)]
struct WriteState {
    /// The number of changes that are in the file.
    stored: u64,
    has_failed: bool,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct FileContent {
    version: u32,
    /// Scheme, host and port, for people.
    receiver: String,
    events: Vec<StoredEvent>,
}

impl EventQueue {
    /// Returns the queue with the events of an earlier process. A file that cannot be read is an error in the log, and
    /// is replaced.
    pub(super) fn open(file: Option<PathBuf>, receiver: String) -> Self {
        let mut events = VecDeque::new();
        if let Some(path) = &file {
            match read_events(path) {
                Ok(stored) => events.extend(stored),
                Err(why) if why.kind() == io::ErrorKind::NotFound => {}
                Err(why) => error!(
                    "{}: {why}; events that {receiver} has not received are lost",
                    path.display()
                ),
            }
        }
        Self {
            file,
            receiver,
            state: Mutex::new(QueueState { events, change: 0 }),
            changed: Notify::new(),
            writing: Arc::default(),
            delivered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Adds an event.
    pub(super) fn push(&self, event: StoredEvent) {
        {
            let mut state = self.lock();
            if state.events.len() >= MAX_EVENTS {
                state.events.pop_front();
                let before = self.dropped.fetch_add(1, Ordering::Relaxed);
                if before == 0 {
                    warn!(
                        "{}: {MAX_EVENTS} events wait already: the oldest are dropped from now on",
                        self.receiver
                    );
                }
            }
            state.events.push_back(event);
            state.change += 1;
        }
        self.changed.notify_one();
    }

    /// Returns the oldest event.
    pub(super) fn first(&self) -> Option<StoredEvent> {
        self.lock().events.front().cloned()
    }

    /// Removes an event, which may have been dropped meanwhile.
    pub(super) fn remove(&self, id: &str, is_delivered: bool) {
        let counter = match is_delivered {
            true => &self.delivered,
            false => &self.dropped,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        state.events.retain(|event| event.id != id);
        state.change += 1;
    }

    /// Counts a request that has failed.
    pub(super) fn count_failure(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for the next event that is added.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    pub(super) fn receiver(&self) -> &str {
        &self.receiver
    }

    pub(super) fn counts(&self) -> WebhookCounts {
        WebhookCounts {
            receiver: self.receiver.clone(),
            queued: self.lock().events.len(),
            delivered: self.delivered.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }

    /// Writes the file if it is not up to date.
    pub(super) async fn store(&self) {
        let Some(path) = self.file.clone() else {
            return;
        };
        let mut writing = self.writing.clone().lock_owned().await;
        let (content, change) = {
            let state = self.lock();
            if state.change == writing.stored {
                return;
            }
            let content = FileContent {
                version: VERSION,
                receiver: self.receiver.clone(),
                events: state.events.iter().cloned().collect(),
            };
            (content, state.change)
        };
        // The lock is held until the file is written, even if this call is cancelled.
        let write = move || {
            let text = serde_json::to_vec(&content).unwrap_or_default();
            let receiver = &content.receiver;
            match persistent_file::write_atomically(&path, &text) {
                Ok(()) => {
                    *writing = WriteState {
                        stored: change,
                        has_failed: false,
                    };
                }
                Err(why) if !writing.has_failed => {
                    writing.has_failed = true;
                    error!(
                        "the events for {receiver} cannot be stored: {why}; a restart would lose them"
                    );
                }
                Err(_) => {}
            }
        };
        // The runtime may end.
        let _ = tokio::task::spawn_blocking(write).await;
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_events(path: &std::path::Path) -> io::Result<Vec<StoredEvent>> {
    let bytes = persistent_file::read_bounded(path, MAX_FILE)?;
    let content: FileContent = serde_json::from_slice(&bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a file of events"))?;
    if content.version != VERSION {
        let why = format!(
            "version {} of the file of events is not known",
            content.version
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut events = content.events;
    events.drain(..events.len().saturating_sub(MAX_EVENTS));
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(n: usize) -> StoredEvent {
        StoredEvent {
            id: format!("evt_{n}"),
            kind: "user.quota".to_owned(),
            time: 1,
            body: "{}".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_queue_is_bounded_and_outlives_the_process() {
        let folder = adit_temp_folder();
        let file = folder.join("queue.json");
        let queue = EventQueue::open(Some(file.clone()), "https://a".to_owned());
        for n in 0..MAX_EVENTS + 5 {
            queue.push(event(n));
        }
        queue.remove("evt_5", true);
        queue.store().await;
        let counts = queue.counts();
        assert_eq!(
            (counts.queued, counts.dropped, counts.delivered),
            (MAX_EVENTS - 1, 5, 1)
        );
        let again = EventQueue::open(Some(file.clone()), "https://a".to_owned());
        assert_eq!(again.first(), Some(event(6)));
        assert_eq!(again.counts().queued, MAX_EVENTS - 1);
        std::fs::write(&file, "{").unwrap();
        let empty = EventQueue::open(Some(file), "https://a".to_owned());
        assert_eq!(empty.first(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }

    /// Returns a new folder.
    fn adit_temp_folder() -> PathBuf {
        let name = format!("adit-webhook-queue-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }
}
