//! Datagrams beside the stream, as kcp-go has them: under the header of a shard, without correction
//! and repetition.

use std::task::{Context, Poll};

use adit_fec::{HEADER, OOB_HEADER};
use tokio::sync::mpsc;

/// Datagrams that wait for the program; what comes while there are so many is lost.
const QUEUE: usize = 64;

/// Why a datagram beside the stream was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OobError {
    /// The session has no [correction](super::Settings::fec), under whose header they go.
    #[error("datagrams beside the stream need forward error correction")]
    NoCorrection,
    /// More than one datagram holds.
    #[error("a datagram beside the stream has at most {limit} bytes")]
    TooLong {
        /// Bytes of the longest.
        limit: usize,
    },
    /// The session has failed, or the peer has closed it.
    #[error("the KCP session has come to its end")]
    Ended,
}

/// Receives what the peer sends beside the stream, by
/// [`KcpStream::oob`](crate::KcpStream::oob).
///
/// 64 datagrams wait here at most, each of less than 1,500 bytes; what comes while there are so many
/// is lost. Does not keep the session open.
#[derive(Debug)]
pub struct OobReceiver(mpsc::Receiver<Box<[u8]>>);

impl OobReceiver {
    /// Waits for the next datagram and returns it; `None` once no more can come: the session has come
    /// to its end, or a later receiver has taken the place of this one. Cancel-safe.
    pub async fn recv(&mut self) -> Option<Box<[u8]>> {
        self.0.recv().await
    }

    /// As [`recv`](Self::recv), for tasks that poll.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Box<[u8]>>> {
        self.0.poll_recv(cx)
    }

    /// Returns a datagram if one waits.
    pub fn try_recv(&mut self) -> Option<Box<[u8]>> {
        self.0.try_recv().ok()
    }
}

/// The other end of that.
#[derive(Debug)]
pub(super) struct OobSender(mpsc::Sender<Box<[u8]>>);

impl OobSender {
    /// Puts a datagram there, or loses it.
    pub(super) fn put(&self, payload: &[u8]) {
        if let Ok(place) = self.0.try_reserve() {
            place.send(payload.into());
        }
    }
}

pub(super) fn queue() -> (OobSender, OobReceiver) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (OobSender(sender), OobReceiver(receiver))
}

/// Bytes of the longest datagram beside a stream with KCP datagrams of `mtu` bytes: the headers differ
/// by the conversation, which KCP has in its own.
pub(super) fn limit(mtu: usize) -> usize {
    mtu.saturating_sub(OOB_HEADER - HEADER)
}
