//! Which connector a request goes to.

use std::sync::Arc;

use adit_config::Match;
use adit_wire::Target;

use crate::connector::Connector;

/// The rules of a route, first match wins, and the chain for everything else.
pub struct Router {
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
        Self { rules, otherwise }
    }

    /// The connector for `target`.
    #[must_use]
    pub fn pick(&self, target: &Target) -> &Arc<dyn Connector> {
        self.rules
            .iter()
            .find(|(matches, _)| matches.iter().any(|m| m.matches(target)))
            .map_or(&self.otherwise, |(_, connector)| connector)
    }
}
