//! HTTP proxy clients.

mod lent_connection;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_http::Framing;
use adit_http::body;
use adit_http::server::{self, Request as Asked, RequestHandshake};
use adit_stream::{BoxStream, Layered, fill_to, run_handshake, write_and_flush};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::debug;

use self::lent_connection::LentConnection;
use super::closing_reply::{close_with_reply, end_failed_handshake};
use super::{FirstBytesPlace, FurtherRequests, PendingRequest, RequestReply};
use crate::credentials::ListenerCredentials;
use crate::{AcceptError, BoxFuture, DialError, DialStage, FailureCause, Request};

/// Idle time of a client between two requests. Browsers close idle connections after five minutes, and
/// check for a close by the server before they reuse one.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(60);

/// The server of a hop, for people who need not know its address.
const NEXT_SERVER: &str = "the server behind this proxy";

/// The settings for all HTTP clients of a listener.
#[derive(Clone)]
pub(crate) struct HttpRules {
    pub(crate) credentials: Arc<ListenerCredentials>,
    /// Time limit for the head of a further request.
    pub(crate) deadline: Duration,
    /// True if error responses state their reason.
    pub(crate) verbose: bool,
}

/// Reads one request. The caller enforces the deadline.
pub(super) async fn read_request(
    rules: HttpRules,
    mut io: BoxStream,
) -> Result<PendingRequest, AcceptError> {
    let asked = run_handshake(&mut io, &mut RequestHandshake::new(&*rules.credentials)).await;
    let asked = match asked {
        Ok(asked) => asked,
        Err(why) => {
            return Err(end_failed_handshake(io, why, |e| {
                matches!(e, server::Refusal::BadCredentials { .. })
            })
            .await);
        }
    };
    let (target, first, user, kind) = match asked {
        Asked::Connect { target, user } => (target, Vec::new(), user, HttpRequestKind::Tunnel),
        Asked::Forward {
            target,
            user,
            head,
            body,
            upgrade,
            head_request,
            keep,
        } => {
            let kind = HttpRequestKind::Exchange {
                body,
                upgrade,
                head_request,
                keep,
            };
            (target, head, user, kind)
        }
    };
    let request = Request {
        target,
        first_bytes: first,
        user: user.map(|u| u.escape_ascii().to_string()),
        account: None,
    };
    let back = None;
    Ok(PendingRequest::new(
        request,
        PendingHttp {
            io,
            rules,
            kind,
            back,
        },
    ))
}

/// An HTTP client that waits for its response.
struct PendingHttp {
    io: BoxStream,
    rules: HttpRules,
    kind: HttpRequestKind,
    /// Returns the connection after the exchange.
    back: Option<oneshot::Sender<BoxStream>>,
}

enum HttpRequestKind {
    /// A CONNECT tunnel.
    Tunnel,
    /// One request and its response.
    Exchange {
        body: Framing,
        upgrade: bool,
        head_request: bool,
        keep: bool,
    },
}

impl RequestReply for PendingHttp {
    fn client_stream(&mut self) -> Option<&mut BoxStream> {
        Some(&mut self.io)
    }

    fn first_bytes_place(&self) -> FirstBytesPlace {
        match self.kind {
            HttpRequestKind::Tunnel => FirstBytesPlace::AfterReply,
            // The host of its head is the target.
            HttpRequestKind::Exchange { .. } => FirstBytesPlace::Elsewhere,
        }
    }

    fn further_requests(&mut self) -> Option<Box<dyn FurtherRequests>> {
        if !matches!(self.kind, HttpRequestKind::Exchange { keep: true, .. }) {
            return None;
        }
        let (back, connection) = oneshot::channel();
        self.back = Some(back);
        let rules = self.rules.clone();
        Some(Box::new(KeptConnection { connection, rules }))
    }

    fn late_failure(&self) -> Option<LateFailure> {
        let verbose = self.rules.verbose;
        match self.kind {
            HttpRequestKind::Tunnel => None,
            HttpRequestKind::Exchange { .. } => Some(LateFailure { verbose }),
        }
    }

    fn reply_success(
        mut self: Box<Self>,
        _: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async move {
            let (body, upgrade, head_request) = match self.kind {
                HttpRequestKind::Tunnel => {
                    write_and_flush(&mut self.io, server::ESTABLISHED).await?;
                    return Ok(self.io);
                }
                HttpRequestKind::Exchange {
                    body,
                    upgrade,
                    head_request,
                    ..
                } => (body, upgrade, head_request),
            };
            if let Some(back) = self.back {
                let (open, seal, ends) = body::keep_alive_codecs(body, head_request);
                let io = LentConnection::new(self.io, ends, back);
                return Ok(Box::new(Layered::new(io, seal, open)) as BoxStream);
            }
            let (open, seal) = body::exchange_codecs(body, upgrade, head_request);
            Ok(Box::new(Layered::new(self.io, seal, open)) as BoxStream)
        })
    }

    fn reply_failure<'a>(mut self: Box<Self>, why: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let token = self.rules.verbose.then(|| why.cause.label());
            let page = failure_page(why, self.rules.verbose);
            let answer = server::explained_failure(why.cause.http_status(), token, &page);
            close_with_reply(&mut self.io, &answer).await;
            Ok(())
        })
    }
}

/// The response to a request whose stream was opened, and ended without a byte of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LateFailure {
    verbose: bool,
}

impl LateFailure {
    /// Returns the response as an origin would send it. `hop` is the server of a hop that has not proved that it has
    /// the key, so that it has likely refused the request.
    pub(crate) fn response(self, hop: Option<&str>, cause: FailureCause) -> Vec<u8> {
        let server = match hop {
            Some(hop) if self.verbose => format!("{hop} ({})", cause.label()),
            Some(_) => NEXT_SERVER.to_owned(),
            None => "the destination".to_owned(),
        };
        let what = match cause {
            FailureCause::TimedOut => "did not answer in time",
            FailureCause::Malformed => "sent an invalid answer",
            _ => "closed the connection without an answer",
        };
        let advice = match (hop, cause) {
            (None, _) => "",
            // The check of the server has failed, too.
            (Some(_), FailureCause::TimedOut) => " The log of adit has the reason.",
            (Some(_), _) => {
                " Either it does not accept the key or the clock of adit, or the destination does not answer it. \
                 The log of adit says more."
            }
        };
        let page = format!("adit: {server} {what}.{advice}");
        let token = self.verbose.then(|| cause.label());
        server::explained_failure(cause.http_status(), token, &page)
    }
}

/// Returns the text for a person who sees the answer in a browser. Addresses of servers are only for clients of a
/// listener with `verbose_errors`.
fn failure_page(why: &DialError, is_verbose: bool) -> String {
    match (why.server_refusal(), &why.stage) {
        (Some(said), _) => format!("the next proxy refused the request: {said}"),
        (None, DialStage::Dial { hop } | DialStage::Dialect { hop }) if why.blames_hop() => {
            let server = match is_verbose {
                true => format!("{hop} ({})", why.cause.label()),
                false => NEXT_SERVER.to_owned(),
            };
            format!("adit: {server} does not work. The log of adit has the reason.")
        }
        _ => String::new(),
    }
}

/// A connection whose exchange has not finished.
struct KeptConnection {
    connection: oneshot::Receiver<BoxStream>,
    rules: HttpRules,
}

impl FurtherRequests for KeptConnection {
    fn next_request(self: Box<Self>) -> BoxFuture<'static, Option<PendingRequest>> {
        Box::pin(async move {
            // Exchanges that end in any other way have closed the connection.
            let mut io = self.connection.await.ok()?;
            let more = timeout(KEEP_ALIVE_TIMEOUT, fill_to(&mut io, 1)).await;
            if !matches!(more, Ok(Ok(1..))) {
                return None;
            }
            let deadline = self.rules.deadline;
            let read = timeout(deadline, read_request(self.rules, io)).await;
            match read.unwrap_or(Err(AcceptError::Deadline)) {
                Ok(pending) => Some(pending),
                Err(why) => {
                    debug!("no further request on the connection: {why}");
                    None
                }
            }
        })
    }
}
