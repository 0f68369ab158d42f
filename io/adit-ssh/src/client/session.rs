//! A session as its owner sees it.

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

/// A session with a server, after the login.
///
/// Clones are handles to the same session. When the last one is dropped, the session ends with its
/// last channel. What is known of the other end is in [`Peer`], which this derefs to.
#[derive(Debug, Clone)]
pub struct Session {
    peer: Peer,
    /// Where word of the server's keys comes, until somebody takes it.
    pub(super) told: Arc<Mutex<Option<mpsc::Receiver<Arrival>>>>,
    /// Channels that may wait to be accepted: as many as the session lets wait at all, so that none
    /// is refused here.
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

    /// The other end.
    #[must_use]
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Opens a channel for a program, a shell or a subsystem.
    ///
    /// # Errors
    /// The server refused it, there are too many, or the session is over.
    pub async fn open_session(&self) -> Result<Program, OpenError> {
        let opened = self.peer.mail.open(ChannelKind::Session).await;
        opened.map(Program::new)
    }

    /// Connects from the server to `host` and `port`, as the server sees them.
    ///
    /// # Errors
    /// The server refused it or could not connect, there are too many, or the session is over.
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

    /// Connects from the server to a socket in its file system (OpenSSH's extension).
    ///
    /// # Errors
    /// As [`Session::direct_tcpip`].
    pub async fn direct_streamlocal(&self, path: impl Into<Vec<u8>>) -> Result<Channel, OpenError> {
        let kind = ChannelKind::DirectStreamlocal { path: path.into() };
        self.peer.mail.open(kind).await.map(Channel::new)
    }

    /// Has the server listen on an address and forward what comes. Empty is every address,
    /// `localhost` loopback; with port 0 the server chooses, see [`Forwarded::port`].
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

    /// Has the server listen on a socket in its file system and forward what comes (OpenSSH's
    /// extension).
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

    /// The channels by which the server's programs want our agent, once a program was
    /// [allowed to](super::ProgramControl::forward_agent). Asked again, the former gets no more.
    ///
    /// # Errors
    /// The session is over.
    pub fn agent_channels(&self) -> Result<Arrivals, End> {
        self.route(Asked::Agent)
    }

    /// The channels by which the server's programs want our display.
    ///
    /// # Errors
    /// The session is over.
    pub fn x11_channels(&self) -> Result<Arrivals, End> {
        self.route(Asked::X11)
    }

    fn route(&self, asked: Asked) -> Result<Arrivals, End> {
        Ok(Arrivals::new(self.route_to(asked, self.backlog)?))
    }

    /// What comes of this kind from now on, of which so many may wait.
    pub(super) fn route_to(
        &self,
        asked: Asked,
        backlog: usize,
    ) -> Result<mpsc::Receiver<Arrival>, End> {
        let (to, arrivals) = mpsc::channel(backlog);
        self.peer.mail.send(Command::Route(Route { asked, to }))?;
        Ok(arrivals)
    }

    /// Tells the server that no program will be wanted any more, so that a session that is taken
    /// over later is worth less (OpenSSH's extension).
    ///
    /// # Errors
    /// The session is over.
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
