//! Mapping of SSH errors to the causes that a direct connection would have had, so that the client learns
//! the same.

use adit_ssh::{ConnectError, OpenError};
use adit_ssh_proto::SshError;
use adit_ssh_proto::connection::OpenFailure;

use crate::Cause;

/// Returns the cause of a failed connection.
pub(super) fn no_session(why: &ConnectError) -> Cause {
    match why {
        ConnectError::Io(below) => Cause::of(below),
        ConnectError::Ended(_) => Cause::Closed,
        ConnectError::Timeout { .. } => Cause::TimedOut,
        ConnectError::Auth { .. } => Cause::LoginRefused,
        ConnectError::HostKey(_) => Cause::Untrusted,
        ConnectError::Ssh(SshError::NoCommon { .. }) => Cause::Incompatible,
        _ => Cause::Malformed,
    }
}

/// Returns the cause of a refused channel.
pub(super) fn no_channel(why: &OpenError) -> Cause {
    match why {
        OpenError::Refused { reason, text } => match reason {
            OpenFailure::Prohibited => Cause::DeniedByServer,
            OpenFailure::ConnectFailed => told(text),
            OpenFailure::UnknownType => Cause::UnsupportedByServer,
            _ => Cause::FailedAtServer,
        },
        OpenError::End(_) => Cause::ConnectionReset,
        _ => Cause::FailedAtServer,
    }
}

/// Returns the cause for the server's text. OpenSSH passes on the error of its system.
fn told(text: &str) -> Cause {
    let text = text.to_ascii_lowercase();
    let has = |part: &str| text.contains(part);
    if has("timed out") {
        Cause::TimedOut
    } else if has("network is unreachable") {
        Cause::NetworkUnreachable
    } else if has("unknown host") || has("not known") || has("resolve") {
        Cause::UnknownName
    } else if has("no route") {
        Cause::HostUnreachable
    } else {
        Cause::ConnectionRefused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_servers_are_understood() {
        for (text, kind) in [
            ("Connection refused", Cause::ConnectionRefused),
            ("Connection timed out", Cause::TimedOut),
            ("No route to host", Cause::HostUnreachable),
            (
                "unknown host (Name or service not known)",
                Cause::UnknownName,
            ),
            ("Network is unreachable", Cause::NetworkUnreachable),
            ("", Cause::ConnectionRefused),
        ] {
            assert_eq!(told(text), kind, "{text}");
        }
        let refused = |reason| OpenError::Refused {
            reason,
            text: String::new(),
        };
        for (reason, kind) in [
            (OpenFailure::Prohibited, Cause::DeniedByServer),
            (OpenFailure::ConnectFailed, Cause::ConnectionRefused),
            (OpenFailure::UnknownType, Cause::UnsupportedByServer),
        ] {
            assert_eq!(no_channel(&refused(reason)), kind, "{reason:?}");
        }
    }
}
