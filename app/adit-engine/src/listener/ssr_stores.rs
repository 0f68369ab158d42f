//! The replay protection of ShadowsocksR listeners, for the handover to another process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use adit_crypto::Secret;
use adit_obfs::ServerState;
use adit_shadowsocksr::ReplayStore;

use super::replay_state::StateId;

/// The replay stores of a process, and the states of its obfs. Each belongs to one listener.
#[derive(Debug, Default)]
pub(super) struct SsrStores {
    messages: Mutex<HashMap<StateId, Weak<ReplayStore>>>,
    hellos: Mutex<HashMap<StateId, Weak<ServerState>>>,
    /// Those of the process that this one succeeds, until a listener takes them.
    inherited: Mutex<InheritedStores>,
}

/// The stores that a process continues.
#[derive(Debug, Default)]
pub(super) struct InheritedStores {
    pub(super) messages: HashMap<StateId, Arc<ReplayStore>>,
    /// Snapshots of the hellos of obfs.
    pub(super) hellos: HashMap<StateId, Secret<Vec<u8>>>,
}

impl SsrStores {
    pub(super) fn with_inherited(inherited: InheritedStores) -> Self {
        Self {
            inherited: Mutex::new(inherited),
            ..Self::default()
        }
    }

    /// Returns the inherited store with this name, or the one that `create` returns.
    pub(super) fn take_or_create(
        &self,
        id: StateId,
        create: impl FnOnce() -> ReplayStore,
    ) -> Arc<ReplayStore> {
        let inherited = lock(&self.inherited).messages.remove(&id);
        let store = inherited.unwrap_or_else(|| Arc::new(create()));
        record(&self.messages, id, &store);
        store
    }

    /// Returns the state of obfs that `create` returns, which continues the inherited hellos with this name.
    pub(super) fn create_obfs<E>(
        &self,
        id: StateId,
        create: impl FnOnce(Option<&[u8]>) -> Result<ServerState, E>,
    ) -> Result<Arc<ServerState>, E> {
        let inherited = lock(&self.inherited).hellos.remove(&id);
        let hellos = inherited.as_ref().map(|hellos| hellos.expose().as_slice());
        let state = Arc::new(create(hellos)?);
        record(&self.hellos, id, &state);
        Ok(state)
    }

    /// Returns all stores that listeners use.
    pub(super) fn messages(&self) -> Vec<(StateId, Arc<ReplayStore>)> {
        in_use(&self.messages)
    }

    /// Returns all states of obfs that listeners use.
    pub(super) fn hellos(&self) -> Vec<(StateId, Arc<ServerState>)> {
        in_use(&self.hellos)
    }
}

type Known<T> = Mutex<HashMap<StateId, Weak<T>>>;

fn record<T>(known: &Known<T>, id: StateId, store: &Arc<T>) {
    let mut known = lock(known);
    known.retain(|_, store| store.strong_count() > 0);
    known.insert(id, Arc::downgrade(store));
}

fn in_use<T>(known: &Known<T>) -> Vec<(StateId, Arc<T>)> {
    let known = lock(known);
    let each = known.iter();
    each.filter_map(|(id, store)| Some((*id, store.upgrade()?)))
        .collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
