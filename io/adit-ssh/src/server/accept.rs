//! Accepting: from a stream to a connection by key exchange and authentication.

use std::sync::Arc;

use adit_net::system::ThreadRng;
use adit_ssh_proto::auth::{Login, ServerAuth, ServerStep};
use adit_ssh_proto::transport::{Event, Transport};
use adit_ssh_proto::{Role, SshError};
use adit_stream::BoxStream;
use tokio::sync::mpsc;
use tokio::time::timeout_at;

use super::{AuthPolicy, Connection, ServerConfig, ServerHandle};
use crate::about::{About, Peer};
use crate::computations::Computations;
use crate::driver::{Driver, Start};
use crate::error::ConnectError;
use crate::forwards::{Asked, Route};
use crate::line::{Came, Line, Wait};
use crate::mail::Mail;
use crate::messages::{Bounds, Feed, Teller};

/// The entry point for SSH servers.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use adit_ssh::BoxFuture;
/// use adit_ssh::server::{AuthPolicy, Incoming, Proof, Server, ServerConfig};
/// use adit_ssh_proto::key::{AnyKey, KeySet, PrivateKey, PublicKey};
/// use adit_stream::Tcp;
///
/// struct OneKey(AnyKey);
/// impl AuthPolicy for OneKey {
///     fn public_key<'a>(&'a self, user: &'a str, key: &'a AnyKey, _: Proof) -> BoxFuture<'a, bool> {
///         Box::pin(async move { user == "me" && key.key() == self.0.key() })
///     }
/// }
///
/// let host_key = PrivateKey::read(&std::fs::read_to_string("host_key")?, None)?;
/// let config = ServerConfig::new(Arc::new(KeySet::from(vec![host_key])));
/// let (user_key, _) = PublicKey::from_line(&std::fs::read_to_string("id_ed25519.pub")?)?;
/// let policy = OneKey(AnyKey::Plain(user_key));
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:2222").await?;
/// let (socket, _) = listener.accept().await?;
/// let mut connection = Server::accept(Box::new(Tcp::new(socket)), &config, &policy).await?;
/// while let Some(incoming) = connection.accept().await {
///     if let Incoming::DirectTcpip { host, port, opening, .. } = incoming {
/// Do not wait here: a target that does not answer would delay all other requests.
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
    pub async fn accept(
        below: BoxStream,
        config: &ServerConfig,
        policy: &dyn AuthPolicy,
    ) -> Result<Connection, ConnectError> {
        let (to, arrivals) = mpsc::channel(backlog(config));
        let asked = Asked::All;
        let routes = vec![Route { asked, to }];
        let mail = Arc::new(Mail::new());
        let (peer, login) = take_in(below, config, policy, mail, routes, None).await?;
        let host_keys = Arc::clone(&config.host_keys);
        let handle = ServerHandle::new(peer);
        let connection = Connection::new(handle, login, arrivals, host_keys, policy.source());
        if config.tell_host_keys {
            connection.tell_host_keys();
        }
        Ok(connection)
    }

    /// Accepts a connection [message by message](crate::messages). The host keys are not announced. The
    /// connection lasts as long as the returned [`Peer`] is held.
    ///
    /// # Errors
    /// The errors of [`Server::accept`].
    pub async fn accept_by_messages(
        below: BoxStream,
        config: &ServerConfig,
        policy: &dyn AuthPolicy,
        bounds: Bounds,
    ) -> Result<(Feed, Peer), ConnectError> {
        let mail = Arc::new(Mail::new());
        let (teller, feed) = Teller::new(&mail, bounds);
        let entered = take_in(below, config, policy, mail, Vec::new(), Some(teller)).await;
        Ok((feed, entered?.0))
    }
}

async fn take_in(
    below: BoxStream,
    config: &ServerConfig,
    policy: &dyn AuthPolicy,
    mail: Arc<Mail>,
    routes: Vec<Route>,
    messages: Option<Teller>,
) -> Result<(Peer, Login), ConnectError> {
    let mut transport = config.transport.clone();
    transport
        .user_algorithms
        .clone_from(&config.auth.algorithms);
    let signer = Arc::clone(&config.host_keys);
    let mut transport = Transport::server(Arc::new(transport), signer, Box::new(ThreadRng))?;
    transport.hand_out_computations();
    let mut line = Line::new(below, transport);
    line.computations = Computations::of(policy.source());
    let (about, login) = match enter(&mut line, config, policy).await {
        Ok(entered) => entered,
        Err(why) => {
            line.part(&why);
            return Err(why);
        }
    };
    let about = Arc::new(about);
    let peer = Peer::new(Arc::clone(&mail), Arc::clone(&about));
    Driver::spawn(Start {
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
fn backlog(config: &ServerConfig) -> usize {
    let limits = &config.limits;
    limits.pending_opens.saturating_add(limits.requests).max(1)
}

async fn enter(
    line: &mut Line,
    config: &ServerConfig,
    policy: &dyn AuthPolicy,
) -> Result<(About, Login), ConnectError> {
    let wait = Wait::of(config.login_grace, "exchanging keys");
    loop {
        let came = line.next(wait).await;
        if line.computations.done() > 0 {
            policy.keys_computed();
        }
        match came? {
            Came::Event(Event::Ready(_)) => break,
            Came::Event(_) => {}
            Came::Payload(payload) => return Err(unexpected(&payload).into()),
        }
    }
    let about = About::of(&line.transport);
    let about = about.ok_or(SshError::Kex("it did not complete"))?;
    let wait = wait.doing("authenticating its user");
    let login = let_in(line, config, policy, wait).await?;
    Ok((about, login))
}

fn unexpected(payload: &[u8]) -> SshError {
    SshError::Unexpected(payload.first().copied().unwrap_or_default())
}

async fn let_in(
    line: &mut Line,
    config: &ServerConfig,
    policy: &dyn AuthPolicy,
    wait: Wait,
) -> Result<Login, ConnectError> {
    let mut settings = config.auth.clone();
    let banner = timeout_at(wait.until, policy.banner()).await;
    settings.banner = banner.map_err(|_| wait.over())?.or(settings.banner);
    let mut auth = ServerAuth::new(
        settings,
        line.transport.session_id().unwrap_or_default(),
        line.transport.host_key().unwrap_or_default(),
    );
    loop {
        let Came::Payload(payload) = line.next(wait).await? else {
            continue;
        };
        if let Some(tried) = ServerAuth::tried(&payload) {
            policy.tried(tried.user, tried.method);
        }
        let handled = line.computations.authenticate(auth, payload);
        let handled = timeout_at(wait.until, handled).await;
        let (back, step) = handled.map_err(|_| wait.over())??;
        auth = back;
        let mut step = step?;
        let login = loop {
            match step {
                ServerStep::Wait => break None,
                ServerStep::Success(login) => break Some(login),
                ServerStep::Ask(ask) => {
                    let answer = policy.judge(&ask, auth.algorithm());
                    let answer = timeout_at(wait.until, answer).await;
                    step = auth.answer(answer.map_err(|_| wait.over())??)?;
                }
            }
        };
        while let Some(message) = auth.poll_output() {
            line.say(&message)?;
        }
        line.flush(wait).await?;
        if let Some(login) = login {
            return Ok(login);
        }
    }
}
