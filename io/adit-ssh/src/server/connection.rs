//! A connection as its server sees it.

use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use adit_ssh_proto::auth::Login;
use adit_ssh_proto::connection::{ChannelKind, GlobalAnswer, GlobalRequest, Originator};
use adit_ssh_proto::key::{Signer, prove};
use tokio::sync::{mpsc, oneshot};

use super::Incoming;
use crate::about::Peer;
use crate::channel::Channel;
use crate::computations::{Whose, apart};
use crate::error::OpenError;
use crate::forwards::{Arrival, GlobalReply};
use crate::mail::Command;

/// A connection with a client whose user is in. What is known of the other end is in [`Peer`],
/// which this derefs to.
///
/// When it is dropped, what the client wants from then on is refused; channels that are open go
/// on, and the connection ends with the last of them.
pub struct Connection {
    handle: ServerHandle,
    login: Login,
    arrivals: mpsc::Receiver<Arrival>,
    host_keys: Arc<dyn Signer>,
    /// Where the client is, for computations to take turns by source.
    source: Option<IpAddr>,
}

impl Connection {
    pub(super) const fn new(
        handle: ServerHandle,
        login: Login,
        arrivals: mpsc::Receiver<Arrival>,
        host_keys: Arc<dyn Signer>,
        source: Option<IpAddr>,
    ) -> Self {
        Self {
            handle,
            login,
            arrivals,
            host_keys,
            source,
        }
    }

    /// Tells the client all keys of the host.
    pub(super) fn tell_host_keys(&self) {
        // Nobody waits: it wants no answer.
        let (reply, _) = oneshot::channel();
        let request = GlobalRequest::HostKeys(self.host_keys.blobs());
        let tell = Command::Global {
            request,
            route: None,
            reply,
        };
        // The session may be over already.
        let _ = self.handle.peer.mail.send(tell);
    }

    /// Proves that the host has these keys, or does not answer what is none of its keys.
    async fn prove(&self, blobs: Vec<Vec<u8>>, reply: GlobalReply) {
        let (keys, agreed) = (Arc::clone(&self.host_keys), self.negotiated().host_key);
        let session = self.session_id().to_vec();
        let prove = move || prove(&*keys, agreed, &session, &blobs);
        let proved = apart(Whose::User, self.source, prove);
        if let Ok(Ok(data)) = proved.await {
            reply.give(GlobalAnswer::Granted { data });
        } // What is dropped is refused.
    }

    /// The user, and how he got in.
    #[must_use]
    pub const fn login(&self) -> &Login {
        &self.login
    }

    /// What the client wants next; `None` once the connection is over. Cancel-safe.
    ///
    /// Whoever takes it decides elsewhere: while nobody asks for the next wish, all wait.
    pub async fn accept(&mut self) -> Option<Incoming> {
        loop {
            match self.arrivals.recv().await? {
                Arrival::Global(GlobalRequest::HostKeysProve(blobs), reply) => {
                    self.prove(blobs, reply).await;
                }
                other => {
                    if let Some(incoming) = Incoming::of(other) {
                        return Some(incoming);
                    }
                }
            }
        }
    }

    /// A handle for other tasks.
    #[must_use]
    pub const fn handle(&self) -> &ServerHandle {
        &self.handle
    }
}

impl Deref for Connection {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.handle.peer
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("handle", &self.handle)
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

/// Opens channels to the client. Keeps the connection alive; clones are of the same one.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    peer: Peer,
}

impl ServerHandle {
    pub(super) const fn new(peer: Peer) -> Self {
        Self { peer }
    }

    /// The other end.
    #[must_use]
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Hands on a connection that came to a place the client wants forwarded. `address` and `port`
    /// are those of the client's request.
    ///
    /// # Errors
    /// The client refused it, there are too many, or the connection is over.
    pub async fn open_forwarded_tcpip(
        &self,
        address: impl Into<String>,
        port: u16,
        originator: Originator,
    ) -> Result<Channel, OpenError> {
        self.open(ChannelKind::ForwardedTcpip {
            address: address.into(),
            port,
            originator,
        })
        .await
    }

    /// Hands on a connection that came to a socket the client wants forwarded.
    ///
    /// # Errors
    /// As [`ServerHandle::open_forwarded_tcpip`].
    pub async fn open_forwarded_streamlocal(
        &self,
        path: impl Into<Vec<u8>>,
    ) -> Result<Channel, OpenError> {
        let path = path.into();
        self.open(ChannelKind::ForwardedStreamlocal { path }).await
    }

    /// Connects to the client's agent, which it has offered in a session.
    ///
    /// # Errors
    /// As [`ServerHandle::open_forwarded_tcpip`].
    pub async fn open_agent(&self) -> Result<Channel, OpenError> {
        self.open(ChannelKind::Agent).await
    }

    /// Connects to the client's display, which it has offered in a session.
    ///
    /// # Errors
    /// As [`ServerHandle::open_forwarded_tcpip`].
    pub async fn open_x11(&self, originator: Originator) -> Result<Channel, OpenError> {
        self.open(ChannelKind::X11 { originator }).await
    }

    async fn open(&self, kind: ChannelKind) -> Result<Channel, OpenError> {
        self.peer.mail.open(kind).await.map(Channel::new)
    }
}

impl Deref for ServerHandle {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}
