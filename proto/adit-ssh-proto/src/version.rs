//! Identification lines at the start of a connection (RFC 4253 section 4.2).

use adit_wire::{Role, subslice};

use crate::error::SshError;
use crate::wire::to_printable;

/// Maximum length of an identification line, in bytes including CR and LF.
const MAX_LINE: usize = 255;
/// Maximum length of any other line that a server sends first, in bytes.
const MAX_BANNER_LINE: usize = 8192;
/// Maximum number of other lines that a server may send first.
const MAX_BANNER_LINES: usize = 1024;

/// Identification as it enters the exchange hash: without CR and LF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identification(Vec<u8>);

impl Identification {
    /// Creates adit's own identification from a software name such as `adit_1.0`.
    ///
    /// # Errors
    /// [`SshError::Malformed`] if the name is empty, too long, or contains a space, a minus sign or
    /// anything that is not printable ASCII.
    pub fn from_software_name(software: &str) -> Result<Self, SshError> {
        let fine = |b: u8| b.is_ascii_graphic() && b != b'-';
        let line = format!("SSH-2.0-{software}");
        if software.is_empty() || !software.bytes().all(fine) || line.len() > MAX_LINE - 2 {
            return Err(SshError::Malformed("software version"));
        }
        Ok(Self(line.into_bytes()))
    }

    /// Returns the identification without CR and LF.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends the line with CR and LF to `out`.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
        out.extend_from_slice(b"\r\n");
    }
}

/// Formats for logs: bytes that are not printable ASCII become `?`.
impl core::fmt::Display for Identification {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(&to_printable(&self.0, MAX_LINE))
    }
}

/// Progress of a [`IdentificationReader`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdentificationStep {
    /// The line is not complete; more bytes are needed.
    NeedMore,
    /// A line that is not an identification. Call again with the bytes after it.
    Skipped {
        /// Length of the line, in bytes.
        consumed: usize,
    },
    /// The peer's identification.
    Done {
        /// Length of the line, in bytes.
        consumed: usize,
        /// The identification.
        version: Identification,
    },
}

/// Finds the peer's identification at the start of the stream.
#[derive(Debug)]
pub struct IdentificationReader {
    from: Role,
    lines: usize,
    /// Number of bytes of the current line that were already searched.
    seen: usize,
}

impl IdentificationReader {
    /// Creates a reader for the lines of `from`. A server may send other lines before its
    /// identification; a client may not.
    #[must_use]
    pub const fn new(from: Role) -> Self {
        Self {
            from,
            lines: 0,
            seen: 0,
        }
    }

    /// Examines the bytes received and not yet consumed.
    ///
    /// # Errors
    /// [`SshError::TooMuch`] if a line is too long or there are too many lines,
    /// [`SshError::Malformed`] for a NUL or if a client's line is not an identification,
    /// [`SshError::Policy`] if the SSH version is not 2.0.
    pub fn next_step(&mut self, wire: &[u8]) -> Result<IdentificationStep, SshError> {
        let ours = wire.starts_with(b"SSH-");
        // While the line may still become an identification, the lower limit applies.
        let limit = match self.from {
            Role::Server if !ours => MAX_BANNER_LINE,
            _ => MAX_LINE,
        };
        let fresh = subslice(wire, self.seen..);
        let Some(end) = fresh.iter().position(|b| *b == b'\n') else {
            self.seen = wire.len();
            return if wire.len() < limit {
                Ok(IdentificationStep::NeedMore)
            } else {
                Err(line_too_long(limit))
            };
        };
        let consumed = self.seen.saturating_add(end).saturating_add(1);
        self.seen = 0;
        if consumed > limit {
            return Err(line_too_long(limit));
        }
        let line = subslice(wire, ..consumed);
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.contains(&0) {
            return Err(SshError::Malformed("identification"));
        }
        if ours {
            let version = Identification(line.to_vec());
            return self
                .check_protocol_version(line)
                .map(|()| IdentificationStep::Done { consumed, version });
        }
        if self.from == Role::Client {
            return Err(SshError::Malformed("identification"));
        }
        self.lines += 1;
        if self.lines > MAX_BANNER_LINES {
            return Err(SshError::TooMuch {
                what: "number of lines before the identification",
                limit: MAX_BANNER_LINES,
            });
        }
        Ok(IdentificationStep::Skipped { consumed })
    }

    /// Checks the protocol version. Servers that support 1.x and 2.0 send 1.99 (section 5.1).
    fn check_protocol_version(&self, line: &[u8]) -> Result<(), SshError> {
        let both = self.from == Role::Server && line.starts_with(b"SSH-1.99-");
        if line.starts_with(b"SSH-2.0-") || both {
            Ok(())
        } else {
            Err(SshError::Policy(
                "the peer's SSH protocol version is not 2.0",
            ))
        }
    }
}

const fn line_too_long(limit: usize) -> SshError {
    SshError::TooMuch {
        what: "length of a line before key exchange",
        limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the identification and the bytes up to its end, read in chunks of `chunk`.
    fn read(from: Role, wire: &[u8], chunk: usize) -> Result<Option<(usize, String)>, SshError> {
        let (mut reader, mut at, mut have) = (IdentificationReader::new(from), 0, 0);
        loop {
            match reader.next_step(&wire[at..have])? {
                IdentificationStep::NeedMore if have == wire.len() => return Ok(None),
                IdentificationStep::NeedMore => have = (have + chunk).min(wire.len()),
                IdentificationStep::Skipped { consumed } => at += consumed,
                IdentificationStep::Done { consumed, version } => {
                    return Ok(Some((at + consumed, version.to_string())));
                }
            }
        }
    }

    #[test]
    fn ours_reads_as_ours() {
        let version = Identification::from_software_name("adit_1.0").unwrap();
        let mut wire = Vec::new();
        version.write_line(&mut wire);
        assert_eq!(wire, b"SSH-2.0-adit_1.0\r\n");
        for from in [Role::Client, Role::Server] {
            let expected = Ok(Some((18, "SSH-2.0-adit_1.0".to_owned())));
            assert_eq!(read(from, &wire, 1), expected);
        }
        for bad in ["", "a b", "a-b", "a\n", &"x".repeat(246)] {
            assert!(Identification::from_software_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_servers_say_first_is_skipped() {
        let wire = b"hello\r\n\nSSHnot\nSSH-1.99-Old x y\nrest";
        for chunk in 1..wire.len() {
            let (end, version) = read(Role::Server, wire, chunk).unwrap().unwrap();
            assert_eq!(
                (&wire[end..], &*version),
                (&b"rest"[..], "SSH-1.99-Old x y")
            );
        }
        assert!(read(Role::Client, b"hello\r\n", 3).is_err());
        assert!(read(Role::Client, b"SSH-1.99-x\r\n", 3).is_err());
        assert!(read(Role::Server, b"SSH-1.5-x\r\n", 3).is_err());
        assert!(read(Role::Server, b"SSH-2.0-x\0y\r\n", 3).is_err());
    }

    #[test]
    fn bounds_hold() {
        let line = |len: usize| [&b"SSH-2.0-"[..], &vec![b'x'; len - 10], b"\r\n"].concat();
        assert!(read(Role::Server, &line(255), 255).unwrap().is_some());
        assert!(read(Role::Server, &line(256), 256).is_err());
        assert!(read(Role::Client, &[b'x'; 255], 7).is_err());
        assert!(read(Role::Server, &[b'x'; 8191], 100).unwrap().is_none());
        assert!(read(Role::Server, &[b'x'; 8192], 100).is_err());
        assert!(
            read(Role::Server, &b"\n".repeat(1024), 100)
                .unwrap()
                .is_none()
        );
        assert!(read(Role::Server, &b"\n".repeat(1025), 100).is_err());
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_splits_change_nothing(bytes: Vec<u8>, chunk in 1usize..9) {
            for from in [Role::Client, Role::Server] {
                prop_assert_eq!(read(from, &bytes, chunk), read(from, &bytes, bytes.len().max(1)));
            }
        }
    }
}
