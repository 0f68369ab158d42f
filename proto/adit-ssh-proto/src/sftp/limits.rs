//! Numeric replies of extensions: limits and file systems.

use super::{MAX_DATA, MAX_HANDLES, MAX_MESSAGE, USUAL_DATA};
use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

/// Limits of a server (`limits@openssh.com`). 0 means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SftpLimits {
    /// Maximum length of a message with its length field, in bytes.
    pub message: u64,
    /// Maximum length of a READ, in bytes.
    pub read: u64,
    /// Maximum length of a WRITE, in bytes.
    pub write: u64,
    /// Maximum number of open handles.
    pub handles: u64,
}

impl SftpLimits {
    /// Limits of adit's server.
    pub const LOCAL: Self = Self {
        message: MAX_MESSAGE as u64,
        read: MAX_DATA as u64,
        write: MAX_DATA as u64,
        handles: MAX_HANDLES as u64,
    };

    /// Parses the reply.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if it is incomplete.
    pub fn parse(data: &[u8]) -> Result<Self, SshError> {
        let mut reader = MessageReader::new(data, "SFTP limits");
        let [message, read, write, handles] = [
            reader.read_u64()?,
            reader.read_u64()?,
            reader.read_u64()?,
            reader.read_u64()?,
        ];
        Ok(Self {
            message,
            read,
            write,
            handles,
        })
    }

    /// Appends the reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for value in [self.message, self.read, self.write, self.handles] {
            out.put_u64(value);
        }
    }

    /// Returns the length of the READs to send, in bytes: from 1 to [`MAX_DATA`].
    #[must_use]
    pub fn read_chunk(&self) -> u32 {
        self.chunk_len(self.read)
    }

    /// Returns the length of the WRITEs to send, in bytes: from 1 to [`MAX_DATA`].
    #[must_use]
    pub fn write_chunk(&self) -> u32 {
        self.chunk_len(self.write)
    }

    fn chunk_len(&self, most: u64) -> u32 {
        let most = match (most, self.message) {
            (0, _) => u64::from(USUAL_DATA),
            (most, 0) => most,
            // Reserves space for the header of a message with the longest possible handle.
            (most, message) => most.min(message.saturating_sub(1024)),
        };
        u32::try_from(most).unwrap_or(u32::MAX).clamp(1, MAX_DATA)
    }
}

/// State of a file system (`statvfs@openssh.com`), as in `statvfs(3)`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatVfs {
    /// Block size, in bytes.
    pub block: u64,
    /// Fragment size in bytes, the unit of the block counts.
    pub fragment: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Number of free blocks.
    pub free: u64,
    /// Number of free blocks for users other than root.
    pub available: u64,
    /// Number of inodes.
    pub files: u64,
    /// Number of free inodes.
    pub files_free: u64,
    /// Number of free inodes for users other than root.
    pub files_available: u64,
    /// File system identifier.
    pub id: u64,
    /// The file system is read-only.
    pub read_only: bool,
    /// Set-user-ID bits have no effect.
    pub no_setuid: bool,
    /// Maximum length of a file name, in bytes.
    pub name_max: u64,
}

impl StatVfs {
    /// Parses the reply.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if it is incomplete.
    pub fn parse(data: &[u8]) -> Result<Self, SshError> {
        let mut reader = MessageReader::new(data, "SFTP statvfs");
        let mut stat = Self::default();
        for field in [
            &mut stat.block,
            &mut stat.fragment,
            &mut stat.blocks,
            &mut stat.free,
            &mut stat.available,
            &mut stat.files,
            &mut stat.files_free,
            &mut stat.files_available,
            &mut stat.id,
        ] {
            *field = reader.read_u64()?;
        }
        let flags = reader.read_u64()?;
        stat.read_only = flags & 1 != 0;
        stat.no_setuid = flags & 2 != 0;
        stat.name_max = reader.read_u64()?;
        Ok(stat)
    }

    /// Appends the reply.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for value in [
            self.block,
            self.fragment,
            self.blocks,
            self.free,
            self.available,
            self.files,
            self.files_free,
            self.files_available,
            self.id,
            u64::from(self.read_only) | u64::from(self.no_setuid) << 1,
            self.name_max,
        ] {
            out.put_u64(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_read(values: [u64; 10], read_only: bool, no_setuid: bool) {
            let [block, fragment, blocks, free, available, files, files_free, files_available, id, name_max] = values;
            let stat = StatVfs {
                block, fragment, blocks, free, available, files, files_free, files_available, id,
                read_only, no_setuid, name_max,
            };
            let mut out = Vec::new();
            stat.encode(&mut out);
            prop_assert_eq!(StatVfs::parse(&out), Ok(stat));
            prop_assert!(StatVfs::parse(&out[1..]).is_err());

            let limits = SftpLimits { message: block, read: fragment, write: blocks, handles: free };
            let mut out = Vec::new();
            limits.encode(&mut out);
            prop_assert_eq!(SftpLimits::parse(&out), Ok(limits));
            prop_assert!((1..=MAX_DATA).contains(&limits.read_chunk()));
        }
    }

    #[test]
    fn chunks_are_what_the_server_takes_and_no_more() {
        assert_eq!(SftpLimits::default().read_chunk(), 32_768);
        assert_eq!(SftpLimits::LOCAL.write_chunk(), 261_120);
        let small = SftpLimits {
            message: 34_000,
            read: 1 << 40,
            ..SftpLimits::default()
        };
        assert_eq!(small.read_chunk(), 34_000 - 1024);
        assert_eq!(
            SftpLimits {
                message: 5,
                read: 9,
                ..small
            }
            .read_chunk(),
            1
        );
    }
}
