//! The task of a client's session.

use std::sync::Arc;

use adit_ssh_proto::SshError;
use adit_ssh_proto::connection::{ChannelKind, GlobalAnswer, GlobalRequest, Kind, Request};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use super::auth::Auth;
use super::login::Wish;
use super::{ChannelOpenHandle, DisconnectReason, Handler, RemoteDisconnectInfo, Session};
use crate::engine::{Arrived, CHANNEL_STDERR, Core, Mailbox, Over, Wire};
use crate::keys::PublicKey;
use crate::{Channel, ChannelId, Disconnect, Error, Sig};

/// The task of a client's session.
pub(super) struct Task<H, IO> {
    pub(super) wire: Wire<IO>,
    pub(super) handler: H,
    pub(super) session: Session,
    pub(super) core: Arc<Core>,
}

/// Why a session is over, or a try to log in.
pub(super) enum Stop<E> {
    /// Something failed here, or in the protocol.
    Error(Error),
    /// The handler failed.
    Handler(E),
    /// It was ended here.
    Left,
}

impl<E> From<Error> for Stop<E> {
    fn from(why: Error) -> Self {
        Self::Error(why)
    }
}

impl<E> From<SshError> for Stop<E> {
    fn from(why: SshError) -> Self {
        Self::Error(why.into())
    }
}

impl<H: Handler, IO: AsyncRead + AsyncWrite + Unpin> Task<H, IO> {
    pub(super) async fn run(mut self, mut wishes: mpsc::Receiver<Wish>) -> Result<(), H::Error> {
        let over = Over(Arc::clone(&self.core));
        let stop = self.serve(&mut wishes).await;
        drop((wishes, over));
        let said = self.wire.last_words.take();
        let reason = match (stop, said) {
            (Stop::Left, _) => {
                self.wire.part(None).await;
                return Ok(());
            }
            (Stop::Handler(why), _) => {
                self.wire.part(Some(&Error::Disconnect)).await;
                DisconnectReason::Error(why)
            }
            (Stop::Error(_), Some((code, message))) => {
                DisconnectReason::ReceivedDisconnect(RemoteDisconnectInfo {
                    reason_code: Disconnect::try_from(code).unwrap_or(Disconnect::ByApplication),
                    message,
                    lang_tag: String::new(),
                })
            }
            (Stop::Error(why), None) => {
                self.wire.part(Some(&why)).await;
                DisconnectReason::Error(why.into())
            }
        };
        self.handler.disconnected(reason).await
    }

    async fn serve(&mut self, wishes: &mut mpsc::Receiver<Wish>) -> Stop<H::Error> {
        let core = Arc::clone(&self.core);
        let mut auth = Auth::new(&mut self.wire, &mut self.handler, &mut self.session);
        let is_in = auth.run(wishes, || core.with(|state| state.ready = true));
        match is_in.await {
            Ok(true) => wishes.close(),
            Ok(false) => return Stop::Left,
            Err(why) => return why,
        }
        loop {
            match self.wire.turn(&core).await {
                Ok(Arrived::Left) => return Stop::Left,
                Ok(arrived) => {
                    let told = tell(&mut self.handler, &mut self.session, &core, arrived);
                    if let Err(why) = self.wire.beside(&core, told).await {
                        return Stop::Handler(why);
                    }
                }
                Err(why) => return Stop::Error(why),
            }
        }
    }
}

/// Tells the handler what has happened.
async fn tell<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    core: &Arc<Core>,
    arrived: Arrived,
) -> Result<(), H::Error> {
    match arrived {
        Arrived::Data { id, kind, bytes } => match kind {
            Kind::Stdout => handler.data(ChannelId(id), &bytes, session).await,
            Kind::Stderr => {
                let ext = CHANNEL_STDERR;
                handler
                    .extended_data(ChannelId(id), ext, &bytes, session)
                    .await
            }
        },
        Arrived::Answered { id, ok: true } => handler.channel_success(ChannelId(id), session).await,
        Arrived::Answered { id, ok: false } => {
            handler.channel_failure(ChannelId(id), session).await
        }
        Arrived::Eof(id) => handler.channel_eof(ChannelId(id), session).await,
        Arrived::Closed(id) => handler.channel_close(ChannelId(id), session).await,
        Arrived::Room { id, room } => handler.window_adjusted(ChannelId(id), room, session).await,
        Arrived::OpenFailed { id, why, text } => {
            let id = ChannelId(id);
            handler
                .channel_open_failure(id, why, &text, "", session)
                .await
        }
        Arrived::Asked { id, request } => asked(handler, session, ChannelId(id), request).await,
        Arrived::Wanted { id, kind, mailbox } => {
            wanted(handler, session, core, (id, kind, mailbox)).await
        }
        Arrived::Global { request, reply } => {
            if let Some(reply) = reply {
                // None of a server's is known that wants an answer.
                core.with(|state| state.connection.answer_global(reply, GlobalAnswer::Refused));
            }
            let GlobalRequest::HostKeys(blobs) = request else {
                return Ok(());
            };
            let known = blobs
                .iter()
                .filter_map(|blob| PublicKey::from_bytes(blob).ok());
            let keys = known.collect();
            handler.openssh_ext_host_keys_announced(keys, session).await
        }
        Arrived::Left => Ok(()),
    }
}

async fn asked<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    id: ChannelId,
    request: Request,
) -> Result<(), H::Error> {
    match request {
        Request::ExitStatus(status) => handler.exit_status(id, status, session).await,
        Request::ExitSignal {
            name,
            core_dumped,
            message,
        } => {
            let signal = Sig::from_name(&name);
            let ended = handler.exit_signal(id, signal, core_dumped, &message, "", session);
            ended.await
        }
        Request::FlowControl(may) => handler.xon_xoff(id, may, session).await,
        _ => Ok(()),
    }
}

async fn wanted<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    core: &Arc<Core>,
    (id, kind, mailbox): (
        adit_ssh_proto::connection::ChannelId,
        ChannelKind,
        Arc<Mailbox>,
    ),
) -> Result<(), H::Error> {
    let reply = ChannelOpenHandle::new(Arc::clone(core), id);
    let channel = Channel::new(core, id, mailbox);
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
        // Nothing else may be wanted by a server; what is dropped here is refused.
        _ => Ok(()),
    }
}
