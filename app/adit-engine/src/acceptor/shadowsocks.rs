//! The acceptor of Shadowsocks clients.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_net::system::{SystemClock, ThreadRng};
use adit_shadowsocks::SaltPool;
use adit_shadowsocks::tcp::{AcceptedRequest, ServerHandshake};
use adit_stream::{BoxStream, Layered};
use adit_wire::{Host, Target};

use super::closing_reply::close_with_reply;
use super::unconfirmed::{self, UnconfirmedReply};
use super::{
    FirstBytesPlace, InboundRequest, PendingRequest, RejectHandler, RequestAcceptor, RequestReply,
    header,
};
use crate::{
    AcceptError, BoxFuture, ConnectionAddrs, DialError, FilterClaims, HandshakeSlot, Request,
    UserTable,
};

/// A name that adit servers answer themselves, so that clients can check their key and clock. It ends in
/// `.invalid` (RFC 6761), so that it does not resolve at other servers.
pub const CHECK_NAME: &str = "adit-check.invalid";

/// The answer to a request for [`CHECK_NAME`].
pub(super) const CHECK_ANSWER: &[u8] = concat!("adit ", env!("CARGO_PKG_VERSION"), "\n").as_bytes();

/// Reads Shadowsocks request headers. Everything else is passed to [`RejectHandler`].
pub struct ShadowsocksAcceptor {
    /// The users of the listener.
    pub user_table: Arc<UserTable>,
    /// The salts seen so far.
    pub salts: Arc<SaltPool>,
    /// The claims of the salts, where a successor may have to confirm them.
    pub claims: Option<Arc<FilterClaims>>,
    /// Handles everything that is not a valid request.
    pub rejects: Arc<RejectHandler>,
    /// Time limit for a complete header.
    pub deadline: Duration,
}

impl RequestAcceptor for ShadowsocksAcceptor {
    fn accept_request(
        &self,
        io: BoxStream,
        peer: ConnectionAddrs,
        place: HandshakeSlot,
    ) -> BoxFuture<'_, Result<InboundRequest, AcceptError>> {
        Box::pin(async move {
            let users = self.user_table.users();
            self.rejects.set_trial_count(users.trial_count());
            let ip = peer.remote.ip();
            let hint = users
                .uses_trial()
                .then(|| self.user_table.last_user_at(ip))
                .flatten();
            let salts = self.salts.clone();
            let core = ServerHandshake::new(&users, Arc::new(SystemClock), salts, &mut ThreadRng);
            let core = core.with_hint(hint);
            let (rejects, claims) = (&self.rejects, self.claims.clone());
            let read = header::read_header(io, core, self.deadline, place, rejects, claims).await;
            let (io, accepted, mut seen) = match read {
                Ok(read) => read,
                Err(verdict) => return verdict,
            };
            let AcceptedRequest {
                user,
                target,
                first,
                open,
                seal,
                ..
            } = accepted;
            if let Some(user) = user.as_ref().filter(|_| users.uses_trial())
                && hint != Some(user.id())
            {
                self.user_table.record_user_at(ip, user.id());
            }
            let add_codecs = |io: BoxStream| Box::new(Layered::new(io, seal, open)) as BoxStream;
            if is_self_check(&target) {
                if !seen.verdict.is_new().await {
                    return unconfirmed::reject_replay(io, seen, rejects);
                }
                close_with_reply(&mut add_codecs(io), CHECK_ANSWER).await;
                return Ok(InboundRequest::Answered);
            }
            let request = Request {
                target,
                first_bytes: first,
                account: Some(self.user_table.account_of(user.as_ref())),
                user: user.map(|user| user.name().escape_debug().to_string()),
            };
            let pending = if seen.verdict.is_empty() {
                let io = add_codecs(io);
                PendingRequest::new(request, SilentReply { io })
            } else {
                let (add_codecs, rejects) = (Box::new(add_codecs), rejects.clone());
                let reply = UnconfirmedReply::new(io, add_codecs, seen, rejects);
                PendingRequest::new(request, reply)
            };
            Ok(InboundRequest::Stream(pending))
        })
    }
}

/// Returns true if the request is for the server itself.
pub(super) fn is_self_check(target: &Target) -> bool {
    matches!(&target.host, Host::Name(name) if name.as_str() == CHECK_NAME)
}

/// A reply without words: the protocol has none, so that refused clients, which have the key, are closed.
pub(super) struct SilentReply {
    pub(super) io: BoxStream,
}

impl RequestReply for SilentReply {
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
            close_with_reply(&mut self.io, &[]).await;
            Ok(())
        })
    }
}
