//! Why a hop has no connection, or no channel: as the errors that a direct dial would have given,
//! so that our own client is told the same.

use std::io;

use adit_ssh::{ConnectError, OpenError};
use adit_ssh_proto::connection::OpenFailure;

/// Why there is no connection.
pub(super) fn no_session(why: ConnectError) -> io::Error {
    let kind = match &why {
        ConnectError::Io(below) => below.kind(),
        ConnectError::Ended(_) => io::ErrorKind::UnexpectedEof,
        ConnectError::Timeout { .. } => io::ErrorKind::TimedOut,
        _ => io::ErrorKind::InvalidData,
    };
    io::Error::new(kind, why.to_string())
}

/// Why there is no channel.
pub(super) fn no_channel(why: &OpenError) -> io::ErrorKind {
    match why {
        OpenError::Refused { reason, text } => match reason {
            OpenFailure::Prohibited => io::ErrorKind::PermissionDenied,
            OpenFailure::ConnectFailed => told(text),
            OpenFailure::UnknownType => io::ErrorKind::Unsupported,
            _ => io::ErrorKind::Other,
        },
        OpenError::End(_) => io::ErrorKind::ConnectionAborted,
        _ => io::ErrorKind::Other,
    }
}

/// What the server's words mean. OpenSSH passes on what its system says.
fn told(text: &str) -> io::ErrorKind {
    let text = text.to_ascii_lowercase();
    let has = |part: &str| text.contains(part);
    if has("timed out") {
        io::ErrorKind::TimedOut
    } else if has("network is unreachable") {
        io::ErrorKind::NetworkUnreachable
    } else if has("no route") || has("unknown host") || has("not known") || has("resolve") {
        io::ErrorKind::HostUnreachable
    } else {
        io::ErrorKind::ConnectionRefused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_servers_are_understood() {
        for (text, kind) in [
            ("Connection refused", io::ErrorKind::ConnectionRefused),
            ("Connection timed out", io::ErrorKind::TimedOut),
            ("No route to host", io::ErrorKind::HostUnreachable),
            (
                "unknown host (Name or service not known)",
                io::ErrorKind::HostUnreachable,
            ),
            ("Network is unreachable", io::ErrorKind::NetworkUnreachable),
            ("", io::ErrorKind::ConnectionRefused),
        ] {
            assert_eq!(told(text), kind, "{text}");
        }
        let refused = |reason| OpenError::Refused {
            reason,
            text: String::new(),
        };
        for (reason, kind) in [
            (OpenFailure::Prohibited, io::ErrorKind::PermissionDenied),
            (OpenFailure::ConnectFailed, io::ErrorKind::ConnectionRefused),
            (OpenFailure::UnknownType, io::ErrorKind::Unsupported),
        ] {
            assert_eq!(no_channel(&refused(reason)), kind, "{reason:?}");
        }
    }
}
