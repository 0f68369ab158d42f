//! Requests that other nodes of a fleet may have seen before.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_stream::BoxStream;
use adit_wire::ProtocolError;

use super::header::{AcceptResult, ConnectionProgress};
use super::shadowsocks::SilentReply;
use super::{FirstBytesPlace, InboundRequest, RejectHandler, RequestReply};
use crate::{AcceptError, BoxFuture, DialError};

/// Adds the codecs of a connection to its stream.
pub(super) type AddCodecs = Box<dyn FnOnce(BoxStream) -> BoxStream + Send>;

/// The reply to a request about which other nodes have not decided yet.
///
/// Until they have, the stream stays as it was received: if the request turns out to be a replay, the reject policy
/// continues with it as if this node had seen the request before.
pub(super) struct UnconfirmedReply {
    client: Client,
    rejects: Arc<RejectHandler>,
}

enum Client {
    /// The other nodes have not decided yet.
    Unconfirmed(Box<UnconfirmedClient>),
    Confirmed(SilentReply),
    /// The request is a replay, and the policy has taken over.
    Rejected,
}

struct UnconfirmedClient {
    /// The stream without its codecs.
    io: BoxStream,
    add_codecs: AddCodecs,
    seen: ConnectionProgress,
}

impl UnconfirmedReply {
    /// Creates the reply to a request on `io`, whose verdict is in `seen`.
    pub(super) fn new(
        io: BoxStream,
        add_codecs: AddCodecs,
        seen: ConnectionProgress,
        rejects: Arc<RejectHandler>,
    ) -> Self {
        let client = UnconfirmedClient {
            io,
            add_codecs,
            seen,
        };
        let client = Client::Unconfirmed(Box::new(client));
        Self { client, rejects }
    }

    /// Returns the reply once the request is confirmed; a replay is passed to the reject policy.
    async fn confirmed(mut self: Box<Self>) -> io::Result<SilentReply> {
        if self.settle().await
            && let Client::Confirmed(reply) = self.client
        {
            return Ok(reply);
        }
        self.reject().await;
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            ProtocolError::Replayed,
        ))
    }
}

/// Returns the rejection of a connection whose request is a replay at another node.
pub(super) fn reject_replay(
    io: BoxStream,
    mut seen: ConnectionProgress,
    rejects: &Arc<RejectHandler>,
) -> AcceptResult {
    seen.is_decidable = true;
    let why = AcceptError::Rejected(ProtocolError::Replayed);
    seen.reject_connection(io, why, rejects, 0)
}

impl RequestReply for UnconfirmedReply {
    fn is_settled(&self) -> bool {
        !matches!(self.client, Client::Unconfirmed(_))
    }

    fn settle(&mut self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let Client::Unconfirmed(client) = &mut self.client else {
                return matches!(self.client, Client::Confirmed(_));
            };
            if !client.seen.verdict.is_new().await {
                return false;
            }
            if let Client::Unconfirmed(client) =
                std::mem::replace(&mut self.client, Client::Rejected)
            {
                let io = (client.add_codecs)(client.io);
                self.client = Client::Confirmed(SilentReply { io });
            }
            true
        })
    }

    fn reject(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            if let Client::Unconfirmed(client) = self.client
                && let Ok(InboundRequest::Rejected(rejection)) =
                    reject_replay(client.io, client.seen, &self.rejects)
            {
                rejection.apply_policy().await;
            }
        })
    }

    fn client_stream(&mut self) -> Option<&mut BoxStream> {
        match &mut self.client {
            Client::Confirmed(reply) => reply.client_stream(),
            Client::Unconfirmed(_) | Client::Rejected => None,
        }
    }

    fn first_bytes_place(&self) -> FirstBytesPlace {
        FirstBytesPlace::InStream
    }

    fn reply_success(
        self: Box<Self>,
        bound: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async move {
            let reply = self.confirmed().await?;
            Box::new(reply).reply_success(bound).await
        })
    }

    fn reply_failure<'a>(self: Box<Self>, why: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let reply = self.confirmed().await?;
            Box::new(reply).reply_failure(why).await
        })
    }
}
