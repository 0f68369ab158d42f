//! Nodes that stop reporting, and that report again: each change is seen by all nodes, and announced by one.

use std::collections::HashMap;

use crate::node_status::{NodeEntry, NodeState};

/// A node that has stopped reporting, or reports again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeChange {
    /// The number of the node.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// True if it reports again.
    pub is_up: bool,
}

/// Compares the nodes of a realm with those of the last look.
#[derive(Debug, Default)]
pub struct NodeWatch {
    /// True for the nodes that have reported, by their number.
    known: HashMap<u32, bool>,
}

impl NodeWatch {
    /// Returns what has changed since the last look; nothing at the first one. A node that an operator has drained is
    /// expected to stop.
    pub fn observe(&mut self, nodes: &[NodeEntry]) -> Vec<NodeChange> {
        let is_first = self.known.is_empty();
        let mut changes = Vec::new();
        let mut seen = HashMap::with_capacity(nodes.len());
        for node in nodes {
            let is_up = node.status.is_some();
            let was_up = self.known.get(&node.id).copied();
            let is_expected = !is_up && node.record.state != NodeState::Active;
            seen.insert(node.id, is_up || is_expected);
            // A node that is new is no news.
            if was_up.is_some_and(|was_up| was_up != is_up) && !is_expected && !is_first {
                changes.push(NodeChange {
                    id: node.id,
                    name: node.record.name.clone(),
                    is_up,
                });
            }
        }
        self.known = seen;
        changes
    }
}

impl NodeChange {
    /// Returns the name of the event, which is the same at all nodes.
    #[must_use]
    pub fn event_name(&self) -> String {
        let kind = if self.is_up { "up" } else { "down" };
        format!("node.{kind} {}", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_status::{NodeRecord, NodeStatus};

    fn node(id: u32, is_up: bool, state: NodeState) -> NodeEntry {
        NodeEntry {
            id,
            record: NodeRecord {
                name: format!("node-{id}"),
                state,
                ..NodeRecord::default()
            },
            status: is_up.then(NodeStatus::default),
        }
    }

    #[test]
    fn nodes_that_stop_are_reported_unless_they_were_drained() {
        use NodeState::{Active, Draining};
        let mut watch = NodeWatch::default();
        let all = [
            node(1, true, Active),
            node(2, true, Draining),
            node(3, false, Active),
        ];
        assert_eq!(watch.observe(&all), []);
        let changes = watch.observe(&[
            node(1, false, Active),
            node(2, false, Draining),
            node(3, true, Active),
        ]);
        let seen: Vec<(u32, bool)> = changes.iter().map(|it| (it.id, it.is_up)).collect();
        assert_eq!(seen, [(1, false), (3, true)]);
        assert_eq!(
            watch.observe(&[
                node(1, false, Active),
                node(3, true, Active),
                node(4, true, Active)
            ]),
            []
        );
    }

    #[test]
    fn the_events_of_a_node_have_different_names() {
        let down = NodeChange {
            id: 7,
            name: "paris".to_owned(),
            is_up: false,
        };
        let up = NodeChange {
            is_up: true,
            ..down.clone()
        };
        let renamed = NodeChange {
            name: "lyon".to_owned(),
            ..down.clone()
        };
        assert_ne!(down.event_name(), up.event_name());
        assert_eq!(down.event_name(), renamed.event_name());
    }
}
