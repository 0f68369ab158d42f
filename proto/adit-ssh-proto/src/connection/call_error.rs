//! Errors of the application's calls.

/// Reason why a call had no effect. The connection stays usable; the peer is not at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelCallError {
    /// The channel has ended, or does not belong to this connection.
    #[error("the channel is gone")]
    Gone,
    /// The channel is not open yet, or is open already.
    #[error("the channel's state does not allow this call")]
    NotNow,
    /// The sending side of the channel has ended.
    #[error("the sending side of the channel has ended")]
    Ended,
    /// There are too many channels, or too many unanswered requests.
    #[error("too many channels or unanswered requests")]
    TooMany,
    /// The output is full: call [`poll_output`](super::Connection::poll_output) first.
    #[error("the output is full")]
    Full,
    /// An application-defined type or request has the name of a built-in one.
    #[error("the library handles this name itself")]
    Reserved,
    /// There is no data, or more than fits.
    #[error("the data is empty or exceeds the available space")]
    NoRoom,
}
