//! SOCKS clients (RFC 1928, SOCKS4 and SOCKS4a).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use adit_socks::server::{self, Socks4, Socks5};
use adit_socks::{Command, Reply as Code, Request as Asked, Version};
use adit_stream::{BoxStream, run_handshake, write_and_flush};
use adit_wire::Target;

use super::closing_reply::{close_with_reply, end_failed_handshake};
use super::{InboundRequest, PendingRequest, RequestReply};
use crate::credentials::ListenerCredentials;
use crate::{AcceptError, BoxFuture, ConnectionAddrs, DialError, Request};

/// The settings for all SOCKS clients of a listener.
pub(crate) struct SocksRules {
    pub(crate) credentials: Arc<ListenerCredentials>,
    /// True if versions 4 and 4a, which have no passwords, are served.
    pub(crate) socks4: bool,
    /// True if UDP ASSOCIATE is served.
    pub(crate) udp: bool,
    /// True if BIND is served.
    pub(crate) bind: bool,
    /// True if replies hide the outgoing address of this machine.
    pub(crate) hide_bind: bool,
}

pub(super) async fn read_socks5(
    rules: &SocksRules,
    mut io: BoxStream,
    peer: ConnectionAddrs,
) -> Result<InboundRequest, AcceptError> {
    let mut core = Socks5::new(&*rules.credentials);
    match run_handshake(&mut io, &mut core).await {
        Ok(asked) => classify_request(rules, io, peer, asked).await,
        Err(why) => Err(end_failed_handshake(io, why, |e| {
            matches!(e, server::Refusal::BadCredentials { .. })
        })
        .await),
    }
}

pub(super) async fn read_socks4(
    rules: &SocksRules,
    mut io: BoxStream,
    peer: ConnectionAddrs,
) -> Result<InboundRequest, AcceptError> {
    let allowed = rules.socks4 && !rules.credentials.required();
    let mut core = Socks4::new(allowed);
    match run_handshake(&mut io, &mut core).await {
        Ok(asked) => classify_request(rules, io, peer, asked).await,
        Err(why) => Err(end_failed_handshake(io, why, |_| false).await),
    }
}

async fn classify_request(
    rules: &SocksRules,
    io: BoxStream,
    peer: ConnectionAddrs,
    asked: Asked,
) -> Result<InboundRequest, AcceptError> {
    let user = asked.user.as_deref().map(|u| u.escape_ascii().to_string());
    let reply = PendingSocks {
        io,
        version: asked.version,
        hide_bind: rules.hide_bind,
    };
    match asked.command {
        Command::Connect => {
            let request = Request {
                target: asked.target,
                first_bytes: Vec::new(),
                user,
                account: None,
            };
            Ok(InboundRequest::Stream(PendingRequest::new(request, reply)))
        }
        Command::Bind if rules.bind => Ok(InboundRequest::Bind(BindRequest {
            expected: asked.target,
            user,
            reply,
        })),
        Command::UdpAssociate if rules.udp => Ok(InboundRequest::Datagrams(UdpAssociateRequest {
            declared: asked.target,
            user,
            reply,
            peer,
        })),
        _ => {
            let why = DialError::unsupported("this listener does not allow the command");
            Box::new(reply).reply_failure(&why).await?;
            Err(AcceptError::Refused(why.to_string()))
        }
    }
}

/// A SOCKS client that waits for its reply.
pub(crate) struct PendingSocks {
    io: BoxStream,
    version: Version,
    hide_bind: bool,
}

impl PendingSocks {
    /// Sends the reply for success with `bound`; the stream continues.
    async fn send_success(&mut self, bound: Option<SocketAddr>) -> io::Result<()> {
        write_and_flush(
            &mut self.io,
            &server::encode_reply(self.version, Code::Succeeded, bound),
        )
        .await
    }

    async fn send_failure(&mut self, why: &DialError) {
        close_with_reply(
            &mut self.io,
            &server::encode_reply(self.version, why.cause.socks_reply(), None),
        )
        .await;
    }
}

impl RequestReply for PendingSocks {
    fn client_stream(&mut self) -> Option<&mut BoxStream> {
        Some(&mut self.io)
    }

    fn reveals_bound_addr(&self) -> bool {
        !self.hide_bind
    }

    fn reply_success(
        mut self: Box<Self>,
        bound: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async move {
            self.send_success(bound).await?;
            Ok(self.io)
        })
    }

    fn reply_failure<'a>(mut self: Box<Self>, why: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            self.send_failure(why).await;
            Ok(())
        })
    }
}

/// A BIND request: two replies, then a stream.
pub struct BindRequest {
    /// Address of the expected peer; zeros allow any.
    pub expected: Target,
    /// The user name that the client stated.
    pub user: Option<String>,
    reply: PendingSocks,
}

impl BindRequest {
    /// Sends the first reply: the address that the peer has to connect to.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply cannot be sent.
    pub async fn reply_listening(&mut self, at: SocketAddr) -> io::Result<()> {
        self.reply.send_success(Some(at)).await
    }

    /// Sends the second reply with the address of the peer, and returns the client's stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply cannot be sent.
    pub async fn reply_accepted(mut self, from: SocketAddr) -> io::Result<BoxStream> {
        self.reply.send_success(Some(from)).await?;
        Ok(self.reply.io)
    }

    /// Sends a failure as the first or second reply.
    pub async fn reply_failure(mut self, why: &DialError) {
        self.reply.send_failure(why).await;
    }

    /// Returns the control connection, to check that the client is still there.
    pub fn control_stream(&mut self) -> &mut BoxStream {
        &mut self.reply.io
    }
}

/// A UDP ASSOCIATE request.
pub struct UdpAssociateRequest {
    /// The address that the client will send datagrams from; zeros if the client does not know it.
    pub declared: Target,
    /// The addresses of the control connection.
    pub peer: ConnectionAddrs,
    /// The user name that the client stated.
    pub user: Option<String>,
    reply: PendingSocks,
}

impl UdpAssociateRequest {
    /// Replies with the address to send datagrams to, and returns the control connection.
    ///
    /// # Errors
    ///
    /// Returns an error if the reply cannot be sent.
    pub async fn reply_success(mut self, at: SocketAddr) -> io::Result<BoxStream> {
        self.reply.send_success(Some(at)).await?;
        Ok(self.reply.io)
    }

    /// Replies with a failure.
    pub async fn reply_failure(mut self, why: &DialError) {
        self.reply.send_failure(why).await;
    }
}
