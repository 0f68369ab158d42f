//! Operations that an operator sends to a node through the log of changes.

use serde::{Deserialize, Serialize};

/// An operation for a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "op")]
#[non_exhaustive]
pub enum NodeOp {
    /// Accept no new sessions, and let those that are open finish.
    Drain,
    /// Accept sessions again.
    Undrain,
    /// Continue in a new process, which is started from `program` (if it is absent: the file of the running one).
    Upgrade {
        /// The path of the program on the node.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        program: Option<String>,
    },
    /// Read all users anew; with `accept`, also if the store has lost changes.
    Resync {
        /// True if the operator accepts that users are lost.
        accept: bool,
    },
    /// Replaces the users of a store that has lost changes by those that this node holds.
    Restore,
}

/// The sealed content of an operation.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NodeOrder {
    pub(crate) issued_unix: u64,
    #[serde(flatten)]
    pub(crate) op: NodeOp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_read_back() {
        let ops = [
            NodeOp::Drain,
            NodeOp::Undrain,
            NodeOp::Upgrade { program: None },
            NodeOp::Upgrade {
                program: Some("/opt/adit".to_owned()),
            },
            NodeOp::Resync { accept: true },
            NodeOp::Restore,
        ];
        for op in ops {
            let text = serde_json::to_string(&op).unwrap();
            assert_eq!(serde_json::from_str::<NodeOp>(&text).unwrap(), op, "{text}");
        }
        serde_json::from_str::<NodeOp>(r#"{"op":"explode"}"#).unwrap_err();
    }
}
