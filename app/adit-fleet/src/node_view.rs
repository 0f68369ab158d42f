//! Nodes as they are shown: by commands, in their JSON documents, and by the API of each node.

use serde::Serialize;

use crate::node_status::{NodeEntry, NodeState};

/// Clock difference, in seconds, from which a node has a fault.
const CLOCK_FAULT: f64 = 5.0;
/// Lag, in seconds, from which a node is behind.
const LAG_FAULT: f64 = 5.0;

/// The most important problem of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum NodeProblem {
    /// It sends no heartbeat.
    Missing,
    /// It reports a fault.
    Fault,
    /// Its clock differs by more than five seconds from that of the store.
    Clock,
    /// It applies changes more than five seconds late.
    Lag,
}

/// A node as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeView {
    /// The number.
    pub id: u32,
    /// The name.
    pub name: String,
    /// `active`, `draining`, `drained`, or `missing` if it sends no heartbeat.
    pub state: String,
    /// The version of adit; none while it is missing.
    pub version: Option<String>,
    /// Seconds since the start of the process.
    pub uptime: Option<u64>,
    /// Open sessions.
    pub sessions: u64,
    /// Payload bytes per second from clients.
    pub up_rate: u64,
    /// Payload bytes per second to clients.
    pub down_rate: u64,
    /// Users in its table.
    pub users: u64,
    /// The number of the last change of users that it has applied.
    pub change: u64,
    /// The delay of the last change.
    pub lag_seconds: f64,
    /// Its clock minus that of the store.
    pub clock_offset_seconds: f64,
    /// The share of clients that subscriptions send to it.
    pub weight: u32,
    /// A fault that it reports.
    pub fault: Option<String>,
    /// Its most important problem.
    pub problem: Option<NodeProblem>,
}

impl NodeView {
    /// Returns the view of a node at a time in seconds since 1970.
    #[must_use]
    pub fn new(entry: &NodeEntry, now: u64) -> Self {
        let record = &entry.record;
        let mut view = Self {
            id: entry.id,
            name: record.name.clone(),
            state: "missing".to_owned(),
            weight: record.weight,
            problem: Some(NodeProblem::Missing),
            ..Self::default()
        };
        let Some(status) = &entry.status else {
            return view;
        };
        view.state = match (record.state, status.state) {
            (_, NodeState::Drained) => "drained",
            (NodeState::Active, NodeState::Active) => "active",
            // What the operator has requested holds, even if the node has not yet said so.
            _ => "draining",
        }
        .to_owned();
        view.version = Some(status.version.clone());
        view.uptime = Some(now.saturating_sub(status.started_unix));
        view.sessions = status.sessions;
        view.up_rate = status.up_per_second;
        view.down_rate = status.down_per_second;
        view.users = status.users;
        view.change = status.change;
        view.lag_seconds = status.lag_ms as f64 / 1e3;
        view.clock_offset_seconds = status.clock_offset_ms as f64 / 1e3;
        view.fault.clone_from(&status.degraded);
        view.problem = if view.fault.is_some() {
            Some(NodeProblem::Fault)
        } else if view.is_clock_off() {
            Some(NodeProblem::Clock)
        } else if view.lag_seconds > LAG_FAULT {
            Some(NodeProblem::Lag)
        } else {
            None
        };
        view
    }

    /// Returns true if the node sends heartbeats.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state != "missing"
    }

    /// Returns true if its clock differs by more than five seconds from that of the store.
    #[must_use]
    pub fn is_clock_off(&self) -> bool {
        self.clock_offset_seconds.abs() > CLOCK_FAULT
    }

    /// Returns true if the node is up, reports no fault and is not behind.
    #[must_use]
    pub const fn is_well(&self) -> bool {
        self.problem.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_status::{NodeRecord, NodeStatus};

    fn entry(requested: NodeState, reported: Option<NodeState>) -> NodeEntry {
        NodeEntry {
            id: 7,
            record: NodeRecord {
                name: "paris".to_owned(),
                state: requested,
                ..NodeRecord::default()
            },
            status: reported.map(|state| NodeStatus {
                state,
                started_unix: 100,
                clock_offset_ms: -250,
                lag_ms: 12,
                ..NodeStatus::default()
            }),
        }
    }

    #[test]
    fn the_state_is_the_stricter_one() {
        let state = |requested, reported| NodeView::new(&entry(requested, reported), 160).state;
        assert_eq!(state(NodeState::Active, None), "missing");
        assert_eq!(state(NodeState::Active, Some(NodeState::Active)), "active");
        assert_eq!(
            state(NodeState::Draining, Some(NodeState::Active)),
            "draining"
        );
        assert_eq!(
            state(NodeState::Draining, Some(NodeState::Drained)),
            "drained"
        );
    }

    #[test]
    fn the_most_important_problem_is_named() {
        let seen = |change: fn(&mut NodeStatus)| {
            let mut entry = entry(NodeState::Active, Some(NodeState::Active));
            change(entry.status.as_mut().unwrap());
            NodeView::new(&entry, 160).problem
        };
        assert_eq!(seen(|_| ()), None);
        assert_eq!(seen(|status| status.lag_ms = 5001), Some(NodeProblem::Lag));
        let clock =
            |status: &mut NodeStatus| (status.lag_ms, status.clock_offset_ms) = (6000, -5001);
        assert_eq!(seen(clock), Some(NodeProblem::Clock));
        let fault = |status: &mut NodeStatus| {
            status.clock_offset_ms = 9000;
            status.degraded = Some("full".to_owned());
        };
        assert_eq!(seen(fault), Some(NodeProblem::Fault));
        let gone = NodeView::new(&entry(NodeState::Active, None), 160);
        assert_eq!(gone.problem, Some(NodeProblem::Missing));
        assert_eq!(serde_json::to_value(gone.problem).unwrap(), "missing");
    }

    #[test]
    fn a_document_has_the_fields_in_camel_case() {
        let view = NodeView::new(&entry(NodeState::Active, Some(NodeState::Active)), 160);
        assert!(view.is_well());
        let json = serde_json::to_value(&view).unwrap();
        assert_eq!(json["uptime"], 60);
        assert_eq!(json["lagSeconds"], 0.012);
        assert_eq!(json["clockOffsetSeconds"], -0.25);
    }
}
