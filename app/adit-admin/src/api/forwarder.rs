//! `adit dashboard`: a loopback port for a browser, which forwards requests to the API of a running process.
//!
//! A browser cannot open a Unix socket, and other users of the machine can reach the port. It has a token of its own,
//! which ends with this process; that of the API, if there is one, is added to the forwarded requests.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use adit_net::system::SystemRng;
use adit_wire::Entropy;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::debug;
use zeroize::Zeroizing;

use super::access::{AccessControl, Tokens, check_json, check_source};
use super::client::open_connection;
use super::dashboard::{self, DashboardPart};
use super::listener::read_body;
use super::reply::{Refusal, Reply};
use super::route::{Action, action_for_path, has_body};

/// Maximum number of simultaneous connections.
const MAX_CONNECTIONS: usize = 64;
/// Maximum size of the head of a request, in bytes.
const MAX_HEAD: usize = 16 << 10;
/// Time limit of the head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time limit of the head of a forwarded response; an upgrade takes long.
const RESPONSE_TIME: Duration = Duration::from_secs(70);

type AnyBody = UnsyncBoxBody<Bytes, hyper::Error>;

/// A port of this machine for the dashboard of a running process.
pub struct DashboardForwarder {
    listener: TcpListener,
    addr: SocketAddr,
    token: Zeroizing<String>,
    state: Arc<ForwarderState>,
}

struct ForwarderState {
    access: AccessControl,
    /// The address of the API.
    api: String,
    /// The header with the token of the API, if it needs one.
    authorization: Option<HeaderValue>,
}

impl fmt::Debug for DashboardForwarder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DashboardForwarder")
            .field("addr", &self.addr)
            .finish_non_exhaustive()
    }
}

impl DashboardForwarder {
    /// Opens a port for the API at `api`: a path, or `HOST:PORT`, which needs a `token`. `port` is 0 for any free one.
    ///
    /// # Errors
    /// The system refuses the port.
    pub async fn open(api: &str, token: Option<&str>, port: u16) -> io::Result<Self> {
        let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why.to_owned());
        let authorization = token.map(|token| HeaderValue::try_from(format!("Bearer {token}")));
        let mut authorization = authorization
            .transpose()
            .map_err(|_| invalid("the token has characters that no token has"))?;
        if let Some(value) = &mut authorization {
            value.set_sensitive(true);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let addr = listener.local_addr()?;
        let mut bits = Zeroizing::new([0u8; 16]);
        SystemRng.fill(&mut *bits);
        let own: Zeroizing<String> =
            Zeroizing::new(bits.iter().map(|byte| format!("{byte:02x}")).collect());
        // One in 10^12 random tokens has too few different digits.
        let tokens = Tokens::parse(&own).map_err(io::Error::other)?;
        Ok(Self {
            listener,
            addr,
            token: own,
            state: Arc::new(ForwarderState {
                access: AccessControl::new(Some(tokens)),
                api: api.to_owned(),
                authorization,
            }),
        })
    }

    /// Returns the address of the page, with the token.
    #[must_use]
    pub fn url(&self) -> Zeroizing<String> {
        let Self { addr, token, .. } = self;
        Zeroizing::new(format!("http://{addr}/dashboard#token={}", token.as_str()))
    }

    /// Forwards requests until it is dropped.
    pub async fn serve(self) {
        let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            // Further connections wait in the backlog.
            let slot = slots.clone().acquire_owned().await;
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let state = self.state.clone();
                    connections.spawn(async move {
                        state.serve_connection(stream).await;
                        drop(slot);
                    });
                }
                Err(why) => {
                    debug!("dashboard: {why}");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}

impl ForwarderState {
    async fn serve_connection(&self, stream: TcpStream) {
        let service = service_fn(|request| async move {
            match self.answer(request).await {
                Ok(response) => Ok::<_, hyper::Error>(response),
                Err(refusal) => Ok(Response::from(Reply::from(refusal)).map(own_body)),
            }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(MAX_HEAD)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(why) = served.await {
            debug!("dashboard: {why}");
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<AnyBody>, Refusal> {
        let (head, body) = request.into_parts();
        check_source(&head.headers, true)?;
        let wish = action_for_path(head.uri.path());
        // The page and the login are those of this process.
        let own = match wish {
            Some(Action::Dashboard(part)) => Some(part),
            _ => None,
        };
        if !own.is_some_and(DashboardPart::is_open) {
            let is_root = head.uri.path() == "/";
            if is_root && dashboard::accepts_page(&head.headers) {
                return Ok(Response::from(dashboard::redirect()).map(own_body));
            }
            self.access.check(&head.method, &head.headers)?;
        }
        let mut sent = Zeroizing::default();
        if has_body(&head.method) || head.headers.contains_key(header::CONTENT_LENGTH) {
            check_json(&head.headers)?;
            sent = read_body(body).await?;
        }
        if let Some(part) = own {
            let allowed = part.allowed_methods();
            if allowed != head.method.as_str() {
                return Err(Refusal::method_not_allowed(allowed));
            }
            let reply = part.answer(&self.access, &head.headers, &sent)?;
            return Ok(Response::from(reply).map(own_body));
        }
        let mut forwarded = Request::new(Full::new(Bytes::copy_from_slice(&sent)));
        *forwarded.method_mut() = head.method;
        *forwarded.uri_mut() = head.uri;
        *forwarded.headers_mut() = self.forwarded_headers(&head.headers);
        self.forward(forwarded).await
    }

    /// Returns the headers of a forwarded request: nothing that identifies the browser.
    fn forwarded_headers(&self, received: &HeaderMap) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost"));
        for name in [header::ACCEPT, header::CONTENT_TYPE] {
            if let Some(value) = received.get(&name) {
                headers.insert(name, value.clone());
            }
        }
        if let Some(value) = &self.authorization {
            headers.insert(header::AUTHORIZATION, value.clone());
        }
        headers
    }

    /// Forwards a request over a connection of its own, which lasts as long as its response.
    async fn forward(&self, request: Request<Full<Bytes>>) -> Result<Response<AnyBody>, Refusal> {
        let failed = |why: String| Refusal::new(StatusCode::BAD_GATEWAY, why);
        let stream = open_connection(&self.api).await;
        let stream = stream.map_err(|why| failed(why.to_string()))?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|why| failed(why.to_string()))?;
        // It ends with the response, and with it when the browser is gone.
        tokio::spawn(connection);
        let response = timeout(RESPONSE_TIME, sender.send_request(request)).await;
        let response = response.map_err(|_| failed("the API did not answer in time".to_owned()))?;
        let response = response.map_err(|why| failed(why.to_string()))?;
        let (mut head, body) = response.into_parts();
        for name in [
            header::CONNECTION,
            header::TRANSFER_ENCODING,
            header::WWW_AUTHENTICATE,
            HeaderName::from_static("keep-alive"),
        ] {
            head.headers.remove(name);
        }
        Ok(Response::from_parts(head, body.boxed_unsync()))
    }
}

/// Converts the body of an answer of this process, which cannot fail.
fn own_body(body: super::reply::ReplyBody) -> AnyBody {
    body.map_err(|never| match never {}).boxed_unsync()
}
