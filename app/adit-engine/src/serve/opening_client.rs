//! The client of a request between its request and the relay.

use std::io;
use std::net::SocketAddr;

use adit_stream::{BoxStream, Stream, fill_to};

use crate::DialError;
use crate::acceptor::{FurtherRequests, LateFailure, PendingRequest};

/// Maximum number of bytes that are read from a client before its request is granted.
pub(super) const MAX_EARLY_BYTES: usize = 16 << 10;

/// The client of a request that is being opened.
pub(super) enum OpeningClient {
    /// It waits for the verdict.
    Waiting(PendingRequest),
    /// It has received the reply for success, because it sends no byte before that.
    Replied(BoxStream),
}

impl OpeningClient {
    /// Waits until the client has closed the connection or violated its protocol, as far as this is visible.
    /// Returns the reason.
    pub(super) async fn wait_for_close(&mut self) -> String {
        let stream = match self {
            Self::Waiting(pending) => pending.client_stream(),
            Self::Replied(io) => Some(io),
        };
        match stream {
            Some(io) => wait_for_client_error(io).await,
            None => std::future::pending().await,
        }
    }

    /// See [`PendingRequest::is_settled`].
    pub(super) fn is_settled(&self) -> bool {
        match self {
            Self::Waiting(pending) => pending.is_settled(),
            Self::Replied(_) => true,
        }
    }

    /// See [`PendingRequest::settle`].
    pub(super) async fn settle(&mut self) -> bool {
        match self {
            Self::Waiting(pending) => pending.settle().await,
            Self::Replied(_) => true,
        }
    }

    /// See [`PendingRequest::reject`].
    pub(super) async fn reject(self) {
        if let Self::Waiting(pending) = self {
            pending.reject().await;
        }
    }

    /// See [`PendingRequest::further_requests`].
    pub(super) fn further_requests(&mut self) -> Option<Box<dyn FurtherRequests>> {
        match self {
            Self::Waiting(pending) => pending.further_requests(),
            Self::Replied(_) => None,
        }
    }

    /// See [`PendingRequest::late_failure`].
    pub(super) fn late_failure(&self) -> Option<LateFailure> {
        match self {
            Self::Waiting(pending) => pending.late_failure(),
            Self::Replied(_) => None,
        }
    }

    /// See [`PendingRequest::reveals_bound_addr`].
    pub(super) fn reveals_bound_addr(&self) -> bool {
        match self {
            Self::Waiting(pending) => pending.reveals_bound_addr(),
            Self::Replied(_) => false,
        }
    }

    /// See [`PendingRequest::reply_success`].
    pub(super) async fn reply_success(self, bound: Option<SocketAddr>) -> io::Result<BoxStream> {
        match self {
            Self::Waiting(pending) => pending.reply_success(bound).await,
            Self::Replied(io) => Ok(io),
        }
    }

    /// Reports the failure to the client. If it has received the reply for success, its connection is closed so
    /// that it looks like a failure.
    pub(super) async fn reply_failure(self, why: &DialError) -> io::Result<()> {
        match self {
            Self::Waiting(pending) => pending.reply_failure(why).await,
            Self::Replied(mut io) => {
                io.abort();
                Ok(())
            }
        }
    }
}

/// Waits until reading from the client fails, and keeps the bytes read. An end of the stream is no reason
/// to give up, because the client may have sent everything.
async fn wait_for_client_error(io: &mut BoxStream) -> String {
    loop {
        let have = io.filled().len();
        match fill_to(io, have + 1).await {
            Ok(n) if n > have && n < MAX_EARLY_BYTES => {}
            Ok(_) => return std::future::pending().await,
            // The error of a codec: the client's bytes were invalid.
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                return format!("the client violated its protocol: {e}");
            }
            Err(e) => return format!("the client closed the connection: {e}"),
        }
    }
}
