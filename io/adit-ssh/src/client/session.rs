//! Client sessions.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use adit_ssh_proto::connection::{ChannelKind, GlobalAnswer, GlobalRequest, Originator};
use tokio::sync::mpsc;

use super::forwarded::{Arrivals, Forwarded};
use super::program::Program;
use crate::about::Peer;
use crate::channel::Channel;
use crate::error::{End, OpenError, RequestError};
use crate::forwards::{Arrival, Asked, Route};
use crate::mail::Command;

/// A session with a server, after login.
///
/// Clones are handles to the same session. Once the last one is dropped, the session ends with its last
/// channel. A session derefs to [`Peer`], the handle to the server.
#[derive(Debug, Clone)]
pub struct Session {
    peer: Peer,
    /// Announcements of the server's host keys, until they are taken.
    pub(super) told: Arc<Mutex<Option<mpsc::Receiver<Arrival>>>>,
    /// Maximum number of channels that wait to be accepted: the session's own limit, so that none is
    /// refused here.
    pub(super) backlog: usize,
}

impl Session {
    pub(super) fn new(peer: Peer, told: mpsc::Receiver<Arrival>, backlog: usize) -> Self {
        Self {
            peer,
            backlog: backlog.max(1),
            told: Arc::new(Mutex::new(Some(told))),
        }
    }

    /// Returns the handle to the server.
    #[must_use]
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Opens a channel for a program, a shell or a subsystem.
    ///
    /// # Errors
    /// The server refused it, too many channels are open, or the session is over.
    pub async fn open_session(&self) -> Result<Program, OpenError> {
        let opened = self.peer.mail.open(ChannelKind::Session).await;
        opened.map(Program::new)
    }

    /// Connects from the server to `host` and `port`, as the server resolves them.
    ///
    /// # Errors
    /// The server refused it or could not connect, too many channels are open, or the session is over.
    pub async fn direct_tcpip(
        &self,
        host: impl Into<String>,
        port: u16,
        originator: Originator,
    ) -> Result<Channel, OpenError> {
        let kind = ChannelKind::DirectTcpip {
            host: host.into(),
            port,
            originator,
        };
        self.peer.mail.open(kind).await.map(Channel::new)
    }

    /// Connects from the server to a Unix-domain socket in its file system (OpenSSH's extension).
    ///
    /// # Errors
    /// The errors of [`Session::direct_tcpip`].
    pub async fn direct_streamlocal(&self, path: impl Into<Vec<u8>>) -> Result<Channel, OpenError> {
        let kind = ChannelKind::DirectStreamlocal { path: path.into() };
        self.peer.mail.open(kind).await.map(Channel::new)
    }

    /// Asks the server to listen on an address and to forward its connections. An empty address means
    /// all addresses, `localhost` means loopback. With port 0 the server chooses one, see
    /// [`Forwarded::port`].
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn forward_tcpip(
        &self,
        address: impl Into<String>,
        port: u16,
    ) -> Result<Forwarded, RequestError> {
        let address = address.into();
        let mut asked = Asked::Tcpip {
            address: address.clone(),
            port,
        };
        let request = GlobalRequest::TcpipForward { address, port };
        let (answer, arrivals) = self.forward(request, asked.clone()).await?;
        if let (Asked::Tcpip { port, .. }, GlobalAnswer::Bound { port: bound }) =
            (&mut asked, answer)
        {
            *port = bound;
        }
        Ok(Forwarded::new(self.peer.clone(), asked, arrivals))
    }

    /// Asks the server to listen on a Unix-domain socket in its file system and to forward its
    /// connections (OpenSSH's extension).
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn forward_streamlocal(
        &self,
        path: impl Into<Vec<u8>>,
    ) -> Result<Forwarded, RequestError> {
        let path = path.into();
        let asked = Asked::Streamlocal(path.clone());
        let request = GlobalRequest::StreamlocalForward { path };
        let (_, arrivals) = self.forward(request, asked.clone()).await?;
        Ok(Forwarded::new(self.peer.clone(), asked, arrivals))
    }

    async fn forward(
        &self,
        request: GlobalRequest,
        asked: Asked,
    ) -> Result<(GlobalAnswer, Arrivals), RequestError> {
        let (to, arrivals) = mpsc::channel(self.backlog);
        let route = Some(Route { asked, to });
        let answer = self.peer.mail.global(request, route).await?;
        Ok((answer, Arrivals::new(arrivals)))
    }

    /// Returns the channels by which the server's programs use the local agent, once a program was
    /// [allowed to](super::ProgramControl::forward_agent). A second call takes over from the first
    /// queue.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn agent_channels(&self) -> Result<Arrivals, End> {
        self.route(Asked::Agent)
    }

    /// Returns the channels by which the server's programs use the local display.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn x11_channels(&self) -> Result<Arrivals, End> {
        self.route(Asked::X11)
    }

    fn route(&self, asked: Asked) -> Result<Arrivals, End> {
        Ok(Arrivals::new(self.route_to(asked, self.backlog)?))
    }

    /// Returns a queue of at most `backlog` arrivals of this kind, from now on.
    pub(super) fn route_to(
        &self,
        asked: Asked,
        backlog: usize,
    ) -> Result<mpsc::Receiver<Arrival>, End> {
        let (to, arrivals) = mpsc::channel(backlog);
        self.peer.mail.send(Command::Route(Route { asked, to }))?;
        Ok(arrivals)
    }

    /// Tells the server that this client will start no more programs, so that a session that is
    /// hijacked later is worth less (OpenSSH's extension).
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    pub async fn no_more_sessions(&self) -> Result<(), RequestError> {
        let request = GlobalRequest::NoMoreSessions;
        self.peer.mail.global(request, None).await.map(drop)
    }
}

impl Deref for Session {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}
