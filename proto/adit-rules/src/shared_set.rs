//! Sets that can be replaced while they are in use.

use alloc::sync::Arc;
use core::net::IpAddr;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use crate::request::{Addresses, Request};
use crate::rule_set::{Outcome, RuleSet};

/// A set that several rules and threads share. A replaced set applies to the next decision of all of them.
#[derive(Debug, Clone, Default)]
pub struct SharedRuleSet(Arc<RwLock<Arc<RuleSet>>>);

impl SharedRuleSet {
    /// Replaces the set, for all clones.
    pub fn replace(&self, set: RuleSet) {
        let set = Arc::new(set);
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = core::mem::replace(&mut *current, set);
        drop(current);
        // A large set takes a while to free: no decision waits for it.
        drop(before);
    }

    /// Returns the current set.
    #[must_use]
    pub fn current(&self) -> Arc<RuleSet> {
        self.read().clone()
    }

    /// Compares a request; see [`RuleSet::evaluate`].
    #[must_use]
    pub fn evaluate(&self, request: &Request<'_>, addresses: Addresses<'_>) -> Outcome {
        self.read().evaluate(request, addresses)
    }

    /// True if an address alone matches; see [`RuleSet::contains_address`].
    #[must_use]
    pub fn contains_address(&self, ip: IpAddr) -> bool {
        self.read().contains_address(ip)
    }

    /// A panic of another thread leaves the set whole.
    fn read(&self) -> RwLockReadGuard<'_, Arc<RuleSet>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<RuleSet> for SharedRuleSet {
    fn from(set: RuleSet) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(set))))
    }
}
