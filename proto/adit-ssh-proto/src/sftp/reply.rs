//! Replies of a server (draft section 7).

use super::MAX_HANDLE_LEN;
use super::attrs::FileAttrs;
use super::message_number;
use super::names::FileEntries;
use super::status::SftpStatus;
use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

/// A reply; long fields are borrowed from the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SftpReply<'a> {
    /// Status of a request.
    Status(StatusReply<'a>),
    /// Handle of an opened file or directory.
    Handle(&'a [u8]),
    /// Data that was read.
    Data(&'a [u8]),
    /// Files.
    Names(FileEntries<'a>),
    /// Attributes of a file.
    Attrs(FileAttrs),
    /// Reply to an extension, which defines its format.
    Extended(&'a [u8]),
}

/// A status with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusReply<'a> {
    /// Status code.
    pub status: SftpStatus,
    /// Message for users; UTF-8 if the server follows the draft.
    pub message: &'a [u8],
}

impl<'a> SftpReply<'a> {
    /// Parses a reply; returns it with the number of its request.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if it is not valid, [`SshError::Unexpected`] if it is another
    /// message.
    pub fn parse(frame: &'a [u8]) -> Result<(u32, Self), SshError> {
        let mut reader = MessageReader::new(frame, "SFTP reply");
        let (kind, id) = (reader.read_u8()?, reader.read_u32()?);
        let reply = match kind {
            message_number::STATUS => {
                let status = SftpStatus::from_code(reader.read_u32()?);
                // Old servers omit the message. The language tag after it is ignored.
                let message = match reader.remaining() {
                    [] => &[][..],
                    _ => reader.read_string()?,
                };
                Self::Status(StatusReply { status, message })
            }
            message_number::HANDLE => {
                let handle = reader.read_string()?;
                if handle.len() > MAX_HANDLE_LEN {
                    return Err(reader.malformed_error());
                }
                Self::Handle(handle)
            }
            message_number::DATA => Self::Data(reader.read_string()?),
            message_number::NAME => Self::Names(FileEntries::parse_entries(&mut reader)?),
            message_number::ATTRS => Self::Attrs(FileAttrs::parse_attrs(&mut reader)?),
            message_number::EXTENDED_REPLY => Self::Extended(reader.remaining()),
            other => return Err(SshError::Unexpected(other)),
        };
        Ok((id, reply))
    }

    /// Appends the reply as a frame.
    pub fn encode(&self, id: u32, out: &mut Vec<u8>) {
        out.put_nested(|out| {
            out.put_u8(self.number());
            out.put_u32(id);
            match self {
                Self::Status(reply) => {
                    out.put_u32(reply.status.code());
                    out.put_string(reply.message);
                    out.put_string(b"");
                }
                Self::Handle(bytes) | Self::Data(bytes) => out.put_string(bytes),
                Self::Names(names) => names.encode(out),
                Self::Attrs(attrs) => attrs.encode(out),
                Self::Extended(data) => out.put_raw(data),
            }
        });
    }

    const fn number(&self) -> u8 {
        match self {
            Self::Status(_) => message_number::STATUS,
            Self::Handle(_) => message_number::HANDLE,
            Self::Data(_) => message_number::DATA,
            Self::Names(_) => message_number::NAME,
            Self::Attrs(_) => message_number::ATTRS,
            Self::Extended(_) => message_number::EXTENDED_REPLY,
        }
    }
}
