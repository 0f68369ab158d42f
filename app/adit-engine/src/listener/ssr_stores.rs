//! The replay stores of ShadowsocksR listeners, for the handover to another process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use adit_shadowsocksr::ReplayStore;

use super::replay_state::StateId;

/// The replay stores of a process. Each belongs to one listener.
#[derive(Debug, Default)]
pub(super) struct SsrStores {
    known: Mutex<HashMap<StateId, Weak<ReplayStore>>>,
    /// Those of the process that this one succeeds, until a listener takes them.
    inherited: Mutex<HashMap<StateId, Arc<ReplayStore>>>,
}

impl SsrStores {
    pub(super) fn with_inherited(stores: HashMap<StateId, Arc<ReplayStore>>) -> Self {
        Self {
            known: Mutex::default(),
            inherited: Mutex::new(stores),
        }
    }

    /// Returns the inherited store with this name, or the one that `create` returns.
    pub(super) fn take_or_create(
        &self,
        id: StateId,
        create: impl FnOnce() -> ReplayStore,
    ) -> Arc<ReplayStore> {
        let inherited = lock(&self.inherited).remove(&id);
        let store = inherited.unwrap_or_else(|| Arc::new(create()));
        let mut known = lock(&self.known);
        known.retain(|_, store| store.strong_count() > 0);
        known.insert(id, Arc::downgrade(&store));
        store
    }

    /// Returns all stores that listeners use.
    pub(super) fn stores(&self) -> Vec<(StateId, Arc<ReplayStore>)> {
        let known = lock(&self.known);
        let each = known.iter();
        each.filter_map(|(id, store)| Some((*id, store.upgrade()?)))
            .collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
