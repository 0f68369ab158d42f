//! The listener for requests: a loopback port, or a Unix socket or named pipe that only its owner can use.

use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use adit_config::ApiAddress;
use adit_engine::{ConnectionSource, HandshakeLimiter, HandshakeSlot as Seated};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::debug;
use zeroize::Zeroizing;

use super::Api;
use super::control::{ApiListenerControl, SuccessorWatch};
use super::reply::{Refusal, Reply, ReplyBody};
use super::route::{Admitted, RequestHead, has_body};
use crate::api_address::resolve_address;
use crate::local_socket::LocalListener;

/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 64 << 10;
/// Maximum size of the head of a request, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// Maximum number of simultaneous connections without a token.
const MAX_UNAUTHENTICATED: usize = 128;
/// Maximum number of simultaneous connections with a token, which others cannot displace. There can be 64 event
/// streams, so that 32 are left.
const MAX_AUTHENTICATED: usize = 96;
/// Time limit of the head of a request, and of its body.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum duration of a connection, including all its requests; for an event stream, the time without an event.
const MAX_CONNECTION_TIME: Duration = Duration::from_secs(60);

/// Time limit of the last request of a connection.
const LAST_REQUEST_TIME: Duration = Duration::from_secs(60);

/// A listener for requests.
#[derive(Debug)]
pub struct ApiListener {
    socket: Socket,
    control: ApiListenerControl,
}

#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpListener, SocketAddr),
    Local(LocalListener),
}

/// The reason why a listener cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum ApiListenerError {
    /// HTTP without encryption would send the token through a network.
    #[error("{0} is not a loopback address, and the API is not encrypted")]
    Exposed(SocketAddr),
    /// All users of this machine can reach a port.
    #[error("the API needs a token to listen on a port")]
    NoToken,
    /// The system refused it.
    #[error("cannot serve the API at {at}: {why}")]
    Socket {
        /// The address of the request, unchanged.
        at: String,
        /// The error of the system.
        why: io::Error,
    },
}

impl ApiListener {
    /// Opens a listener at a loopback `HOST:PORT`, or at a path. `token` is true if requests need a
    /// token, which is required for a port.
    ///
    /// # Errors
    /// The address is not a loopback address, a port has no token, or the system refuses it.
    pub async fn open(at: &str, token: bool) -> Result<Self, ApiListenerError> {
        let failed = |why| ApiListenerError::Socket {
            at: at.to_owned(),
            why,
        };
        let target = match ApiAddress::parse(at).map_err(|why| failed(why.into()))? {
            ApiAddress::Port(target) => target,
            ApiAddress::Path(path) => return Self::open_path(&path).map_err(failed),
        };
        let addr = resolve_address(&target).await.map_err(failed)?;
        if !addr.ip().is_loopback() {
            return Err(ApiListenerError::Exposed(addr));
        }
        if !token {
            return Err(ApiListenerError::NoToken);
        }
        let listener = TcpListener::bind(addr).await.map_err(failed)?;
        Self::from_tcp(listener).map_err(failed)
    }

    /// Continues a listener that another process has opened at `address`, if it is the one that [`Self::open`] would
    /// open for `at`.
    ///
    /// # Errors
    /// As for [`Self::open`].
    #[cfg(unix)]
    pub async fn continue_from(
        at: &str,
        token: bool,
        address: &str,
        fd: OwnedFd,
    ) -> Result<Option<Self>, ApiListenerError> {
        let failed = |why| ApiListenerError::Socket {
            at: at.to_owned(),
            why,
        };
        let continued = match ApiAddress::parse(at).map_err(|why| failed(why.into()))? {
            ApiAddress::Path(path) if path == Path::new(address) => {
                let listener = LocalListener::continue_from(fd, &path).map_err(failed)?;
                Self::new(Socket::Local(listener))
            }
            ApiAddress::Path(_) => return Ok(None),
            ApiAddress::Port(target) => {
                let addr = resolve_address(&target).await.map_err(failed)?;
                let is_same = address.parse::<SocketAddr>().is_ok_and(|bound| {
                    bound == addr || addr.port() == 0 && bound.ip() == addr.ip()
                });
                if !is_same {
                    return Ok(None);
                }
                if !token {
                    return Err(ApiListenerError::NoToken);
                }
                let socket = std::net::TcpListener::from(fd);
                socket.set_nonblocking(true).map_err(failed)?;
                Self::from_tcp(TcpListener::from_std(socket).map_err(failed)?)
            }
        };
        continued.map(Some).map_err(failed)
    }

    fn from_tcp(listener: TcpListener) -> io::Result<Self> {
        let addr = listener.local_addr()?;
        Self::new(Socket::Tcp(listener, addr))
    }

    fn new(socket: Socket) -> io::Result<Self> {
        let control = ApiListenerControl::new(&socket)?;
        Ok(Self { socket, control })
    }

    /// Returns the means to hand over the socket.
    #[must_use]
    pub fn control(&self) -> ApiListenerControl {
        self.control.clone()
    }

    fn open_path(path: &Path) -> io::Result<Self> {
        Self::new(Socket::Local(LocalListener::bind(path)?))
    }

    /// Serves requests. Returns when a successor has the socket and all connections have ended; dropping the future
    /// closes the connections.
    pub async fn serve(mut self, api: Arc<Api>) {
        // The socket may be that of a process which this one succeeds.
        if let Socket::Local(listener) = &mut self.socket {
            listener.set_owner(true);
        }
        let seats = ConnectionSlots {
            unauthenticated: Arc::new(HandshakeLimiter::new(MAX_UNAUTHENTICATED)),
            authenticated: Arc::new(Semaphore::new(MAX_AUTHENTICATED)),
        };
        let mut connections = JoinSet::new();
        let accepting = async {
            loop {
                while connections.try_join_next().is_some() {}
                let service = (api.clone(), self.control.successor());
                let accepted = match &mut self.socket {
                    Socket::Tcp(listener, _) => listener.accept().await.map(|(stream, _)| {
                        let seat = seats.take_slot(ConnectionSource::Unknown);
                        connections.spawn(serve_connection(stream, service, true, seat));
                    }),
                    Socket::Local(listener) => listener.accept().await.map(|(stream, source)| {
                        let seat = seats.take_slot(source);
                        connections.spawn(serve_connection(stream, service, false, seat));
                    }),
                };
                if let Err(e) = accepted {
                    debug!("api: {e}");
                    // Without free descriptors, `accept` fails again immediately.
                    sleep(Duration::from_millis(50)).await;
                }
            }
        };
        let mut leaving = self.control.successor();
        // The event streams end with the monitor.
        tokio::select! {
            () = leaving.wait() => {}
            () = api.monitor.run(&api.engine) => {}
            () = accepting => {}
        }
        if let Socket::Local(listener) = &mut self.socket {
            listener.set_owner(false);
        }
        drop(self.socket);
        while connections.join_next().await.is_some() {}
    }
}

/// The slots of connections.
struct ConnectionSlots {
    unauthenticated: Arc<HandshakeLimiter>,
    authenticated: Arc<Semaphore>,
}

impl ConnectionSlots {
    /// Takes a slot for a new connection. If there is none, the oldest one without a token loses its slot.
    fn take_slot(&self, from: ConnectionSource) -> ConnectionSlot {
        ConnectionSlot {
            // No connection is refused here, because failed logins are not counted.
            place: self.unauthenticated.take_slot(from).unwrap_or_default(),
            authenticated: self.authenticated.clone(),
            token_shown: Notify::new(),
        }
    }
}

/// The slot of a connection.
struct ConnectionSlot {
    place: Seated,
    authenticated: Arc<Semaphore>,
    /// Notified once a token was shown.
    token_shown: Notify,
}

impl ConnectionSlot {
    /// Waits until the slot is lost. Once a token was shown, the slot cannot be lost, as long as there
    /// are free slots for connections with a token.
    async fn wait_until_lost(&self) {
        let moved = async {
            self.token_shown.notified().await;
            match self.authenticated.try_acquire() {
                Ok(seat) => seat,
                Err(_) => pending().await,
            }
        };
        tokio::select! {
            () = self.place.wait_for_revocation() => {}
            _seat = moved => {
                self.place.release_early();
                pending::<()>().await;
            }
        }
    }
}

impl fmt::Display for ApiListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.socket, f)
    }
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(_, addr) => write!(f, "{addr}"),
            Self::Local(listener) => write!(f, "{}", listener.path().display()),
        }
    }
}

/// Serves one connection until it ends.
async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    (api, mut successor): (Arc<Api>, SuccessorWatch),
    by_port: bool,
    seat: ConnectionSlot,
) {
    let api = &*api;
    let shown = &seat.token_shown;
    let progress = &Arc::new(Notify::new());
    let service = service_fn(|request| async move {
        let mut reply = answer_request(api, request, by_port, shown).await;
        reply.notify_progress(progress);
        Ok::<Response<ReplyBody>, Infallible>(reply.into())
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let served = async {
        tokio::select! {
            end = connection.as_mut() => return Some(end),
            () = successor.wait() => {}
            // A client that does not read answers, or never stops sending, must not keep a slot.
            () = wait_without_progress(progress) => {}
        }
        // The current request is the last one.
        connection.as_mut().graceful_shutdown();
        timeout(LAST_REQUEST_TIME, connection).await.ok()
    };
    tokio::select! {
        end = served => {
            if let Some(Err(e)) = end {
                debug!("api: {e}");
            }
        }
        () = seat.wait_until_lost() => debug!("api: a connection without a token was closed for a new one"),
    }
}

/// Completes [`MAX_CONNECTION_TIME`] after the last event of a stream, or after the start.
async fn wait_without_progress(progress: &Notify) {
    while timeout(MAX_CONNECTION_TIME, progress.notified())
        .await
        .is_ok()
    {}
}

async fn answer_request(
    api: &Api,
    request: Request<Incoming>,
    by_port: bool,
    shown: &Notify,
) -> Reply {
    let (head, body) = request.into_parts();
    let ask = RequestHead {
        method: &head.method,
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        headers: &head.headers,
        by_port,
    };
    let (wish, scope) = match api.authorize(&ask) {
        Ok(Admitted {
            action: wish,
            scope,
        }) => {
            if scope.is_some() {
                shown.notify_one();
            }
            (wish, scope)
        }
        Err(refusal) => return refusal.into(),
    };
    let body = if has_body(&head.method) {
        match read_body(body).await {
            Ok(body) => body,
            Err(refusal) => return refusal.into(),
        }
    } else {
        Zeroizing::default()
    };
    let audit = api.audit_of(&wish, &ask, scope, &body);
    let done = api.perform(wish, &ask, &body).await;
    let entry = audit.map(|audit| audit.finish(&done));
    if let Some((log, entry)) = entry {
        log.write(&entry).await;
    }
    match done {
        Ok(reply) => reply,
        Err(refusal) => refusal.into(),
    }
}

/// Reads a whole body. It may contain keys, so it is zeroized.
pub(super) async fn read_body(body: Incoming) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let collected = timeout(PATIENCE, Limited::new(body, MAX_BODY).collect()).await;
    match collected {
        Ok(Ok(whole)) => Ok(Zeroizing::new(whole.to_bytes().to_vec())),
        Ok(Err(e)) if e.is::<http_body_util::LengthLimitError>() => {
            let error = format!("the body is longer than {MAX_BODY} bytes");
            Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error))
        }
        Ok(Err(_)) => Err(Refusal::bad_request("the body is incomplete")),
        Err(_) => Err(Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time",
        )),
    }
}
