//! Shadowsocks relays (SIP023), which pass clients on to other servers without opening their streams.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_net::ambient;
use adit_shadowsocks::SaltPool;
use adit_shadowsocks::relay::{RelayTable, Relayed, TcpRelay};
use adit_stream::{BoxStream, Stream};
use adit_wire::{Broken, Handshake, Rx, Step, Target, Tx};

use super::header::{self, Seen};
use super::{Acceptor, Inbound, Pending, Rejects, Reply};
use crate::{AcceptError, BoxFuture, DialError, Peer, Place, Request};

/// Reads identity headers. Everything that follows is passed on unchanged.
pub struct RelayAcceptor {
    /// The keys of the relay and of the servers behind it.
    pub table: Arc<RelayTable>,
    /// The servers, in the order of the table.
    pub next: Arc<[Target]>,
    /// The salts that were passed on. The servers keep salts too, but a replay that reached them would be
    /// closed later than one that is refused here.
    pub salts: Arc<SaltPool>,
    /// Handles everything without a valid identity header.
    pub rejects: Arc<Rejects>,
    /// Time limit for a complete header.
    pub deadline: Duration,
}

impl Acceptor for RelayAcceptor {
    fn accept(
        &self,
        io: BoxStream,
        _: Peer,
        place: Place,
    ) -> BoxFuture<'_, Result<Inbound, AcceptError>> {
        Box::pin(async move {
            let core = Once {
                core: TcpRelay::new(&self.table),
                salts: &self.salts,
            };
            let read = header::read(io, core, self.deadline, place, &self.rejects).await;
            let (mut io, Relayed { next, head }, seen) = match read {
                Ok(read) => read,
                Err(verdict) => return verdict,
            };
            let Some(target) = self.next.get(next).cloned() else {
                return Err(AcceptError::Rejected(Broken::Unauthentic));
            };
            // Sent as one segment with the salt: some servers read only once.
            let mut first = head;
            first.extend_from_slice(io.filled());
            let rest = io.filled().len();
            io.consume(rest);
            let request = Request {
                first,
                ..Request::to(target)
            };
            let rejects = self.rejects.clone();
            let reply = Unproved { io, rejects, seen };
            Ok(Inbound::Stream(Pending::new(request, reply)))
        })
    }
}

/// The reply to a client whose header names a server. Such a header can be recorded and replayed by
/// anyone: if the server is unreachable, the client is handled like an unauthenticated peer.
struct Unproved {
    io: BoxStream,
    rejects: Arc<Rejects>,
    seen: Seen,
}

impl Reply for Unproved {
    fn client(&mut self) -> Option<&mut BoxStream> {
        Some(&mut self.io)
    }

    fn proceed(
        self: Box<Self>,
        _: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async { Ok(self.io) })
    }

    fn refuse<'a>(self: Box<Self>, _: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            // Bytes that arrived while connecting.
            let Self {
                mut io,
                rejects,
                mut seen,
            } = *self;
            seen.note(io.filled());
            seen.whole = true;
            rejects.apply(io, seen, 0).await;
            Ok(())
        })
    }
}

/// A relay handshake that accepts each salt once.
///
/// The identity header is bound to the salt, so that new salts require the relay's key. The relay cannot
/// decrypt the time stamp: salts are kept up to a number, not for a time.
struct Once<'a> {
    core: TcpRelay,
    salts: &'a SaltPool,
}

impl Handshake for Once<'_> {
    type Output = Relayed;
    type Error = Broken;

    fn step(&mut self, rx: &mut Rx<'_>, tx: &mut Tx<'_>) -> Result<Step<Relayed>, Broken> {
        let step = self.core.step(rx, tx)?;
        if let Step::Done(relayed) = &step {
            self.salts.insert(&relayed.head, None, ambient::unix())?;
        }
        Ok(step)
    }
}
