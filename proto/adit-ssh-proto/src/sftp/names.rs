//! Lists inside messages: names of files with their attributes, numbers of users, their names.

use super::attrs::Attrs;
use crate::error::SshError;
use crate::wire::{Put, Reader};

/// One file in a NAME reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    /// Its name; of a folder's entry without the folder.
    pub name: &'a [u8],
    /// A line as `ls -l` has it, for people.
    pub line: &'a [u8],
    /// Its attributes.
    pub attrs: Attrs,
}

/// The files of a NAME reply, checked to be whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl<'a> Names<'a> {
    /// Reads the count and as many names, to the end of the message.
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

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The files in their order.
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

/// Appends one file of a NAME reply.
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

    /// The numbers in `bytes`, four octets each, big-endian.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        bytes.len().is_multiple_of(4).then_some(Self(bytes))
    }

    /// As they lie in the message.
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The numbers in their order.
    pub fn iter(self) -> impl Iterator<Item = u32> + use<'a> {
        let (ids, _) = self.0.as_chunks();
        ids.iter().map(|id| u32::from_be_bytes(*id))
    }
}

/// Names of users or groups, one for each number asked for; empty where there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Texts<'a>(&'a [u8]);

impl<'a> Texts<'a> {
    /// Reads the reply of `users-groups-by-id@openssh.com`: the users and the groups.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if it is not whole.
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

    /// The names in their order.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = Reader::new(self.0, "SFTP users and groups");
        core::iter::from_fn(move || reader.string().ok())
    }
}
