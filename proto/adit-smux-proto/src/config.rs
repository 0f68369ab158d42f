//! What two ends must agree on, and what each decides for itself.

use core::time::Duration;

use adit_wire::Role;

use crate::ConfigError;

/// The protocol version. Both ends must be told the same one: it is not negotiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// One receive buffer for the session: a stream that is not read stops all others
    V1,
    /// A window for each stream besides
    V2,
}

impl Version {
    /// The first byte of each frame.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// The settings of a session. Only the version must be the peer's too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The protocol version.
    pub version: Version,
    /// Which end this is. It decides the numbers of the streams that are opened here: odd ones
    /// from 3 at a client, which dialled, and even ones from 2 at a server.
    pub role: Role,
    /// Most bytes of data in a frame that is sent, at least 1.
    pub max_frame: u16,
    /// Bytes received and not read, over all streams, from which no more are taken in: at least
    /// `stream_buffer`, at most 16 MiB. One frame may lie above it.
    pub session_buffer: u32,
    /// The window of a stream that is told to the peer in version 2, in bytes; at least 2. A peer
    /// assumes 262,144 until the first bytes were read.
    pub stream_buffer: u32,
    /// Bytes of a stream that [`Session::write`](crate::Session::write) keeps for sending, at
    /// least 1.
    pub send_buffer: usize,
    /// Streams at a time, opened by either end. The peer's are refused beyond.
    pub max_streams: usize,
    /// Streams of the peer that wait to be accepted. If it is reached nothing more is taken in; if
    /// it is 0 the peer cannot open streams at all.
    pub backlog: usize,
    /// How often the peer is told that this end lives; `None` also switches `timeout` off.
    pub keepalive: Option<Duration>,
    /// Silence after which the peer is taken for dead; at least `keepalive`.
    pub timeout: Duration,
}

/// The largest `session_buffer`.
const MAX_SESSION_BUFFER: u32 = 16 << 20;

impl Config {
    /// The usual settings: those of kcptun, with at most 4,096 streams. A client accepts no
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
