//! Client sessions.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use adit_ssh_proto::connection::{ChannelKind, GlobalAnswer, GlobalRequest, Originator};
use tokio::sync::mpsc;

use super::program::Program;
use super::remote_forward::{IncomingChannels, RemoteForward};
use crate::channel::Channel;
use crate::error::{OpenError, RequestError, SessionEnd};
use crate::peer::Peer;
use crate::routes::{PeerRequest, Route, RouteKind};
use crate::shared_session::Command;

/// A session with a server, after login.
///
/// Clones are handles to the same session. Once the last one is dropped, the session ends with its last
/// channel. A session derefs to [`Peer`], the handle to the server.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// use std::sync::Arc;
///
/// use adit_net::system::SystemRng;
/// use adit_ssh::BoxFuture;
/// use adit_ssh::client::{Client, ClientConfig, Login, PinnedKeys};
/// use adit_ssh::server::{AuthPolicy, Incoming, KeyProof, Server, ServerConfig};
/// use adit_ssh_proto::connection::Originator;
/// use adit_ssh_proto::key::{AnyKey, KeySet, KeyType, PrivateKey};
/// use adit_stream::Tcp;
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::TcpListener;
///
/// struct OneKey(AnyKey);
///
/// impl AuthPolicy for OneKey {
///     fn check_public_key<'a>(
///         &'a self,
///         user: &'a str,
///         key: &'a AnyKey,
///         _: KeyProof,
///     ) -> BoxFuture<'a, bool> {
///         Box::pin(async move { user == "me" && *key == self.0 })
///     }
/// }
///
/// let host_key = PrivateKey::generate(KeyType::Ed25519, &mut SystemRng)?;
/// let user_key = PrivateKey::generate(KeyType::Ed25519, &mut SystemRng)?;
/// let pinned = PinnedKeys(vec![AnyKey::Plain(host_key.public_key().clone())]);
/// let policy = OneKey(AnyKey::Plain(user_key.public_key().clone()));
///
/// // A server that answers every connection by itself.
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let addr = listener.local_addr()?;
/// tokio::spawn(async move {
///     let config = ServerConfig::new(Arc::new(KeySet::from(vec![host_key])));
///     let (socket, _) = listener.accept().await?;
///     let mut connection = Server::accept(Box::new(Tcp::new(socket)), &config, &policy).await?;
///     while let Some(incoming) = connection.accept().await {
///         if let Incoming::DirectTcpip { host, opening, .. } = incoming {
///             let mut channel = opening.accept()?;
///             channel.write_all(format!("this is {host}").as_bytes()).await?;
///             channel.shutdown().await?;
///         }
///     }
///     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// });
///
/// let login = Login::new("me").with_key(user_key);
/// let config = ClientConfig::new(Arc::new(pinned), login);
/// let session = Client::connect_tcp("127.0.0.1", addr.port(), config).await?;
/// let mut channel = session.open_direct_tcpip("example.test", 80, Originator::default()).await?;
/// let mut text = String::new();
/// channel.read_to_string(&mut text).await?;
/// assert_eq!(text, "this is example.test");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Session {
    peer: Peer,
    /// Announcements of the server's host keys, until they are taken.
    pub(super) host_keys: Arc<Mutex<Option<mpsc::Receiver<PeerRequest>>>>,
    /// Maximum number of channels that wait to be accepted: the session's own limit, so that none is
    /// refused here.
    pub(super) backlog: usize,
}

impl Session {
    pub(super) fn new(peer: Peer, told: mpsc::Receiver<PeerRequest>, backlog: usize) -> Self {
        Self {
            peer,
            backlog: backlog.max(1),
            host_keys: Arc::new(Mutex::new(Some(told))),
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
    ///
    /// # Cancel safety
    /// If the call is cancelled, a channel that opens nevertheless is closed.
    pub async fn open_session(&self) -> Result<Program, OpenError> {
        let opened = self.peer.shared.open_channel(ChannelKind::Session).await;
        opened.map(Program::new)
    }

    /// Connects from the server to `host` and `port`, as the server resolves them.
    ///
    /// # Errors
    /// The server refused it or could not connect, too many channels are open, or the session is over.
    ///
    /// # Cancel safety
    /// If the call is cancelled, a channel that opens nevertheless is closed.
    pub async fn open_direct_tcpip(
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
        self.peer.shared.open_channel(kind).await.map(Channel::new)
    }

    /// Connects from the server to a Unix-domain socket in its file system (OpenSSH's extension).
    ///
    /// # Errors
    /// The errors of [`Session::open_direct_tcpip`].
    ///
    /// # Cancel safety
    /// If the call is cancelled, a channel that opens nevertheless is closed.
    pub async fn open_direct_streamlocal(
        &self,
        path: impl Into<Vec<u8>>,
    ) -> Result<Channel, OpenError> {
        let kind = ChannelKind::DirectStreamlocal { path: path.into() };
        self.peer.shared.open_channel(kind).await.map(Channel::new)
    }

    /// Asks the server to listen on an address and to forward its connections. An empty address means
    /// all addresses, `localhost` means loopback. With port 0 the server chooses one, see
    /// [`RemoteForward::port`].
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the forward is cancelled as well, once the server has answered.
    pub async fn forward_tcpip(
        &self,
        address: impl Into<String>,
        port: u16,
    ) -> Result<RemoteForward, RequestError> {
        let address = address.into();
        let mut asked = RouteKind::Tcpip {
            address: address.clone(),
            port,
        };
        let request = GlobalRequest::TcpipForward { address, port };
        let (answer, arrivals) = self.request_forward(request, asked.clone()).await?;
        if let (RouteKind::Tcpip { port, .. }, GlobalAnswer::Bound { port: bound }) =
            (&mut asked, answer)
        {
            *port = bound;
        }
        Ok(RemoteForward::new(self.peer.clone(), asked, arrivals))
    }

    /// Asks the server to listen on a Unix-domain socket in its file system and to forward its
    /// connections (OpenSSH's extension).
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the forward is cancelled as well, once the server has answered.
    pub async fn forward_streamlocal(
        &self,
        path: impl Into<Vec<u8>>,
    ) -> Result<RemoteForward, RequestError> {
        let path = path.into();
        let asked = RouteKind::Streamlocal(path.clone());
        let request = GlobalRequest::StreamlocalForward { path };
        let (_, arrivals) = self.request_forward(request, asked.clone()).await?;
        Ok(RemoteForward::new(self.peer.clone(), asked, arrivals))
    }

    async fn request_forward(
        &self,
        request: GlobalRequest,
        asked: RouteKind,
    ) -> Result<(GlobalAnswer, IncomingChannels), RequestError> {
        let (to, arrivals) = mpsc::channel(self.backlog);
        let route = Some(Route {
            kind: asked,
            sender: to,
        });
        let answer = self.peer.shared.send_global_request(request, route).await?;
        Ok((answer, IncomingChannels::new(arrivals)))
    }

    /// Returns the channels by which the server's programs use the local agent, once a program was
    /// [allowed to](super::ProgramControl::forward_agent). A second call takes over from the first
    /// queue.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn agent_channels(&self) -> Result<IncomingChannels, SessionEnd> {
        self.route_channels(RouteKind::Agent)
    }

    /// Returns the channels by which the server's programs use the local display.
    ///
    /// # Errors
    /// Returns the reason if the session is over.
    pub fn x11_channels(&self) -> Result<IncomingChannels, SessionEnd> {
        self.route_channels(RouteKind::X11)
    }

    fn route_channels(&self, asked: RouteKind) -> Result<IncomingChannels, SessionEnd> {
        Ok(IncomingChannels::new(self.add_route(asked, self.backlog)?))
    }

    /// Returns a queue of at most `backlog` arrivals of this kind, from now on.
    pub(super) fn add_route(
        &self,
        asked: RouteKind,
        backlog: usize,
    ) -> Result<mpsc::Receiver<PeerRequest>, SessionEnd> {
        let (to, arrivals) = mpsc::channel(backlog);
        self.peer.shared.send_command(Command::Route(Route {
            kind: asked,
            sender: to,
        }))?;
        Ok(arrivals)
    }

    /// Tells the server that this client will start no more programs, so that a session that is
    /// hijacked later is worth less (OpenSSH's extension).
    ///
    /// # Errors
    /// The server refused it, or the session is over.
    ///
    /// # Cancel safety
    /// If the call is cancelled, the request may have been sent. Its answer is discarded.
    pub async fn send_no_more_sessions(&self) -> Result<(), RequestError> {
        let request = GlobalRequest::NoMoreSessions;
        self.peer
            .shared
            .send_global_request(request, None)
            .await
            .map(drop)
    }
}

impl Deref for Session {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}
