//! Shadowsocks relays (SIP023), which pass clients on to other servers without opening their streams.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_net::system;
use adit_shadowsocks::SaltPool;
use adit_shadowsocks::relay::{RelayTable, RelayedStream, TcpRelay};
use adit_stream::{BoxStream, Stream};
use adit_wire::{
    Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, ProtocolError, Target,
};

use super::header::{self, ConnectionProgress};
use super::{
    FirstBytesPlace, InboundRequest, PendingRequest, RejectHandler, RequestAcceptor, RequestReply,
};
use crate::{
    AcceptError, BoxFuture, ConnectionAddrs, DialError, FilterClaims, HandshakeSlot, Request,
};

/// Reads identity headers. Everything that follows is passed on unchanged.
pub struct RelayAcceptor {
    /// The keys of the relay and of the servers behind it.
    pub table: Arc<RelayTable>,
    /// The servers, in the order of the table.
    pub next: Arc<[Target]>,
    /// The salts that were passed on. The servers keep salts too, but a replay that reached them would be
    /// closed later than one that is refused here.
    pub salts: Arc<SaltPool>,
    /// The claims of the salts, where a successor may have to confirm them.
    pub claims: Option<Arc<FilterClaims>>,
    /// Handles everything without a valid identity header.
    pub rejects: Arc<RejectHandler>,
    /// Time limit for a complete header.
    pub deadline: Duration,
}

impl RequestAcceptor for RelayAcceptor {
    fn accept_request(
        &self,
        io: BoxStream,
        _: ConnectionAddrs,
        place: HandshakeSlot,
    ) -> BoxFuture<'_, Result<InboundRequest, AcceptError>> {
        Box::pin(async move {
            let core = SaltCheckedRelay {
                core: TcpRelay::new(&self.table),
                salts: &self.salts,
            };
            let (rejects, claims) = (&self.rejects, self.claims.clone());
            let read = header::read_header(io, core, self.deadline, place, rejects, claims).await;
            let (mut io, RelayedStream { next, head, .. }, seen) = match read {
                Ok(read) => read,
                Err(verdict) => return verdict,
            };
            let Some(target) = self.next.get(next).cloned() else {
                return Err(AcceptError::Rejected(ProtocolError::Unauthentic));
            };
            // Sent as one segment with the salt: some servers read only once.
            let mut first = head;
            first.extend_from_slice(io.filled());
            let rest = io.filled().len();
            io.consume(rest);
            let request = Request {
                first_bytes: first,
                ..Request::for_target(target)
            };
            let rejects = self.rejects.clone();
            let reply = UnprovenReply { io, rejects, seen };
            Ok(InboundRequest::Stream(PendingRequest::new(request, reply)))
        })
    }
}

/// The reply to a client whose header names a server. Such a header can be recorded and replayed by
/// anyone: if the server is unreachable, the client is handled like an unauthenticated peer.
struct UnprovenReply {
    io: BoxStream,
    rejects: Arc<RejectHandler>,
    seen: ConnectionProgress,
}

impl RequestReply for UnprovenReply {
    fn client_stream(&mut self) -> Option<&mut BoxStream> {
        Some(&mut self.io)
    }

    fn first_bytes_place(&self) -> FirstBytesPlace {
        FirstBytesPlace::Elsewhere
    }

    fn reply_success(
        self: Box<Self>,
        _: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async { Ok(self.io) })
    }

    fn reply_failure<'a>(self: Box<Self>, _: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            // Bytes that arrived while connecting.
            let Self {
                mut io,
                rejects,
                mut seen,
            } = *self;
            seen.record_bytes(io.filled());
            seen.is_decidable = true;
            rejects.apply_policy(io, seen, 0).await;
            Ok(())
        })
    }
}

/// A relay handshake that accepts each salt once.
///
/// The identity header is bound to the salt, so that new salts require the relay's key. The relay cannot
/// decrypt the time stamp: salts are kept up to a number, not for a time.
struct SaltCheckedRelay<'a> {
    core: TcpRelay,
    salts: &'a SaltPool,
}

impl Handshake for SaltCheckedRelay<'_> {
    type Output = RelayedStream;
    type Error = ProtocolError;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<RelayedStream>, ProtocolError> {
        let step = self.core.step(rx, tx)?;
        if let HandshakeProgress::Done(relayed) = &step {
            self.salts
                .insert_salt(&relayed.head, None, system::unix_now())?;
        }
        Ok(step)
    }
}
