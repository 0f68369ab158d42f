//! The readiness of a node for clients, with its faults.

use std::sync::atomic::Ordering;
use std::time::Duration;

use adit_fleet::NodeState;
use adit_shadowsocks::MAX_CLOCK_SKEW;

use crate::state::Shared;

/// The readiness of a node for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeReadiness {
    /// It is ready.
    Ready,
    /// It serves clients, with this fault.
    Degraded(String),
    /// It should get no clients, for this reason.
    NotReady(String),
}

/// Returns whether the node is ready.
pub(crate) fn readiness(node: &Shared) -> NodeReadiness {
    match node.facts.state() {
        NodeState::Active => {}
        NodeState::Draining => return NodeReadiness::NotReady("draining".to_owned()),
        NodeState::Drained => return NodeReadiness::NotReady("drained".to_owned()),
    }
    let has_synced = node.facts.has_synced.load(Ordering::Relaxed);
    let has_users = has_synced || node.facts.has_cache.load(Ordering::Relaxed);
    if !has_users {
        return NodeReadiness::NotReady("the users of the fleet are not known yet".to_owned());
    }
    if node.settings.require_store && !has_synced {
        let why = "the store of the fleet was not reached yet, which `require_store` demands";
        return NodeReadiness::NotReady(why.to_owned());
    }
    let offset = node.facts.clock_offset_ms.load(Ordering::Relaxed);
    // Clients would be refused.
    if Duration::from_millis(offset.unsigned_abs()) > Duration::from_secs(MAX_CLOCK_SKEW) {
        let why = format!(
            "the clock differs from that of the store by {} s",
            offset / 1000
        );
        return NodeReadiness::NotReady(why);
    }
    fault(node).map_or(NodeReadiness::Ready, NodeReadiness::Degraded)
}

/// Returns the fault because of which the node works with limits.
pub(crate) fn fault(node: &Shared) -> Option<String> {
    if let Some(lost) = node.regression() {
        return Some(format!(
            "the store has lost changes: it has {}, this node has {}",
            lost.found, lost.held
        ));
    }
    if let Some(why) = node.facts.refusal() {
        return Some(format!("the store refuses {why}"));
    }
    if let Some(outage) = node.facts.outage() {
        return Some(format!(
            "the store has not answered for {} s",
            outage.as_secs()
        ));
    }
    if !node.facts.has_synced.load(Ordering::Relaxed) {
        return Some("the users are those of an earlier process".to_owned());
    }
    None
}
