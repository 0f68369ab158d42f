//! Listeners that send every connection to one target.

use std::io;
use std::net::SocketAddr;

use adit_stream::BoxStream;
use adit_wire::Target;

use super::{FirstBytesPlace, InboundRequest, PendingRequest, RequestAcceptor, RequestReply};
use crate::{AcceptError, BoxFuture, ConnectionAddrs, DialError, HandshakeSlot, Request};

/// The acceptor of `tcp://LISTEN/TARGET`.
pub struct FixedTarget {
    /// The target of all connections.
    pub target: Target,
}

impl RequestAcceptor for FixedTarget {
    fn accept_request(
        &self,
        io: BoxStream,
        _: ConnectionAddrs,
        _: HandshakeSlot,
    ) -> BoxFuture<'_, Result<InboundRequest, AcceptError>> {
        let pending =
            PendingRequest::new(Request::for_target(self.target.clone()), PlainReply { io });
        Box::pin(async { Ok(InboundRequest::Stream(pending)) })
    }
}

/// A reply without words: sends nothing for success, and a reset for failure.
pub(super) struct PlainReply {
    pub(super) io: BoxStream,
}

impl RequestReply for PlainReply {
    fn client_stream(&mut self) -> Option<&mut BoxStream> {
        Some(&mut self.io)
    }

    fn first_bytes_place(&self) -> FirstBytesPlace {
        FirstBytesPlace::InStream
    }

    fn reply_success(
        self: Box<Self>,
        _: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async { Ok(self.io) })
    }

    fn reply_failure<'a>(mut self: Box<Self>, _: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            self.io.abort();
            Ok(())
        })
    }
}
