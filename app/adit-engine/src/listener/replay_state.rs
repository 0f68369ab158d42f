//! Replay state for each key. All listeners of the process with the same key share it, because a recording
//! of a request to one of them is valid at the others too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adit_crypto::{Secret, SipKey};
use adit_net::system::{self, SystemRng};
use adit_shadowsocks::udp::SessionRegistry;
use adit_shadowsocks::{Method, ProcessStart, RestartPolicy, SaltPool};
use adit_wire::{Entropy, Time, UnixTime};

use super::salts_file::SaltsFile;
use super::ssr_stores::SsrStores;
use crate::FilterClaims;
use crate::replay_claims::{ClaimGate, ClaimScope, ReplayFilter};

/// Time that the state outlives the last listener using it. A time stamp can be valid for one minute.
const UNUSED_TTL: Duration = Duration::from_secs(120);

/// The replay states of a process.
#[derive(Debug)]
pub(crate) struct ReplayRegistry {
    /// Hash keys: states are stored under a keyed hash of their name, so that no key is stored.
    hash_keys: [SipKey; 2],
    /// The seeds of the hash keys.
    pub(super) seeds: Secret<[[u8; 16]; 2]>,
    known: Mutex<HashMap<StateId, RegistryEntry>>,
    /// The stores of ShadowsocksR listeners.
    pub(super) ssr: SsrStores,
    /// Decides whether a successor has to confirm what the states accept.
    pub(super) gate: Arc<ClaimGate>,
    /// The start of this process, if it has succeeded another one. States that it has not inherited start then.
    succeeded_at: Option<UnixTime>,
}

/// The keyed hash of a state's name.
pub(super) type StateId = [u64; 2];

#[derive(Debug)]
struct RegistryEntry {
    state: ReplayState,
    /// Time at which a listener was last known to use the state.
    last_used: Time,
}

/// The replay state of one key.
#[derive(Debug, Clone)]
pub(crate) struct ReplayState {
    id: StateId,
    /// Salts of connections.
    pub(super) salts: Arc<SaltPool>,
    /// Salts of packets, in the AEAD edition. They are kept separately: a flood of packets must not evict
    /// the salts of connections.
    pub(super) packets: Arc<SaltPool>,
    /// Sessions of packets, in the 2022 edition.
    pub(super) sessions: Arc<SessionRegistry>,
    /// The file that keeps the salts of connections.
    pub(super) file: Option<Arc<SaltsFile>>,
}

/// The properties that listeners must have in common to share a replay state.
pub(super) struct ReplayStateName<'a> {
    pub(super) method: Method,
    /// The key that all clients use; `None` if there is no such key.
    pub(super) key: Option<&'a str>,
    pub(super) restart: RestartPolicy,
    /// True if requests are passed on to servers, which see the same salts again.
    pub(super) relay: bool,
    pub(super) state: Option<&'a Path>,
}

impl Default for ReplayRegistry {
    fn default() -> Self {
        Self::with_seeds([random_seed(), random_seed()])
    }
}

impl ReplayRegistry {
    fn with_seeds(seeds: [[u8; 16]; 2]) -> Self {
        Self {
            hash_keys: seeds.map(SipKey::new),
            seeds: Secret::new(seeds),
            known: Mutex::default(),
            ssr: SsrStores::default(),
            gate: Arc::default(),
            succeeded_at: None,
        }
    }

    /// Creates the registry of a process that continues the states of another one.
    pub(super) fn with_inherited(
        seeds: [[u8; 16]; 2],
        states: HashMap<StateId, ReplayState>,
    ) -> Self {
        let last_used = system::monotonic_now();
        let entry = |(id, state)| (id, RegistryEntry { state, last_used });
        Self {
            known: Mutex::new(states.into_iter().map(entry).collect()),
            succeeded_at: Some(system::unix_now()),
            ..Self::with_seeds(seeds)
        }
    }

    /// Returns all states.
    pub(super) fn states(&self) -> Vec<(StateId, ReplayState)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let each = known.iter();
        each.map(|(id, entry)| (*id, entry.state.clone())).collect()
    }

    /// Returns the ID of a name.
    pub(super) fn id_of(&self, name: String) -> StateId {
        let name = Secret::new(name.into_bytes());
        let keys = self.hash_keys.each_ref();
        keys.map(|key| key.hash_bytes(name.expose()))
    }

    /// Returns the state with this name, which any listener may have created; `started` is the start time
    /// of the process.
    pub(super) fn state_for(&self, name: &ReplayStateName<'_>, started: UnixTime) -> ReplayState {
        let text = format!(
            "{:?} {:?} {:?} {:?} {:?}",
            name.method, name.restart, name.relay, name.state, name.key
        );
        let place = self.id_of(text);
        let now = system::monotonic_now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, known| {
            if known.state.is_used() {
                known.last_used = now;
            }
            now.duration_since(known.last_used) < UNUSED_TTL
        });
        let known = known.entry(place).or_insert_with(|| RegistryEntry {
            state: ReplayState::new(place, name, self.succeeded_at.unwrap_or(started)),
            last_used: now,
        });
        known.last_used = now;
        if let (Some(path), None) = (name.state, &known.state.file) {
            // An inherited state, whose salts are newer than those of the file.
            let file = SaltsFile::with_salts(PathBuf::from(path), known.state.salts.clone());
            known.state.file = Some(Arc::new(file));
        }
        known.state.clone()
    }
}

impl ReplayState {
    fn new(id: StateId, name: &ReplayStateName<'_>, started: UnixTime) -> Self {
        let salts = SaltPool::new(random_seed(), started, name.restart);
        let (salts, file) = match name.state {
            Some(path) => {
                let file = Arc::new(SaltsFile::open(PathBuf::from(path), salts));
                (file.salts(), Some(file))
            }
            None => (Arc::new(salts), None),
        };
        Self {
            id,
            salts,
            packets: Arc::new(SaltPool::new(
                random_seed(),
                started,
                RestartPolicy::Lenient,
            )),
            sessions: Arc::new(SessionRegistry::new(ProcessStart::new(
                started,
                name.restart,
            ))),
            file,
        }
    }

    /// Creates a state from the parts of another process's.
    pub(super) fn inherited(
        id: StateId,
        salts: SaltPool,
        packets: SaltPool,
        sessions: SessionRegistry,
    ) -> Self {
        Self {
            id,
            salts: Arc::new(salts),
            packets: Arc::new(packets),
            sessions: Arc::new(sessions),
            file: None,
        }
    }

    /// Returns the claims of its salts of connections; `scope` is that of claims at other nodes of a fleet.
    pub(super) fn claims(
        &self,
        replays: &ReplayRegistry,
        scope: Option<ClaimScope>,
    ) -> Arc<FilterClaims> {
        replays.claims(self.id, ReplayFilter::Salts(self.salts.clone()), scope)
    }

    /// Returns true if a listener uses any part of it.
    fn is_used(&self) -> bool {
        // The salts file has a reference too.
        let own = 1 + usize::from(self.file.is_some());
        Arc::strong_count(&self.salts) > own
            || Arc::strong_count(&self.packets) > 1
            || Arc::strong_count(&self.sessions) > 1
    }
}

fn random_seed() -> [u8; 16] {
    let mut seed = [0; 16];
    SystemRng.fill(&mut seed);
    seed
}
