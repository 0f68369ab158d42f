//! Lists in messages: file names with attributes, numbers of users and groups, and their names.

use super::attrs::FileAttrs;
use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

/// A file in a NAME reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEntry<'a> {
    /// Name of the file; for a directory entry, without the directory.
    pub name: &'a [u8],
    /// Line in the format of `ls -l`, for users.
    pub line: &'a [u8],
    /// Attributes of the file.
    pub attrs: FileAttrs,
}

/// Files of a NAME reply, which was checked to be complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEntries<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl<'a> FileEntries<'a> {
    /// Reads the count and the names up to the end of the message.
    pub(super) fn parse_entries(reader: &mut MessageReader<'a>) -> Result<Self, SshError> {
        let count = reader.read_u32()?;
        let bytes = reader.remaining();
        for _ in 0..count {
            parse_entry(reader)?;
        }
        reader.expect_end()?;
        Ok(Self { count, bytes })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
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
    pub fn iter(&self) -> impl Iterator<Item = FileEntry<'a>> + use<'a> {
        let mut reader = MessageReader::new(self.bytes, "SFTP NAME");
        core::iter::from_fn(move || parse_entry(&mut reader).ok())
    }
}

fn parse_entry<'a>(reader: &mut MessageReader<'a>) -> Result<FileEntry<'a>, SshError> {
    Ok(FileEntry {
        name: reader.read_string()?,
        line: reader.read_string()?,
        attrs: FileAttrs::parse_attrs(reader)?,
    })
}

/// Appends a file of a NAME reply.
pub(super) fn put_entry(name: &FileEntry<'_>, out: &mut Vec<u8>) {
    out.put_string(name.name);
    out.put_string(name.line);
    name.attrs.encode(out);
}

/// Numbers of users or groups (`users-groups-by-id@openssh.com`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnerIds<'a>(&'a [u8]);

impl<'a> OwnerIds<'a> {
    pub(super) fn parse_ids(reader: &mut MessageReader<'a>) -> Result<Self, SshError> {
        Self::new(reader.read_string()?).ok_or_else(|| reader.malformed_error())
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
pub struct OwnerNames<'a>(&'a [u8]);

impl<'a> OwnerNames<'a> {
    /// Parses the reply of `users-groups-by-id@openssh.com` into users and groups.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if it is incomplete.
    pub fn parse_pair(data: &'a [u8]) -> Result<[Self; 2], SshError> {
        let mut reader = MessageReader::new(data, "SFTP users and groups");
        let pair = [reader.read_string()?, reader.read_string()?];
        for list in pair {
            let mut list = MessageReader::new(list, "SFTP users and groups");
            while !list.remaining().is_empty() {
                list.read_string()?;
            }
        }
        Ok(pair.map(Self))
    }

    /// Iterates over the names in order.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = MessageReader::new(self.0, "SFTP users and groups");
        core::iter::from_fn(move || reader.read_string().ok())
    }
}
