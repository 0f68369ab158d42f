//! What can go wrong on this side; what the peer does wrong is an [`adit_wire::ProtocolError`].

use core::time::Duration;

/// Why settings make no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// `max_frame`, `send_buffer` or `max_streams` is 0.
    #[error("the frame size, the send buffer and the number of streams must not be 0")]
    Zero,
    /// `stream_buffer` is below 2 or above `session_buffer`.
    #[error("the stream buffer must have 2 bytes or more, and not more than the session buffer")]
    StreamBuffer,
    /// `session_buffer` is too large.
    #[error("the session buffer must not be above 16 MiB")]
    SessionBuffer,
    /// `keepalive` is 0 or longer than `timeout`.
    #[error("the keepalive interval must not be 0, and not longer than the timeout")]
    Keepalive,
}

/// Why no stream was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The numbers are used up: another session is needed.
    #[error("all stream numbers of the session are used")]
    Exhausted,
    /// As many streams as the session may have are open.
    #[error("the session has as many streams as it may")]
    TooMany,
    /// The session is broken.
    #[error("the session is broken")]
    Broken,
}

/// Why nothing was done with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// No such stream: never opened, or closed on this side.
    #[error("no such stream")]
    Unknown,
    /// Nothing to read now; [`Event::Readable`](crate::Event::Readable) or
    /// [`Event::Finished`](crate::Event::Finished) will come.
    #[error("nothing to read now")]
    Empty,
    /// Writing after the own end.
    #[error("this side of the stream has ended")]
    Ended,
    /// The peer claims to have read what was never sent: the stream can only be closed.
    #[error("the peer broke the stream's flow control")]
    Failed,
    /// A frame that may not be sent now, see [`Session::direct`](crate::Session::direct).
    #[error("the frame is longer than may be sent now")]
    TooLong,
}

/// The peer is taken for dead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nothing came from the peer for {} s", .0.as_secs())]
pub struct Silent(
    /// How long.
    pub Duration,
);
