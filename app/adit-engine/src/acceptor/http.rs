//! HTTP proxy clients.

use std::io;
use std::net::SocketAddr;

use adit_http::Framing;
use adit_http::body;
use adit_http::server::{self, Head, Request as Asked};
use adit_stream::{BoxStream, Layered, run, send};

use super::proxy::{Proxy, give_up};
use super::reject::farewell;
use super::{Inbound, Pending, Reply};
use crate::{AcceptError, BoxFuture, DialError, Request};

pub(super) async fn read(proxy: &Proxy, mut io: BoxStream) -> Result<Inbound, AcceptError> {
    let mut core = Head::new(&*proxy.credentials);
    let asked = match run(&mut io, &mut core).await {
        Ok(asked) => asked,
        Err(why) => {
            return Err(give_up(io, why, |e| {
                matches!(e, server::Refusal::BadCredentials { .. })
            })
            .await);
        }
    };
    let verbose = proxy.verbose_errors;
    Ok(Inbound::Stream(match asked {
        Asked::Connect { target, user } => {
            let request = Request {
                target,
                first: Vec::new(),
                user: shown(user),
                account: None,
            };
            Pending::new(
                request,
                Http {
                    io,
                    verbose,
                    kind: Kind::Tunnel,
                },
            )
        }
        Asked::Forward {
            target,
            user,
            head,
            body,
            upgrade,
            head_request,
        } => {
            let request = Request {
                target,
                first: head,
                user: shown(user),
                account: None,
            };
            let kind = Kind::Exchange {
                body,
                upgrade,
                head_request,
            };
            Pending::new(request, Http { io, verbose, kind })
        }
    }))
}

/// An HTTP client that waits for its answer.
struct Http {
    io: BoxStream,
    verbose: bool,
    kind: Kind,
}

enum Kind {
    /// CONNECT.
    Tunnel,
    /// One request and its response.
    Exchange {
        body: Framing,
        upgrade: bool,
        head_request: bool,
    },
}

impl Reply for Http {
    fn client(&mut self) -> Option<&mut BoxStream> {
        Some(&mut self.io)
    }

    fn proceed(
        mut self: Box<Self>,
        _: Option<SocketAddr>,
    ) -> BoxFuture<'static, io::Result<BoxStream>> {
        Box::pin(async move {
            match self.kind {
                Kind::Tunnel => {
                    send(&mut self.io, server::ESTABLISHED).await?;
                    Ok(self.io)
                }
                Kind::Exchange {
                    body,
                    upgrade,
                    head_request,
                } => {
                    let (open, seal) = body::exchange(body, upgrade, head_request);
                    Ok(Box::new(Layered::new(self.io, seal, open)) as BoxStream)
                }
            }
        })
    }

    fn refuse<'a>(mut self: Box<Self>, why: &'a DialError) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            let token = self.verbose.then(|| why.label());
            farewell(&mut self.io, &server::failure(why.http_status(), token)).await;
            Ok(())
        })
    }
}

/// A user as it appears in the log.
fn shown(user: Option<Vec<u8>>) -> Option<String> {
    user.map(|u| u.escape_ascii().to_string())
}
