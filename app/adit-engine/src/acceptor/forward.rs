//! Listeners that send every connection to one target.

use std::io;
use std::net::SocketAddr;

use adit_stream::BoxStream;
use adit_wire::Target;

use super::{Acceptor, Inbound, Pending, Reply};
use crate::{AcceptError, BoxFuture, DialError, Peer, Place, Request};

/// The acceptor of `tcp://LISTEN/TARGET`.
pub struct Fixed {
    /// The target of all connections.
    pub target: Target,
}

impl Acceptor for Fixed {
    fn accept(
        &self,
        io: BoxStream,
        _: Peer,
        _: Place,
    ) -> BoxFuture<'_, Result<Inbound, AcceptError>> {
        let pending = Pending::new(Request::to(self.target.clone()), Plain { io });
        Box::pin(async { Ok(Inbound::Stream(pending)) })
    }
}

/// A reply without words: sends nothing for success, and a reset for failure.
pub(super) struct Plain {
    pub(super) io: BoxStream,
}

impl Reply for Plain {
    fn client(&mut self) -> Option<&mut BoxStream> {
        Some(&mut self.io)
    }

    fn proceed(
        self: Box<Self>,
        _: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async { Ok(self.io) })
    }

    fn refuse<'a>(mut self: Box<Self>, _: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            self.io.abort();
            Ok(())
        })
    }
}
