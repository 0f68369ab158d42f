//! What the application cannot ask for.

/// Why a call had no effect. The connection goes on; nothing of it is the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The channel has ended, or is not of this connection.
    #[error("the channel is gone")]
    Gone,
    /// The channel is not open yet, or is open already.
    #[error("the channel is not at that point")]
    NotNow,
    /// The own side of the channel has ended.
    #[error("the own side of the channel has ended")]
    Ended,
    /// No more channels, or no more requests without an answer.
    #[error("too many channels or requests at a time")]
    TooMany,
    /// The output is full: [`poll_output`](super::Connection::poll_output) first.
    #[error("the output is full")]
    Full,
    /// A type or a request of the program's own has a name that is known here.
    #[error("the library handles this name itself")]
    Reserved,
    /// More data than there is room for, or none at all.
    #[error("no data, or more than there is room for")]
    NoRoom,
}
