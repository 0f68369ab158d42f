//! Which connector a request goes to.

use std::sync::{Arc, PoisonError, RwLock};

use adit_config::Match;
use adit_wire::Target;

use crate::connector::Connector;

/// The rules of a route, first match wins, and the chain for everything else. They can be replaced
/// while connections are open.
pub struct Router(RwLock<Signs>);

struct Signs {
    now: Ways,
    /// The ways before the last change: plugins that open connections go through live on in them.
    before: Option<Ways>,
}

struct Ways {
    rules: Vec<(Vec<Match>, Arc<dyn Connector>)>,
    otherwise: Arc<dyn Connector>,
}

impl Router {
    /// A router from its rules.
    #[must_use]
    pub fn new(
        rules: Vec<(Vec<Match>, Arc<dyn Connector>)>,
        otherwise: Arc<dyn Connector>,
    ) -> Self {
        let now = Ways { rules, otherwise };
        Self(RwLock::new(Signs { now, before: None }))
    }

    /// The connector for `target`.
    #[must_use]
    pub fn pick(&self, target: &Target) -> Arc<dyn Connector> {
        let signs = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let ways = &signs.now;
        ways.rules
            .iter()
            .find(|(matches, _)| matches.iter().any(|m| m.matches(target)))
            .map_or(&ways.otherwise, |(_, connector)| connector)
            .clone()
    }

    /// Requests go where `other` would send them from now on.
    pub(crate) fn replace(&self, other: Self) {
        let other = other.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut signs = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut signs.now, other.now);
        let oldest = signs.before.replace(before);
        // Ending plugins needs no lock.
        drop(signs);
        drop(oldest);
    }
}
