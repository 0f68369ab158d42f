//! Errors of the client crate as errors of stores.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::store::{StoreError, StoreErrorKind};

/// The words of Redis up to 7.0 for a command that a script may not call.
const INSIDE_SCRIPT: &str = "executing the script can't run this command";
/// The words of Valkey and of later Redis for a command, which they name, or a key.
const INSIDE_SCRIPT_NAMED: &str = "ACL failure in script";

/// Maximum length of the words of a server, in characters.
const MAX_DETAIL: usize = 300;

/// Returns the error of a store, and nothing of arguments.
pub(super) fn to_store_error(error: &RedisError) -> StoreError {
    let code = error.code().unwrap_or_default().to_owned();
    let detail = error
        .detail()
        .map_or_else(|| error.to_string(), str::to_owned);
    let detail: String = detail.chars().take(MAX_DETAIL).collect();
    let kind = match (error.kind(), code.as_str()) {
        (ErrorKind::Server(ServerErrorKind::NoPerm), _) | (_, "NOPERM") => StoreErrorKind::Denied {
            command: quoted(&detail).map(str::to_owned),
        },
        _ if detail.contains(INSIDE_SCRIPT_NAMED) => StoreErrorKind::Denied {
            command: quoted(&detail).map(str::to_owned),
        },
        // The words for a command inside a script, which the server does not name.
        _ if detail.contains(INSIDE_SCRIPT) => StoreErrorKind::Denied { command: None },
        (ErrorKind::AuthenticationFailed, _) | (_, "WRONGPASS" | "NOAUTH") => {
            StoreErrorKind::WrongPassword
        }
        (_, "OOM") => StoreErrorKind::OutOfMemory,
        (
            ErrorKind::Server(
                ServerErrorKind::ReadOnly
                | ServerErrorKind::BusyLoading
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::TryAgain,
            ),
            _,
        )
        | (_, "MISCONF" | "NOREPLICAS") => StoreErrorKind::ReadOnly,
        (
            ErrorKind::Io
            | ErrorKind::Parse
            | ErrorKind::ClusterConnectionNotFound
            | ErrorKind::EmptySentinelList
            | ErrorKind::MasterNameNotFoundBySentinel
            | ErrorKind::NoValidReplicasFoundBySentinel,
            _,
        ) => StoreErrorKind::Unreachable,
        (ErrorKind::InvalidClientConfig, _) => StoreErrorKind::Configuration,
        _ if detail.contains("OOM command not allowed") => StoreErrorKind::OutOfMemory,
        _ => StoreErrorKind::Protocol,
    };
    let detail = match kind {
        StoreErrorKind::Denied { command: Some(_) } | StoreErrorKind::OutOfMemory => String::new(),
        _ if code.is_empty() => detail,
        _ => format!("{code} {detail}"),
    };
    StoreError::new(kind, detail)
}

/// Returns true if the connection cannot be used any more.
pub(super) fn breaks_connection(error: &RedisError) -> bool {
    error.is_unrecoverable_error()
        || error.is_io_error()
        || matches!(
            error.kind(),
            // The server has become a replica: the sentinels know its successor.
            ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown)
        )
}

/// Returns true if the server does not have a script any more.
pub(super) fn lacks_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Returns true if a command inside a script was refused.
pub(super) fn is_inside_script(error: &StoreError) -> bool {
    error.detail.contains(INSIDE_SCRIPT)
}

/// Returns the first text in single quotes.
fn quoted(text: &str) -> Option<&str> {
    text.split('\'')
        .nth(1)
        .filter(|command| !command.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_denied_command_is_named() {
        let words = "this user has no permissions to run the 'evalsha' command";
        assert_eq!(quoted(words), Some("evalsha"));
        assert_eq!(quoted("no permissions to access one of the keys"), None);
    }

    #[test]
    fn commands_inside_scripts_are_refused_in_two_ways() {
        let refusal = |words: &'static str| {
            let error = RedisError::from((ErrorKind::Extension, "ERR", words.to_owned()));
            to_store_error(&error)
        };
        let valkey = refusal(
            "ACL failure in script: User adit-main-3 has no permissions to run the 'exists' command \
             script: on @user_script:3.",
        );
        let command = Some("exists".to_owned());
        assert_eq!(valkey.kind, StoreErrorKind::Denied { command });
        let redis = refusal("The user executing the script can't run this command or subcommand");
        assert_eq!(redis.kind, StoreErrorKind::Denied { command: None });
        assert!(is_inside_script(&redis) && !is_inside_script(&valkey));
    }
}
