//! The acceptor of Shadowsocks clients.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_net::ambient::{Chance, SystemClock};
use adit_shadowsocks::SaltPool;
use adit_shadowsocks::tcp::{Accepted, ServerHandshake};
use adit_stream::{BoxStream, Layered};
use adit_wire::{Host, Target};

use super::farewell::farewell;
use super::{Acceptor, Inbound, Pending, Rejects, Reply, header};
use crate::{AcceptError, BoxFuture, DialError, Peer, Place, Request, Roster};

/// A name that adit servers answer themselves, so that clients can check their key and clock. It ends in
/// `.invalid` (RFC 6761), so that it does not resolve at other servers.
pub const CHECK_NAME: &str = "adit-check.invalid";

/// The answer to a request for [`CHECK_NAME`].
pub(super) const CHECK_ANSWER: &[u8] = concat!("adit ", env!("CARGO_PKG_VERSION"), "\n").as_bytes();

/// Reads Shadowsocks request headers. Everything else is passed to [`Rejects`].
pub struct Keyed {
    /// The users of the listener.
    pub roster: Arc<Roster>,
    /// The salts seen so far.
    pub salts: Arc<SaltPool>,
    /// Handles everything that is not a valid request.
    pub rejects: Arc<Rejects>,
    /// Time limit for a complete header.
    pub deadline: Duration,
}

impl Acceptor for Keyed {
    fn accept(
        &self,
        io: BoxStream,
        peer: Peer,
        place: Place,
    ) -> BoxFuture<'_, Result<Inbound, AcceptError>> {
        Box::pin(async move {
            let users = self.roster.users();
            self.rejects.expect_trials(users.trials());
            let ip = peer.remote.ip();
            let hint = users.by_trial().then(|| self.roster.hint(ip)).flatten();
            let salts = self.salts.clone();
            let core = ServerHandshake::new(&users, Arc::new(SystemClock), salts, &mut Chance);
            let core = core.hint(hint);
            let read = header::read(io, core, self.deadline, place, &self.rejects).await;
            let (io, accepted, _) = match read {
                Ok(read) => read,
                Err(verdict) => return verdict,
            };
            let Accepted {
                user,
                target,
                first,
                open,
                seal,
            } = accepted;
            if let Some(user) = user.as_ref().filter(|_| users.by_trial())
                && hint != Some(user.id())
            {
                self.roster.seen(ip, user.id());
            }
            let mut io: BoxStream = Box::new(Layered::new(io, seal, open));
            if is_check(&target) {
                farewell(&mut io, CHECK_ANSWER).await;
                return Ok(Inbound::Served);
            }
            let request = Request {
                target,
                first,
                account: Some(self.roster.account(user.as_ref())),
                user: user.map(|user| user.name().escape_debug().to_string()),
            };
            Ok(Inbound::Stream(Pending::new(request, Silent { io })))
        })
    }
}

/// Returns true if the request is for the server itself.
pub(super) fn is_check(target: &Target) -> bool {
    matches!(&target.host, Host::Name(name) if name.as_str() == CHECK_NAME)
}

/// A reply without words: the protocol has none, so that refused clients, which have the key, are closed.
pub(super) struct Silent {
    pub(super) io: BoxStream,
}

impl Reply for Silent {
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
            farewell(&mut self.io, &[]).await;
            Ok(())
        })
    }
}
