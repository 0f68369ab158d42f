//! Errors of the system as statuses of SFTP.

use adit_ssh_proto::sftp::{ReplyTicket, SftpStatus};
use rustix::io::Errno;

/// The error of a failed call of the standard library.
pub(super) fn errno(why: &std::io::Error) -> Errno {
    Errno::from_io_error(why).unwrap_or(Errno::IO)
}

/// Answers with why something could not be done.
pub(super) fn refuse(ticket: ReplyTicket, why: Errno, out: &mut Vec<u8>) {
    let status = match why {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::BADF => SftpStatus::NoSuchFile,
        Errno::PERM | Errno::ACCESS | Errno::ROFS => SftpStatus::PermissionDenied,
        Errno::NAMETOOLONG | Errno::INVAL => SftpStatus::BadMessage,
        Errno::NOSYS | Errno::OPNOTSUPP => SftpStatus::Unsupported,
        _ => {
            let words = std::io::Error::from(why).to_string();
            let words = words.split(" (os error").next().unwrap_or_default();
            return ticket.answer_status_with(SftpStatus::Failure, words, out);
        }
    };
    ticket.answer_status(status, out);
}

/// Answers with how something that gives nothing ended.
pub(super) fn done(ticket: ReplyTicket, outcome: Result<(), Errno>, out: &mut Vec<u8>) {
    match outcome {
        Ok(()) => ticket.answer_status(SftpStatus::Ok, out),
        Err(why) => refuse(ticket, why, out),
    }
}
