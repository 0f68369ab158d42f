//! Server sides of the protocols that clients use, one module per protocol.
//!
//! An acceptor reads a request and returns it as an [`Inbound`]; it does not connect to targets.
//! The verdict comes back once, through [`Pending`].

mod farewell;
mod forward;
mod header;
mod hello;
mod http;
mod keyed;
mod proxy;
mod reject;
mod relay;
mod socks;
mod ssr;
mod transparent;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_stream::BoxStream;

pub use forward::Fixed;
pub(crate) use header::Seen;
pub(crate) use hello::undress;
pub(crate) use http::HttpRules;
pub use keyed::{CHECK_NAME, Keyed};
pub use proxy::Proxy;
pub use reject::Rejects;
pub use relay::RelayAcceptor;
pub(crate) use socks::SocksRules;
pub use socks::{Association, Binding};
pub use ssr::{Accounts, ShadowsocksR};
pub use transparent::Intercepted;
pub(crate) use transparent::leads_back;

use crate::account::Account;
use crate::guard::Place;
use crate::udp::OverTcp;
use crate::{AcceptError, BoxFuture, DialError, Peer, Request};

/// Reads requests of clients.
pub trait Acceptor: Send + Sync {
    /// Reads the request of one connection. Enforces its own deadline, and closes the connection when its
    /// slot is lost.
    fn accept(
        &self,
        io: BoxStream,
        peer: Peer,
        place: Place,
    ) -> BoxFuture<'_, Result<Inbound, AcceptError>>;
}

/// The request of a client, by kind.
pub enum Inbound {
    /// A stream to a target.
    Stream(Pending),
    /// Many streams, for as long as the connection lasts.
    Many(Box<dyn Many>),
    /// One incoming connection (SOCKS BIND).
    Bind(Binding),
    /// Datagrams (SOCKS UDP ASSOCIATE).
    Datagrams(Association),
    /// Datagrams within the stream itself (UDP over TCP).
    InStream(InStream),
    /// Nothing further: the acceptor has answered the request itself.
    Served,
    /// An unauthenticated peer of a keyed listener. Handling it may take minutes.
    Rejected(Rejection),
}

/// A connection on which streams are requested one after another.
pub trait Many: Send {
    /// Returns the next request; `None` if the client has closed the connection.
    fn next(&mut self) -> BoxFuture<'_, Option<Pending>>;
}

/// A stream that carries datagrams to any target.
pub struct InStream {
    /// The datagrams in the stream.
    pub datagrams: OverTcp,
    /// The account of the client.
    pub account: Option<Arc<Account>>,
}

/// The handling of an unauthenticated peer, and the reason (for the log only).
#[must_use]
pub struct Rejection {
    /// The reason, which is never revealed to the peer.
    pub why: AcceptError,
    reaction: BoxFuture<'static, ()>,
}

impl Rejection {
    /// Handles the peer according to the reject policy.
    pub async fn carry_out(self) {
        self.reaction.await;
    }
}

/// A request that waits for its verdict: call [`proceed`](Self::proceed) or [`refuse`](Self::refuse).
#[must_use]
pub struct Pending {
    /// The request.
    pub request: Request,
    reply: Box<dyn Reply>,
}

impl Pending {
    pub(crate) fn new(request: Request, reply: impl Reply + 'static) -> Self {
        Self {
            request,
            reply: Box::new(reply),
        }
    }

    /// Returns the client's stream, to check that it is still open; `None` if there is no stream before the
    /// verdict.
    pub fn client(&mut self) -> Option<&mut BoxStream> {
        self.reply.client()
    }

    /// Returns the further requests of this connection, if its protocol allows more than one. Has to be
    /// called before the verdict; waits for the end of the stream that [`proceed`](Self::proceed) returns.
    pub(crate) fn again(&mut self) -> Option<Box<dyn Again>> {
        self.reply.again()
    }

    /// Returns true if [`proceed`](Self::proceed) reveals the address that the target sees to the client.
    pub fn shows_bound(&self) -> bool {
        self.reply.shows_bound()
    }

    /// Reports success to the client and returns its stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply cannot be sent.
    pub async fn proceed(self, bound: Option<SocketAddr>) -> io::Result<BoxStream> {
        self.reply.proceed(bound).await
    }

    /// Reports the failure to the client, as precisely as its protocol can.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply cannot be sent.
    pub async fn refuse(self, why: &DialError) -> io::Result<()> {
        self.reply.refuse(why).await
    }
}

/// A connection on which the next request follows the end of the last exchange.
pub(crate) trait Again: Send {
    /// Returns the next request; `None` if the client has closed the connection or was idle for too long.
    fn next(self: Box<Self>) -> BoxFuture<'static, Option<Pending>>;
}

/// The replies of a protocol to a request.
pub(crate) trait Reply: Send {
    /// See [`Pending::client`].
    fn client(&mut self) -> Option<&mut BoxStream>;
    /// See [`Pending::again`].
    fn again(&mut self) -> Option<Box<dyn Again>> {
        None
    }
    /// See [`Pending::shows_bound`].
    fn shows_bound(&self) -> bool {
        false
    }
    fn proceed(
        self: Box<Self>,
        bound: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>>;
    fn refuse<'a>(self: Box<Self>, why: &'a DialError) -> BoxFuture<'a, io::Result<()>>;
}
