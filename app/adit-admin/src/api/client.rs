//! A client of the API of a running process: `GET /healthz` and `POST /v1/upgrade`.

use std::io;
use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::upgrade::{UpgradeBody, Upgraded};
use crate::listen_address::{ListenAddress, resolve_address};

/// Time limit of an upgrade, which includes the start of the new process.
const UPGRADE_TIME: Duration = Duration::from_secs(60);
/// Time limit of a health check.
const HEALTH_TIME: Duration = Duration::from_secs(4);
/// Maximum size of a response, in bytes.
const MAX_RESPONSE: usize = 64 << 10;

/// The reason why a request was not performed.
#[derive(Debug, thiserror::Error)]
pub enum ApiRequestError {
    /// The API cannot be reached.
    #[error("cannot reach the management API at {at}: {why}")]
    Connect {
        /// The address of the request, unchanged.
        at: String,
        /// The error of the system.
        why: io::Error,
    },
    /// The exchange failed.
    #[error("the management API at {at} did not answer: {why}")]
    Exchange {
        /// The address of the request, unchanged.
        at: String,
        /// The error.
        why: String,
    },
    /// The process refused, or could not perform the request.
    #[error("{why}")]
    Refused {
        /// The status of the response.
        status: u16,
        /// The reason, in the process's words.
        why: String,
    },
}

#[derive(Deserialize)]
struct ErrorBody {
    error: String,
}

/// Requests an upgrade from the process whose API is at `at`: a path, or `HOST:PORT`, which needs a `token`.
/// The new process is started from `program`, or from the file that the running one was started from.
///
/// # Errors
/// The API cannot be reached, or the running process continues: it refused, or the new one could not be started.
pub async fn request_upgrade(
    at: &str,
    token: Option<&str>,
    program: Option<&Path>,
) -> Result<Upgraded, ApiRequestError> {
    let unreachable = |why| unreachable(at, why);
    let body = UpgradeBody {
        program: program.map(Path::to_owned),
    };
    let body = serde_json::to_vec(&body).map_err(|why| unreachable(io::Error::other(why)))?;
    let mut request = Request::builder()
        .method(Method::POST)
        .uri("/v1/upgrade")
        .header(header::HOST, "localhost")
        .header(header::CONTENT_TYPE, "application/json");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request
        .body(Full::new(Bytes::from(body)))
        .map_err(|why| unreachable(io::Error::other(why)))?;
    let (status, body) = send(at, request, UPGRADE_TIME).await?;
    let malformed = |why: serde_json::Error| ApiRequestError::Exchange {
        at: at.to_owned(),
        why: format!("status {status}: {why}"),
    };
    if status == StatusCode::OK {
        return serde_json::from_slice(&body).map_err(malformed);
    }
    let error: ErrorBody = serde_json::from_slice(&body).map_err(malformed)?;
    Err(ApiRequestError::Refused {
        status: status.as_u16(),
        why: error.error,
    })
}

/// Checks that the process whose API is at `at`, a path or `HOST:PORT`, answers. This needs no token.
///
/// # Errors
/// The API cannot be reached, or does not answer `200` within four seconds.
pub async fn check_health(at: &str) -> Result<(), ApiRequestError> {
    let request = Request::builder()
        .uri("/healthz")
        .header(header::HOST, "localhost")
        .body(Full::default())
        .map_err(|why| unreachable(at, io::Error::other(why)))?;
    match send(at, request, HEALTH_TIME).await? {
        (StatusCode::OK, _) => Ok(()),
        (status, _) => Err(ApiRequestError::Exchange {
            at: at.to_owned(),
            why: format!("status {status}"),
        }),
    }
}

fn unreachable(at: &str, why: io::Error) -> ApiRequestError {
    ApiRequestError::Connect {
        at: at.to_owned(),
        why,
    }
}

/// Sends a request to the API at `at`, and returns the status and the body of the response.
async fn send(
    at: &str,
    request: Request<Full<Bytes>>,
    limit: Duration,
) -> Result<(StatusCode, Bytes), ApiRequestError> {
    let stream = open_connection(at).await?;
    exchange(at, stream, request, limit).await
}

/// A connection to an API.
pub(super) trait ApiConnection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> ApiConnection for T {}

/// Connects to the API at `at`.
pub(super) async fn open_connection(at: &str) -> Result<Box<dyn ApiConnection>, ApiRequestError> {
    let unreachable = |why| unreachable(at, why);
    match ListenAddress::parse(at).map_err(unreachable)? {
        ListenAddress::Port(target) => {
            let addr = resolve_address(&target).await.map_err(unreachable)?;
            let stream = TcpStream::connect(addr).await.map_err(unreachable)?;
            Ok(Box::new(stream))
        }
        #[cfg(unix)]
        ListenAddress::Path(path) => {
            let stream = tokio::net::UnixStream::connect(path).await;
            Ok(Box::new(stream.map_err(unreachable)?))
        }
        #[cfg(not(unix))]
        ListenAddress::Path(_) => Err(unreachable(io::ErrorKind::Unsupported.into())),
    }
}

/// Sends the request, and returns the status and the body of the response.
async fn exchange(
    at: &str,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
    limit: Duration,
) -> Result<(StatusCode, Bytes), ApiRequestError> {
    let failed = |why: String| ApiRequestError::Exchange {
        at: at.to_owned(),
        why,
    };
    let work = async {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|why| failed(why.to_string()))?;
        // The connection ends with the sender.
        let response = async move {
            let response = sender.send_request(request).await;
            let response = response.map_err(|why| failed(why.to_string()))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_RESPONSE).collect();
            let body = body.await.map_err(|why| failed(why.to_string()))?;
            Ok((status, body.to_bytes()))
        };
        // The connection must be driven while the response is read. Its errors appear there too.
        let (_, response) = tokio::join!(connection, response);
        response
    };
    match timeout(limit, work).await {
        Ok(response) => response,
        Err(_) => Err(failed(format!("after {} s", limit.as_secs()))),
    }
}
