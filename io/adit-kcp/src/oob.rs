//! Out-of-band datagrams beside the stream, as in kcp-go: under the header of a shard, without
//! correction and retransmission.

use std::task::{Context, Poll};

use adit_fec::{HEADER, OOB_HEADER};
use tokio::sync::mpsc;

/// Maximum number of datagrams that wait for the application; more are lost.
const MAX_QUEUED: usize = 64;

/// Error of an out-of-band datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OobError {
    /// The session has no [correction](super::Settings::fec), whose header these datagrams use.
    #[error("out-of-band datagrams need forward error correction")]
    NoCorrection,
    /// The datagram is too long.
    #[error("an out-of-band datagram must not be longer than {limit} bytes")]
    TooLong {
        /// Maximum length in bytes.
        limit: usize,
    },
    /// The session has failed, or the peer has closed it.
    #[error("the KCP session has ended")]
    Ended,
}

/// Receives the peer's out-of-band datagrams; created by [`KcpStream::oob_receiver`](crate::KcpStream::oob_receiver).
///
/// At most 64 datagrams wait here, each of less than 1,500 bytes; more are lost. Does not keep the
/// session open.
#[derive(Debug)]
pub struct OobReceiver(mpsc::Receiver<Box<[u8]>>);

impl OobReceiver {
    /// Waits for the next datagram. Returns `None` once no more can arrive: the session has ended,
    /// or a later receiver has replaced this one.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn recv(&mut self) -> Option<Box<[u8]>> {
        self.0.recv().await
    }

    /// Polls for the next datagram, like [`recv`](Self::recv).
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Box<[u8]>>> {
        self.0.poll_recv(cx)
    }

    /// Returns a datagram if one is available.
    pub fn try_recv(&mut self) -> Option<Box<[u8]>> {
        self.0.try_recv().ok()
    }
}

/// The sending end of an [`OobReceiver`].
#[derive(Debug)]
pub(super) struct OobSender(mpsc::Sender<Box<[u8]>>);

impl OobSender {
    /// Queues a datagram, or drops it if the queue is full.
    pub(super) fn try_send(&self, payload: &[u8]) {
        if let Ok(place) = self.0.try_reserve() {
            place.send(payload.into());
        }
    }
}

pub(super) fn new_queue() -> (OobSender, OobReceiver) {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED);
    (OobSender(sender), OobReceiver(receiver))
}

/// Returns the maximum length of an out-of-band datagram for KCP datagrams of `mtu` bytes: the
/// headers differ by the conversation, which KCP has in its own.
pub(super) fn max_payload(mtu: usize) -> usize {
    mtu.saturating_sub(OOB_HEADER - HEADER)
}
