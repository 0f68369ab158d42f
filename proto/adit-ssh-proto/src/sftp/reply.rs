//! What a server answers (draft section 7).

use super::MAX_HANDLE_LEN;
use super::attrs::Attrs;
use super::names::Names;
use super::number;
use super::status::Status;
use crate::error::SshError;
use crate::wire::{Put, Reader};

/// An answer; what is long is lent from the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply<'a> {
    /// How it ended.
    Status(StatusReply<'a>),
    /// A file or a folder was opened.
    Handle(&'a [u8]),
    /// What was read.
    Data(&'a [u8]),
    /// Files.
    Names(Names<'a>),
    /// Attributes of a file.
    Attrs(Attrs),
    /// The answer to an extension; its form is the extension's.
    Extended(&'a [u8]),
}

/// A status with words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusReply<'a> {
    /// The code.
    pub status: Status,
    /// For people; UTF-8 if the server keeps to the draft.
    pub message: &'a [u8],
}

impl<'a> Reply<'a> {
    /// Reads a reply and the request that it belongs to.
    ///
    /// # Errors
    /// [`SshError::Malformed`] for other forms, [`SshError::Unexpected`] for other messages.
    pub fn parse(frame: &'a [u8]) -> Result<(u32, Self), SshError> {
        let mut reader = Reader::new(frame, "SFTP reply");
        let (kind, id) = (reader.u8()?, reader.u32()?);
        let reply = match kind {
            number::STATUS => {
                let status = Status::from_code(reader.u32()?);
                // Old servers leave the words out. The language after them has no meaning.
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
