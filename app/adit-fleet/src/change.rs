//! Changes of the realm: their numbers, and what the store knows of them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::sealed_record::SealedRecord;

/// The number of a change. The first change of a realm has number 1.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct ChangeId(pub u64);

impl ChangeId {
    /// Returns the number of the following change.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the number of the `n`th change after this one.
    #[must_use]
    pub const fn plus(self, n: u64) -> Self {
        Self(self.0.saturating_add(n))
    }
}

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The operation of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeOp {
    /// A user was added or replaced.
    Put,
    /// A user was deleted.
    Delete,
    /// The sessions of a user end.
    Kick,
    /// An operation for a node.
    Node,
    /// The policy of the realm was replaced.
    Policy,
    /// All users were written anew from the table of a node. It carries no record.
    Restored,
}

impl ChangeOp {
    const NAMES: [(&'static str, Self); 6] = [
        ("put", Self::Put),
        ("del", Self::Delete),
        ("kick", Self::Kick),
        ("node", Self::Node),
        ("policy", Self::Policy),
        ("restored", Self::Restored),
    ];

    /// Returns the name in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Delete => "del",
            Self::Kick => "kick",
            Self::Node => "node",
            Self::Policy => "policy",
            Self::Restored => "restored",
        }
    }

    /// Returns the operation with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.into_iter();
        names.find(|(known, _)| *known == name).map(|(_, op)| op)
    }
}

/// A change to be written. [`RecordCipher`](crate::RecordCipher) makes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeRequest {
    /// The operation.
    pub op: ChangeOp,
    /// The number of the user or node.
    pub target: u32,
    /// The user, or the proof that an operator of the realm has requested this.
    pub sealed: SealedRecord,
}

/// A change that was read from the store, which may have altered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The number.
    pub number: ChangeId,
    /// The operation; `None` if this adit does not know it.
    pub op: Option<ChangeOp>,
    /// The number of the user or node.
    pub target: u32,
    /// The user, or the proof of the order.
    pub sealed: SealedRecord,
}

/// The answer of a store to the question for changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeBatch {
    /// The number of the last change in the store.
    pub head: ChangeId,
    /// Changes after the requested number, in their order. The first ones may be missing if the log was shortened;
    /// [`Feed`](crate::Feed) notices.
    pub changes: Vec<Change>,
}

/// All users of the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The number of the last change before the users were read. Records with higher numbers may be among them.
    pub version: ChangeId,
    /// The users by number, in no order.
    pub users: Vec<(u32, SealedRecord)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_names() {
        for (name, op) in ChangeOp::NAMES {
            assert_eq!(ChangeOp::from_name(name), Some(op));
            assert_eq!(op.name(), name);
        }
        assert_eq!(ChangeOp::from_name("drop"), None);
    }
}
