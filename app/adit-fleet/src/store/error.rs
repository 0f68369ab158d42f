//! Errors of stores.

use std::fmt;

use crate::change::ChangeId;

/// The kind of a [`StoreError`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store cannot be reached, has not answered in time, or was not asked because it did not answer before.
    Unreachable,
    /// The store server does not accept the user or the password.
    WrongPassword,
    /// The user of the store server may not do this.
    Denied {
        /// The command, if the server names it.
        command: Option<String>,
    },
    /// The store server has no memory left for writes.
    OutOfMemory,
    /// The server is a replica, or starts: it cannot be written to now.
    ReadOnly,
    /// The store has no such realm, or one with another key.
    WrongRealm,
    /// The store has this realm already.
    RealmExists,
    /// Another user or node has the name.
    NameTaken,
    /// The realm has changed in the meantime.
    Conflict {
        /// The number of the last change.
        head: ChangeId,
    },
    /// There is no such user, node or token.
    Gone,
    /// The store has answered something unexpected.
    Protocol,
    /// The address or a setting of the store is wrong.
    Configuration,
    /// The file of the store cannot be read or written.
    File,
}

/// The error of a call to a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}{}{detail}", separator(.detail))]
pub struct StoreError {
    /// The kind.
    pub kind: StoreErrorKind,
    /// The words of the server or the system, which contain no secrets; may be empty.
    pub detail: String,
}

fn separator(detail: &str) -> &'static str {
    match detail {
        "" => "",
        _ => ": ",
    }
}

impl fmt::Display for StoreErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "the store does not answer",
            Self::WrongPassword => "the store server does not accept the user or the password",
            Self::Denied {
                command: Some(command),
            } => {
                return write!(f, "the user of the store server may not call `{command}`");
            }
            Self::Denied { command: None } => "the user of the store server may not do this",
            Self::OutOfMemory => "the store server has no memory left",
            Self::ReadOnly => "the store server cannot be written to now",
            Self::WrongRealm => "the store does not have this realm",
            Self::RealmExists => "the store has a realm with this name already",
            Self::NameTaken => "the name is taken",
            Self::Conflict { head } => {
                return write!(f, "the realm has changed: its last change is number {head}");
            }
            Self::Gone => "there is no such entry",
            Self::Protocol => "the store has answered something unexpected",
            Self::Configuration => "wrong setting of the store",
            Self::File => "the file of the store cannot be used",
        })
    }
}

impl StoreError {
    /// Creates an error.
    pub fn new(kind: StoreErrorKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
        }
    }

    /// Returns true if the same call may succeed later without a change: the node works on, and repeats it.
    #[must_use]
    pub const fn is_outage(&self) -> bool {
        matches!(
            self.kind,
            StoreErrorKind::Unreachable | StoreErrorKind::OutOfMemory | StoreErrorKind::ReadOnly
        )
    }
}

impl From<StoreErrorKind> for StoreError {
    fn from(kind: StoreErrorKind) -> Self {
        Self::new(kind, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_its_cause() {
        let denied = StoreErrorKind::Denied {
            command: Some("evalsha".to_owned()),
        };
        let error = StoreError::new(denied, "");
        assert_eq!(
            error.to_string(),
            "the user of the store server may not call `evalsha`"
        );
        let error = StoreError::new(StoreErrorKind::Unreachable, "connection refused");
        assert_eq!(
            error.to_string(),
            "the store does not answer: connection refused"
        );
        assert!(error.is_outage());
    }
}
