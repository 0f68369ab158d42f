//! The task of a server's connection.

use std::sync::Arc;

use adit_ssh_proto::connection::{
    ChannelId as Id, ChannelKind, GlobalAnswer, GlobalRequest, Kind, Request,
};
use tokio::io::{AsyncRead, AsyncWrite};

use super::auth::let_in;
use super::{ChannelOpenHandle, Config, Handler, Session};
use crate::engine::{Arrived, CHANNEL_STDERR, Core, Mailbox, Over, Wire};
use crate::{Channel, ChannelId, Error, Sig, pty};

/// The task of a server's connection.
pub(super) struct Task<H, IO> {
    pub(super) wire: Wire<IO>,
    pub(super) handler: H,
    pub(super) session: Session,
    pub(super) core: Arc<Core>,
    pub(super) config: Arc<Config>,
}

impl<H: Handler, IO: AsyncRead + AsyncWrite + Unpin> Task<H, IO> {
    pub(super) async fn run(mut self) -> Result<(), H::Error> {
        let over = Over(Arc::clone(&self.core));
        let done = self.serve().await;
        drop(over);
        // A client that has said goodbye is gone.
        if self.wire.last_words.is_some() {
            return Ok(());
        }
        let goodbye = done.is_err().then_some(Error::Disconnect);
        self.wire.part(goodbye.as_ref()).await;
        done
    }

    async fn serve(&mut self) -> Result<(), H::Error> {
        let core = Arc::clone(&self.core);
        let_in(&mut self.wire, &self.config, &mut self.handler).await?;
        core.with(|state| state.ready = true);
        let told = self.handler.auth_succeeded(&mut self.session);
        self.wire.beside(&core, told).await?;
        loop {
            let arrived = match self.wire.turn(&core).await {
                Ok(Arrived::Left) | Err(Error::HUP) => return Ok(()),
                arrived => arrived?,
            };
            let told = tell(&mut self.handler, &mut self.session, &core, arrived);
            self.wire.beside(&core, told).await?;
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
                let code = CHANNEL_STDERR;
                handler
                    .extended_data(ChannelId(id), code, &bytes, session)
                    .await
            }
        },
        Arrived::Eof(id) => handler.channel_eof(ChannelId(id), session).await,
        Arrived::Closed(id) => handler.channel_close(ChannelId(id), session).await,
        Arrived::Room { id, room } => handler.window_adjusted(ChannelId(id), room, session).await,
        Arrived::Asked { id, request } => asked(handler, session, core, id, request).await,
        Arrived::Wanted { id, kind, mailbox } => {
            wanted(handler, session, core, (id, kind, mailbox)).await
        }
        Arrived::Global { request, reply } => {
            let answer = forward(handler, session, request).await?;
            if let Some(reply) = reply {
                core.with(|state| state.connection.answer_global(reply, answer));
            }
            Ok(())
        }
        // Whoever opened it, or asked, is told.
        Arrived::OpenFailed { .. } | Arrived::Answered { .. } | Arrived::Left => Ok(()),
    }
}

async fn asked<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    core: &Core,
    below: Id,
    request: Request,
) -> Result<(), H::Error> {
    let id = ChannelId(below);
    match request {
        Request::Pty(wanted) => {
            let (size, modes) = (wanted.size, pty::named(&wanted.modes));
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
        Request::Env { name, value } => {
            let (name, value) = (
                String::from_utf8_lossy(&name),
                String::from_utf8_lossy(&value),
            );
            handler.env_request(id, &name, &value, session).await
        }
        Request::Shell => handler.shell_request(id, session).await,
        Request::Exec(command) => handler.exec_request(id, &command, session).await,
        Request::Subsystem(name) => handler.subsystem_request(id, &name, session).await,
        Request::WindowChange(size) => {
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
        Request::Signal(name) => handler.signal(id, Sig::from_name(&name), session).await,
        Request::X11 {
            single,
            protocol,
            cookie,
            screen,
        } => {
            let cookie = cookie.expose();
            let told = handler.x11_request(id, single, &protocol, cookie, screen, session);
            told.await
        }
        Request::Agent => {
            let granted = handler.agent_request(id, session).await?;
            core.answer_last(below, granted);
            Ok(())
        }
        // A break, or what only servers tell.
        _ => {
            core.answer_last(below, false);
            Ok(())
        }
    }
}

async fn wanted<H: Handler>(
    handler: &mut H,
    session: &mut Session,
    core: &Arc<Core>,
    (id, kind, mailbox): (Id, ChannelKind, Arc<Mailbox>),
) -> Result<(), H::Error> {
    let reply = ChannelOpenHandle::new(Arc::clone(core), id);
    let channel = Channel::new(core, id, mailbox);
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
        // Tunnel devices; what is dropped here is refused.
        _ => Ok(()),
    }
}

async fn forward<H: Handler>(
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
