//! Handles to client sessions.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use adit_crypto::Secret;
use adit_ssh::Peer;
use adit_ssh::messages::OutgoingMessage;
use adit_ssh_proto::auth::AuthMethod;
use adit_ssh_proto::connection::{ChannelKind, DataKind, GlobalAnswer, GlobalRequest, Originator};
use adit_ssh_proto::key::AnyKey;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::login_request::{LoginAttempt, LoginRequest};
use super::{Handler, KeyboardInteractiveAuthResponse, Msg};
use crate::keys::agent::AgentSessionBinding;
use crate::keys::{Certificate, HashAlg, PrivateKey, PrivateKeyWithHashAlg};
use crate::session_core::SessionCore;
use crate::{AuthResult, Channel, ChannelId, Disconnect, Error, config_conversion};

/// A handle to a session. The session ends when the handle and the session's channels are dropped.
///
/// As a future, it waits for the end of the session.
pub struct Handle<H: Handler> {
    core: Arc<SessionCore>,
    /// Keeps the session alive once the user is authenticated.
    keep_alive: Arc<OnceLock<Peer>>,
    requests: mpsc::Sender<LoginRequest>,
    task: JoinHandle<Result<(), H::Error>>,
    /// The binding of this session for agents.
    pub(super) session_binding: Option<AgentSessionBinding>,
}

#[allow(clippy::unused_async, reason = "same signature as in russh")]
impl<H: Handler> Handle<H> {
    pub(super) fn new(
        core: Arc<SessionCore>,
        keep_alive: Arc<OnceLock<Peer>>,
        requests: mpsc::Sender<LoginRequest>,
        task: JoinHandle<Result<(), H::Error>>,
        session_binding: Option<AgentSessionBinding>,
    ) -> Self {
        Self {
            core,
            keep_alive,
            requests,
            task,
            session_binding,
        }
    }

    /// Returns true if the session is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.task.is_finished() || self.core.is_ended()
    }

    async fn send_request<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<T>) -> LoginRequest,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let sent = self.requests.send(make(reply)).await;
        sent.map_err(|_| Error::SendError)?;
        answer.await.map_err(|_| Error::Disconnect)
    }

    async fn send_attempt(
        &self,
        wish: LoginAttempt,
    ) -> Result<KeyboardInteractiveAuthResponse, Error> {
        self.send_request(|reply| LoginRequest::Attempt(wish, reply))
            .await?
    }

    pub(super) async fn attempt_once(&self, wish: LoginAttempt) -> Result<AuthResult, Error> {
        match self.send_attempt(wish).await? {
            KeyboardInteractiveAuthResponse::Success => Ok(AuthResult::Success),
            KeyboardInteractiveAuthResponse::Failure {
                remaining_methods,
                partial_success,
            } => Ok(AuthResult::Failure {
                remaining_methods,
                partial_success,
            }),
            KeyboardInteractiveAuthResponse::InfoRequest { .. } => Err(Error::Inconsistent),
        }
    }

    /// Attempts to log in without credentials, which is how a client learns the server's methods.
    ///
    /// # Errors
    /// The session is over, or the user is authenticated already. The same applies to the other
    /// methods.
    pub async fn authenticate_none<U: Into<String>>(
        &mut self,
        user: U,
    ) -> Result<AuthResult, Error> {
        self.attempt_once(LoginAttempt::new(user, None)).await
    }

    /// Logs in with a password. It is not sent to a server that does not accept passwords.
    ///
    /// # Errors
    /// The errors of [`Handle::authenticate_none`].
    pub async fn authenticate_password<U: Into<String>, P: Into<String>>(
        &mut self,
        user: U,
        password: P,
    ) -> Result<AuthResult, Error> {
        self.attempt_once(LoginAttempt::with_password(user, password))
            .await
    }

    /// Logs in with a key.
    ///
    /// # Errors
    /// The errors of [`Handle::authenticate_none`].
    pub async fn authenticate_publickey<U: Into<String>>(
        &mut self,
        user: U,
        key: PrivateKeyWithHashAlg,
    ) -> Result<AuthResult, Error> {
        let shown = AnyKey::Plain(key.public_key().inner().clone());
        let algorithm = key.algorithm().signature_algorithm();
        self.attempt_once(LoginAttempt::with_key(user, shown, key.inner(), algorithm))
            .await
    }

    /// Logs in with a key and its certificate.
    ///
    /// # Errors
    /// The errors of [`Handle::authenticate_none`].
    pub async fn authenticate_openssh_cert<U: Into<String>>(
        &mut self,
        user: U,
        key: Arc<PrivateKey>,
        cert: Certificate,
    ) -> Result<AuthResult, Error> {
        let shown = AnyKey::Certificate(Box::new(cert.inner().clone()));
        self.attempt_once(LoginAttempt::with_key(user, shown, key.inner(), None))
            .await
    }

    /// Starts keyboard-interactive authentication. The list of submethods is not sent: servers ignore
    /// it.
    ///
    /// # Errors
    /// The errors of [`Handle::authenticate_none`].
    pub async fn authenticate_keyboard_interactive_start<
        U: Into<String>,
        S: Into<Option<String>>,
    >(
        &mut self,
        user: U,
        _submethods: S,
    ) -> Result<KeyboardInteractiveAuthResponse, Error> {
        self.send_attempt(LoginAttempt::new(
            user,
            Some(AuthMethod::KeyboardInteractive),
        ))
        .await
    }

    /// Answers the server's prompts, one answer per prompt.
    ///
    /// # Errors
    /// The errors of [`Handle::authenticate_none`]; [`Error::Inconsistent`] if the number of answers
    /// differs from that of the prompts, or if there are none.
    pub async fn authenticate_keyboard_interactive_respond(
        &mut self,
        responses: Vec<String>,
    ) -> Result<KeyboardInteractiveAuthResponse, Error> {
        let answers = responses.into_iter().map(Secret::new).collect();
        self.send_request(|reply| LoginRequest::Answers(answers, reply))
            .await?
    }

    /// Returns the best hash for RSA keys that the server accepts: `None` if it does not say,
    /// `Some(None)` if it does not accept SHA-2. Waits up to a second for the server. Call it before
    /// authentication.
    ///
    /// # Errors
    /// The session is over, or the user is authenticated already.
    pub async fn best_supported_rsa_hash(&self) -> Result<Option<Option<HashAlg>>, Error> {
        self.send_request(LoginRequest::RsaHash).await
    }

    async fn open_channel(&self, kind: ChannelKind) -> Result<Channel<Msg>, Error> {
        Ok(Channel::new(self.core.open_channel(kind).await?))
    }

    /// Opens a channel for a program, a shell or a subsystem.
    ///
    /// # Errors
    /// [`Error::ChannelOpenFailure`] if the server refused it, [`Error::NotAuthenticated`],
    /// [`Error::Disconnect`]. The same applies to the other channels.
    pub async fn channel_open_session(&self) -> Result<Channel<Msg>, Error> {
        self.open_channel(ChannelKind::Session).await
    }

    /// Connects from the server to a host and port.
    ///
    /// # Errors
    /// The errors of [`Handle::channel_open_session`]; or the port is above 65535.
    pub async fn channel_open_direct_tcpip<A: Into<String>, B: Into<String>>(
        &self,
        host_to_connect: A,
        port_to_connect: u32,
        originator_address: B,
        originator_port: u32,
    ) -> Result<Channel<Msg>, Error> {
        let kind = ChannelKind::DirectTcpip {
            host: host_to_connect.into(),
            port: config_conversion::to_tcp_port(port_to_connect)?,
            originator: Originator {
                address: originator_address.into(),
                port: originator_port,
            },
        };
        self.open_channel(kind).await
    }

    /// Connects from the server to a Unix-domain socket in its file system (OpenSSH's extension).
    ///
    /// # Errors
    /// The errors of [`Handle::channel_open_session`].
    pub async fn channel_open_direct_streamlocal<S: Into<String>>(
        &self,
        socket_path: S,
    ) -> Result<Channel<Msg>, Error> {
        let path = socket_path.into().into_bytes();
        self.open_channel(ChannelKind::DirectStreamlocal { path })
            .await
    }

    /// Asks the server to listen on an address and forward its connections. Returns the port, which the
    /// server chooses for port 0. Connections are passed to
    /// [`Handler::server_channel_open_forwarded_tcpip`].
    ///
    /// # Errors
    /// [`Error::RequestDenied`], [`Error::NotAuthenticated`], [`Error::Disconnect`]; or the port is
    /// above 65535.
    pub async fn tcpip_forward<A: Into<String>>(
        &self,
        address: A,
        port: u32,
    ) -> Result<u32, Error> {
        let request = GlobalRequest::TcpipForward {
            address: address.into(),
            port: config_conversion::to_tcp_port(port)?,
        };
        match self.core.send_global_request(request).await? {
            GlobalAnswer::Bound { port } => Ok(port.into()),
            _ => Ok(port),
        }
    }

    /// Asks the server to stop listening on an address.
    ///
    /// # Errors
    /// The errors of [`Handle::tcpip_forward`].
    pub async fn cancel_tcpip_forward<A: Into<String>>(
        &self,
        address: A,
        port: u32,
    ) -> Result<(), Error> {
        let request = GlobalRequest::CancelTcpipForward {
            address: address.into(),
            port: config_conversion::to_tcp_port(port)?,
        };
        self.core.send_global_request(request).await.map(drop)
    }

    /// Asks the server to listen on a Unix-domain socket in its file system (OpenSSH's extension).
    ///
    /// # Errors
    /// The errors of [`Handle::tcpip_forward`].
    pub async fn streamlocal_forward<A: Into<String>>(&self, path: A) -> Result<(), Error> {
        let path = path.into().into_bytes();
        let request = GlobalRequest::StreamlocalForward { path };
        self.core.send_global_request(request).await.map(drop)
    }

    /// Asks the server to stop listening on a Unix-domain socket.
    ///
    /// # Errors
    /// The errors of [`Handle::tcpip_forward`].
    pub async fn cancel_streamlocal_forward<A: Into<String>>(&self, path: A) -> Result<(), Error> {
        let path = path.into().into_bytes();
        let request = GlobalRequest::CancelStreamlocalForward { path };
        self.core.send_global_request(request).await.map(drop)
    }

    /// Sends a keepalive request and waits for the answer.
    ///
    /// # Errors
    /// [`Error::NotAuthenticated`], [`Error::Disconnect`].
    pub async fn send_ping(&self) -> Result<(), Error> {
        match self.keep_alive.get() {
            Some(peer) => Ok(peer.ping().await.map(drop)?),
            None if self.core.is_ended() => Err(Error::Disconnect),
            None => Err(Error::NotAuthenticated),
        }
    }

    /// Tells the server that this client will open no more sessions (OpenSSH's extension).
    ///
    /// # Errors
    /// [`Error::NotAuthenticated`], [`Error::Disconnect`].
    pub async fn no_more_sessions(&self, _want_reply: bool) -> Result<(), Error> {
        let request = GlobalRequest::NoMoreSessions;
        self.core.send_global_request(request).await.map(drop)
    }

    /// Sends bytes in a channel.
    ///
    /// # Errors
    /// Returns the bytes if the session is over, or if too much waits to be sent.
    pub async fn data(&self, id: ChannelId, data: impl Into<Bytes>) -> Result<(), Bytes> {
        let data = data.into();
        let sent = self
            .core
            .send_message(id.0, OutgoingMessage::Data(DataKind::Stdout, &data));
        sent.map_err(|_| data)
    }

    /// Starts a key re-exchange.
    ///
    /// # Errors
    /// [`Error::NotAuthenticated`], [`Error::Disconnect`].
    pub async fn rekey_soon(&self) -> Result<(), Error> {
        self.core.start_rekey()
    }

    /// Ends the session once the queued data was sent. The language tag is not sent: it has no use.
    ///
    /// # Errors
    /// Fails if the session is over.
    pub async fn disconnect(
        &self,
        reason: Disconnect,
        description: &str,
        _language_tag: &str,
    ) -> Result<(), Error> {
        self.core.disconnect(reason, description)
    }
}

impl<H: Handler> Future for Handle<H> {
    type Output = Result<(), H::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let done = Pin::new(&mut self.task).poll(cx);
        done.map(|done| done.unwrap_or_else(|why| Err(Error::from(why).into())))
    }
}

impl<H: Handler> fmt::Debug for Handle<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}
