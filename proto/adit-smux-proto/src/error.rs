//! Errors of this end; errors of the peer are [`adit_wire::ProtocolError`].

use core::time::Duration;

/// Error of invalid settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// `max_frame`, `send_buffer` or `max_streams` is 0.
    #[error("the frame size, the send buffer and the number of streams must not be 0")]
    Zero,
    /// `stream_buffer` is below 2 or above `session_buffer`.
    #[error("the stream buffer must be at least 2 bytes and at most the session buffer")]
    StreamBuffer,
    /// `session_buffer` is too large.
    #[error("the session buffer must be at most 16 MiB")]
    SessionBuffer,
    /// `keepalive` is 0 or longer than `timeout`.
    #[error("the keepalive interval must not be 0 or longer than the timeout")]
    Keepalive,
}

/// Error of [`Session::open`](crate::Session::open).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The stream numbers are used up: open another session.
    #[error("all stream numbers of the session are used")]
    Exhausted,
    /// The session already has [`max_streams`](crate::Config::max_streams) streams.
    #[error("the session has reached its maximum number of streams")]
    TooMany,
    /// The session has failed.
    #[error("the session has failed")]
    SessionFailed,
}

/// Error of an operation on a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The stream was never opened, or was closed at this end.
    #[error("no such stream")]
    Unknown,
    /// There are no bytes to read now; [`Event::Readable`](crate::Event::Readable) or
    /// [`Event::Finished`](crate::Event::Finished) will follow.
    #[error("nothing to read now")]
    Empty,
    /// Write after the end of this direction.
    #[error("the write direction of the stream has ended")]
    Ended,
    /// The peer claims to have read data that was never sent: the stream can only be closed.
    #[error("the peer violated the stream's flow control")]
    Failed,
    /// The frame must not be sent now, see [`Session::direct_capacity`](crate::Session::direct_capacity).
    #[error("the frame is longer than the peer's window or the frame limit allows")]
    TooLong,
}

/// The peer counts as dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer was silent for {} s", .0.as_secs())]
pub struct PeerSilent(
    /// Duration of the silence.
    pub Duration,
);
