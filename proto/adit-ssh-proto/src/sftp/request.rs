//! Requests of a client (draft section 6, OpenSSH's `PROTOCOL` section 4).

use super::attrs::Attrs;
use super::extended::Extended;
use super::number;
use crate::error::SshError;
use crate::wire::{Put, Reader};

/// A request; long fields are borrowed from the message. `H` is a handle: bytes on the wire,
/// [`HandleId`](super::HandleId) in a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are those of the draft")]
pub enum Request<'a, H = &'a [u8]> {
    /// Opens a file; the attributes are for a new one.
    Open {
        path: &'a [u8],
        flags: OpenFlags,
        attrs: Attrs,
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
    Setstat { path: &'a [u8], attrs: Attrs },
    /// Changes attributes of a handle.
    Fsetstat { handle: H, attrs: Attrs },
    /// Opens a directory.
    Opendir { path: &'a [u8] },
    /// Reads the next entries of a directory.
    Readdir { handle: H },
    /// Removes a file.
    Remove { path: &'a [u8] },
    /// Creates a directory.
    Mkdir { path: &'a [u8], attrs: Attrs },
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
    Extended(Extended<'a, H>),
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
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Returns the union of both.
    #[must_use]
    pub const fn and(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }
}

impl<'a> Request<'a> {
    /// Parses a request; returns it with its number.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if it is not valid.
    pub fn parse(frame: &'a [u8]) -> Result<(u32, Self), SshError> {
        let mut r = Reader::new(frame, "SFTP request");
        let (kind, id) = (r.u8()?, r.u32()?);
        let request = match kind {
            number::OPEN => Self::Open {
                path: r.string()?,
                flags: OpenFlags(r.u32()?),
                attrs: Attrs::read(&mut r)?,
            },
            number::CLOSE => Self::Close {
                handle: r.string()?,
            },
            number::READ => Self::Read {
                handle: r.string()?,
                offset: r.u64()?,
                len: r.u32()?,
            },
            number::WRITE => Self::Write {
                handle: r.string()?,
                offset: r.u64()?,
                data: r.string()?,
            },
            number::LSTAT => Self::Lstat { path: r.string()? },
            number::FSTAT => Self::Fstat {
                handle: r.string()?,
            },
            number::SETSTAT => Self::Setstat {
                path: r.string()?,
                attrs: Attrs::read(&mut r)?,
            },
            number::FSETSTAT => Self::Fsetstat {
                handle: r.string()?,
                attrs: Attrs::read(&mut r)?,
            },
            number::OPENDIR => Self::Opendir { path: r.string()? },
            number::READDIR => Self::Readdir {
                handle: r.string()?,
            },
            number::REMOVE => Self::Remove { path: r.string()? },
            number::MKDIR => Self::Mkdir {
                path: r.string()?,
                attrs: Attrs::read(&mut r)?,
            },
            number::RMDIR => Self::Rmdir { path: r.string()? },
            number::REALPATH => Self::Realpath { path: r.string()? },
            number::STAT => Self::Stat { path: r.string()? },
            number::RENAME => Self::Rename {
                from: r.string()?,
                to: r.string()?,
            },
            number::READLINK => Self::Readlink { path: r.string()? },
            number::SYMLINK => Self::Symlink {
                target: r.string()?,
                link: r.string()?,
            },
            number::EXTENDED => Self::Extended(Extended::read(&mut r)?),
            number => Self::Unknown { number },
        };
        Ok((id, request))
    }

    /// Appends the request as a frame. For [`Request::Unknown`], only the header is written.
    pub fn put(&self, id: u32, out: &mut Vec<u8>) {
        out.put_nested(|out| {
            out.put_u8(self.number());
            out.put_u32(id);
            match self {
                Self::Open { path, flags, attrs } => {
                    out.put_string(path);
                    out.put_u32(flags.0);
                    attrs.put(out);
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
                    attrs.put(out);
                }
                Self::Rename { from, to } => {
                    out.put_string(from);
                    out.put_string(to);
                }
                Self::Symlink { target, link } => {
                    out.put_string(target);
                    out.put_string(link);
                }
                Self::Extended(extended) => extended.put(out),
                Self::Unknown { .. } => {}
            }
        });
    }

    const fn number(&self) -> u8 {
        match self {
            Self::Open { .. } => number::OPEN,
            Self::Close { .. } => number::CLOSE,
            Self::Read { .. } => number::READ,
            Self::Write { .. } => number::WRITE,
            Self::Lstat { .. } => number::LSTAT,
            Self::Fstat { .. } => number::FSTAT,
            Self::Setstat { .. } => number::SETSTAT,
            Self::Fsetstat { .. } => number::FSETSTAT,
            Self::Opendir { .. } => number::OPENDIR,
            Self::Readdir { .. } => number::READDIR,
            Self::Remove { .. } => number::REMOVE,
            Self::Mkdir { .. } => number::MKDIR,
            Self::Rmdir { .. } => number::RMDIR,
            Self::Realpath { .. } => number::REALPATH,
            Self::Stat { .. } => number::STAT,
            Self::Rename { .. } => number::RENAME,
            Self::Readlink { .. } => number::READLINK,
            Self::Symlink { .. } => number::SYMLINK,
            Self::Extended(_) => number::EXTENDED,
            Self::Unknown { number } => *number,
        }
    }

    /// Replaces each handle by the result of `find`; returns `None` if `find` does.
    pub(super) fn with_handles<H>(
        self,
        find: impl Fn(&[u8]) -> Option<H>,
    ) -> Option<Request<'a, H>> {
        Some(match self {
            Self::Close { handle } => Request::Close {
                handle: find(handle)?,
            },
            Self::Read {
                handle,
                offset,
                len,
            } => Request::Read {
                handle: find(handle)?,
                offset,
                len,
            },
            Self::Write {
                handle,
                offset,
                data,
            } => Request::Write {
                handle: find(handle)?,
                offset,
                data,
            },
            Self::Fstat { handle } => Request::Fstat {
                handle: find(handle)?,
            },
            Self::Fsetstat { handle, attrs } => Request::Fsetstat {
                handle: find(handle)?,
                attrs,
            },
            Self::Readdir { handle } => Request::Readdir {
                handle: find(handle)?,
            },
            Self::Open { path, flags, attrs } => Request::Open { path, flags, attrs },
            Self::Lstat { path } => Request::Lstat { path },
            Self::Setstat { path, attrs } => Request::Setstat { path, attrs },
            Self::Opendir { path } => Request::Opendir { path },
            Self::Remove { path } => Request::Remove { path },
            Self::Mkdir { path, attrs } => Request::Mkdir { path, attrs },
            Self::Rmdir { path } => Request::Rmdir { path },
            Self::Realpath { path } => Request::Realpath { path },
            Self::Stat { path } => Request::Stat { path },
            Self::Rename { from, to } => Request::Rename { from, to },
            Self::Readlink { path } => Request::Readlink { path },
            Self::Symlink { target, link } => Request::Symlink { target, link },
            Self::Extended(extended) => Request::Extended(extended.with_handles(find)?),
            Self::Unknown { number } => Request::Unknown { number },
        })
    }
}
