//! The task of a server's connection.

use std::net::IpAddr;
use std::sync::Arc;

use adit_ssh::messages::{EventFeed, Message, MessageChannel, SessionEvent};
use adit_ssh::server::{Server, ServerConfig};
use adit_ssh::{ConnectError, IncomingChannel, SessionEnd};
use adit_ssh_proto::connection::{
    ChannelKind, DataKind, GlobalAnswer, GlobalRequest, SshChannelRequest,
};
use adit_ssh_proto::{Disconnect as Reason, SshError};
use adit_stream::BoxStream;

use super::handler_policy::HandlerPolicy;
use super::{ChannelOpenHandle, Config, Handler, Session};
use crate::session_core::{CHANNEL_STDERR, EndGuard, SessionCore, error_of_end};
use crate::{Channel, ChannelId, Error, Sig, pty};

/// The task of a server's connection.
pub(super) struct ServerTask {
    pub(super) config: Arc<Config>,
    pub(super) settings: ServerConfig,
    pub(super) core: Arc<SessionCore>,
    pub(super) source: Option<IpAddr>,
}

impl ServerTask {
    pub(super) async fn run_task<H: Handler + Send>(
        self,
        below: BoxStream,
        handler: H,
    ) -> Result<(), H::Error> {
        let _over = EndGuard(Arc::clone(&self.core));
        let policy = HandlerPolicy::new(&self.config, self.source, handler);
        let bounds = self.config.queue_limits();
        let accepted = tokio::select! {
            accepted = Server::accept_in_message_mode(below, &self.settings, &policy, bounds) => accepted,
            () = self.core.leave_requested.notified() => return Ok(()),
        };
        let (mut handler, failed) = policy.into_inner();
        if let Some(why) = failed {
            return Err(why);
        }
        // The peer handle keeps the connection alive.
        let (mut feed, _peer) = match accepted {
            // A client that sent a disconnect message is not an error.
            Err(ConnectError::Ssh(SshError::Disconnected { .. })) => return Ok(()),
            accepted => accepted.map_err(Error::from)?,
        };
        self.core.set_session(feed.session());
        let served = self.run_connection(&mut feed, &mut handler).await;
        if served.is_err() {
            // Nothing to do if the session is over already.
            let _ = feed
                .session()
                .disconnect_after_flush(Reason::ByApplication, "");
            while feed.next_event().await.is_ok() {}
        }
        served
    }

    async fn run_connection<H: Handler>(
        &self,
        feed: &mut EventFeed,
        handler: &mut H,
    ) -> Result<(), H::Error> {
        let mut session = Session::new(Arc::clone(&self.core), Arc::clone(&self.config));
        handler.auth_succeeded(&mut session).await?;
        loop {
            match feed.next_event().await {
                Ok(told) => handle_event(handler, &mut session, &self.core, told).await?,
                Err(
                    SessionEnd::Closed
                    | SessionEnd::PeerClosed
                    | SessionEnd::Ssh(SshError::Disconnected { .. }),
                ) => {
                    return Ok(());
                }
                Err(why) => return Err(error_of_end(why).into()),
            }
        }
    }
}

/// Passes an event to the handler.
async fn handle_event<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    core: &SessionCore,
    told: SessionEvent,
) -> Result<(), H::Error> {
    let (below, message) = match told {
        SessionEvent::Received(below, message) => (below, message),
        SessionEvent::OpenRequested(opening, channel) => {
            return handle_open(handler, session, opening, channel).await;
        }
        SessionEvent::GlobalRequest(request, reply) => {
            reply.send_answer(handle_forward(handler, session, request).await?);
            return Ok(());
        }
        // The call that opened it receives the error. Dropping an unknown event refuses it.
        _ => return Ok(()),
    };
    let id = ChannelId(below);
    match message {
        Message::Data(DataKind::Stdout, bytes) => handler.data(id, &bytes, session).await,
        Message::Data(DataKind::Stderr, bytes) => {
            let told = handler.extended_data(id, CHANNEL_STDERR, &bytes, session);
            told.await
        }
        Message::Eof => handler.channel_eof(id, session).await,
        Message::Closed => handler.channel_close(id, session).await,
        Message::Capacity(room) => {
            let room = u32::try_from(room).unwrap_or(u32::MAX);
            handler.window_adjusted(id, room, session).await
        }
        Message::Request {
            request,
            wants_reply,
        } => {
            let answer = handle_request(handler, session, id, &request).await?;
            if let Some(ok) = answer.filter(|_| wants_reply)
                && let Ok(Some(channel)) = core.find_channel(below)
            {
                channel.reply_to_latest(ok);
            }
            Ok(())
        }
        // The handler has no callback for replies and for unknown messages.
        _ => Ok(()),
    }
}

/// Passes a request in a channel to the handler. Returns the reply for requests whose callbacks return
/// it.
async fn handle_request<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    id: ChannelId,
    request: &SshChannelRequest,
) -> Result<Option<bool>, H::Error> {
    match request {
        SshChannelRequest::Pty(wanted) => {
            let (size, modes) = (wanted.size, pty::named_modes(&wanted.modes));
            let told = handler.pty_request(
                id,
                &wanted.term,
                size.columns,
                size.rows,
                size.width,
                size.height,
                &modes,
                session,
            );
            told.await
        }
        SshChannelRequest::Env { name, value } => {
            let (name, value) = (
                String::from_utf8_lossy(name),
                String::from_utf8_lossy(value),
            );
            handler.env_request(id, &name, &value, session).await
        }
        SshChannelRequest::Shell => handler.shell_request(id, session).await,
        SshChannelRequest::Exec(command) => handler.exec_request(id, command, session).await,
        SshChannelRequest::Subsystem(name) => handler.subsystem_request(id, name, session).await,
        SshChannelRequest::WindowChange(size) => {
            let told = handler.window_change_request(
                id,
                size.columns,
                size.rows,
                size.width,
                size.height,
                session,
            );
            told.await
        }
        SshChannelRequest::Signal(name) => handler.signal(id, Sig::from_name(name), session).await,
        SshChannelRequest::X11 {
            single,
            protocol,
            cookie,
            screen,
        } => {
            let cookie = cookie.expose();
            let told = handler.x11_request(id, *single, protocol, cookie, *screen, session);
            told.await
        }
        SshChannelRequest::Agent => {
            return Ok(Some(handler.agent_request(id, session).await?));
        }
        // A break, or a request that only servers send.
        _ => return Ok(Some(false)),
    }?;
    Ok(None)
}

async fn handle_open<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    opening: IncomingChannel,
    channel: MessageChannel,
) -> Result<(), H::Error> {
    let kind = opening.kind().clone();
    let (reply, channel) = (ChannelOpenHandle(opening), Channel::new(channel));
    match kind {
        ChannelKind::Session => handler.channel_open_session(channel, reply, session).await,
        ChannelKind::DirectTcpip {
            host,
            port,
            originator,
        } => {
            let told = handler.channel_open_direct_tcpip(
                channel,
                &host,
                port.into(),
                &originator.address,
                originator.port,
                reply,
                session,
            );
            told.await
        }
        ChannelKind::DirectStreamlocal { path } => {
            let path = String::from_utf8_lossy(&path);
            let told = handler.channel_open_direct_streamlocal(channel, &path, reply, session);
            told.await
        }
        // Tunnel devices. Dropping the reply refuses them.
        _ => Ok(()),
    }
}

async fn handle_forward<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    request: GlobalRequest,
) -> Result<GlobalAnswer, H::Error> {
    let (granted, bound) = match request {
        GlobalRequest::TcpipForward { address, port } => {
            let mut bound = u32::from(port);
            let granted = handler.tcpip_forward(&address, &mut bound, session).await?;
            (granted, Some(bound))
        }
        GlobalRequest::CancelTcpipForward { address, port } => {
            let told = handler.cancel_tcpip_forward(&address, port.into(), session);
            (told.await?, None)
        }
        GlobalRequest::StreamlocalForward { path } => {
            let path = String::from_utf8_lossy(&path);
            (handler.streamlocal_forward(&path, session).await?, None)
        }
        GlobalRequest::CancelStreamlocalForward { path } => {
            let path = String::from_utf8_lossy(&path);
            let told = handler.cancel_streamlocal_forward(&path, session);
            (told.await?, None)
        }
        _ => (false, None),
    };
    Ok(match (granted, bound.map(u16::try_from)) {
        (true, None) => GlobalAnswer::Granted { data: Vec::new() },
        (true, Some(Ok(port))) => GlobalAnswer::Bound { port },
        _ => GlobalAnswer::Refused,
    })
}
