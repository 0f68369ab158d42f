//! Server-side connections.

use std::fmt;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use adit_ssh_proto::auth::AuthenticatedUser;
use adit_ssh_proto::connection::{ChannelKind, GlobalAnswer, GlobalRequest, Originator};
use adit_ssh_proto::key::{Signer, prove_host_keys};
use tokio::sync::{mpsc, oneshot};

use super::Incoming;
use crate::channel::Channel;
use crate::computations::{AuthState, run_blocking};
use crate::error::OpenError;
use crate::peer::Peer;
use crate::routes::{GlobalReply, PeerRequest};
use crate::shared_session::Command;

/// A connection with an authenticated client. It derefs to [`Peer`], the handle to the client.
///
/// Dropping it refuses all later requests of the client. Open channels stay open, and the connection
/// ends with the last of them.
pub struct Connection {
    handle: ServerHandle,
    login: AuthenticatedUser,
    arrivals: mpsc::Receiver<PeerRequest>,
    host_keys: Arc<dyn Signer>,
    /// The client's address, by which computations take turns.
    source: Option<IpAddr>,
}

impl Connection {
    pub(super) const fn new(
        handle: ServerHandle,
        login: AuthenticatedUser,
        arrivals: mpsc::Receiver<PeerRequest>,
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

    /// Announces all host keys to the client.
    pub(super) fn announce_host_keys(&self) {
        // The request wants no reply, so no one waits for one.
        let (reply, _) = oneshot::channel();
        let request = GlobalRequest::HostKeys(self.host_keys.plain_blobs());
        let tell = Command::Global {
            request,
            route: None,
            reply,
        };
        // The session may be over already.
        let _ = self.handle.peer.shared.send_command(tell);
    }

    /// Proves possession of these host keys, or refuses if one of them is not a host key.
    async fn prove_host_keys(&self, blobs: Vec<Vec<u8>>, reply: GlobalReply) {
        let (keys, agreed) = (Arc::clone(&self.host_keys), self.negotiated().host_key);
        let session = self.session_id().to_vec();
        let prove = move || prove_host_keys(&*keys, agreed, &session, &blobs);
        let proved = run_blocking(AuthState::Authenticated, self.source, prove);
        if let Ok(Ok(data)) = proved.await {
            reply.send_answer(GlobalAnswer::Granted { data });
        } // Dropping a request refuses it.
    }

    /// Returns the user and the method by which they logged in.
    #[must_use]
    pub const fn login(&self) -> &AuthenticatedUser {
        &self.login
    }

    /// Returns the client's next request; `None` once the connection is over.
    ///
    /// Handle requests in other tasks: while this is not called, all requests wait.
    ///
    /// # Cancel safety
    /// This method is cancel-safe.
    pub async fn accept(&mut self) -> Option<Incoming> {
        loop {
            match self.arrivals.recv().await? {
                PeerRequest::Global(GlobalRequest::HostKeysProve(blobs), reply) => {
                    self.prove_host_keys(blobs, reply).await;
                }
                other => {
                    if let Some(incoming) = Incoming::from_peer_request(other) {
                        return Some(incoming);
                    }
                }
            }
        }
    }

    /// Returns a handle for other tasks.
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

/// A handle that opens channels to the client. It keeps the connection alive; all clones refer to the
/// same one.
#[derive(Debug, Clone)]
pub struct ServerHandle {
    peer: Peer,
}

impl ServerHandle {
    pub(super) const fn new(peer: Peer) -> Self {
        Self { peer }
    }

    /// Returns the handle to the client.
    #[must_use]
    pub const fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Opens a channel for a connection to an address that the client asked to forward. `address` and
    /// `port` are those of the client's request.
    ///
    /// # Errors
    /// The client refused it, too many channels are open, or the connection is over.
    ///
    /// # Cancel safety
    /// If the call is cancelled, a channel that opens nevertheless is closed.
    pub async fn open_forwarded_tcpip(
        &self,
        address: impl Into<String>,
        port: u16,
        originator: Originator,
    ) -> Result<Channel, OpenError> {
        self.open_kind(ChannelKind::ForwardedTcpip {
            address: address.into(),
            port,
            originator,
        })
        .await
    }

    /// Opens a channel for a connection to a Unix-domain socket that the client asked to forward.
    ///
    /// # Errors
    /// The errors of [`ServerHandle::open_forwarded_tcpip`].
    ///
    /// # Cancel safety
    /// If the call is cancelled, a channel that opens nevertheless is closed.
    pub async fn open_forwarded_streamlocal(
        &self,
        path: impl Into<Vec<u8>>,
    ) -> Result<Channel, OpenError> {
        let path = path.into();
        self.open_kind(ChannelKind::ForwardedStreamlocal { path })
            .await
    }

    /// Connects to the client's agent, which the client has offered in a session.
    ///
    /// # Errors
    /// The errors of [`ServerHandle::open_forwarded_tcpip`].
    ///
    /// # Cancel safety
    /// If the call is cancelled, a channel that opens nevertheless is closed.
    pub async fn open_agent(&self) -> Result<Channel, OpenError> {
        self.open_kind(ChannelKind::Agent).await
    }

    /// Connects to the client's display, which the client has offered in a session.
    ///
    /// # Errors
    /// The errors of [`ServerHandle::open_forwarded_tcpip`].
    ///
    /// # Cancel safety
    /// If the call is cancelled, a channel that opens nevertheless is closed.
    pub async fn open_x11(&self, originator: Originator) -> Result<Channel, OpenError> {
        self.open_kind(ChannelKind::X11 { originator }).await
    }

    async fn open_kind(&self, kind: ChannelKind) -> Result<Channel, OpenError> {
        self.peer.shared.open_channel(kind).await.map(Channel::new)
    }
}

impl Deref for ServerHandle {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}
