//! Where requests come in: a port of this machine, or a Unix socket that its owner alone can use.

use std::convert::Infallible;
use std::fmt;
use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use adit_engine::{ConnectionSource, HandshakeLimiter, HandshakeSlot as Seated};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
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
use super::reply::{Refusal, Reply};
use super::route::{Admitted, RequestHead, has_body};
use crate::listen_address::{ListenAddress, resolve_address};
#[cfg(unix)]
use crate::unix_socket::{self, SocketFile};

/// Bytes of a body at most.
const MAX_BODY: usize = 64 << 10;
/// Bytes of a request's head at most.
const MAX_HEAD: usize = 16 << 10;
/// Connections at the same time that have shown no token.
const MAX_UNAUTHENTICATED: usize = 128;
/// The same of those that have, which no stranger can take away.
const MAX_AUTHENTICATED: usize = 32;
/// Time for the head of a request, and for its body.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time that a connection is kept for further requests, in all.
const MAX_CONNECTION_TIME: Duration = Duration::from_secs(60);

/// A socket for requests.
#[derive(Debug)]
pub struct ApiListener(Socket);

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener, SocketAddr),
    #[cfg(unix)]
    Unix(tokio::net::UnixListener, SocketFile),
}

/// Why a door does not open.
#[derive(Debug, thiserror::Error)]
pub enum ApiListenerError {
    /// HTTP in clear text would carry the token through a network.
    #[error("{0} is not of this machine, and the API does not encrypt")]
    Exposed(SocketAddr),
    /// Everyone on this machine reaches a port.
    #[error("the API needs a token where it listens on a port")]
    NoToken,
    /// The system says no.
    #[error("cannot serve the API at {at}: {why}")]
    Socket {
        /// The address as it was written.
        at: String,
        /// What the system said.
        why: io::Error,
    },
}

impl ApiListener {
    /// Opens at `HOST:PORT` on this machine, or at a path. `token` says whether one will be asked
    /// for; a port needs one.
    pub async fn open(at: &str, token: bool) -> Result<Self, ApiListenerError> {
        let failed = |why| ApiListenerError::Socket {
            at: at.to_owned(),
            why,
        };
        let target = match ListenAddress::parse(at).map_err(failed)? {
            ListenAddress::Port(target) => target,
            ListenAddress::Path(path) => return Self::open_path(path).map_err(failed),
        };
        let addr = resolve_address(&target).await.map_err(failed)?;
        if !addr.ip().is_loopback() {
            return Err(ApiListenerError::Exposed(addr));
        }
        if !token {
            return Err(ApiListenerError::NoToken);
        }
        let listener = TcpListener::bind(addr).await.map_err(failed)?;
        let addr = listener.local_addr().map_err(failed)?;
        Ok(Self(Socket::Tcp(listener, addr)))
    }

    #[cfg(unix)]
    fn open_path(path: PathBuf) -> io::Result<Self> {
        let (socket, file) = unix_socket::bind_stream_socket(&path)?;
        Ok(Self(Socket::Unix(socket, file)))
    }

    #[cfg(not(unix))]
    fn open_path(_: PathBuf) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Answers for ever. Its connections end with it.
    pub async fn serve(self, api: Arc<Api>) {
        let seats = ConnectionSlots {
            unauthenticated: Arc::new(HandshakeLimiter::new(MAX_UNAUTHENTICATED)),
            authenticated: Arc::new(Semaphore::new(MAX_AUTHENTICATED)),
        };
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let api = api.clone();
            let accepted = match &self.0 {
                Socket::Tcp(listener, _) => listener.accept().await.map(|(stream, _)| {
                    let seat = seats.take_slot(ConnectionSource::Unknown);
                    connections
                        .spawn(async move { serve_connection(stream, &api, true, seat).await });
                }),
                #[cfg(unix)]
                Socket::Unix(listener, _) => listener.accept().await.map(|(stream, _)| {
                    let user = stream
                        .peer_cred()
                        .map(|peer| ConnectionSource::User(peer.uid()));
                    let seat = seats.take_slot(user.unwrap_or(ConnectionSource::Unknown));
                    connections
                        .spawn(async move { serve_connection(stream, &api, false, seat).await });
                }),
            };
            if let Err(e) = accepted {
                debug!("api: {e}");
                // Without descriptors this comes back at once.
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Room for connections.
struct ConnectionSlots {
    unauthenticated: Arc<HandshakeLimiter>,
    authenticated: Arc<Semaphore>,
}

impl ConnectionSlots {
    /// A seat for a newcomer: the oldest stranger loses theirs if there is none.
    fn take_slot(&self, from: ConnectionSource) -> ConnectionSlot {
        ConnectionSlot {
            // Nobody is turned away here: logins that fail are not counted.
            place: self.unauthenticated.take_slot(from).unwrap_or_default(),
            authenticated: self.authenticated.clone(),
            token_shown: Notify::new(),
        }
    }
}

/// One connection's seat.
struct ConnectionSlot {
    place: Seated,
    authenticated: Arc<Semaphore>,
    /// A token was shown.
    token_shown: Notify,
}

impl ConnectionSlot {
    /// Waits until it is lost. Once a token was shown nobody takes it away, as long as there are
    /// seats for such.
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
        match &self.0 {
            Socket::Tcp(_, addr) => write!(f, "{addr}"),
            #[cfg(unix)]
            Socket::Unix(_, file) => write!(f, "{}", file.path().display()),
        }
    }
}

/// One connection, to its end.
async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    api: &Api,
    by_port: bool,
    seat: ConnectionSlot,
) {
    let shown = &seat.token_shown;
    let service = service_fn(|request| async move {
        let reply = answer_request(api, request, by_port, shown).await;
        Ok::<Response<Full<Bytes>>, Infallible>(reply.into())
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    // A client that takes no answer, or asks for ever, must not keep a place.
    tokio::select! {
        end = timeout(MAX_CONNECTION_TIME, connection) => {
            if let Ok(Err(e)) = end {
                debug!("api: {e}");
            }
        }
        () = seat.wait_until_lost() => debug!("api: a connection without a token makes room"),
    }
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
    let wish = match api.authorize(&ask) {
        Ok(Admitted {
            action: wish,
            authenticated: proved,
        }) => {
            if proved {
                shown.notify_one();
            }
            wish
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
    match api.perform(wish, &ask, &body).await {
        Ok(reply) => reply,
        Err(refusal) => refusal.into(),
    }
}

/// A whole body. It holds keys.
async fn read_body(body: Incoming) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    let collected = timeout(PATIENCE, Limited::new(body, MAX_BODY).collect()).await;
    match collected {
        Ok(Ok(whole)) => Ok(Zeroizing::new(whole.to_bytes().to_vec())),
        Ok(Err(e)) if e.is::<http_body_util::LengthLimitError>() => {
            let error = format!("a body has at most {MAX_BODY} bytes");
            Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error))
        }
        Ok(Err(_)) => Err(Refusal::bad_request("the body was cut short")),
        Err(_) => Err(Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not come",
        )),
    }
}
