//! Accepting: from a stream to a connection by key exchange and authentication.

use std::sync::Arc;

use adit_net::system::ThreadRng;
use adit_ssh_proto::auth::{AuthenticatedUser, ServerAuth, ServerStep};
use adit_ssh_proto::transport::{Event, Transport};
use adit_ssh_proto::{Role, SshError};
use adit_stream::BoxStream;
use tokio::sync::mpsc;
use tokio::time::timeout_at;

use super::{AuthPolicy, Connection, ServerConfig, ServerHandle};
use crate::computations::Computations;
use crate::driver::{Driver, SessionParts};
use crate::error::ConnectError;
use crate::messages::{EventFeed, EventSender, QueueLimits};
use crate::peer::{KeyExchangeInfo, Peer};
use crate::routes::{Route, RouteKind};
use crate::shared_session::SharedSession;
use crate::transport_stream::{Deadline, Received, TransportStream};

/// The entry point for SSH servers.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use adit_ssh::BoxFuture;
/// use adit_ssh::server::{AuthPolicy, Incoming, KeyProof, Server, ServerConfig};
/// use adit_ssh_proto::key::{AnyKey, KeySet, PrivateKey, PublicKey};
/// use adit_stream::Tcp;
///
/// struct OneKey(AnyKey);
/// impl AuthPolicy for OneKey {
///     fn check_public_key<'a>(&'a self, user: &'a str, key: &'a AnyKey, _: KeyProof) -> BoxFuture<'a, bool> {
///         Box::pin(async move { user == "me" && key.key() == self.0.key() })
///     }
/// }
///
/// let host_key = PrivateKey::from_text(&std::fs::read_to_string("host_key")?, None)?;
/// let config = ServerConfig::new(Arc::new(KeySet::from(vec![host_key])));
/// let (user_key, _) = PublicKey::from_line(&std::fs::read_to_string("id_ed25519.pub")?)?;
/// let policy = OneKey(AnyKey::Plain(user_key));
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:2222").await?;
/// let (socket, _) = listener.accept().await?;
/// let mut connection = Server::accept(Box::new(Tcp::new(socket)), &config, &policy).await?;
/// while let Some(incoming) = connection.accept().await {
///     if let Incoming::DirectTcpip { host, port, opening, .. } = incoming {
///         // Do not wait here: a target that does not answer would delay all other requests.
///         tokio::spawn(async move {
///             let mut target = tokio::net::TcpStream::connect((&*host, port)).await?;
///             let mut channel = opening.accept().map_err(std::io::Error::other)?;
///             tokio::io::copy_bidirectional(&mut channel, &mut target).await
///         });
///     } // Dropping a request refuses it.
/// }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Exchanges keys with a client over a fresh connection, and authenticates its user by `policy`.
    ///
    /// # Errors
    /// The stream failed, or the client violated the protocol, took too long, has no algorithm in
    /// common with this end, or failed to authenticate. See [`ConnectError`].
    ///
    /// # Cancel safety
    /// If the call is cancelled, the connection is closed.
    pub async fn accept(
        below: BoxStream,
        config: &ServerConfig,
        policy: &dyn AuthPolicy,
    ) -> Result<Connection, ConnectError> {
        let (sender, arrivals) = mpsc::channel(max_waiting(config));
        let kind = RouteKind::All;
        let routes = vec![Route { kind, sender }];
        let mail = Arc::new(SharedSession::new());
        let (peer, login) = start_session(below, config, policy, mail, routes, None).await?;
        let host_keys = Arc::clone(&config.host_keys);
        let handle = ServerHandle::new(peer);
        let connection =
            Connection::new(handle, login, arrivals, host_keys, policy.client_address());
        if config.announce_host_keys {
            connection.announce_host_keys();
        }
        Ok(connection)
    }

    /// Accepts a connection [message by message](crate::messages). The host keys are not announced. The
    /// connection lasts as long as the returned [`Peer`] is held.
    ///
    /// # Errors
    /// The errors of [`Server::accept`].
    ///
    /// # Cancel safety
    /// If the call is cancelled, the connection is closed.
    pub async fn accept_in_message_mode(
        below: BoxStream,
        config: &ServerConfig,
        policy: &dyn AuthPolicy,
        bounds: QueueLimits,
    ) -> Result<(EventFeed, Peer), ConnectError> {
        let mail = Arc::new(SharedSession::new());
        let (teller, feed) = EventSender::new(&mail, bounds);
        let entered = start_session(below, config, policy, mail, Vec::new(), Some(teller)).await;
        Ok((feed, entered?.0))
    }
}

async fn start_session(
    below: BoxStream,
    config: &ServerConfig,
    policy: &dyn AuthPolicy,
    mail: Arc<SharedSession>,
    routes: Vec<Route>,
    messages: Option<EventSender>,
) -> Result<(Peer, AuthenticatedUser), ConnectError> {
    let mut transport = config.transport.clone();
    transport
        .user_algorithms
        .clone_from(&config.auth.algorithms);
    let signer = Arc::clone(&config.host_keys);
    let mut transport = Transport::new_server(Arc::new(transport), signer, Box::new(ThreadRng))?;
    transport.defer_computations();
    let mut line = TransportStream::new(below, transport);
    line.computations = Computations::for_source(policy.client_address());
    let (about, login) = match authenticate_client(&mut line, config, policy).await {
        Ok(entered) => entered,
        Err(why) => {
            line.send_disconnect(&why);
            return Err(why);
        }
    };
    let about = Arc::new(about);
    let peer = Peer::new(Arc::clone(&mail), Arc::clone(&about));
    Driver::spawn(SessionParts {
        line,
        role: Role::Server,
        limits: config.limits.clone(),
        keepalive: config.keepalive,
        inactivity: config.inactivity,
        mail,
        about,
        routes,
        messages,
    });
    Ok((peer, login))
}

/// Returns the number of requests that may wait to be accepted; further ones are refused.
fn max_waiting(config: &ServerConfig) -> usize {
    let limits = &config.limits;
    limits.pending_opens.saturating_add(limits.requests).max(1)
}

async fn authenticate_client(
    line: &mut TransportStream,
    config: &ServerConfig,
    policy: &dyn AuthPolicy,
) -> Result<(KeyExchangeInfo, AuthenticatedUser), ConnectError> {
    let wait = Deadline::starting_now(config.login_grace, "exchanging keys");
    loop {
        let came = line.next_input(wait).await;
        if line.computations.completed_count() > 0 {
            policy.on_keys_computed();
        }
        match came? {
            Received::Event(Event::Ready(_)) => break,
            Received::Event(_) => {}
            Received::Payload(payload) => return Err(unexpected_message(&payload).into()),
        }
    }
    let about = KeyExchangeInfo::from_transport(&line.transport);
    let about = about.ok_or(SshError::Kex("it did not complete"))?;
    let wait = wait.for_step("authenticating its user");
    let login = authenticate_user(line, config, policy, wait).await?;
    Ok((about, login))
}

fn unexpected_message(payload: &[u8]) -> SshError {
    SshError::Unexpected(payload.first().copied().unwrap_or_default())
}

async fn authenticate_user(
    line: &mut TransportStream,
    config: &ServerConfig,
    policy: &dyn AuthPolicy,
    wait: Deadline,
) -> Result<AuthenticatedUser, ConnectError> {
    let mut settings = config.auth.clone();
    let banner = timeout_at(wait.until, policy.banner()).await;
    settings.banner = banner
        .map_err(|_| wait.timeout_error())?
        .or(settings.banner);
    let mut auth = ServerAuth::new(
        settings,
        line.transport.session_id().unwrap_or_default(),
        line.transport.host_key().unwrap_or_default(),
    );
    loop {
        let Received::Payload(payload) = line.next_input(wait).await? else {
            continue;
        };
        if let Some(tried) = ServerAuth::peek_attempt(&payload) {
            policy.on_attempt(tried.user, tried.method);
        }
        let handled = line.computations.handle_auth_message(auth, payload);
        let handled = timeout_at(wait.until, handled).await;
        let (back, step) = handled.map_err(|_| wait.timeout_error())??;
        auth = back;
        let mut step = step?;
        let login = loop {
            match step {
                ServerStep::Wait => break None,
                ServerStep::Success(login) => break Some(login),
                ServerStep::Query(ask) => {
                    let answer = policy.answer_auth_request(&ask, auth.algorithm());
                    let answer = timeout_at(wait.until, answer).await;
                    step = auth.answer_query(answer.map_err(|_| wait.timeout_error())??)?;
                }
            }
        };
        while let Some(message) = auth.poll_output() {
            line.send_auth_message(&message)?;
        }
        line.flush_until(wait).await?;
        if let Some(login) = login {
            return Ok(login);
        }
    }
}
