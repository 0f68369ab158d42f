//! The addresses under which clients fetch subscriptions, as nodes report them.
//!
//! Reports are not sealed, and someone who learns a user's address learns the user's keys: a store server must not be able
//! to put an address of its own there. Each one has a proof, which only members of the realm can make.

use adit_crypto::{KdfContext, ct_eq};
use serde::{Deserialize, Serialize};

use crate::node_status::NodeEntry;
use crate::seal::RecordCipher;

/// Maximum length of an address, in bytes.
const MAX_ADDRESS: usize = 512;

/// The address of a node's subscriptions, without the path of a user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionAddress {
    /// `https://HOST`, with a port or the start of a path if there is one.
    url: String,
    /// The proof that a member of the realm has written it for this node.
    proof: [u8; 16],
}

impl SubscriptionAddress {
    /// Creates the address that node `node` reports.
    #[must_use]
    pub fn new(url: &str, node: u32, cipher: &RecordCipher) -> Self {
        Self {
            url: url.to_owned(),
            proof: proof(url, node, cipher),
        }
    }

    /// Returns the address if a member has written it for this node.
    fn of_node(&self, node: u32, cipher: &RecordCipher) -> Option<&str> {
        let is_plain = self.url.len() <= MAX_ADDRESS
            && self.url.starts_with("https://")
            && self.url.bytes().all(|byte| byte.is_ascii_graphic());
        (is_plain && ct_eq(&proof(&self.url, node, cipher), &self.proof)).then_some(&self.url)
    }
}

fn proof(url: &str, node: u32, cipher: &RecordCipher) -> [u8; 16] {
    let content = [&node.to_be_bytes(), url.as_bytes()].concat();
    cipher.digest(
        &KdfContext::new("adit fleet subscription address v1"),
        &content,
    )
}

/// Returns the addresses of all nodes that report one, each once: first those of nodes that clients may choose.
#[must_use]
pub fn subscription_addresses(nodes: &[NodeEntry], cipher: &RecordCipher) -> Vec<String> {
    let mut ordered: Vec<&NodeEntry> = nodes.iter().collect();
    ordered.sort_by_key(|node| !node.is_listed());
    let mut found: Vec<String> = Vec::new();
    for node in ordered {
        let reported = node
            .status
            .as_ref()
            .and_then(|it| it.subscriptions.as_ref());
        let address = reported.and_then(|address| address.of_node(node.id, cipher));
        if let Some(address) = address.filter(|new| !found.iter().any(|known| known == new)) {
            found.push(address.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node_status::{NodeRecord, NodeState, NodeStatus};
    use crate::realm_key::RealmKey;

    fn cipher(key: u8) -> RecordCipher {
        RecordCipher::new("main", &RealmKey::new([key; 32]))
    }

    fn node(id: u32, address: Option<SubscriptionAddress>) -> NodeEntry {
        NodeEntry {
            id,
            record: NodeRecord::default(),
            status: Some(NodeStatus {
                id,
                subscriptions: address,
                ..NodeStatus::default()
            }),
        }
    }

    #[test]
    fn each_address_is_listed_once_and_drained_nodes_last() {
        let at = |id, url: &str| node(id, Some(SubscriptionAddress::new(url, id, &cipher(1))));
        let mut drained = at(1, "https://a.example");
        drained.record.state = NodeState::Draining;
        let nodes = [
            drained,
            node(2, None),
            at(3, "https://b.example/x"),
            at(4, "https://b.example/x"),
        ];
        let found = subscription_addresses(&nodes, &cipher(1));
        assert_eq!(found, ["https://b.example/x", "https://a.example"]);
        let text = serde_json::to_string(nodes[0].status.as_ref().unwrap()).unwrap();
        let read: NodeStatus = serde_json::from_str(&text).unwrap();
        assert_eq!(Some(&read), nodes[0].status.as_ref());
    }

    #[test]
    fn the_store_cannot_write_an_address() {
        let good = SubscriptionAddress::new("https://a.example", 1, &cipher(1));
        let other = SubscriptionAddress {
            url: "https://evil.example".to_owned(),
            ..good.clone()
        };
        let of_other_realm = SubscriptionAddress::new("https://a.example", 1, &cipher(2));
        let plain = SubscriptionAddress::new("http://a.example", 1, &cipher(1));
        let escape = SubscriptionAddress::new("https://a\u{1b}[2J", 1, &cipher(1));
        let long = format!("https://{}", "a".repeat(MAX_ADDRESS));
        let long = SubscriptionAddress::new(&long, 1, &cipher(1));
        for wrong in [other, of_other_realm, plain, escape, long] {
            assert!(subscription_addresses(&[node(1, Some(wrong))], &cipher(1)).is_empty());
        }
        // Nor move one to another node.
        assert!(subscription_addresses(&[node(2, Some(good))], &cipher(1)).is_empty());
    }
}
