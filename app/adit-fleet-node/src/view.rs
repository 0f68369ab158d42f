//! The fleet as its nodes see it, for the dashboard of each of them.

use adit_admin::api::{FleetDescription, FleetNodes};
use adit_fleet::NodeView;

use crate::{NodeControl, readiness};

impl FleetNodes for NodeControl {
    fn describe(&self, unix: u64) -> FleetDescription {
        let node = &self.0.shared;
        let nodes = node.documents.nodes();
        let views = nodes.iter().map(|entry| NodeView::new(entry, unix));
        FleetDescription {
            realm: node.node.realm.clone(),
            node: node.node.id,
            users: self.user_count(),
            fault: readiness::fault(node),
            // Names, numbers and lists of them never fail to serialize.
            nodes: views
                .filter_map(|view| serde_json::to_value(view).ok())
                .collect(),
        }
    }
}
