//! Refusals of requests, and errors of the system as statuses of SFTP.

use std::io;

use adit_ssh_proto::sftp::{ReplyTicket, SftpStatus};
#[cfg(unix)]
use rustix::io::Errno;

/// The reason why a handler refuses a request: a status code and a message for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{status}{}{message}", if message.is_empty() { "" } else { ": " })]
pub struct Refusal {
    status: SftpStatus,
    message: String,
}

impl Refusal {
    /// The operation is not supported.
    pub const UNSUPPORTED: Self = Self::new(SftpStatus::Unsupported);
    /// The file does not exist.
    pub const NOT_FOUND: Self = Self::new(SftpStatus::NoSuchFile);
    /// The user lacks permission.
    pub const DENIED: Self = Self::new(SftpStatus::PermissionDenied);

    /// Creates a refusal with the status's default message. [`SftpStatus::Ok`] is no refusal, and is sent
    /// as [`SftpStatus::Failure`].
    #[must_use]
    pub const fn new(status: SftpStatus) -> Self {
        Self {
            status,
            message: String::new(),
        }
    }

    /// Creates a refusal with another message.
    #[must_use]
    pub fn with_message(status: SftpStatus, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// Returns the status code.
    #[must_use]
    pub const fn status(&self) -> SftpStatus {
        match self.status {
            SftpStatus::Ok => SftpStatus::Failure,
            status => status,
        }
    }

    /// Answers a request.
    pub(super) fn answer(&self, ticket: ReplyTicket, out: &mut Vec<u8>) {
        let status = self.status();
        match self.message.as_str() {
            "" => ticket.answer_status(status, out),
            message => ticket.answer_status_with(status, message, out),
        }
    }
}

impl From<SftpStatus> for Refusal {
    fn from(status: SftpStatus) -> Self {
        Self::new(status)
    }
}

/// Takes the status for the error's number, or for its kind if it has none; the message is that of the
/// system.
impl From<io::Error> for Refusal {
    fn from(why: io::Error) -> Self {
        #[cfg(unix)]
        if let Some(errno) = Errno::from_io_error(&why) {
            return refusal(errno);
        }
        match why.kind() {
            io::ErrorKind::NotFound => Self::NOT_FOUND,
            io::ErrorKind::PermissionDenied => Self::DENIED,
            io::ErrorKind::Unsupported => Self::UNSUPPORTED,
            io::ErrorKind::UnexpectedEof => Self::new(SftpStatus::Eof),
            _ => Self::with_message(SftpStatus::Failure, why.to_string()),
        }
    }
}

/// The error of a failed call of the standard library.
#[cfg(unix)]
pub(super) fn errno(why: &io::Error) -> Errno {
    Errno::from_io_error(why).unwrap_or(Errno::IO)
}

/// The refusal because of an error of the system.
#[cfg(unix)]
pub(super) fn refusal(why: Errno) -> Refusal {
    let status = match why {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::BADF => SftpStatus::NoSuchFile,
        Errno::PERM | Errno::ACCESS | Errno::ROFS => SftpStatus::PermissionDenied,
        Errno::NAMETOOLONG | Errno::INVAL => SftpStatus::BadMessage,
        Errno::NOSYS | Errno::OPNOTSUPP => SftpStatus::Unsupported,
        _ => {
            let words = io::Error::from(why).to_string();
            let words = words.split(" (os error").next().unwrap_or_default();
            return Refusal::with_message(SftpStatus::Failure, words);
        }
    };
    status.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_statuses() {
        let of = |why: io::Error| Refusal::from(why).status();
        assert_eq!(of(io::ErrorKind::NotFound.into()), SftpStatus::NoSuchFile);
        assert_eq!(of(io::Error::other("no")), SftpStatus::Failure);
        assert_eq!(
            of(io::Error::from_raw_os_error(13)),
            SftpStatus::PermissionDenied
        );
        let full = Refusal::from(io::Error::from_raw_os_error(28));
        assert_eq!(full.to_string(), "Failure: No space left on device");
        assert_eq!(Refusal::from(SftpStatus::Ok).status(), SftpStatus::Failure);
    }
}
