//! The failures of calls to a store, each with one hint on what to do.

use adit_cli::{Failure, FailureCode};
use adit_config::text::sanitize_for_terminal;
use adit_fleet::{RecordError, StoreError, StoreErrorKind};

/// Returns the failure of a call to the store at `at`.
pub(super) fn to_failure(why: &StoreError, at: &str) -> Failure {
    // The words of another process.
    let what = sanitize_for_terminal(&format!("{at}: {why}"));
    let (code, hint) = match &why.kind {
        StoreErrorKind::Unreachable => (
            FailureCode::Network,
            "check that the store server runs, and that this machine reaches its port or socket",
        ),
        StoreErrorKind::WrongPassword => (
            FailureCode::Key,
            "the membership has a login that the store server does not know: a server without an ACL file \
             forgets logins when it restarts (the runbook says how to create them again)",
        ),
        StoreErrorKind::Denied { .. } => (
            FailureCode::Failure,
            "an operator's membership may do more than a node's; `ACL SETUSER USER +COMMAND` at the store \
             server grants a command",
        ),
        StoreErrorKind::OutOfMemory => (
            FailureCode::Failure,
            "raise `maxmemory` of the store server, whose `maxmemory-policy` has to be `noeviction`",
        ),
        StoreErrorKind::ReadOnly => (
            FailureCode::Network,
            "the address is that of a replica, or a failover is under way: use the primary, or \
             `valkey+sentinel://`",
        ),
        StoreErrorKind::WrongRealm => (
            FailureCode::Config,
            "use the membership of this realm; if the store server was flushed, `adit fleet restore` writes \
             the users back",
        ),
        StoreErrorKind::RealmExists => (
            FailureCode::Failure,
            "`adit fleet token` adds nodes to it, `--realm NAME` creates another one",
        ),
        StoreErrorKind::NameTaken => (FailureCode::Failure, "choose another name"),
        StoreErrorKind::Conflict { .. } => (
            FailureCode::Failure,
            "others change the realm at the same time: try again",
        ),
        StoreErrorKind::Gone => (
            FailureCode::Failure,
            "`adit fleet status` lists the nodes, `adit user list` the users",
        ),
        StoreErrorKind::Configuration => (
            FailureCode::Config,
            "the forms are valkey://HOST:PORT, rediss://HOST:PORT, unix:///PATH, \
             valkey+sentinel://HOST,HOST/SERVICE and valkey+cluster://HOST,HOST",
        ),
        StoreErrorKind::File => (FailureCode::Failure, "check the file and its permissions"),
        _ => (
            FailureCode::Failure,
            "the store server has to be Valkey 7.2 or newer, or Redis 6.2 or newer",
        ),
    };
    Failure::new(code, what).with_hint(hint)
}

/// Returns the failure of a record that cannot be sealed or opened.
pub(super) fn to_record_failure(why: &RecordError, what: &str) -> Failure {
    let hint = match why {
        RecordError::Forged => {
            "someone has changed the store server's data, or restored that of another realm"
        }
        RecordError::NewerFormat(_) => "use the newest adit of the fleet",
        _ => "names and passwords must not be empty or too long",
    };
    Failure::new(FailureCode::Failure, format!("{what}: {why}")).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_code() {
        for (kind, code) in [
            (StoreErrorKind::Unreachable, FailureCode::Network),
            (StoreErrorKind::WrongPassword, FailureCode::Key),
            (StoreErrorKind::WrongRealm, FailureCode::Config),
            (StoreErrorKind::Configuration, FailureCode::Config),
            (StoreErrorKind::NameTaken, FailureCode::Failure),
            (
                StoreErrorKind::Denied {
                    command: Some("evalsha".to_owned()),
                },
                FailureCode::Failure,
            ),
        ] {
            let why = StoreError::new(kind, "a\u{1b}b");
            let failure = to_failure(&why, "valkey://s");
            assert_eq!(failure.code(), code, "{why}");
            let line = failure.to_log_line();
            assert!(
                line.contains("valkey://s: ") && !line.contains('\u{1b}'),
                "{line}"
            );
        }
    }
}
