//! What clients may say on a listener, one module for each language.
//!
//! An acceptor reads a request and hands it on as an [`Inbound`]; it knows nothing of dialling.
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

/// Reads requests.
pub trait Acceptor: Send + Sync {
    /// Reads the request of one connection. Keeps its own deadline, and ends the connection once
    /// its place is lost.
    fn accept(
        &self,
        io: BoxStream,
        peer: Peer,
        place: Place,
    ) -> BoxFuture<'_, Result<Inbound, AcceptError>>;
}

/// What a client wants.
pub enum Inbound {
    /// A stream to a target.
    Stream(Pending),
    /// Many streams, over the connection's whole life.
    Many(Box<dyn Many>),
    /// One connection from outside (SOCKS BIND).
    Bind(Binding),
    /// Datagrams (SOCKS UDP ASSOCIATE).
    Datagrams(Association),
    /// Datagrams in the stream itself.
    InStream(InStream),
    /// Nothing more: the acceptor has answered by itself.
    Served,
    /// A stranger at a keyed listener. The reaction may last for minutes.
    Rejected(Rejection),
}

/// A connection on which one stream after the other is asked for.
pub trait Many: Send {
    /// The next of them; `None` once the client has gone.
    fn next(&mut self) -> BoxFuture<'_, Option<Pending>>;
}

/// A stream that carries datagrams to any target.
pub struct InStream {
    /// They stand in it.
    pub datagrams: OverTcp,
    /// Whose they are.
    pub account: Option<Arc<Account>>,
}

/// What happens to a stranger, and why (for the log alone).
#[must_use]
pub struct Rejection {
    /// The cause, of which the stranger learns nothing.
    pub why: AcceptError,
    reaction: BoxFuture<'static, ()>,
}

impl Rejection {
    /// Carries the policy out.
    pub async fn carry_out(self) {
        self.reaction.await;
    }
}

/// A request that waits for its verdict. One of the two must be called.
#[must_use]
pub struct Pending {
    /// What is asked for.
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

    /// The client's stream, to see whether it is still there; `None` if there is none before the
    /// verdict.
    pub fn client(&mut self) -> Option<&mut BoxStream> {
        self.reply.client()
    }

    /// What the client asks for on this connection afterwards, if its language has more than one
    /// request; to be called before the verdict. Waits for the end of the stream that
    /// [`proceed`](Self::proceed) returns.
    pub(crate) fn again(&mut self) -> Option<Box<dyn Again>> {
        self.reply.again()
    }

    /// Whether [`proceed`](Self::proceed) shows the client the address that the target sees.
    pub fn shows_bound(&self) -> bool {
        self.reply.shows_bound()
    }

    /// Tells the client that the way is open; gives its stream.
    pub async fn proceed(self, bound: Option<SocketAddr>) -> io::Result<BoxStream> {
        self.reply.proceed(bound).await
    }

    /// Tells the client why not, as far as its language can.
    pub async fn refuse(self, why: &DialError) -> io::Result<()> {
        self.reply.refuse(why).await
    }
}

/// A connection on which the next request follows the end of the last exchange.
pub(crate) trait Again: Send {
    /// That request; `None` once the client has gone, or has said nothing for long.
    fn next(self: Box<Self>) -> BoxFuture<'static, Option<Pending>>;
}

/// How a language says yes and no.
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
