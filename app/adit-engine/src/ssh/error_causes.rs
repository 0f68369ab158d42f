//! Mapping of SSH errors to the causes that a direct connection would have had, so that the client learns
//! the same.

use adit_ssh::{ConnectError, OpenError};
use adit_ssh_proto::SshError;
use adit_ssh_proto::connection::OpenFailureReason;

use crate::FailureCause;

/// Returns the cause of a failed connection.
pub(super) fn connect_error_cause(why: &ConnectError) -> FailureCause {
    match why {
        ConnectError::Io(below) => FailureCause::from_io_error(below),
        ConnectError::Ended(_) => FailureCause::Closed,
        ConnectError::Timeout { .. } => FailureCause::TimedOut,
        ConnectError::Auth { .. } => FailureCause::LoginRefused,
        ConnectError::HostKey(_) => FailureCause::Untrusted,
        ConnectError::Ssh(SshError::NoCommon { .. }) => FailureCause::Incompatible,
        _ => FailureCause::Malformed,
    }
}

/// Returns the cause of a refused channel.
pub(super) fn open_error_cause(why: &OpenError) -> FailureCause {
    match why {
        OpenError::Refused { reason, text } => match reason {
            OpenFailureReason::Prohibited => FailureCause::DeniedByServer,
            OpenFailureReason::ConnectFailed => text_cause(text),
            OpenFailureReason::UnknownType => FailureCause::UnsupportedByServer,
            _ => FailureCause::FailedAtServer,
        },
        OpenError::End(_) => FailureCause::ConnectionReset,
        _ => FailureCause::FailedAtServer,
    }
}

/// Returns the cause for the server's text. OpenSSH passes on the error of its system.
fn text_cause(text: &str) -> FailureCause {
    let text = text.to_ascii_lowercase();
    let has = |part: &str| text.contains(part);
    if has("timed out") {
        FailureCause::TimedOut
    } else if has("network is unreachable") {
        FailureCause::NetworkUnreachable
    } else if has("unknown host") || has("not known") || has("resolve") {
        FailureCause::UnknownName
    } else if has("no route") {
        FailureCause::HostUnreachable
    } else {
        FailureCause::ConnectionRefused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_servers_are_understood() {
        for (text, kind) in [
            ("Connection refused", FailureCause::ConnectionRefused),
            ("Connection timed out", FailureCause::TimedOut),
            ("No route to host", FailureCause::HostUnreachable),
            (
                "unknown host (Name or service not known)",
                FailureCause::UnknownName,
            ),
            ("Network is unreachable", FailureCause::NetworkUnreachable),
            ("", FailureCause::ConnectionRefused),
        ] {
            assert_eq!(text_cause(text), kind, "{text}");
        }
        let refused = |reason| OpenError::Refused {
            reason,
            text: String::new(),
        };
        for (reason, kind) in [
            (OpenFailureReason::Prohibited, FailureCause::DeniedByServer),
            (
                OpenFailureReason::ConnectFailed,
                FailureCause::ConnectionRefused,
            ),
            (
                OpenFailureReason::UnknownType,
                FailureCause::UnsupportedByServer,
            ),
        ] {
            assert_eq!(open_error_cause(&refused(reason)), kind, "{reason:?}");
        }
    }
}
