//! HTTP proxy clients.

mod lent;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use adit_http::Framing;
use adit_http::body;
use adit_http::server::{self, Head, Request as Asked};
use adit_stream::{BoxStream, Layered, fill, run, send};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::debug;

use self::lent::Lent;
use super::farewell::{farewell, give_up};
use super::{Again, Pending, Reply};
use crate::credentials::Credentials;
use crate::{AcceptError, BoxFuture, DialError, Request};

/// Idle time of a client between two requests. Browsers close idle connections after five minutes, and
/// check for a close by the server before they reuse one.
const BETWEEN: Duration = Duration::from_secs(60);

/// The settings for all HTTP clients of a listener.
#[derive(Clone)]
pub(crate) struct HttpRules {
    pub(crate) credentials: Arc<Credentials>,
    /// Time limit for the head of a further request.
    pub(crate) deadline: Duration,
    /// True if error responses state their reason.
    pub(crate) verbose: bool,
}

/// Reads one request. The caller enforces the deadline.
pub(super) async fn read(rules: HttpRules, mut io: BoxStream) -> Result<Pending, AcceptError> {
    let asked = run(&mut io, &mut Head::new(&*rules.credentials)).await;
    let asked = match asked {
        Ok(asked) => asked,
        Err(why) => {
            return Err(give_up(io, why, |e| {
                matches!(e, server::Refusal::BadCredentials { .. })
            })
            .await);
        }
    };
    let (target, first, user, kind) = match asked {
        Asked::Connect { target, user } => (target, Vec::new(), user, Kind::Tunnel),
        Asked::Forward {
            target,
            user,
            head,
            body,
            upgrade,
            head_request,
            keep,
        } => {
            let kind = Kind::Exchange {
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
        first,
        user: user.map(|u| u.escape_ascii().to_string()),
        account: None,
    };
    let back = None;
    Ok(Pending::new(
        request,
        Http {
            io,
            rules,
            kind,
            back,
        },
    ))
}

/// An HTTP client that waits for its response.
struct Http {
    io: BoxStream,
    rules: HttpRules,
    kind: Kind,
    /// Returns the connection after the exchange.
    back: Option<oneshot::Sender<BoxStream>>,
}

enum Kind {
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

impl Reply for Http {
    fn client(&mut self) -> Option<&mut BoxStream> {
        Some(&mut self.io)
    }

    fn again(&mut self) -> Option<Box<dyn Again>> {
        if !matches!(self.kind, Kind::Exchange { keep: true, .. }) {
            return None;
        }
        let (back, connection) = oneshot::channel();
        self.back = Some(back);
        let rules = self.rules.clone();
        Some(Box::new(Kept { connection, rules }))
    }

    fn proceed(
        mut self: Box<Self>,
        _: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async move {
            let (body, upgrade, head_request) = match self.kind {
                Kind::Tunnel => {
                    send(&mut self.io, server::ESTABLISHED).await?;
                    return Ok(self.io);
                }
                Kind::Exchange {
                    body,
                    upgrade,
                    head_request,
                    ..
                } => (body, upgrade, head_request),
            };
            if let Some(back) = self.back {
                let (open, seal, ends) = body::kept(body, head_request);
                let io = Lent::new(self.io, ends, back);
                return Ok(Box::new(Layered::new(io, seal, open)) as BoxStream);
            }
            let (open, seal) = body::exchange(body, upgrade, head_request);
            Ok(Box::new(Layered::new(self.io, seal, open)) as BoxStream)
        })
    }

    fn refuse<'a>(mut self: Box<Self>, why: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let token = self.rules.verbose.then(|| why.cause.label());
            let said = why
                .refusal()
                .map(|said| format!("the next proxy refused the request: {said}"));
            let answer =
                server::explained(why.cause.http_status(), token, &said.unwrap_or_default());
            farewell(&mut self.io, &answer).await;
            Ok(())
        })
    }
}

/// A connection whose exchange has not finished.
struct Kept {
    connection: oneshot::Receiver<BoxStream>,
    rules: HttpRules,
}

impl Again for Kept {
    fn next(self: Box<Self>) -> BoxFuture<'static, Option<Pending>> {
        Box::pin(async move {
            // Exchanges that end in any other way have closed the connection.
            let mut io = self.connection.await.ok()?;
            let more = timeout(BETWEEN, fill(&mut io, 1)).await;
            if !matches!(more, Ok(Ok(1..))) {
                return None;
            }
            let deadline = self.rules.deadline;
            let read = timeout(deadline, read(self.rules, io)).await;
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
