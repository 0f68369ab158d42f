//! Errors of the system as statuses of SFTP.

use adit_ssh_proto::sftp::{Status, Ticket};
use rustix::io::Errno;

/// The error of a failed call of the standard library.
pub(super) fn errno(why: &std::io::Error) -> Errno {
    Errno::from_io_error(why).unwrap_or(Errno::IO)
}

/// Answers with why something could not be done.
pub(super) fn refuse(ticket: Ticket, why: Errno, out: &mut Vec<u8>) {
    let status = match why {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::BADF => Status::NoSuchFile,
        Errno::PERM | Errno::ACCESS | Errno::ROFS => Status::PermissionDenied,
        Errno::NAMETOOLONG | Errno::INVAL => Status::BadMessage,
        Errno::NOSYS | Errno::OPNOTSUPP => Status::Unsupported,
        _ => {
            let words = std::io::Error::from(why).to_string();
            let words = words.split(" (os error").next().unwrap_or_default();
            return ticket.told(Status::Failure, words, out);
        }
    };
    ticket.status(status, out);
}

/// Answers with how something that gives nothing ended.
pub(super) fn done(ticket: Ticket, outcome: Result<(), Errno>, out: &mut Vec<u8>) {
    match outcome {
        Ok(()) => ticket.status(Status::Ok, out),
        Err(why) => refuse(ticket, why, out),
    }
}
