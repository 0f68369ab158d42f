//! Replies of the expected type, or the server's refusal.

use adit_ssh_proto::SshError;
use adit_ssh_proto::sftp::{FileAttrs, SftpRefused, SftpReply, SftpStatus, StatVfs};

use crate::SftpError;

fn wrong() -> SftpError {
    SftpError::Protocol(SshError::Malformed("kind of an SFTP reply"))
}

/// The status of a reply that should have been another one.
pub(super) fn refused(reply: &SftpReply<'_>) -> SftpError {
    match reply {
        SftpReply::Status(reply) => SftpRefused::from(*reply).into(),
        _ => wrong(),
    }
}

/// A reply that reports success.
pub(super) fn done(reply: &SftpReply<'_>) -> Result<(), SftpError> {
    match reply {
        SftpReply::Status(reply) if reply.status == SftpStatus::Ok => Ok(()),
        other => Err(refused(other)),
    }
}

pub(super) fn attrs(reply: &SftpReply<'_>) -> Result<FileAttrs, SftpError> {
    match reply {
        SftpReply::Attrs(attrs) => Ok(*attrs),
        other => Err(refused(other)),
    }
}

pub(super) fn handle(reply: &SftpReply<'_>) -> Result<Vec<u8>, SftpError> {
    match reply {
        SftpReply::Handle(handle) => Ok(handle.to_vec()),
        other => Err(refused(other)),
    }
}

pub(super) fn one_name(reply: &SftpReply<'_>) -> Result<Vec<u8>, SftpError> {
    match reply {
        SftpReply::Names(names) => names
            .iter()
            .next()
            .map(|name| name.name.to_vec())
            .ok_or_else(wrong),
        other => Err(refused(other)),
    }
}

pub(super) fn stat_vfs(reply: &SftpReply<'_>) -> Result<StatVfs, SftpError> {
    match reply {
        SftpReply::Extended(data) => Ok(StatVfs::parse(data)?),
        other => Err(refused(other)),
    }
}
