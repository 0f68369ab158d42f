//! Bodies of EXTENDED requests (OpenSSH's `PROTOCOL` section 4).

use super::attrs::FileAttrs;
use super::extension::Extension;
use super::names::OwnerIds;
use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

/// An operation beyond SFTP version 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are those of OpenSSH's PROTOCOL")]
pub enum ExtendedRequest<'a, H = &'a [u8]> {
    /// Renames a file and replaces an existing one.
    PosixRename { from: &'a [u8], to: &'a [u8] },
    /// Queries the file system of a path.
    StatVfs { path: &'a [u8] },
    /// Queries the file system of a handle.
    FStatVfs { handle: H },
    /// Creates a hard link.
    HardLink { from: &'a [u8], to: &'a [u8] },
    /// Flushes written data to the disk.
    FSync { handle: H },
    /// Changes attributes without following a symbolic link.
    LSetStat { path: &'a [u8], attrs: FileAttrs },
    /// Queries the server's limits.
    Limits,
    /// Expands a path that starts with `~`.
    ExpandPath { path: &'a [u8] },
    /// Copies between two handles; a `len` of 0 means up to the end.
    CopyData {
        from: H,
        from_offset: u64,
        len: u64,
        to: H,
        to_offset: u64,
    },
    /// Queries the home directory of a user.
    HomeDirectory { user: &'a [u8] },
    /// Queries the names of users and groups.
    UsersGroupsById {
        users: OwnerIds<'a>,
        groups: OwnerIds<'a>,
    },
    /// An unknown name.
    Unknown { name: &'a [u8] },
}

impl<'a> ExtendedRequest<'a> {
    /// Parses the name and the fields after it.
    pub(super) fn parse_extended(r: &mut MessageReader<'a>) -> Result<Self, SshError> {
        let name = r.read_string()?;
        let Some(extension) = Extension::by_name(name) else {
            return Ok(Self::Unknown { name });
        };
        Ok(match extension {
            Extension::PosixRename => Self::PosixRename {
                from: r.read_string()?,
                to: r.read_string()?,
            },
            Extension::StatVfs => Self::StatVfs {
                path: r.read_string()?,
            },
            Extension::FStatVfs => Self::FStatVfs {
                handle: r.read_string()?,
            },
            Extension::HardLink => Self::HardLink {
                from: r.read_string()?,
                to: r.read_string()?,
            },
            Extension::FSync => Self::FSync {
                handle: r.read_string()?,
            },
            Extension::LSetStat => Self::LSetStat {
                path: r.read_string()?,
                attrs: FileAttrs::parse_attrs(r)?,
            },
            Extension::Limits => Self::Limits,
            Extension::ExpandPath => Self::ExpandPath {
                path: r.read_string()?,
            },
            Extension::CopyData => Self::CopyData {
                from: r.read_string()?,
                from_offset: r.read_u64()?,
                len: r.read_u64()?,
                to: r.read_string()?,
                to_offset: r.read_u64()?,
            },
            Extension::HomeDirectory => Self::HomeDirectory {
                user: r.read_string()?,
            },
            Extension::UsersGroupsById => Self::UsersGroupsById {
                users: OwnerIds::parse_ids(r)?,
                groups: OwnerIds::parse_ids(r)?,
            },
        })
    }

    /// Appends the name and the fields after it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Unknown { name } => out.put_string(name),
            _ => out.put_string(self.extension().map_or("", Extension::name).as_bytes()),
        }
        match self {
            Self::PosixRename { from, to } | Self::HardLink { from, to } => {
                out.put_string(from);
                out.put_string(to);
            }
            Self::StatVfs { path: of }
            | Self::FStatVfs { handle: of }
            | Self::FSync { handle: of }
            | Self::ExpandPath { path: of }
            | Self::HomeDirectory { user: of } => out.put_string(of),
            Self::LSetStat { path, attrs } => {
                out.put_string(path);
                attrs.encode(out);
            }
            Self::CopyData {
                from,
                from_offset,
                len,
                to,
                to_offset,
            } => {
                out.put_string(from);
                out.put_u64(*from_offset);
                out.put_u64(*len);
                out.put_string(to);
                out.put_u64(*to_offset);
            }
            Self::UsersGroupsById { users, groups } => {
                out.put_string(users.as_bytes());
                out.put_string(groups.as_bytes());
            }
            Self::Limits | Self::Unknown { .. } => {}
        }
    }

    /// Replaces each handle by the result of `find`; returns `None` if `find` does.
    pub(super) fn with_handles<H>(
        self,
        find: impl Fn(&[u8]) -> Option<H>,
    ) -> Option<ExtendedRequest<'a, H>> {
        Some(match self {
            Self::FStatVfs { handle } => ExtendedRequest::FStatVfs {
                handle: find(handle)?,
            },
            Self::FSync { handle } => ExtendedRequest::FSync {
                handle: find(handle)?,
            },
            Self::CopyData {
                from,
                from_offset,
                len,
                to,
                to_offset,
            } => ExtendedRequest::CopyData {
                from: find(from)?,
                from_offset,
                len,
                to: find(to)?,
                to_offset,
            },
            Self::PosixRename { from, to } => ExtendedRequest::PosixRename { from, to },
            Self::StatVfs { path } => ExtendedRequest::StatVfs { path },
            Self::HardLink { from, to } => ExtendedRequest::HardLink { from, to },
            Self::LSetStat { path, attrs } => ExtendedRequest::LSetStat { path, attrs },
            Self::Limits => ExtendedRequest::Limits,
            Self::ExpandPath { path } => ExtendedRequest::ExpandPath { path },
            Self::HomeDirectory { user } => ExtendedRequest::HomeDirectory { user },
            Self::UsersGroupsById { users, groups } => {
                ExtendedRequest::UsersGroupsById { users, groups }
            }
            Self::Unknown { name } => ExtendedRequest::Unknown { name },
        })
    }
}

impl<H> ExtendedRequest<'_, H> {
    /// Returns the extension; `None` if the name is unknown.
    #[must_use]
    pub const fn extension(&self) -> Option<Extension> {
        Some(match self {
            Self::PosixRename { .. } => Extension::PosixRename,
            Self::StatVfs { .. } => Extension::StatVfs,
            Self::FStatVfs { .. } => Extension::FStatVfs,
            Self::HardLink { .. } => Extension::HardLink,
            Self::FSync { .. } => Extension::FSync,
            Self::LSetStat { .. } => Extension::LSetStat,
            Self::Limits => Extension::Limits,
            Self::ExpandPath { .. } => Extension::ExpandPath,
            Self::CopyData { .. } => Extension::CopyData,
            Self::HomeDirectory { .. } => Extension::HomeDirectory,
            Self::UsersGroupsById { .. } => Extension::UsersGroupsById,
            Self::Unknown { .. } => return None,
        })
    }
}
