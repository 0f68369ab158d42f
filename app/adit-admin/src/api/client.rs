//! A client of the API of a running process; `account_client` has its requests about users.

use std::io;
use std::path::Path;
use std::time::Duration;

use adit_config::ApiAddress;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::event_reader::EventReader;
use super::upgrade::{UpgradeBody, Upgraded};
use crate::api_address::resolve_address;
use crate::local_socket;

/// Time limit of an upgrade, which includes the start of the new process.
const UPGRADE_TIME: Duration = Duration::from_secs(60);
/// Time limit of a health check.
const HEALTH_TIME: Duration = Duration::from_secs(4);
/// Time limit of other requests.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// Maximum size of a response, in bytes: a list of 100,000 sessions.
const MAX_RESPONSE: usize = 64 << 20;

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

/// A client of the API of a running process. Each request has a connection of its own.
#[derive(Debug, Clone)]
pub struct ApiClient {
    at: String,
    token: Option<Zeroizing<String>>,
}

impl ApiClient {
    /// Creates a client of the API at a path or `HOST:PORT`, which needs a `token`.
    #[must_use]
    pub const fn new(at: String, token: Option<Zeroizing<String>>) -> Self {
        Self { at, token }
    }

    /// Returns the address of the API.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.at
    }

    /// Returns the token.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref().map(String::as_str)
    }

    /// Sends `GET`, and returns the document of the response.
    ///
    /// # Errors
    /// The API cannot be reached, refuses, or answers with another document.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ApiRequestError> {
        let request = self.request(Method::GET, path, Bytes::new())?;
        self.document(request, REQUEST_TIME).await
    }

    /// Sends `POST` with a JSON body, and returns the document of the response.
    ///
    /// # Errors
    /// As for [`Self::get`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ApiRequestError> {
        self.post_within(path, body, REQUEST_TIME).await
    }

    /// Sends `DELETE`.
    ///
    /// # Errors
    /// The API cannot be reached, or refuses.
    pub async fn delete(&self, path: &str) -> Result<(), ApiRequestError> {
        self.send_without_answer(Method::DELETE, path, None).await
    }

    /// Sends `GET`, and returns the server-sent events of the response, which does not end.
    ///
    /// # Errors
    /// The API cannot be reached, or refuses.
    pub async fn events(&self, path: &str) -> Result<EventReader, ApiRequestError> {
        let request = self.request(Method::GET, path, Bytes::new())?;
        let open = self.open(request);
        let (response, connection) = timeout(HEALTH_TIME, open)
            .await
            .map_err(|_| self.too_late(HEALTH_TIME))??;
        if response.status() == StatusCode::OK {
            return Ok(EventReader::new(response.into_body(), connection));
        }
        let (status, body) = timeout(HEALTH_TIME, self.read(response))
            .await
            .map_err(|_| self.too_late(HEALTH_TIME))??;
        Err(self.refusal(status, &body))
    }

    async fn post_within<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        limit: Duration,
    ) -> Result<T, ApiRequestError> {
        let body = serde_json::to_vec(body).map_err(|why| self.failed(&why))?;
        let request = self.request(Method::POST, path, body.into())?;
        self.document(request, limit).await
    }

    /// Sends a request with a JSON body, if there is one, and returns the document of the response.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, ApiRequestError> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = self.request(method, path, body.into())?;
        self.document(request, REQUEST_TIME).await
    }

    /// Sends a request whose response has no document.
    pub(super) async fn send_without_answer(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(), ApiRequestError> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = self.request(method, path, body.into())?;
        let (status, body) = self.send(request, REQUEST_TIME).await?;
        match status.is_success() {
            true => Ok(()),
            false => Err(self.refusal(status, &body)),
        }
    }

    /// Sends a request, and returns the document of the response.
    async fn document<T: DeserializeOwned>(
        &self,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<T, ApiRequestError> {
        let (status, body) = self.send(request, limit).await?;
        if !status.is_success() {
            return Err(self.refusal(status, &body));
        }
        let document = serde_json::from_slice(&body);
        document.map_err(|why| self.failed(&format!("status {status}: {why}")))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, ApiRequestError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            let token = Zeroizing::new(format!("Bearer {}", token.as_str()));
            request = request.header(header::AUTHORIZATION, token.as_str());
        }
        let request = request.body(Full::new(body));
        request.map_err(|why| self.failed(&why))
    }

    /// Sends a request, and returns the status and the body of the response.
    async fn send(
        &self,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<(StatusCode, Bytes), ApiRequestError> {
        let work = async {
            // The connection ends with its task, after the body.
            let (response, _connection) = self.open(request).await?;
            self.read(response).await
        };
        let response = timeout(limit, work).await;
        response.map_err(|_| self.too_late(limit))?
    }

    /// Sends a request on a new connection, and returns the response without its body, with the task of the
    /// connection.
    async fn open(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, JoinSet<()>), ApiRequestError> {
        let stream = open_connection(&self.at).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|why| self.failed(&why))?;
        let mut task = JoinSet::new();
        task.spawn(async move {
            // Its errors appear in the response too.
            let _ = connection.await;
        });
        let response = sender.send_request(request).await;
        Ok((response.map_err(|why| self.failed(&why))?, task))
    }

    async fn read(
        &self,
        response: Response<Incoming>,
    ) -> Result<(StatusCode, Bytes), ApiRequestError> {
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_RESPONSE).collect();
        let body = body.await.map_err(|why| self.failed(&why))?;
        Ok((status, body.to_bytes()))
    }

    /// Returns the error of a response with another status than success.
    fn refusal(&self, status: StatusCode, body: &[u8]) -> ApiRequestError {
        match serde_json::from_slice::<ErrorBody>(body) {
            Ok(error) => ApiRequestError::Refused {
                status: status.as_u16(),
                why: error.error,
            },
            Err(_) => self.failed(&format!("status {status}")),
        }
    }

    fn failed(&self, why: &impl ToString) -> ApiRequestError {
        ApiRequestError::Exchange {
            at: self.at.clone(),
            why: why.to_string(),
        }
    }

    fn too_late(&self, limit: Duration) -> ApiRequestError {
        self.failed(&format!("after {} s", limit.as_secs()))
    }
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
    let body = UpgradeBody {
        program: program.map(Path::to_owned),
    };
    let token = token.map(|token| Zeroizing::new(token.to_owned()));
    let client = ApiClient::new(at.to_owned(), token);
    client.post_within("/v1/upgrade", &body, UPGRADE_TIME).await
}

/// Checks that the process whose API is at `at`, a path or `HOST:PORT`, answers. This needs no token.
///
/// # Errors
/// The API cannot be reached, or does not answer `200` within four seconds.
pub async fn check_health(at: &str) -> Result<(), ApiRequestError> {
    let client = ApiClient::new(at.to_owned(), None);
    let request = client.request(Method::GET, "/healthz", Bytes::new())?;
    match client.send(request, HEALTH_TIME).await? {
        (StatusCode::OK, _) => Ok(()),
        (status, _) => Err(client.failed(&format!("status {status}"))),
    }
}

/// Checks that the process whose API is at `at` accepts new connections. This needs no token.
///
/// # Errors
/// The API cannot be reached, or does not answer `200` within four seconds; then the error has the reason that the
/// process reports.
pub async fn check_readiness(at: &str) -> Result<(), ApiRequestError> {
    let client = ApiClient::new(at.to_owned(), None);
    let request = client.request(Method::GET, "/readyz", Bytes::new())?;
    match client.send(request, HEALTH_TIME).await? {
        (StatusCode::OK, _) => Ok(()),
        (status, body) => Err(ApiRequestError::Refused {
            status: status.as_u16(),
            why: String::from_utf8_lossy(&body).trim().to_owned(),
        }),
    }
}

/// A connection to an API.
pub(super) trait ApiConnection: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> ApiConnection for T {}

/// Connects to the API at `at`.
pub(super) async fn open_connection(at: &str) -> Result<Box<dyn ApiConnection>, ApiRequestError> {
    let unreachable = |why| ApiRequestError::Connect {
        at: at.to_owned(),
        why,
    };
    match ApiAddress::parse(at).map_err(|why| unreachable(why.into()))? {
        ApiAddress::Port(target) => {
            let addr = resolve_address(&target).await.map_err(unreachable)?;
            let stream = TcpStream::connect(addr).await.map_err(unreachable)?;
            Ok(Box::new(stream))
        }
        ApiAddress::Path(path) => {
            let stream = local_socket::connect(&path).await;
            Ok(Box::new(stream.map_err(unreachable)?))
        }
    }
}
