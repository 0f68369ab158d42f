//! Shadowsocks clients that are passed on to other servers (SIP023): their streams are not opened.

use std::sync::Arc;
use std::time::Duration;

use adit_shadowsocks::relay::{RelayTable, Relayed, TcpRelay};
use adit_stream::{BoxStream, Stream};
use adit_wire::Target;

use super::forward::Plain;
use super::header;
use super::{Acceptor, Inbound, Pending, Rejects};
use crate::{AcceptError, BoxFuture, Peer, Request};

/// Reads identity headers; what follows goes on as it came.
pub struct RelayAcceptor {
    /// The relay's key and those of the servers behind it.
    pub table: Arc<RelayTable>,
    /// The servers, in the order of the table.
    pub next: Arc<[Target]>,
    /// The reaction to whatever has no identity header for us.
    pub rejects: Arc<Rejects>,
    /// Time for a complete header.
    pub deadline: Duration,
}

impl Acceptor for RelayAcceptor {
    fn accept(&self, io: BoxStream, _: Peer) -> BoxFuture<'_, Result<Inbound, AcceptError>> {
        Box::pin(async move {
            let core = TcpRelay::new(&self.table);
            let read = header::read(io, core, self.deadline, &self.rejects).await;
            let (mut io, Relayed { next, head }) = match read {
                Ok(read) => read,
                Err(verdict) => return verdict,
            };
            let Some(target) = self.next.get(next).cloned() else {
                return Err(AcceptError::Rejected(adit_wire::Broken::Unauthentic));
            };
            // Salt and header in one segment: there are servers that read only once.
            let mut first = head;
            first.extend_from_slice(io.filled());
            let rest = io.filled().len();
            io.consume(rest);
            let request = Request {
                first,
                ..Request::to(target)
            };
            Ok(Inbound::Stream(Pending::new(request, Plain { io })))
        })
    }
}
