//! Requests of a client (draft section 6, OpenSSH's `PROTOCOL` section 4).

use super::attrs::FileAttrs;
use super::extended::ExtendedRequest;
use super::message_number;
use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

/// A request; long fields are borrowed from the message. `H` is a handle: bytes on the wire,
/// [`HandleId`](super::HandleId) in a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are those of the draft")]
pub enum SftpRequest<'a, H = &'a [u8]> {
    /// Opens a file; the attributes are for a new one.
    Open {
        path: &'a [u8],
        flags: OpenFlags,
        attrs: FileAttrs,
    },
    /// Closes a file or directory.
    Close { handle: H },
    /// Reads at most `len` bytes.
    Read { handle: H, offset: u64, len: u32 },
    /// Writes data.
    Write {
        handle: H,
        offset: u64,
        data: &'a [u8],
    },
    /// Queries attributes of a path without following a symbolic link.
    Lstat { path: &'a [u8] },
    /// Queries attributes of a handle.
    Fstat { handle: H },
    /// Changes attributes of a path.
    Setstat { path: &'a [u8], attrs: FileAttrs },
    /// Changes attributes of a handle.
    Fsetstat { handle: H, attrs: FileAttrs },
    /// Opens a directory.
    Opendir { path: &'a [u8] },
    /// Reads the next entries of a directory.
    Readdir { handle: H },
    /// Removes a file.
    Remove { path: &'a [u8] },
    /// Creates a directory.
    Mkdir { path: &'a [u8], attrs: FileAttrs },
    /// Removes an empty directory.
    Rmdir { path: &'a [u8] },
    /// Resolves a path to one without `..` and symbolic links.
    Realpath { path: &'a [u8] },
    /// Queries attributes of a path.
    Stat { path: &'a [u8] },
    /// Renames a file, unless the new name exists.
    Rename { from: &'a [u8], to: &'a [u8] },
    /// Reads the target of a symbolic link.
    Readlink { path: &'a [u8] },
    /// Creates a symbolic link. The order of the fields is OpenSSH's, which differs from the draft.
    Symlink { target: &'a [u8], link: &'a [u8] },
    /// An operation beyond version 3.
    Extended(ExtendedRequest<'a, H>),
    /// An unknown message number.
    Unknown { number: u8 },
}

/// Flags for opening a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenFlags(pub u32);

impl OpenFlags {
    /// Open for reading.
    pub const READ: Self = Self(0x01);
    /// Open for writing.
    pub const WRITE: Self = Self(0x02);
    /// Append writes to the end.
    pub const APPEND: Self = Self(0x04);
    /// Create the file if it does not exist.
    pub const CREATE: Self = Self(0x08);
    /// Truncate an existing file.
    pub const TRUNCATE: Self = Self(0x10);
    /// Fail if the file exists.
    pub const EXCLUSIVE: Self = Self(0x20);

    /// True if all of `flags` are set.
    #[must_use]
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Returns the union of both.
    #[must_use]
    pub const fn union(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }
}

impl<'a> SftpRequest<'a> {
    /// Parses a request; returns it with its number.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if it is not valid.
    pub fn parse(frame: &'a [u8]) -> Result<(u32, Self), SshError> {
        let mut r = MessageReader::new(frame, "SFTP request");
        let (kind, id) = (r.read_u8()?, r.read_u32()?);
        let request = match kind {
            message_number::OPEN => Self::Open {
                path: r.read_string()?,
                flags: OpenFlags(r.read_u32()?),
                attrs: FileAttrs::parse_attrs(&mut r)?,
            },
            message_number::CLOSE => Self::Close {
                handle: r.read_string()?,
            },
            message_number::READ => Self::Read {
                handle: r.read_string()?,
                offset: r.read_u64()?,
                len: r.read_u32()?,
            },
            message_number::WRITE => Self::Write {
                handle: r.read_string()?,
                offset: r.read_u64()?,
                data: r.read_string()?,
            },
            message_number::LSTAT => Self::Lstat {
                path: r.read_string()?,
            },
            message_number::FSTAT => Self::Fstat {
                handle: r.read_string()?,
            },
            message_number::SETSTAT => Self::Setstat {
                path: r.read_string()?,
                attrs: FileAttrs::parse_attrs(&mut r)?,
            },
            message_number::FSETSTAT => Self::Fsetstat {
                handle: r.read_string()?,
                attrs: FileAttrs::parse_attrs(&mut r)?,
            },
            message_number::OPENDIR => Self::Opendir {
                path: r.read_string()?,
            },
            message_number::READDIR => Self::Readdir {
                handle: r.read_string()?,
            },
            message_number::REMOVE => Self::Remove {
                path: r.read_string()?,
            },
            message_number::MKDIR => Self::Mkdir {
                path: r.read_string()?,
                attrs: FileAttrs::parse_attrs(&mut r)?,
            },
            message_number::RMDIR => Self::Rmdir {
                path: r.read_string()?,
            },
            message_number::REALPATH => Self::Realpath {
                path: r.read_string()?,
            },
            message_number::STAT => Self::Stat {
                path: r.read_string()?,
            },
            message_number::RENAME => Self::Rename {
                from: r.read_string()?,
                to: r.read_string()?,
            },
            message_number::READLINK => Self::Readlink {
                path: r.read_string()?,
            },
            message_number::SYMLINK => Self::Symlink {
                target: r.read_string()?,
                link: r.read_string()?,
            },
            message_number::EXTENDED => Self::Extended(ExtendedRequest::parse_extended(&mut r)?),
            number => Self::Unknown { number },
        };
        Ok((id, request))
    }

    /// Appends the request as a frame. For [`SftpRequest::Unknown`], only the header is written.
    pub fn encode(&self, id: u32, out: &mut Vec<u8>) {
        out.put_nested(|out| {
            out.put_u8(self.number());
            out.put_u32(id);
            match self {
                Self::Open { path, flags, attrs } => {
                    out.put_string(path);
                    out.put_u32(flags.0);
                    attrs.encode(out);
                }
                Self::Close { handle } | Self::Fstat { handle } | Self::Readdir { handle } => {
                    out.put_string(handle);
                }
                Self::Read {
                    handle,
                    offset,
                    len,
                } => {
                    out.put_string(handle);
                    out.put_u64(*offset);
                    out.put_u32(*len);
                }
                Self::Write {
                    handle,
                    offset,
                    data,
                } => {
                    out.put_string(handle);
                    out.put_u64(*offset);
                    out.put_string(data);
                }
                Self::Lstat { path }
                | Self::Opendir { path }
                | Self::Remove { path }
                | Self::Rmdir { path }
                | Self::Realpath { path }
                | Self::Stat { path }
                | Self::Readlink { path } => out.put_string(path),
                Self::Setstat { path: of, attrs }
                | Self::Mkdir { path: of, attrs }
                | Self::Fsetstat { handle: of, attrs } => {
                    out.put_string(of);
                    attrs.encode(out);
                }
                Self::Rename { from, to } => {
                    out.put_string(from);
                    out.put_string(to);
                }
                Self::Symlink { target, link } => {
                    out.put_string(target);
                    out.put_string(link);
                }
                Self::Extended(extended) => extended.encode(out),
                Self::Unknown { .. } => {}
            }
        });
    }

    const fn number(&self) -> u8 {
        match self {
            Self::Open { .. } => message_number::OPEN,
            Self::Close { .. } => message_number::CLOSE,
            Self::Read { .. } => message_number::READ,
            Self::Write { .. } => message_number::WRITE,
            Self::Lstat { .. } => message_number::LSTAT,
            Self::Fstat { .. } => message_number::FSTAT,
            Self::Setstat { .. } => message_number::SETSTAT,
            Self::Fsetstat { .. } => message_number::FSETSTAT,
            Self::Opendir { .. } => message_number::OPENDIR,
            Self::Readdir { .. } => message_number::READDIR,
            Self::Remove { .. } => message_number::REMOVE,
            Self::Mkdir { .. } => message_number::MKDIR,
            Self::Rmdir { .. } => message_number::RMDIR,
            Self::Realpath { .. } => message_number::REALPATH,
            Self::Stat { .. } => message_number::STAT,
            Self::Rename { .. } => message_number::RENAME,
            Self::Readlink { .. } => message_number::READLINK,
            Self::Symlink { .. } => message_number::SYMLINK,
            Self::Extended(_) => message_number::EXTENDED,
            Self::Unknown { number } => *number,
        }
    }

    /// Replaces each handle by the result of `find`; returns `None` if `find` does.
    pub(super) fn with_handles<H>(
        self,
        find: impl Fn(&[u8]) -> Option<H>,
    ) -> Option<SftpRequest<'a, H>> {
        Some(match self {
            Self::Close { handle } => SftpRequest::Close {
                handle: find(handle)?,
            },
            Self::Read {
                handle,
                offset,
                len,
            } => SftpRequest::Read {
                handle: find(handle)?,
                offset,
                len,
            },
            Self::Write {
                handle,
                offset,
                data,
            } => SftpRequest::Write {
                handle: find(handle)?,
                offset,
                data,
            },
            Self::Fstat { handle } => SftpRequest::Fstat {
                handle: find(handle)?,
            },
            Self::Fsetstat { handle, attrs } => SftpRequest::Fsetstat {
                handle: find(handle)?,
                attrs,
            },
            Self::Readdir { handle } => SftpRequest::Readdir {
                handle: find(handle)?,
            },
            Self::Open { path, flags, attrs } => SftpRequest::Open { path, flags, attrs },
            Self::Lstat { path } => SftpRequest::Lstat { path },
            Self::Setstat { path, attrs } => SftpRequest::Setstat { path, attrs },
            Self::Opendir { path } => SftpRequest::Opendir { path },
            Self::Remove { path } => SftpRequest::Remove { path },
            Self::Mkdir { path, attrs } => SftpRequest::Mkdir { path, attrs },
            Self::Rmdir { path } => SftpRequest::Rmdir { path },
            Self::Realpath { path } => SftpRequest::Realpath { path },
            Self::Stat { path } => SftpRequest::Stat { path },
            Self::Rename { from, to } => SftpRequest::Rename { from, to },
            Self::Readlink { path } => SftpRequest::Readlink { path },
            Self::Symlink { target, link } => SftpRequest::Symlink { target, link },
            Self::Extended(extended) => SftpRequest::Extended(extended.with_handles(find)?),
            Self::Unknown { number } => SftpRequest::Unknown { number },
        })
    }
}
