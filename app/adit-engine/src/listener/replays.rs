//! What was seen under each key: one memory for all listeners of the process that have it, since a
//! recording for one of them opens at the others too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adit_crypto::{Secret, SipKey};
use adit_net::ambient::{self, SystemChance};
use adit_shadowsocks::udp::SessionBook;
use adit_shadowsocks::{Method, Restart, SaltPool, Start};
use adit_wire::{Entropy, Time, Unix};

use super::salts_file::SaltsFile;

/// How long a memory outlives the last listener that used it: a stamp can be valid for a minute.
const KEPT: Duration = Duration::from_secs(120);

/// The memories of a process.
#[derive(Debug)]
pub(crate) struct Replays {
    /// Names are kept as keyed hashes, not as keys.
    hash: [SipKey; 2],
    known: Mutex<HashMap<[u64; 2], Known>>,
}

#[derive(Debug)]
struct Known {
    seen: Seen,
    /// When a listener was last seen to use it.
    used: Time,
}

/// What was seen under one key.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The salts of connections.
    pub(super) salts: Arc<SaltPool>,
    /// The salts of packets, in the AEAD edition. They are kept apart: a flood of packets must not
    /// push those of connections out.
    pub(super) packets: Arc<SaltPool>,
    /// The sessions of packets, in the 2022 edition.
    pub(super) sessions: Arc<SessionBook>,
    /// Where the salts of connections are kept.
    pub(super) file: Option<Arc<SaltsFile>>,
}

/// What makes listeners share a memory.
pub(super) struct Name<'a> {
    pub(super) method: Method,
    /// The key that all of its clients use; `None` where there is none.
    pub(super) key: Option<&'a str>,
    pub(super) restart: Restart,
    /// Whether requests go on to servers, which see the same salts again.
    pub(super) relay: bool,
    pub(super) state: Option<&'a Path>,
}

impl Default for Replays {
    fn default() -> Self {
        let hash = [seed(), seed()].map(SipKey::new);
        let known = Mutex::default();
        Self { hash, known }
    }
}

impl Replays {
    /// What was seen under this name, by whichever listener; `started` is when the process began.
    pub(super) fn of(&self, name: &Name<'_>, started: Unix) -> Seen {
        let text = format!(
            "{:?} {:?} {:?} {:?} {:?}",
            name.method, name.restart, name.relay, name.state, name.key
        );
        let text = Secret::new(text.into_bytes());
        let place = self.hash.each_ref().map(|key| key.hash(text.expose()));
        let now = ambient::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, known| {
            if known.seen.is_used() {
                known.used = now;
            }
            now.since(known.used) < KEPT
        });
        let known = known.entry(place).or_insert_with(|| Known {
            seen: Seen::new(name, started),
            used: now,
        });
        known.used = now;
        known.seen.clone()
    }
}

impl Seen {
    fn new(name: &Name<'_>, started: Unix) -> Self {
        let salts = SaltPool::new(seed(), started, name.restart);
        let (salts, file) = match name.state {
            Some(path) => {
                let file = Arc::new(SaltsFile::open(PathBuf::from(path), salts));
                (file.salts(), Some(file))
            }
            None => (Arc::new(salts), None),
        };
        Self {
            salts,
            packets: Arc::new(SaltPool::new(seed(), started, Restart::Lenient)),
            sessions: Arc::new(SessionBook::new(Start::new(started, name.restart))),
            file,
        }
    }

    /// Whether a listener has a part of it.
    fn is_used(&self) -> bool {
        // The file has the salts too.
        let own = 1 + usize::from(self.file.is_some());
        Arc::strong_count(&self.salts) > own
            || Arc::strong_count(&self.packets) > 1
            || Arc::strong_count(&self.sessions) > 1
    }
}

fn seed() -> [u8; 16] {
    let mut seed = [0; 16];
    SystemChance.fill(&mut seed);
    seed
}
