//! The lines before everything (RFC 4253 section 4.2): who we are, who the peer is.

use adit_wire::{Role, subslice};

use crate::error::SshError;
use crate::wire::printable;

/// The longest identification line, in octets with CR and LF.
const MAX_LINE: usize = 255;
/// The longest other line of a server, in octets.
const MAX_BANNER_LINE: usize = 8192;
/// How many other lines a server may send first.
const MAX_BANNER_LINES: usize = 1024;

/// An identification as it enters the exchange hash: without CR and LF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version(Vec<u8>);

impl Version {
    /// Ours, of the software's name, such as `adit_1.0`.
    ///
    /// # Errors
    /// [`SshError::Malformed`] for a name that is empty, too long, or has a space, a minus sign or
    /// characters that are not printable ASCII.
    pub fn ours(software: &str) -> Result<Self, SshError> {
        let fine = |b: u8| b.is_ascii_graphic() && b != b'-';
        let line = format!("SSH-2.0-{software}");
        if software.is_empty() || !software.bytes().all(fine) || line.len() > MAX_LINE - 2 {
            return Err(SshError::Malformed("software version"));
        }
        Ok(Self(line.into_bytes()))
    }

    /// The octets without CR and LF.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends the line with CR and LF.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
        out.extend_from_slice(b"\r\n");
    }
}

/// For logs: what is not printable ASCII becomes `?`.
impl core::fmt::Display for Version {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(&printable(&self.0, MAX_LINE))
    }
}

/// How far the reading has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionStep {
    /// The line is not complete.
    NeedMore,
    /// A line that says nothing to us; call again with what is behind it.
    Skipped {
        /// Octets of it.
        consumed: usize,
    },
    /// The identification.
    Done {
        /// Octets of its line.
        consumed: usize,
        /// What it says.
        version: Version,
    },
}

/// Looks for the peer's identification at the front of the stream.
#[derive(Debug)]
pub struct VersionReader {
    from: Role,
    lines: usize,
    /// Octets of the present line that were looked at already.
    seen: usize,
}

impl VersionReader {
    /// For the lines of `from`. A server may say other things before its identification, a client
    /// may not.
    #[must_use]
    pub const fn new(from: Role) -> Self {
        Self {
            from,
            lines: 0,
            seen: 0,
        }
    }

    /// Looks at what has come and was not consumed.
    ///
    /// # Errors
    /// [`SshError::TooMuch`] for a line or a number of lines above the bounds,
    /// [`SshError::Malformed`] for a NUL or a client's line that is no identification,
    /// [`SshError::Policy`] for a version of SSH that is not 2.0.
    pub fn step(&mut self, wire: &[u8]) -> Result<VersionStep, SshError> {
        let ours = wire.starts_with(b"SSH-");
        // As long as it may yet become an identification, the shorter bound holds.
        let limit = match self.from {
            Role::Server if !ours => MAX_BANNER_LINE,
            _ => MAX_LINE,
        };
        let fresh = subslice(wire, self.seen..);
        let Some(end) = fresh.iter().position(|b| *b == b'\n') else {
            self.seen = wire.len();
            return if wire.len() < limit {
                Ok(VersionStep::NeedMore)
            } else {
                Err(too_long(limit))
            };
        };
        let consumed = self.seen.saturating_add(end).saturating_add(1);
        self.seen = 0;
        if consumed > limit {
            return Err(too_long(limit));
        }
        let line = subslice(wire, ..consumed);
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.contains(&0) {
            return Err(SshError::Malformed("identification"));
        }
        if ours {
            let version = Version(line.to_vec());
            return self
                .judge(line)
                .map(|()| VersionStep::Done { consumed, version });
        }
        if self.from == Role::Client {
            return Err(SshError::Malformed("identification"));
        }
        self.lines += 1;
        if self.lines > MAX_BANNER_LINES {
            return Err(SshError::TooMuch {
                what: "lines before the identification",
                limit: MAX_BANNER_LINES,
            });
        }
        Ok(VersionStep::Skipped { consumed })
    }

    /// 1.99 is what a server says that speaks 1 and 2 (section 5.1).
    fn judge(&self, line: &[u8]) -> Result<(), SshError> {
        let both = self.from == Role::Server && line.starts_with(b"SSH-1.99-");
        if line.starts_with(b"SSH-2.0-") || both {
            Ok(())
        } else {
            Err(SshError::Policy("the peer speaks another version of SSH"))
        }
    }
}

const fn too_long(limit: usize) -> SshError {
    SshError::TooMuch {
        what: "a line before key exchange",
        limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The identification and the octets up to its end, in chunks of `chunk`.
    fn read(from: Role, wire: &[u8], chunk: usize) -> Result<Option<(usize, String)>, SshError> {
        let (mut reader, mut at, mut have) = (VersionReader::new(from), 0, 0);
        loop {
            match reader.step(&wire[at..have])? {
                VersionStep::NeedMore if have == wire.len() => return Ok(None),
                VersionStep::NeedMore => have = (have + chunk).min(wire.len()),
                VersionStep::Skipped { consumed } => at += consumed,
                VersionStep::Done { consumed, version } => {
                    return Ok(Some((at + consumed, version.to_string())));
                }
            }
        }
    }

    #[test]
    fn ours_reads_as_ours() {
        let version = Version::ours("adit_1.0").unwrap();
        let mut wire = Vec::new();
        version.write(&mut wire);
        assert_eq!(wire, b"SSH-2.0-adit_1.0\r\n");
        for from in [Role::Client, Role::Server] {
            let expected = Ok(Some((18, "SSH-2.0-adit_1.0".to_owned())));
            assert_eq!(read(from, &wire, 1), expected);
        }
        for bad in ["", "a b", "a-b", "a\n", &"x".repeat(246)] {
            assert!(Version::ours(bad).is_err(), "{bad}");
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
