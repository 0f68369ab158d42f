//! OpenSSH's extensions (its `PROTOCOL`, section 4), and their announcement by a server.

use super::message_number;
use crate::error::SshError;
use crate::wire::{MessageReader, SshBufMut};

macro_rules! extensions {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $version:literal;)*) => {
        /// An operation beyond version 3.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Extension {
            $($(#[$doc])* $variant,)*
        }

        impl Extension {
            /// All extensions, in the order in which a server announces them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name on the wire.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the supported version on the wire.
            #[must_use]
            pub const fn version(self) -> &'static str {
                match self {
                    $(Self::$variant => $version,)*
                }
            }
        }
    };
}

extensions! {
    /// Rename that replaces an existing file.
    PosixRename = "posix-rename@openssh.com", "1";
    /// Free space on the file system of a path.
    StatVfs = "statvfs@openssh.com", "2";
    /// Free space on the file system of a handle.
    FStatVfs = "fstatvfs@openssh.com", "2";
    /// Creation of hard links.
    HardLink = "hardlink@openssh.com", "1";
    /// Flush of written data to the disk.
    FSync = "fsync@openssh.com", "1";
    /// SETSTAT that does not follow a symbolic link.
    LSetStat = "lsetstat@openssh.com", "1";
    /// Query of the server's limits.
    Limits = "limits@openssh.com", "1";
    /// Expansion of a path that starts with `~`.
    ExpandPath = "expand-path@openssh.com", "1";
    /// Copy within the server.
    CopyData = "copy-data", "1";
    /// Home directory of a user.
    HomeDirectory = "home-directory", "1";
    /// Names of users and groups by number.
    UsersGroupsById = "users-groups-by-id@openssh.com", "1";
}

impl Extension {
    /// Returns the extension with this name.
    #[must_use]
    pub fn by_name(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|one| one.name().as_bytes() == name)
    }

    const fn bit(self) -> u16 {
        1 << (self as u8)
    }
}

/// Set of extensions that a server announced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtensionSet(u16);

impl ExtensionSet {
    /// All supported extensions.
    pub const ALL: Self = Self((1 << Extension::ALL.len()) - 1);

    /// True if the set contains `one`.
    #[must_use]
    pub const fn contains(self, one: Extension) -> bool {
        self.0 & one.bit() != 0
    }

    /// Returns the set with `one` added.
    #[must_use]
    pub const fn with(self, one: Extension) -> Self {
        Self(self.0 | one.bit())
    }

    /// Returns the set with `one` removed.
    #[must_use]
    pub const fn without(self, one: Extension) -> Self {
        Self(self.0 & !one.bit())
    }
}

/// Appends INIT, a client's first message.
pub(super) fn put_init(out: &mut Vec<u8>) {
    out.put_nested(|out| {
        out.put_u8(message_number::INIT);
        out.put_u32(super::VERSION);
    });
}

/// Parses INIT and returns the client's version. Its extensions are ignored.
pub(super) fn parse_init(frame: &[u8]) -> Result<u32, SshError> {
    let mut reader = MessageReader::new(frame, "SFTP INIT");
    match reader.read_u8()? {
        message_number::INIT => reader.read_u32(),
        other => Err(SshError::Unexpected(other)),
    }
}

/// Appends VERSION, a server's first message.
pub(super) fn put_version(extensions: ExtensionSet, out: &mut Vec<u8>) {
    out.put_nested(|out| {
        out.put_u8(message_number::VERSION);
        out.put_u32(super::VERSION);
        for one in Extension::ALL {
            if extensions.contains(*one) {
                out.put_string(one.name().as_bytes());
                out.put_string(one.version().as_bytes());
            }
        }
    });
}

/// Parses VERSION; returns the server's version and the supported ones of its extensions.
pub(super) fn parse_version(frame: &[u8]) -> Result<(u32, ExtensionSet), SshError> {
    let mut reader = MessageReader::new(frame, "SFTP VERSION");
    match reader.read_u8()? {
        message_number::VERSION => {}
        other => return Err(SshError::Unexpected(other)),
    }
    let version = reader.read_u32()?;
    let mut extensions = ExtensionSet::default();
    while !reader.remaining().is_empty() {
        let (name, data) = (reader.read_string()?, reader.read_string()?);
        if let Some(one) = Extension::by_name(name)
            && one.version().as_bytes() == data
        {
            extensions = extensions.with(one);
        }
    }
    Ok((version, extensions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_tells_is_read() {
        for wish in [
            ExtensionSet::default(),
            ExtensionSet::ALL,
            ExtensionSet::ALL.without(Extension::CopyData),
        ] {
            let mut out = Vec::new();
            put_version(wish, &mut out);
            assert_eq!(parse_version(&out[4..]), Ok((3, wish)));
        }
        for one in Extension::ALL {
            assert!(ExtensionSet::ALL.contains(*one));
            assert_eq!(Extension::by_name(one.name().as_bytes()), Some(*one));
        }
    }

    #[test]
    fn other_versions_of_an_extension_are_others() {
        let mut frame = vec![message_number::VERSION];
        frame.put_u32(3);
        frame.put_string(b"statvfs@openssh.com");
        frame.put_string(b"1");
        frame.put_string(b"newline@vandyke.com");
        frame.put_string(b"\n");
        assert_eq!(parse_version(&frame), Ok((3, ExtensionSet::default())));
        frame.push(0);
        assert!(parse_version(&frame).is_err());
    }
}
