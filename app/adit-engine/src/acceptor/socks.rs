//! SOCKS clients.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_socks::server::{self, Socks4, Socks5};
use adit_socks::{Command, Reply as Code, Request as Asked, Version};
use adit_stream::{BoxStream, run, send};
use adit_wire::Target;

use super::farewell::{farewell, give_up};
use super::{Inbound, Pending, Reply};
use crate::credentials::Credentials;
use crate::{AcceptError, BoxFuture, DialError, Peer, Request};

/// What holds for all SOCKS clients of a listener.
pub(crate) struct SocksRules {
    pub(crate) credentials: Arc<Credentials>,
    /// Whether versions 4 and 4a are spoken, which know no password.
    pub(crate) socks4: bool,
    /// Whether UDP ASSOCIATE is served.
    pub(crate) udp: bool,
    /// Whether BIND is served.
    pub(crate) bind: bool,
    /// Whether replies keep our outgoing address to themselves.
    pub(crate) hide_bind: bool,
}

pub(super) async fn read5(
    rules: &SocksRules,
    mut io: BoxStream,
    peer: Peer,
) -> Result<Inbound, AcceptError> {
    let mut core = Socks5::new(&*rules.credentials);
    match run(&mut io, &mut core).await {
        Ok(asked) => sort(rules, io, peer, asked).await,
        Err(why) => Err(give_up(io, why, |e| {
            matches!(e, server::Refusal::BadCredentials { .. })
        })
        .await),
    }
}

pub(super) async fn read4(
    rules: &SocksRules,
    mut io: BoxStream,
    peer: Peer,
) -> Result<Inbound, AcceptError> {
    let allowed = rules.socks4 && !rules.credentials.required();
    let mut core = Socks4::new(allowed);
    match run(&mut io, &mut core).await {
        Ok(asked) => sort(rules, io, peer, asked).await,
        Err(why) => Err(give_up(io, why, |_| false).await),
    }
}

async fn sort(
    rules: &SocksRules,
    io: BoxStream,
    peer: Peer,
    asked: Asked,
) -> Result<Inbound, AcceptError> {
    let user = asked.user.as_deref().map(|u| u.escape_ascii().to_string());
    let reply = Socks {
        io,
        version: asked.version,
        hide_bind: rules.hide_bind,
    };
    match asked.command {
        Command::Connect => {
            let request = Request {
                target: asked.target,
                first: Vec::new(),
                user,
                account: None,
            };
            Ok(Inbound::Stream(Pending::new(request, reply)))
        }
        Command::Bind if rules.bind => Ok(Inbound::Bind(Binding {
            expected: asked.target,
            reply,
        })),
        Command::UdpAssociate if rules.udp => Ok(Inbound::Datagrams(Association {
            declared: asked.target,
            reply,
            peer,
        })),
        _ => {
            let why = DialError::unsupported("this listener does not serve the command");
            Box::new(reply).refuse(&why).await?;
            Err(AcceptError::Refused(why.to_string()))
        }
    }
}

/// A SOCKS client that waits for its reply.
pub(crate) struct Socks {
    io: BoxStream,
    version: Version,
    hide_bind: bool,
}

impl Socks {
    /// Says yes with `bound`; the stream goes on.
    async fn grant(&mut self, bound: Option<SocketAddr>) -> io::Result<()> {
        send(
            &mut self.io,
            &server::reply(self.version, Code::Succeeded, bound),
        )
        .await
    }

    async fn deny(&mut self, why: &DialError) {
        farewell(
            &mut self.io,
            &server::reply(self.version, why.cause.socks_reply(), None),
        )
        .await;
    }
}

impl Reply for Socks {
    fn client(&mut self) -> Option<&mut BoxStream> {
        Some(&mut self.io)
    }

    fn shows_bound(&self) -> bool {
        !self.hide_bind
    }

    fn proceed(
        mut self: Box<Self>,
        bound: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async move {
            self.grant(bound).await?;
            Ok(self.io)
        })
    }

    fn refuse<'a>(mut self: Box<Self>, why: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            self.deny(why).await;
            Ok(())
        })
    }
}

/// A BIND request: two replies, then a stream.
pub struct Binding {
    /// The peer that is expected; zeros mean anyone.
    pub expected: Target,
    reply: Socks,
}

impl Binding {
    /// First reply: where the peer has to connect to.
    pub async fn listening(&mut self, at: SocketAddr) -> io::Result<()> {
        self.reply.grant(Some(at)).await
    }

    /// Second reply: who has come. The stream is the client's.
    pub async fn accepted(mut self, from: SocketAddr) -> io::Result<BoxStream> {
        self.reply.grant(Some(from)).await?;
        Ok(self.reply.io)
    }

    /// Either reply: nobody can come.
    pub async fn refuse(mut self, why: &DialError) {
        self.reply.deny(why).await;
    }

    /// The control connection, to see whether the client is still there.
    pub fn control(&mut self) -> &mut BoxStream {
        &mut self.reply.io
    }
}

/// A UDP ASSOCIATE request.
pub struct Association {
    /// Where the client says its datagrams will come from; zeros mean it does not know.
    pub declared: Target,
    /// The two ends of the control connection.
    pub peer: Peer,
    reply: Socks,
}

impl Association {
    /// Says where datagrams are to be sent; gives the control connection.
    pub async fn proceed(mut self, at: SocketAddr) -> io::Result<BoxStream> {
        self.reply.grant(Some(at)).await?;
        Ok(self.reply.io)
    }

    /// Says no.
    pub async fn refuse(mut self, why: &DialError) {
        self.reply.deny(why).await;
    }
}
