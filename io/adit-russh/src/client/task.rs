//! The task of a client session.

use std::sync::{Arc, OnceLock};

use adit_ssh::client::PendingLogin;
use adit_ssh::messages::{Message, MessageChannel, QueueLimits, SessionEvent};
use adit_ssh::{ConnectError, IncomingChannel, Peer, SessionEnd};
use adit_ssh_proto::connection::{ChannelKind, DataKind, GlobalRequest, SshChannelRequest};
use adit_ssh_proto::{Disconnect as Reason, SshError};
use tokio::sync::mpsc;

use super::login_request::LoginRequest;
use super::login_task::LoginRunner;
use super::{
    ChannelOpenHandle, DisconnectReason, Handler, KeyboardInteractiveAuthResponse,
    RemoteDisconnectInfo, Session,
};
use crate::keys::PublicKey;
use crate::session_core::{CHANNEL_STDERR, EndGuard, SessionCore, error_of_end};
use crate::{Channel, ChannelId, ChannelOpenFailure, Disconnect, Error, Sig};

/// The task of a client session.
pub(super) struct ClientTask<H> {
    pub(super) handler: H,
    pub(super) session: Session,
    pub(super) core: Arc<SessionCore>,
    /// Shared with the handle, which keeps the session alive by it.
    pub(super) keep_alive: Arc<OnceLock<Peer>>,
    pub(super) queue_limits: QueueLimits,
}

/// The reason why a session is over.
pub(super) enum StopReason<E> {
    /// An error of this end or of the protocol.
    Error(Error),
    /// The server's disconnect message: its code and explanation.
    Disconnected(u32, String),
    /// The handler failed.
    Handler(E),
    /// This end closed the session.
    Closed,
}

impl<E> From<Error> for StopReason<E> {
    fn from(why: Error) -> Self {
        Self::Error(why)
    }
}

impl<E> From<SessionEnd> for StopReason<E> {
    fn from(why: SessionEnd) -> Self {
        match why {
            SessionEnd::Closed => Self::Closed,
            SessionEnd::Ssh(SshError::Disconnected { reason, text }) => {
                Self::Disconnected(reason, text)
            }
            other => Self::Error(error_of_end(other)),
        }
    }
}

impl<E> From<ConnectError> for StopReason<E> {
    fn from(why: ConnectError) -> Self {
        match why {
            ConnectError::Ssh(why) => SessionEnd::Ssh(why).into(),
            other => Self::Error(other.into()),
        }
    }
}

impl<H: Handler> ClientTask<H> {
    pub(super) async fn run_task(
        mut self,
        entrance: PendingLogin,
        mut wishes: mpsc::Receiver<LoginRequest>,
    ) -> Result<(), H::Error> {
        let over = EndGuard(Arc::clone(&self.core));
        let stop = self.run_session(entrance, &mut wishes).await;
        drop((wishes, over));
        let reason = match stop {
            StopReason::Closed => return Ok(()),
            StopReason::Handler(why) => DisconnectReason::Error(why),
            StopReason::Error(why) => DisconnectReason::Error(why.into()),
            StopReason::Disconnected(code, message) => {
                DisconnectReason::ReceivedDisconnect(RemoteDisconnectInfo {
                    reason_code: Disconnect::try_from(code).unwrap_or(Disconnect::ByApplication),
                    message,
                    lang_tag: String::new(),
                })
            }
        };
        self.handler.disconnected(reason).await
    }

    async fn run_session(
        &mut self,
        mut entrance: PendingLogin,
        wishes: &mut mpsc::Receiver<LoginRequest>,
    ) -> StopReason<H::Error> {
        let core = Arc::clone(&self.core);
        let mut auth = LoginRunner {
            pending_login: &mut entrance,
            handler: &mut self.handler,
            session: &mut self.session,
            core: &core,
        };
        let reply = match auth.run_logins(wishes).await {
            Ok(reply) => reply,
            Err(stop) => {
                entrance.disconnect_with(&ConnectError::Ended("authenticating the user"));
                return stop;
            }
        };
        let (mut feed, peer) = entrance.into_message_session(self.queue_limits);
        core.set_session(feed.session());
        // From now on the handle alone keeps the session alive.
        let _ = std::mem::take(&mut self.keep_alive).set(peer);
        wishes.close();
        // The caller may be gone.
        let _ = reply.send(Ok(KeyboardInteractiveAuthResponse::Success));
        loop {
            let told = match feed.next_event().await {
                Ok(told) => told,
                Err(end) => return end.into(),
            };
            if let Err(why) = handle_event(&mut self.handler, &mut self.session, &core, told).await
            {
                // Nothing to do if the session is over already.
                let _ = feed
                    .session()
                    .disconnect_after_flush(Reason::ByApplication, "");
                while feed.next_event().await.is_ok() {}
                return StopReason::Handler(why);
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
        SessionEvent::OpenRefused {
            channel,
            reason,
            text,
        } => {
            let (id, why) = (
                ChannelId(channel),
                ChannelOpenFailure::from_open_failure(reason, &text),
            );
            let told = handler.channel_open_failure(id, why, &text, "", session);
            return told.await;
        }
        SessionEvent::GlobalRequest(GlobalRequest::HostKeys(blobs), _) => {
            let known = blobs
                .iter()
                .filter_map(|blob| PublicKey::from_bytes(blob).ok());
            let keys = known.collect();
            return handler.openssh_ext_host_keys_announced(keys, session).await;
        }
        // A server sends no other known request. Dropping it refuses it, as it does an unknown event.
        _ => return Ok(()),
    };
    let id = ChannelId(below);
    match message {
        Message::Data(DataKind::Stdout, bytes) => handler.data(id, &bytes, session).await,
        Message::Data(DataKind::Stderr, bytes) => {
            let told = handler.extended_data(id, CHANNEL_STDERR, &bytes, session);
            told.await
        }
        Message::Answer(true) => handler.channel_success(id, session).await,
        Message::Answer(false) => handler.channel_failure(id, session).await,
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
            if wants_reply {
                // A session that is over needs no reply.
                let _ = core.reply_to_oldest(below, false);
            }
            handle_request(handler, session, id, &request).await
        }
        // The handler has no callback for unknown messages.
        _ => Ok(()),
    }
}

async fn handle_request<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    id: ChannelId,
    request: &SshChannelRequest,
) -> Result<(), H::Error> {
    match request {
        SshChannelRequest::ExitStatus(status) => handler.exit_status(id, *status, session).await,
        SshChannelRequest::ExitSignal {
            name,
            core_dumped,
            message,
        } => {
            let signal = Sig::from_name(name);
            let ended = handler.exit_signal(id, signal, *core_dumped, message, "", session);
            ended.await
        }
        SshChannelRequest::FlowControl(may) => handler.xon_xoff(id, *may, session).await,
        _ => Ok(()),
    }
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
        ChannelKind::ForwardedTcpip {
            address,
            port,
            originator,
        } => {
            let opened = handler.server_channel_open_forwarded_tcpip(
                channel,
                &address,
                port.into(),
                &originator.address,
                originator.port,
                reply,
                session,
            );
            opened.await
        }
        ChannelKind::ForwardedStreamlocal { path } => {
            let path = String::from_utf8_lossy(&path);
            let opened =
                handler.server_channel_open_forwarded_streamlocal(channel, &path, reply, session);
            opened.await
        }
        ChannelKind::Agent => {
            let opened = handler.server_channel_open_agent_forward(channel, reply, session);
            opened.await
        }
        ChannelKind::X11 { originator } => {
            let from = (&originator.address, originator.port);
            let opened = handler.server_channel_open_x11(channel, from.0, from.1, reply, session);
            opened.await
        }
        // A server may open no other channels. Dropping the reply refuses them.
        _ => Ok(()),
    }
}
