//! SOCKS clients (RFC 1928, SOCKS4 and SOCKS4a).

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

/// The settings for all SOCKS clients of a listener.
pub(crate) struct SocksRules {
    pub(crate) credentials: Arc<Credentials>,
    /// True if versions 4 and 4a, which have no passwords, are served.
    pub(crate) socks4: bool,
    /// True if UDP ASSOCIATE is served.
    pub(crate) udp: bool,
    /// True if BIND is served.
    pub(crate) bind: bool,
    /// True if replies hide the outgoing address of this machine.
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
            let why = DialError::unsupported("this listener does not allow the command");
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
    /// Sends the reply for success with `bound`; the stream continues.
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
    /// Address of the expected peer; zeros allow any.
    pub expected: Target,
    reply: Socks,
}

impl Binding {
    /// Sends the first reply: the address that the peer has to connect to.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply cannot be sent.
    pub async fn listening(&mut self, at: SocketAddr) -> io::Result<()> {
        self.reply.grant(Some(at)).await
    }

    /// Sends the second reply with the address of the peer, and returns the client's stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply cannot be sent.
    pub async fn accepted(mut self, from: SocketAddr) -> io::Result<BoxStream> {
        self.reply.grant(Some(from)).await?;
        Ok(self.reply.io)
    }

    /// Sends a failure as the first or second reply.
    pub async fn refuse(mut self, why: &DialError) {
        self.reply.deny(why).await;
    }

    /// Returns the control connection, to check that the client is still there.
    pub fn control(&mut self) -> &mut BoxStream {
        &mut self.reply.io
    }
}

/// A UDP ASSOCIATE request.
pub struct Association {
    /// The address that the client will send datagrams from; zeros if the client does not know it.
    pub declared: Target,
    /// The addresses of the control connection.
    pub peer: Peer,
    reply: Socks,
}

impl Association {
    /// Replies with the address to send datagrams to, and returns the control connection.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply cannot be sent.
    pub async fn proceed(mut self, at: SocketAddr) -> io::Result<BoxStream> {
        self.reply.grant(Some(at)).await?;
        Ok(self.reply.io)
    }

    /// Replies with a failure.
    pub async fn refuse(mut self, why: &DialError) {
        self.reply.deny(why).await;
    }
}
