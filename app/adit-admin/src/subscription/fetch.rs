//! Fetching of a document over HTTPS, with checked certificates and limits on size and time.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use adit_dns_client::tls::TrustedRoots;
use adit_dns_client::tls::{TlsError, client_config};
use adit_engine::NameResolver;
use adit_engine::clock_reference::{self, ClockOffset};
use adit_net::dial::{self, Family};
use adit_wire::Host;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use super::source::Source;

/// Time limit of the whole request, unless it has another: name, connection, redirections and body.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit of a connection, and of the TLS handshake.
const DIAL: Duration = Duration::from_secs(10);
/// Maximum number of redirections.
const MAX_REDIRECTIONS: usize = 5;
/// The `User-Agent` header.
const AGENT: &str = concat!("adit/", env!("CARGO_PKG_VERSION"));

/// The reason why a document was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The connection failed.
    #[error("no connection to {at}: {why}")]
    Dial {
        /// Host and port.
        at: String,
        /// The error of the system.
        why: io::Error,
    },
    /// The certificate of the server is not valid, or the server does not use TLS.
    #[error("no TLS with {at}: {why}")]
    Tls {
        /// Host and port.
        at: String,
        /// The error of the handshake.
        why: io::Error,
    },
    /// TLS cannot be used on this machine.
    #[error(transparent)]
    Setup(#[from] TlsError),
    /// The response was interrupted or invalid.
    #[error("the response was interrupted or invalid: {0}")]
    Broken(hyper::Error),
    /// The status of the response is not 200.
    #[error("the server answered {0}")]
    Status(StatusCode),
    /// A redirection to an address that is not allowed, or too many redirections.
    #[error("redirected too often, or to an address that is not allowed for a subscription")]
    Redirected,
    /// The body has more than the maximum number of bytes.
    #[error("the document is longer than {0} bytes")]
    TooLong(usize),
    /// The body is not UTF-8.
    #[error("the document is not UTF-8 text")]
    NoText,
    /// The body is compressed, which was not requested.
    #[error("the document is compressed, which was not requested")]
    Compressed,
    /// The request timed out.
    #[error("no answer within {} s", .0.as_secs())]
    Late(Duration),
}

/// Fetches documents up to a maximum size.
pub struct Fetcher {
    /// Maximum size of a document, in bytes.
    limit: usize,
    roots: TrustedRoots,
    patience: Duration,
}

impl std::fmt::Debug for Fetcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fetcher")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl Fetcher {
    /// Creates a fetcher for documents of at most `limit` bytes.
    #[must_use]
    pub const fn new(roots: TrustedRoots, limit: usize) -> Self {
        Self {
            limit,
            roots,
            patience: PATIENCE,
        }
    }

    /// Sets the time limit of a whole request, 30 s by default.
    #[must_use]
    pub const fn with_time_limit(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Fetches a document, and returns its text. `names` looks the names of its servers up.
    ///
    /// # Errors
    /// The connection, TLS or the request fails, or the document is not text within the limit.
    pub async fn get(
        &self,
        source: &Source,
        names: &NameResolver,
    ) -> Result<Zeroizing<String>, FetchError> {
        match String::from_utf8(self.get_bytes(source, names).await?) {
            Ok(text) => Ok(Zeroizing::new(text)),
            Err(why) => {
                drop(Zeroizing::new(why.into_bytes()));
                Err(FetchError::NoText)
            }
        }
    }

    /// Fetches a document of any content. `names` looks the names of its servers up.
    ///
    /// # Errors
    /// The connection, TLS or the request fails, or the document is too long or compressed.
    pub async fn get_bytes(
        &self,
        source: &Source,
        names: &NameResolver,
    ) -> Result<Vec<u8>, FetchError> {
        timeout(self.patience, self.follow(source, names))
            .await
            .unwrap_or(Err(FetchError::Late(self.patience)))
    }

    /// Sends a document of JSON with further headers, and returns the answer. Redirections are not followed.
    ///
    /// # Errors
    /// The connection, TLS or the request fails, or the status of the answer is not 200.
    #[cfg(feature = "otlp")]
    pub(crate) async fn post_json(
        &self,
        to: &Source,
        names: &NameResolver,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Vec<u8>, FetchError> {
        let sent = async {
            match self.once(to, names, headers, Some(body)).await? {
                FetchResponse::Document(bytes) => Ok(bytes),
                FetchResponse::Redirect(_) => Err(FetchError::Redirected),
            }
        };
        timeout(self.patience, sent)
            .await
            .unwrap_or(Err(FetchError::Late(self.patience)))
    }

    /// Posts a document, and returns the status of the answer, whose body is ignored. Redirections are not followed.
    /// The request takes at most the time limit.
    ///
    /// # Errors
    /// The connection, TLS or the request fails.
    pub async fn post(
        &self,
        source: &Source,
        names: &NameResolver,
        headers: &[(HeaderName, HeaderValue)],
        body: Bytes,
    ) -> Result<StatusCode, FetchError> {
        let mut request = Request::post(source.path.as_str())
            .header(header::HOST, source.authority())
            .header(header::USER_AGENT, AGENT)
            .header(header::CONNECTION, HeaderValue::from_static("close"));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        // The parts come from a parsed URL, so they are valid.
        let request = request.body(Full::new(body));
        let request = request.map_err(|_| FetchError::Redirected)?;
        let work = async {
            let stream = self.open(source, names).await?;
            let (response, _connection) = send(stream, request).await?;
            Ok(response.status())
        };
        let done = timeout(self.patience, work).await;
        done.unwrap_or(Err(FetchError::Late(self.patience)))
    }

    async fn follow(&self, source: &Source, names: &NameResolver) -> Result<Vec<u8>, FetchError> {
        let mut at = source.clone();
        for _ in 0..=MAX_REDIRECTIONS {
            match self.once(&at, names, HeaderMap::new(), None).await? {
                FetchResponse::Document(bytes) => return Ok(bytes),
                FetchResponse::Redirect(next) => at = next,
            }
        }
        Err(FetchError::Redirected)
    }

    /// Opens a connection, with TLS if the URL says so.
    async fn open(
        &self,
        at: &Source,
        names: &NameResolver,
    ) -> Result<Box<dyn FetchStream>, FetchError> {
        let tcp = connect(at, names).await?;
        if !at.tls {
            return Ok(Box::new(tcp));
        }
        let name = adit_dns_client::tls::server_name(&at.host)
            .map_err(|e| tls(at, io::Error::other(e)))?;
        // Trusted authorities are loaded for each fetch over TLS.
        let config = client_config(&self.roots, &[b"http/1.1"]).await?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = timeout(DIAL, connector.connect(name, tcp)).await;
        let stream = stream.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        Ok(Box::new(stream.map_err(|e| tls(at, e))?))
    }

    /// Sends one request: `POST` of a document of JSON if there is a body, otherwise `GET`.
    async fn once(
        &self,
        at: &Source,
        names: &NameResolver,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<FetchResponse, FetchError> {
        let stream = self.open(at, names).await?;
        let request = match &body {
            None => Request::get(at.path.as_str()),
            Some(_) => {
                Request::post(at.path.as_str()).header(header::CONTENT_TYPE, "application/json")
            }
        };
        let request = request
            .header(header::HOST, at.authority())
            .header(header::USER_AGENT, AGENT)
            .header(
                header::ACCEPT,
                "application/json, application/yaml, text/plain, */*",
            )
            .header(header::CONNECTION, HeaderValue::from_static("close"))
            .body(Full::new(body.unwrap_or_default()));
        // The parts come from a parsed URL, so they are valid.
        let mut request = request.map_err(|_| FetchError::Redirected)?;
        request.headers_mut().extend(headers);
        let (response, _connection) = send(stream, request).await?;
        self.read(at, response).await
    }

    async fn read(
        &self,
        at: &Source,
        response: Response<Incoming>,
    ) -> Result<FetchResponse, FetchError> {
        let headers = response.headers();
        // A cached response has an earlier date.
        let date = text_of(headers, header::DATE).filter(|_| !headers.contains_key(header::AGE));
        if let Some(date) = date.and_then(clock_reference::parse_http_date) {
            ClockOffset::from_date(at.authority(), date).record();
        }
        let status = response.status();
        if status.is_redirection() && status != StatusCode::NOT_MODIFIED {
            let next = text_of(response.headers(), header::LOCATION).and_then(|to| at.follow(to));
            return next
                .map(FetchResponse::Redirect)
                .ok_or(FetchError::Redirected);
        }
        if status != StatusCode::OK {
            return Err(FetchError::Status(status));
        }
        // Compression was not requested, and the size of the content would be unknown.
        let packed = text_of(response.headers(), header::CONTENT_ENCODING);
        if packed.is_some_and(|how| !how.eq_ignore_ascii_case("identity")) {
            return Err(FetchError::Compressed);
        }
        let body = Limited::new(response.into_body(), self.limit)
            .collect()
            .await;
        let body = body.map_err(|e| match e.downcast::<hyper::Error>() {
            Ok(e) => FetchError::Broken(*e),
            Err(_) => FetchError::TooLong(self.limit),
        })?;
        Ok(FetchResponse::Document(body.to_bytes().to_vec()))
    }
}

/// A connection to a server.
trait FetchStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> FetchStream for T {}

/// Sends one request on a separate stream. The connection ends with the returned set.
async fn send<B>(
    stream: Box<dyn FetchStream>,
    request: Request<B>,
) -> Result<(Response<Incoming>, JoinSet<hyper::Result<()>>), FetchError>
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let (mut sender, connection) = http1::Builder::new()
        .handshake(TokioIo::new(stream))
        .await
        .map_err(FetchError::Broken)?;
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let response = sender.send_request(request).await;
    Ok((response.map_err(FetchError::Broken)?, driver))
}

enum FetchResponse {
    Document(Vec<u8>),
    Redirect(Source),
}

fn tls(at: &Source, why: io::Error) -> FetchError {
    FetchError::Tls {
        at: at.authority(),
        why,
    }
}

fn text_of(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

async fn connect(at: &Source, names: &NameResolver) -> Result<TcpStream, FetchError> {
    let failed = |why| FetchError::Dial {
        at: at.authority(),
        why,
    };
    let candidates = match &at.host {
        Host::Ip(ip) => vec![(*ip, at.port).into()],
        Host::Name(name) => {
            let found = names.resolve(name.as_str(), at.port, Family::Any);
            found.await.map_err(failed)?
        }
    };
    dial::connect_first(&candidates, DIAL).await.map_err(failed)
}
