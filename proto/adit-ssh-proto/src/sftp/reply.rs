//! Replies of a server (draft section 7).

use super::MAX_HANDLE_LEN;
use super::attrs::Attrs;
use super::names::Names;
use super::number;
use super::status::Status;
use crate::error::SshError;
use crate::wire::{Put, Reader};

/// A reply; long fields are borrowed from the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply<'a> {
    /// Status of a request.
    Status(StatusReply<'a>),
    /// Handle of an opened file or directory.
    Handle(&'a [u8]),
    /// Data that was read.
    Data(&'a [u8]),
    /// Files.
    Names(Names<'a>),
    /// Attributes of a file.
    Attrs(Attrs),
    /// Reply to an extension, which defines its format.
    Extended(&'a [u8]),
}

/// A status with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusReply<'a> {
    /// Status code.
    pub status: Status,
    /// Message for users; UTF-8 if the server follows the draft.
    pub message: &'a [u8],
}

impl<'a> Reply<'a> {
    /// Parses a reply; returns it with the number of its request.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if it is not valid, [`SshError::Unexpected`] if it is another
    /// message.
    pub fn parse(frame: &'a [u8]) -> Result<(u32, Self), SshError> {
        let mut reader = Reader::new(frame, "SFTP reply");
        let (kind, id) = (reader.u8()?, reader.u32()?);
        let reply = match kind {
            number::STATUS => {
                let status = Status::from_code(reader.u32()?);
                // Old servers omit the message. The language tag after it is ignored.
                let message = match reader.rest() {
                    [] => &[][..],
                    _ => reader.string()?,
                };
                Self::Status(StatusReply { status, message })
            }
            number::HANDLE => {
                let handle = reader.string()?;
                if handle.len() > MAX_HANDLE_LEN {
                    return Err(reader.malformed());
                }
                Self::Handle(handle)
            }
            number::DATA => Self::Data(reader.string()?),
            number::NAME => Self::Names(Names::read(&mut reader)?),
            number::ATTRS => Self::Attrs(Attrs::read(&mut reader)?),
            number::EXTENDED_REPLY => Self::Extended(reader.rest()),
            other => return Err(SshError::Unexpected(other)),
        };
        Ok((id, reply))
    }

    /// Appends the reply as a frame.
    pub fn put(&self, id: u32, out: &mut Vec<u8>) {
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
                Self::Names(names) => names.put(out),
                Self::Attrs(attrs) => attrs.put(out),
                Self::Extended(data) => out.put_raw(data),
            }
        });
    }

    const fn number(&self) -> u8 {
        match self {
            Self::Status(_) => number::STATUS,
            Self::Handle(_) => number::HANDLE,
            Self::Data(_) => number::DATA,
            Self::Names(_) => number::NAME,
            Self::Attrs(_) => number::ATTRS,
            Self::Extended(_) => number::EXTENDED_REPLY,
        }
    }
}
