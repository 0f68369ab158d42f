//! Reads one request's head, and a second one after a 407.

use core::fmt;

use adit_wire::{Handshake, Rx, Step, Tx, held_mut};
use zeroize::Zeroize;

use super::forward::{self, Origin};
use super::refusal::ASK;
use super::{BasicAuth, Refusal, Request, failure};
use crate::authority;
use crate::basic::Login;
use crate::framing::{self, Framing};
use crate::head::{Fields, HopByHop, Minor, RequestLine, Scan, split};

/// The handshake with one client: reads the head of a request, and another one if the password was
/// missing.
pub struct Head<'c> {
    credentials: &'c dyn BasicAuth,
    scan: Scan,
    asked: bool,
    via: bool,
}

/// The decision about a well-formed head.
enum Verdict {
    Serve(Request),
    Ask,
}

/// The destination of a request.
enum Goal<'a> {
    Tunnel(authority::Authority<'a>),
    Origin(Origin<'a>),
}

impl<'c> Head<'c> {
    /// Creates a handshake.
    #[must_use]
    pub fn new(credentials: &'c dyn BasicAuth) -> Self {
        Self {
            credentials,
            scan: Scan::request(),
            asked: false,
            via: false,
        }
    }

    /// Adds `Via: 1.1 adit` to forwarded requests. By default origins cannot see the proxy.
    #[must_use]
    pub const fn via(mut self) -> Self {
        self.via = true;
        self
    }

    fn judge(&self, head: &[u8]) -> Result<Verdict, Refusal> {
        let (line, block) = split(head);
        let line = RequestLine::parse(line).map_err(Refusal::Malformed)?;
        let fields = Fields::parse(block).map_err(Refusal::Malformed)?;
        let parsed = Self::parse(&line, &fields);
        let (goal, body, hop) = parsed.map_err(Refusal::Malformed)?;
        let user = match self.authenticate(&fields) {
            Ok(user) => user,
            Err(Refusal::BadCredentials { .. }) if self.may_ask(&line, &fields, body) => {
                return Ok(Verdict::Ask);
            }
            Err(why) => return Err(why),
        };
        Ok(Verdict::Serve(match goal {
            Goal::Tunnel(to) => Request::Connect {
                target: to.target,
                user,
            },
            Goal::Origin(origin) => {
                let upgrade = forward::wants_websocket(&line, &fields, body);
                let via = self.via;
                Request::Forward {
                    head: forward::rewrite(&line, &fields, &origin, &hop, body, upgrade, via),
                    target: origin.authority.target,
                    user,
                    body,
                    upgrade,
                    head_request: line.method == "HEAD",
                    keep: !upgrade && stays(&line, &fields),
                }
            }
        }))
    }

    /// Parses a head and checks everything that does not depend on the user.
    fn parse<'a>(
        line: &RequestLine<'a>,
        fields: &Fields<'a>,
    ) -> Result<(Goal<'a>, Framing, HopByHop<'a>), &'static str> {
        // `Host` is rewritten, so it may be missing; two of them are an attack.
        fields.one("Host")?;
        let body = framing::of_request(fields, line.version)?;
        let hop = HopByHop::of(fields)?;
        let goal = if line.method == "CONNECT" {
            Goal::Tunnel(authority::parse(line.target, None)?)
        } else {
            Goal::Origin(Origin::parse(line)?)
        };
        Ok((goal, body, hop))
    }

    fn authenticate(&self, fields: &Fields<'_>) -> Result<Option<Vec<u8>>, Refusal> {
        if !self.credentials.required() {
            return Ok(None);
        }
        let given = fields
            .one("Proxy-Authorization")
            .map_err(Refusal::Malformed)?;
        let login = given.and_then(Login::parse);
        let login = login.ok_or_else(|| Refusal::of_user(b""))?;
        if self.credentials.check(login.user(), login.password()) {
            Ok(Some(login.user().to_vec()))
        } else {
            Err(Refusal::of_user(login.user()))
        }
    }

    /// True if the client may try again on this connection: once, and only if the start of its next
    /// request is certain.
    fn may_ask(&self, line: &RequestLine<'_>, fields: &Fields<'_>, body: Framing) -> bool {
        !self.asked && matches!(body, Framing::None | Framing::Length(0)) && stays(line, fields)
    }
}

/// True if the client may send another request on this connection.
fn stays(line: &RequestLine<'_>, fields: &Fields<'_>) -> bool {
    let wants_close =
        fields.lists("Connection", "close") || fields.lists("Proxy-Connection", "close");
    line.version == Minor::One && !wants_close
}

impl Handshake for Head<'_> {
    type Output = Request;
    type Error = Refusal;

    fn step(&mut self, rx: &mut Rx<'_>, tx: &mut Tx<'_>) -> Result<Step<Request>, Refusal> {
        loop {
            let verdict = match self.scan.advance(rx.bytes()) {
                Ok(None) => {
                    let total = rx.bytes().len() + 1;
                    return Ok(Step::NeedMore { total });
                }
                Ok(Some(len)) => {
                    let head = held_mut(rx.bytes_mut(), ..len);
                    let verdict = self.judge(head);
                    // The caller's buffer outlives the need for the password.
                    head.zeroize();
                    rx.eat(len);
                    verdict
                }
                Err(why) => Err(why.into()),
            };
            match verdict {
                Ok(Verdict::Serve(request)) => return Ok(Step::Done(request)),
                Ok(Verdict::Ask) => {
                    tx.put(ASK);
                    self.asked = true;
                    self.scan = Scan::request();
                }
                Err(why) => {
                    tx.put(&failure(why.status(), None));
                    return Err(why);
                }
            }
        }
    }
}

impl fmt::Debug for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("scan", &self.scan)
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}
