//! The task of a client session.

use std::sync::{Arc, OnceLock};

use adit_ssh::client::Entrance;
use adit_ssh::messages::{Bounds, Message, MessageChannel, Told};
use adit_ssh::{ConnectError, End, Opening, Peer};
use adit_ssh_proto::connection::{ChannelKind, GlobalRequest, Kind, Request};
use adit_ssh_proto::{Disconnect as Reason, SshError};
use tokio::sync::mpsc;

use super::auth::Auth;
use super::login::Wish;
use super::{
    ChannelOpenHandle, DisconnectReason, Handler, KeyboardInteractiveAuthResponse,
    RemoteDisconnectInfo, Session,
};
use crate::core::{CHANNEL_STDERR, Core, Over, reason};
use crate::keys::PublicKey;
use crate::{Channel, ChannelId, ChannelOpenFailure, Disconnect, Error, Sig};

/// The task of a client session.
pub(super) struct Task<H> {
    pub(super) handler: H,
    pub(super) session: Session,
    pub(super) core: Arc<Core>,
    /// Shared with the handle, which keeps the session alive by it.
    pub(super) hold: Arc<OnceLock<Peer>>,
    pub(super) bounds: Bounds,
}

/// The reason why a session is over.
pub(super) enum Stop<E> {
    /// An error of this end or of the protocol.
    Error(Error),
    /// The server's disconnect message: its code and explanation.
    Said(u32, String),
    /// The handler failed.
    Handler(E),
    /// This end closed the session.
    Left,
}

impl<E> From<Error> for Stop<E> {
    fn from(why: Error) -> Self {
        Self::Error(why)
    }
}

impl<E> From<End> for Stop<E> {
    fn from(why: End) -> Self {
        match why {
            End::Closed => Self::Left,
            End::Ssh(SshError::Disconnected { reason, text }) => Self::Said(reason, text),
            other => Self::Error(reason(other)),
        }
    }
}

impl<E> From<ConnectError> for Stop<E> {
    fn from(why: ConnectError) -> Self {
        match why {
            ConnectError::Ssh(why) => End::Ssh(why).into(),
            other => Self::Error(other.into()),
        }
    }
}

impl<H: Handler> Task<H> {
    pub(super) async fn run(
        mut self,
        entrance: Entrance,
        mut wishes: mpsc::Receiver<Wish>,
    ) -> Result<(), H::Error> {
        let over = Over(Arc::clone(&self.core));
        let stop = self.serve(entrance, &mut wishes).await;
        drop((wishes, over));
        let reason = match stop {
            Stop::Left => return Ok(()),
            Stop::Handler(why) => DisconnectReason::Error(why),
            Stop::Error(why) => DisconnectReason::Error(why.into()),
            Stop::Said(code, message) => {
                DisconnectReason::ReceivedDisconnect(RemoteDisconnectInfo {
                    reason_code: Disconnect::try_from(code).unwrap_or(Disconnect::ByApplication),
                    message,
                    lang_tag: String::new(),
                })
            }
        };
        self.handler.disconnected(reason).await
    }

    async fn serve(
        &mut self,
        mut entrance: Entrance,
        wishes: &mut mpsc::Receiver<Wish>,
    ) -> Stop<H::Error> {
        let core = Arc::clone(&self.core);
        let mut auth = Auth {
            entrance: &mut entrance,
            handler: &mut self.handler,
            session: &mut self.session,
            core: &core,
        };
        let reply = match auth.run(wishes).await {
            Ok(reply) => reply,
            Err(stop) => {
                entrance.give_up(&ConnectError::Ended("authenticating the user"));
                return stop;
            }
        };
        let (mut feed, peer) = entrance.enter_by_messages(self.bounds);
        core.begin(feed.speaker());
        // From now on the handle alone keeps the session alive.
        let _ = std::mem::take(&mut self.hold).set(peer);
        wishes.close();
        // The caller may be gone.
        let _ = reply.send(Ok(KeyboardInteractiveAuthResponse::Success));
        loop {
            let told = match feed.next().await {
                Ok(told) => told,
                Err(end) => return end.into(),
            };
            if let Err(why) = tell(&mut self.handler, &mut self.session, &core, told).await {
                // Nothing to do if the session is over already.
                let _ = feed.speaker().leave(Reason::ByApplication, "");
                while feed.next().await.is_ok() {}
                return Stop::Handler(why);
            }
        }
    }
}

/// Passes an event to the handler.
async fn tell<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    core: &Core,
    told: Told,
) -> Result<(), H::Error> {
    let (below, message) = match told {
        Told::Came(below, message) => (below, message),
        Told::Wanted(opening, channel) => return wanted(handler, session, opening, channel).await,
        Told::Refused {
            channel,
            reason,
            text,
        } => {
            let (id, why) = (ChannelId(channel), ChannelOpenFailure::of(reason, &text));
            let told = handler.channel_open_failure(id, why, &text, "", session);
            return told.await;
        }
        Told::Global(GlobalRequest::HostKeys(blobs), _) => {
            let known = blobs
                .iter()
                .filter_map(|blob| PublicKey::from_bytes(blob).ok());
            let keys = known.collect();
            return handler.openssh_ext_host_keys_announced(keys, session).await;
        }
        // A server sends no other known request. Dropping it refuses it.
        Told::Global(..) => return Ok(()),
    };
    let id = ChannelId(below);
    match message {
        Message::Data(Kind::Stdout, bytes) => handler.data(id, &bytes, session).await,
        Message::Data(Kind::Stderr, bytes) => {
            let told = handler.extended_data(id, CHANNEL_STDERR, &bytes, session);
            told.await
        }
        Message::Answer(true) => handler.channel_success(id, session).await,
        Message::Answer(false) => handler.channel_failure(id, session).await,
        Message::Eof => handler.channel_eof(id, session).await,
        Message::Closed => handler.channel_close(id, session).await,
        Message::Room(room) => {
            let room = u32::try_from(room).unwrap_or(u32::MAX);
            handler.window_adjusted(id, room, session).await
        }
        Message::Request {
            request,
            wants_reply,
        } => {
            if wants_reply {
                // A session that is over needs no reply.
                let _ = core.answer(below, false);
            }
            asked(handler, session, id, &request).await
        }
    }
}

async fn asked<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    id: ChannelId,
    request: &Request,
) -> Result<(), H::Error> {
    match request {
        Request::ExitStatus(status) => handler.exit_status(id, *status, session).await,
        Request::ExitSignal {
            name,
            core_dumped,
            message,
        } => {
            let signal = Sig::from_name(name);
            let ended = handler.exit_signal(id, signal, *core_dumped, message, "", session);
            ended.await
        }
        Request::FlowControl(may) => handler.xon_xoff(id, *may, session).await,
        _ => Ok(()),
    }
}

async fn wanted<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    opening: Opening,
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
