//! The journal of systemd, in its native protocol: each message with its fields.

use std::io;
#[cfg(target_os = "linux")]
use std::{
    fs::File,
    os::{fd::AsFd, unix::fs::MetadataExt, unix::net::UnixDatagram},
};

use tracing::Level;

use super::record::{FieldValue, LogRecord};

/// The socket of the journal.
#[cfg(target_os = "linux")]
const SOCKET: &str = "/run/systemd/journal/socket";

/// A connection to the journal.
#[derive(Debug)]
pub(super) struct Journal {
    #[cfg(target_os = "linux")]
    socket: UnixDatagram,
}

impl Journal {
    /// Connects to the journal, if standard error is a stream that leads to it.
    #[cfg(target_os = "linux")]
    pub(super) fn of_stderr() -> Option<Self> {
        let stream = std::env::var("JOURNAL_STREAM").ok()?;
        let (device, inode) = stream.split_once(':')?;
        let (device, inode): (u64, u64) = (device.parse().ok()?, inode.parse().ok()?);
        let stderr = io::stderr().as_fd().try_clone_to_owned().ok()?;
        let stderr = File::from(stderr).metadata().ok()?;
        if (stderr.dev(), stderr.ino()) != (device, inode) {
            return None;
        }
        let socket = UnixDatagram::unbound().ok()?;
        socket.connect(SOCKET).ok()?;
        Some(Self { socket })
    }

    /// Returns `None`: this system has no such journal.
    #[cfg(not(target_os = "linux"))]
    pub(super) const fn of_stderr() -> Option<Self> {
        None
    }

    /// Sends a message.
    #[cfg(target_os = "linux")]
    pub(super) fn send(&self, record: &LogRecord) -> io::Result<()> {
        self.socket.send(&encode_record(record)).map(drop)
    }

    /// Fails.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn send(&self, _: &LogRecord) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Encodes a message as a datagram. `MESSAGE` has the fields too, because `journalctl` shows it alone.
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "only Linux has the journal")
)]
fn encode_record(record: &LogRecord) -> Vec<u8> {
    let mut datagram = Vec::with_capacity(256);
    let priority = match record.level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        _ => "7",
    };
    push_field(&mut datagram, "PRIORITY", priority);
    push_field(&mut datagram, "SYSLOG_IDENTIFIER", "adit");
    push_field(&mut datagram, "MESSAGE", &record.to_text());
    push_field(&mut datagram, "ADIT_MODULE", &record.target);
    for (name, value) in &record.fields.0 {
        let (FieldValue::Text(text) | FieldValue::Plain(text)) = value;
        push_field(&mut datagram, &field_name(name), text);
    }
    datagram
}

/// Returns the journal's name of a field: letters, digits and underscores, with a prefix.
fn field_name(name: &str) -> String {
    let letter = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_uppercase(),
        false => '_',
    };
    "ADIT_".chars().chain(name.chars().map(letter)).collect()
}

fn push_field(datagram: &mut Vec<u8>, name: &str, value: &str) {
    datagram.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        datagram.push(b'\n');
        let len = u64::try_from(value.len()).unwrap_or(u64::MAX);
        datagram.extend_from_slice(&len.to_le_bytes());
    } else {
        datagram.push(b'=');
    }
    datagram.extend_from_slice(value.as_bytes());
    datagram.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::super::record::Fields;
    use super::*;

    #[test]
    fn fields_are_names_and_values() {
        let record = LogRecord {
            level: Level::INFO,
            target: "adit_engine".to_owned(),
            message: "open".to_owned(),
            fields: Fields(vec![
                ("session.id", FieldValue::Plain("7".to_owned())),
                ("why", FieldValue::Text("a\nb".to_owned())),
            ]),
        };
        let expected =
            b"PRIORITY=6\nSYSLOG_IDENTIFIER=adit\nMESSAGE=open session.id=7 why=\"a\\nb\"\n\
            ADIT_MODULE=adit_engine\nADIT_SESSION_ID=7\nADIT_WHY\n\x03\0\0\0\0\0\0\0a\nb\n";
        assert_eq!(encode_record(&record), expected);
    }
}
