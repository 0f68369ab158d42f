//! Queries over HTTPS, with HTTP/2 or HTTP/1.1 (RFC 8484).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adit_dns::{Answer, UpstreamQuery};
use adit_wire::Host;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};
use tokio_rustls::client::TlsStream;

use crate::MAX_ATTEMPTS;
use crate::error::ServerError;
use crate::path::BoxDnsStream;

/// The media type of messages.
const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/dns-message");
/// Maximum length of an answer, in bytes.
const MAX_ANSWER: usize = 65_535;
/// Time after which a connection without requests is closed.
const IDLE: Duration = Duration::from_secs(60);
/// Maximum number of idle connections with HTTP/1.1; with HTTP/2 there is one for all requests.
const MAX_IDLE: usize = 8;
/// The protocols that are offered (ALPN), the preferred one first: several servers have HTTP/2 only.
pub(crate) const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

type Body = Full<Bytes>;

/// The task of a connection; it ends when the last request handle is dropped, or when it is idle.
#[derive(Debug)]
struct Driver {
    task: AbortHandle,
    usage: Arc<Mutex<Usage>>,
}

#[derive(Debug)]
struct Usage {
    active: u32,
    since: Instant,
}

/// A running request.
struct ActiveRequest(Arc<Mutex<Usage>>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut usage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        usage.active -= 1;
        usage.since = Instant::now();
    }
}

impl Driver {
    /// Spawns the task of a connection.
    fn spawn(connection: impl Future<Output = hyper::Result<()>> + Send + 'static) -> Self {
        let usage = Arc::new(Mutex::new(Usage {
            active: 0,
            since: Instant::now(),
        }));
        let watched = usage.clone();
        let task = tokio::spawn(async move {
            tokio::select! {
                ended = connection => {
                    if let Err(why) = ended {
                        tracing::trace!("a connection to a DNS server ends: {why}");
                    }
                }
                () = wait_until_idle(&watched) => {}
            }
        });
        Self {
            task: task.abort_handle(),
            usage,
        }
    }

    fn start_request(&self) -> ActiveRequest {
        let mut usage = self.usage.lock().unwrap_or_else(PoisonError::into_inner);
        usage.active += 1;
        ActiveRequest(self.usage.clone())
    }
}

/// Waits until there was no request for [`IDLE`].
async fn wait_until_idle(usage: &Mutex<Usage>) {
    loop {
        let until = {
            let usage = usage.lock().unwrap_or_else(PoisonError::into_inner);
            let since = match usage.active {
                0 => usage.since,
                _ => Instant::now(),
            };
            since + IDLE
        };
        if until <= Instant::now() {
            return;
        }
        sleep_until(until).await;
    }
}

/// A connection for one request; with HTTP/2, others have it at the same time.
enum Connection {
    Two(http2::SendRequest<Body>, Arc<Driver>),
    One(http1::SendRequest<Body>, Driver),
}

/// The connections to a server.
#[derive(Default)]
pub(crate) struct HttpConnections {
    two: Option<(http2::SendRequest<Body>, Arc<Driver>)>,
    idle: Vec<(http1::SendRequest<Body>, Driver)>,
}

impl HttpConnections {
    /// Takes an open connection.
    fn take_open(&mut self) -> Option<Connection> {
        if let Some((sender, driver)) = self.two.as_ref().filter(|(sender, _)| !sender.is_closed())
        {
            return Some(Connection::Two(sender.clone(), driver.clone()));
        }
        self.two = None;
        while let Some((sender, driver)) = self.idle.pop() {
            if sender.is_ready() {
                return Some(Connection::One(sender, driver));
            }
        }
        None
    }

    /// Drops the shared connection, if it is that of `driver`; running requests keep theirs.
    fn drop_shared(&mut self, driver: &Arc<Driver>) {
        self.two
            .take_if(|(_, current)| Arc::ptr_eq(current, driver));
    }

    /// Drops all connections; running requests keep theirs.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Opens a connection over a TLS stream, with the protocol that it has negotiated.
async fn open(stream: TlsStream<BoxDnsStream>) -> hyper::Result<Connection> {
    let is_two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let stream = TokioIo::new(stream);
    if is_two {
        let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
        Ok(Connection::Two(sender, Arc::new(Driver::spawn(connection))))
    } else {
        let (sender, connection) = http1::handshake(stream).await?;
        Ok(Connection::One(sender, Driver::spawn(connection)))
    }
}

/// The part of a server that requests name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resource<'a> {
    pub(crate) host: &'a Host,
    pub(crate) port: u16,
    pub(crate) path: &'a str,
}

impl Resource<'_> {
    /// Returns the host, and the port if it is not that of HTTPS.
    fn authority(&self) -> String {
        let host = match self.host {
            Host::Ip(std::net::IpAddr::V6(ip)) => format!("[{ip}]"),
            host => host.to_string(),
        };
        match self.port {
            443 => host,
            port => format!("{host}:{port}"),
        }
    }

    /// Returns the request of a query: POST, so that the name is neither in logs nor in caches.
    fn request(&self, query: &UpstreamQuery, is_two: bool) -> Result<Request<Body>, ServerError> {
        let authority = self.authority();
        let request = match is_two {
            true => Request::post(format!("https://{authority}{}", self.path)),
            false => Request::post(self.path).header(header::HOST, authority),
        };
        request
            .header(header::CONTENT_TYPE, MEDIA_TYPE)
            .header(header::ACCEPT, MEDIA_TYPE)
            .body(Full::new(query.to_bytes().into()))
            .map_err(|why| ServerError::Http(why.to_string()))
    }
}

/// Sends a query over an open connection, or over a new one that `connect` opens.
pub(crate) async fn ask<F>(
    connections: &tokio::sync::Mutex<HttpConnections>,
    resource: Resource<'_>,
    query: &UpstreamQuery,
    connect: impl Fn() -> F,
) -> Result<Answer, ServerError>
where
    F: Future<Output = Result<TlsStream<BoxDnsStream>, ServerError>>,
{
    let mut attempt = 0;
    loop {
        attempt += 1;
        // Locked while a connection is opened, so that waiting requests share it if it has HTTP/2.
        let mut state = connections.lock().await;
        let (connection, is_new) = match state.take_open() {
            Some(connection) => (connection, false),
            None => {
                let opened = open(connect().await?).await.map_err(http_error)?;
                if let Connection::Two(sender, driver) = &opened {
                    state.two = Some((sender.clone(), driver.clone()));
                }
                (opened, true)
            }
        };
        drop(state);
        let response = match connection {
            Connection::Two(mut sender, driver) => {
                let _active = driver.start_request();
                let request = resource.request(query, true)?;
                match sender.send_request(request).await {
                    Ok(response) => read(response).await,
                    Err(why) => {
                        // It may be open and refuse requests.
                        connections.lock().await.drop_shared(&driver);
                        Err(http_error(why))
                    }
                }
            }
            Connection::One(mut sender, driver) => {
                let active = driver.start_request();
                let request = resource.request(query, false)?;
                let read = match sender.send_request(request).await {
                    Ok(response) => read(response).await,
                    Err(why) => Err(http_error(why)),
                };
                drop(active);
                if read.is_ok() && !sender.is_closed() {
                    let mut state = connections.lock().await;
                    if state.idle.len() < MAX_IDLE {
                        state.idle.push((sender, driver));
                    }
                }
                read
            }
        };
        match response {
            // The server may have closed the idle connection at the same moment.
            Err(ServerError::Closed(_)) if !is_new && attempt < MAX_ATTEMPTS => {}
            Err(why) => return Err(why),
            Ok(body) => return Ok(query.check_answer(&body)?),
        }
    }
}

/// Reads the message of a response.
async fn read(response: Response<Incoming>) -> Result<Bytes, ServerError> {
    if response.status() != StatusCode::OK {
        return Err(ServerError::Http(format!("status {}", response.status())));
    }
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_message = kind.is_some_and(|kind| {
        let kind = kind.as_bytes();
        let kind = kind.split(|byte| *byte == b';').next().unwrap_or(kind);
        kind.trim_ascii()
            .eq_ignore_ascii_case(MEDIA_TYPE.as_bytes())
    });
    if !is_message {
        let why = "the response is not a message of DNS; check the path";
        return Err(ServerError::Http(why.to_owned()));
    }
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect();
    match body.await {
        Ok(body) => Ok(body.to_bytes()),
        Err(why) => Err(match why.downcast::<hyper::Error>() {
            Ok(why) => http_error(*why),
            Err(_) => ServerError::Http(format!("the answer is longer than {MAX_ANSWER} bytes")),
        }),
    }
}

/// Converts an error of a connection: whether it may have been closed before the request matters to the caller.
fn http_error(why: hyper::Error) -> ServerError {
    ServerError::Closed(std::io::Error::other(why))
}
