//! The errors of a handover channel.

use std::io;

use super::header::{MAX_BODY_BYTES, MAX_DESCRIPTORS};

/// A message between two processes that could not be sent or received. The channel is of no use afterwards,
/// except after a refusal to send ([`BodyTooLarge`](Self::BodyTooLarge) and
/// [`TooManyDescriptors`](Self::TooManyDescriptors)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HandoverError {
    /// The system failed.
    #[error("cannot {doing} the other process")]
    Io {
        /// The operation, such as "send a message to".
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The bytes are not those of a message.
    #[error(
        "the other process does not send handover messages; both must be adit, and standard input must be the \
         handover channel"
    )]
    NotAHeader,
    /// The framing has another version.
    #[error(
        "the other process uses version {version} of the handover, this one only version 1; stop it and start the \
         new binary instead"
    )]
    UnknownVersion {
        /// The peer's version.
        version: u16,
    },
    /// A body is larger than 16 MiB.
    #[error(
        "handover message {kind} has a body of {bytes} bytes, at most {MAX_BODY_BYTES} are allowed; divide it"
    )]
    BodyTooLarge {
        /// The kind of the message.
        kind: u16,
        /// The size of the body, in bytes.
        bytes: usize,
    },
    /// A message has more than 64 descriptors.
    #[error("handover message {kind} has more than {MAX_DESCRIPTORS} descriptors; divide it")]
    TooManyDescriptors {
        /// The kind of the message.
        kind: u16,
    },
    /// The number of received descriptors differs from the announced one. The usual cause is this process's
    /// limit of open files.
    #[error(
        "handover message {kind} announces {announced} descriptors, {received} were received; raise the limit of \
         open files (`ulimit -n`)"
    )]
    MissingDescriptors {
        /// The kind of the message.
        kind: u16,
        /// The number in the header.
        announced: usize,
        /// The number of descriptors that were received, perhaps more than announced.
        received: usize,
    },
    /// The peer closed the channel within a message.
    #[error(
        "the other process closed the handover channel within a message; it has probably ended"
    )]
    Truncated,
    /// An earlier message was sent in part: its future was dropped, or it failed.
    #[error("the handover channel is unusable: an earlier message was sent in part")]
    Unusable,
}

impl HandoverError {
    pub(super) fn receiving(source: io::Error) -> Self {
        let doing = "receive a handover message from";
        Self::Io { doing, source }
    }

    pub(super) fn sending(source: io::Error) -> Self {
        let doing = "send a handover message to";
        Self::Io { doing, source }
    }
}
