//! Settings of a session.

use core::time::Duration;

use adit_wire::Role;

use crate::ConfigError;

/// The protocol version. Both ends must use the same one: it is not negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// One receive buffer for the session: a stream that is not read stops all others.
    V1,
    /// Additionally a window for each stream.
    V2,
}

impl Version {
    /// Returns the first byte of each frame.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// The settings of a session. Only the version must be equal at both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The protocol version.
    pub version: Version,
    /// The role of this end. It determines the numbers of the streams that are opened here: odd
    /// ones from 3 at a client, which has connected, and even ones from 2 at a server.
    pub role: Role,
    /// Maximum length of the data of a sent frame in bytes; at least 1.
    pub max_frame: u16,
    /// Number of bytes received and not read, over all streams, from which on no input is accepted:
    /// at least `stream_buffer`, at most 16 MiB. One frame may exceed it.
    pub session_buffer: u32,
    /// The window of a stream that is reported to the peer in version 2, in bytes; at least 2. A
    /// peer assumes 262,144 until the first bytes were read.
    pub stream_buffer: u32,
    /// Maximum number of bytes of a stream that [`Session::write`](crate::Session::write) keeps for
    /// sending; at least 1.
    pub send_buffer: usize,
    /// Maximum number of streams at a time, opened by either end. Further streams of the peer are
    /// refused.
    pub max_streams: usize,
    /// Maximum number of the peer's streams that wait to be accepted. At this number no more input
    /// is accepted. With 0 the peer cannot open streams at all.
    pub backlog: usize,
    /// Interval of keep-alives; `None` also disables `timeout`.
    pub keepalive: Option<Duration>,
    /// Silence after which the peer counts as dead; at least `keepalive`.
    pub timeout: Duration,
}

/// Maximum value of `session_buffer`.
const MAX_SESSION_BUFFER: u32 = 16 << 20;

impl Config {
    /// Returns the defaults: those of kcptun, with at most 4,096 streams. A client accepts no
    /// streams.
    #[must_use]
    pub const fn new(version: Version, role: Role) -> Self {
        Self {
            version,
            role,
            max_frame: 8192,
            session_buffer: 4 << 20,
            stream_buffer: 2 << 20,
            send_buffer: 64 << 10,
            max_streams: 4096,
            backlog: match role {
                Role::Client => 0,
                Role::Server => 1024,
            },
            keepalive: Some(Duration::from_secs(10)),
            timeout: Duration::from_secs(30),
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.max_frame == 0 || self.send_buffer == 0 || self.max_streams == 0 {
            return Err(ConfigError::Zero);
        }
        if self.stream_buffer < 2 || self.stream_buffer > self.session_buffer {
            return Err(ConfigError::StreamBuffer);
        }
        if self.session_buffer > MAX_SESSION_BUFFER {
            return Err(ConfigError::SessionBuffer);
        }
        match self.keepalive {
            Some(every) if every.is_zero() || every > self.timeout => Err(ConfigError::Keepalive),
            _ => Ok(()),
        }
    }
}
