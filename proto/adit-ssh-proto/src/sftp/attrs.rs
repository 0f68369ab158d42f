//! File attributes (draft section 5).

use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

const SIZE: u32 = 0x1;
const OWNER: u32 = 0x2;
const PERMISSIONS: u32 = 0x4;
const TIMES: u32 = 0x8;
const EXTENDED: u32 = 0x8000_0000;

/// The type bits of a file's mode.
const KIND: u32 = 0o170_000;

/// Known attributes of a file, or attributes to change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileAttrs {
    /// Length, in bytes.
    pub size: Option<u64>,
    /// User and group numbers.
    pub owner: Option<(u32, u32)>,
    /// POSIX mode, including the file type in replies.
    pub permissions: Option<u32>,
    /// Access and modification time, in seconds since 1970.
    pub times: Option<(u32, u32)>,
}

/// File type, as in the mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileType {
    /// A regular file.
    Regular,
    /// A directory.
    Folder,
    /// A symbolic link.
    Symlink,
    /// A device, a pipe or a socket.
    Special,
}

impl FileAttrs {
    /// Returns the file type, if the mode is known and contains one.
    #[must_use]
    pub const fn file_kind(&self) -> Option<FileType> {
        match self.permissions {
            Some(mode) => match mode & KIND {
                0 => None,
                0o100_000 => Some(FileType::Regular),
                0o040_000 => Some(FileType::Folder),
                0o120_000 => Some(FileType::Symlink),
                _ => Some(FileType::Special),
            },
            None => None,
        }
    }

    /// Reads attributes. Extended pairs are skipped, since none is supported.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if the message ends too early.
    pub fn parse_attrs(reader: &mut MessageReader<'_>) -> Result<Self, SshError> {
        let flags = reader.read_u32()?;
        let mut attrs = Self::default();
        if flags & SIZE != 0 {
            attrs.size = Some(reader.read_u64()?);
        }
        if flags & OWNER != 0 {
            attrs.owner = Some((reader.read_u32()?, reader.read_u32()?));
        }
        if flags & PERMISSIONS != 0 {
            attrs.permissions = Some(reader.read_u32()?);
        }
        if flags & TIMES != 0 {
            attrs.times = Some((reader.read_u32()?, reader.read_u32()?));
        }
        if flags & EXTENDED != 0 {
            // A wrong count stops at the end of the message: each pair has at least eight bytes.
            for _ in 0..reader.read_u32()? {
                reader.read_string()?;
                reader.read_string()?;
            }
        }
        Ok(attrs)
    }

    /// Appends the attributes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let flag = |present: bool, flag: u32| if present { flag } else { 0 };
        out.put_u32(
            flag(self.size.is_some(), SIZE)
                | flag(self.owner.is_some(), OWNER)
                | flag(self.permissions.is_some(), PERMISSIONS)
                | flag(self.times.is_some(), TIMES),
        );
        if let Some(size) = self.size {
            out.put_u64(size);
        }
        if let Some((user, group)) = self.owner {
            out.put_u32(user);
            out.put_u32(group);
        }
        if let Some(mode) = self.permissions {
            out.put_u32(mode);
        }
        if let Some((read, changed)) = self.times {
            out.put_u32(read);
            out.put_u32(changed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_attrs() -> impl Strategy<Value = FileAttrs> {
        any::<(
            Option<u64>,
            Option<(u32, u32)>,
            Option<u32>,
            Option<(u32, u32)>,
        )>()
        .prop_map(|(size, owner, permissions, times)| FileAttrs {
            size,
            owner,
            permissions,
            times,
        })
    }

    proptest! {
        #[test]
        fn what_is_put_is_read(attrs in any_attrs()) {
            let mut out = Vec::new();
            attrs.encode(&mut out);
            let mut reader = MessageReader::new(&out, "x");
            prop_assert_eq!(FileAttrs::parse_attrs(&mut reader), Ok(attrs));
            prop_assert!(reader.expect_end().is_ok());
        }
    }

    #[test]
    fn extensions_are_skipped_and_their_count_is_not_believed() {
        let mut out = Vec::new();
        out.put_u32(EXTENDED | PERMISSIONS);
        out.put_u32(0o100_644);
        out.put_u32(1);
        out.put_string(b"acl@example.com");
        out.put_string(b"u::rw");
        let attrs = FileAttrs::parse_attrs(&mut MessageReader::new(&out, "x")).unwrap();
        assert_eq!(attrs.file_kind(), Some(FileType::Regular));
        if let Some(count) = out.get_mut(8..12) {
            count.fill(0xff);
        }
        assert!(FileAttrs::parse_attrs(&mut MessageReader::new(&out, "x")).is_err());
    }
}
