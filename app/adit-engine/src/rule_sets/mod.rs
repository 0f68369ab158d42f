//! Rule sets of a plan: lists of other programs, compiled and shared by all routers.
//!
//! ```text
//! document (file, or stored download) ─▶ RuleSetStore: checksum, compile or load ─▶ RuleSetTable ─▶ Router
//! ```

mod error;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use adit_config::RuleSetConfig;
use adit_rules::{RuleSet, SharedRuleSet};

pub use error::{RuleSetError, RuleSetFailure};
pub use store::{LoadedRuleSet, RuleSetStore, StoredDocument};

/// The rule sets of a plan by name. Clones share the sets.
#[derive(Debug, Clone, Default)]
pub struct RuleSetTable(BTreeMap<String, Arc<SharedRuleSet>>);

impl RuleSetTable {
    /// Loads the sets of a plan whose lists are files or have been downloaded before. Reads files: run it on a
    /// thread that may block.
    ///
    /// # Errors
    ///
    /// All lists that cannot be read.
    pub fn load(
        sets: &[RuleSetConfig],
        store: &RuleSetStore,
    ) -> Result<(Self, Vec<LoadedRuleSet>), Vec<RuleSetError>> {
        let mut table = Self::default();
        let mut loaded = Vec::with_capacity(sets.len());
        let mut errors = Vec::new();
        for config in sets {
            match store.load(config) {
                Ok(found) => {
                    table.insert(&config.name, found.set.clone());
                    loaded.push(found);
                }
                Err(why) => errors.push(why),
            }
        }
        if errors.is_empty() {
            Ok((table, loaded))
        } else {
            Err(errors)
        }
    }

    /// Adds a set, or replaces the one of this name for all routers that use it.
    pub fn insert(&mut self, name: &str, set: RuleSet) {
        match self.0.get(name) {
            Some(shared) => shared.replace(set),
            None => {
                self.0.insert(name.to_owned(), Arc::new(set.into()));
            }
        }
    }

    /// Adds the set that `from` has under this name, and shares it. Returns false if there is none.
    pub fn share_set(&mut self, name: &str, from: &Self) -> bool {
        let Some(shared) = from.0.get(name) else {
            return false;
        };
        self.0.insert(name.to_owned(), shared.clone());
        true
    }

    /// Returns true if this set is shared with `other`.
    pub(crate) fn shares_set(&self, name: &str, other: &Self) -> bool {
        match (self.0.get(name), other.0.get(name)) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            _ => false,
        }
    }

    /// Returns the names of the sets that are not shared with `before`.
    pub(crate) fn names_changed_since<'a>(&'a self, before: &Self) -> BTreeSet<&'a str> {
        let names = self.0.keys().map(String::as_str);
        names
            .filter(|name| !self.shares_set(name, before))
            .collect()
    }

    /// Returns the set of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&SharedRuleSet> {
        self.0.get(name).map(|shared| &**shared)
    }
}
