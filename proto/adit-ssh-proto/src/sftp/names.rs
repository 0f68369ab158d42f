//! Lists in messages: file names with attributes, numbers of users and groups, and their names.

use super::attrs::Attrs;
use crate::error::SshError;
use crate::wire::{Put, Reader};

/// A file in a NAME reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    /// Name of the file; for a directory entry, without the directory.
    pub name: &'a [u8],
    /// Line in the format of `ls -l`, for users.
    pub line: &'a [u8],
    /// Attributes of the file.
    pub attrs: Attrs,
}

/// Files of a NAME reply, which was checked to be complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl<'a> Names<'a> {
    /// Reads the count and the names up to the end of the message.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, SshError> {
        let count = reader.u32()?;
        let bytes = reader.rest();
        for _ in 0..count {
            name(reader)?;
        }
        reader.end()?;
        Ok(Self { count, bytes })
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.put_u32(self.count);
        out.put_raw(self.bytes);
    }

    /// Returns the number of files.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// True if there are no files.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Iterates over the files in order.
    pub fn iter(&self) -> impl Iterator<Item = Name<'a>> + use<'a> {
        let mut reader = Reader::new(self.bytes, "SFTP NAME");
        core::iter::from_fn(move || name(&mut reader).ok())
    }
}

fn name<'a>(reader: &mut Reader<'a>) -> Result<Name<'a>, SshError> {
    Ok(Name {
        name: reader.string()?,
        line: reader.string()?,
        attrs: Attrs::read(reader)?,
    })
}

/// Appends a file of a NAME reply.
pub(super) fn put_name(name: &Name<'_>, out: &mut Vec<u8>) {
    out.put_string(name.name);
    out.put_string(name.line);
    name.attrs.put(out);
}

/// Numbers of users or groups (`users-groups-by-id@openssh.com`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ids<'a>(&'a [u8]);

impl<'a> Ids<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, SshError> {
        Self::new(reader.string()?).ok_or_else(|| reader.malformed())
    }

    /// Interprets `bytes` as big-endian numbers of four bytes each; `None` if the length does not
    /// match.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        bytes.len().is_multiple_of(4).then_some(Self(bytes))
    }

    /// Returns the encoding in the message.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Iterates over the numbers in order.
    pub fn iter(self) -> impl Iterator<Item = u32> + use<'a> {
        let (ids, _) = self.0.as_chunks();
        ids.iter().map(|id| u32::from_be_bytes(*id))
    }
}

/// Names of users or groups, one for each requested number; empty if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Texts<'a>(&'a [u8]);

impl<'a> Texts<'a> {
    /// Parses the reply of `users-groups-by-id@openssh.com` into users and groups.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if it is incomplete.
    pub fn parse_pair(data: &'a [u8]) -> Result<[Self; 2], SshError> {
        let mut reader = Reader::new(data, "SFTP users and groups");
        let pair = [reader.string()?, reader.string()?];
        for list in pair {
            let mut list = Reader::new(list, "SFTP users and groups");
            while !list.rest().is_empty() {
                list.string()?;
            }
        }
        Ok(pair.map(Self))
    }

    /// Iterates over the names in order.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader::new(self.0, "SFTP users and groups");
        core::iter::from_fn(move || reader.string().ok())
    }
}
