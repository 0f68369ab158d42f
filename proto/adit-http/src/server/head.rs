//! Reads one request's head, and a second one after a 407.

use core::fmt;

use adit_wire::{Handshake, HandshakeInput, HandshakeOutput, HandshakeProgress, subslice_mut};
use zeroize::Zeroize;

use super::forward::{self, OriginUri};
use super::refusal::PASSWORD_CHALLENGE;
use super::{BasicAuth, Refusal, Request, failure_response};
use crate::authority;
use crate::basic::BasicLogin;
use crate::framing::{self, Framing};
use crate::head::{Fields, HeadScan, HopByHop, MinorVersion, RequestLine, split_head};

/// The handshake with one client: reads the head of a request, and another one if the password was
/// missing.
///
/// # Examples
///
/// ```
/// use adit_http::server::{BasicAuth, Request, RequestHandshake};
/// use adit_wire::{Handshake, HandshakeInput, HandshakeProgress, HandshakeOutput};
///
/// struct Anyone;
///
/// impl BasicAuth for Anyone {
///     fn is_required(&self) -> bool {
///         false
///     }
///
///     fn check_password(&self, _: &[u8], _: &[u8]) -> bool {
///         true
///     }
/// }
///
/// let mut request = *b"GET http://example.test/index HTTP/1.1\r\nHost: example.test\r\n\r\n";
/// let mut handshake = RequestHandshake::new(&Anyone);
/// let step = handshake.step(&mut HandshakeInput::new(&mut request), &mut HandshakeOutput::new(&mut Vec::new()))?;
/// let HandshakeProgress::Done(Request::Forward { target, head, .. }) = step else {
///     panic!("a request for an origin");
/// };
/// assert_eq!(target.to_string(), "example.test:80");
/// assert!(head.starts_with(b"GET /index HTTP/1.1\r\n"));
/// # Ok::<(), adit_http::server::Refusal>(())
/// ```
pub struct RequestHandshake<'c> {
    credentials: &'c dyn BasicAuth,
    scan: HeadScan,
    asked: bool,
    via: bool,
}

/// The decision about a well-formed head.
enum Verdict {
    Serve(Request),
    Ask,
}

/// The destination of a request.
enum Destination<'a> {
    Tunnel(authority::Authority<'a>),
    Origin(OriginUri<'a>),
}

impl<'c> RequestHandshake<'c> {
    /// Creates a handshake.
    #[must_use]
    pub fn new(credentials: &'c dyn BasicAuth) -> Self {
        Self {
            credentials,
            scan: HeadScan::for_request(),
            asked: false,
            via: false,
        }
    }

    /// Adds `Via: 1.1 adit` to forwarded requests. By default origins cannot see the proxy.
    #[must_use]
    pub const fn with_via(mut self) -> Self {
        self.via = true;
        self
    }

    fn decide_request(&self, head: &[u8]) -> Result<Verdict, Refusal> {
        let (line, block) = split_head(head);
        let line = RequestLine::parse(line).map_err(Refusal::Malformed)?;
        let fields = Fields::parse(block).map_err(Refusal::Malformed)?;
        let parsed = Self::parse_head(&line, &fields);
        let (goal, body, hop) = parsed.map_err(Refusal::Malformed)?;
        let user = match self.authenticate(&fields) {
            Ok(user) => user,
            Err(Refusal::BadCredentials { .. }) if self.may_ask(&line, &fields, body) => {
                return Ok(Verdict::Ask);
            }
            Err(why) => return Err(why),
        };
        Ok(Verdict::Serve(match goal {
            Destination::Tunnel(to) => Request::Connect {
                target: to.target,
                user,
            },
            Destination::Origin(origin) => {
                let upgrade = forward::wants_websocket(&line, &fields, body);
                let via = self.via;
                Request::Forward {
                    head: forward::rewrite_head(&line, &fields, &origin, &hop, body, upgrade, via),
                    target: origin.authority.target,
                    user,
                    body,
                    upgrade,
                    head_request: line.method == "HEAD",
                    keep: !upgrade && keeps_alive(&line, &fields),
                }
            }
        }))
    }

    /// Parses a head and checks everything that does not depend on the user.
    fn parse_head<'a>(
        line: &RequestLine<'a>,
        fields: &Fields<'a>,
    ) -> Result<(Destination<'a>, Framing, HopByHop<'a>), &'static str> {
        // `Host` is rewritten, so it may be missing; two of them are an attack.
        fields.single_value("Host")?;
        let body = framing::request_framing(fields, line.version)?;
        let hop = HopByHop::from_fields(fields)?;
        let goal = if line.method == "CONNECT" {
            Destination::Tunnel(authority::parse_authority(line.target, None)?)
        } else {
            Destination::Origin(OriginUri::parse(line)?)
        };
        Ok((goal, body, hop))
    }

    fn authenticate(&self, fields: &Fields<'_>) -> Result<Option<Vec<u8>>, Refusal> {
        if !self.credentials.is_required() {
            return Ok(None);
        }
        let given = fields
            .single_value("Proxy-Authorization")
            .map_err(Refusal::Malformed)?;
        let login = given.and_then(BasicLogin::parse);
        let login = login.ok_or_else(|| Refusal::bad_credentials(b""))?;
        if self
            .credentials
            .check_password(login.user(), login.password())
        {
            Ok(Some(login.user().to_vec()))
        } else {
            Err(Refusal::bad_credentials(login.user()))
        }
    }

    /// True if the client may try again on this connection: once, and only if the start of its next
    /// request is certain.
    fn may_ask(&self, line: &RequestLine<'_>, fields: &Fields<'_>, body: Framing) -> bool {
        !self.asked
            && matches!(body, Framing::None | Framing::Length(0))
            && keeps_alive(line, fields)
    }
}

/// True if the client may send another request on this connection.
fn keeps_alive(line: &RequestLine<'_>, fields: &Fields<'_>) -> bool {
    let wants_close =
        fields.has_member("Connection", "close") || fields.has_member("Proxy-Connection", "close");
    line.version == MinorVersion::One && !wants_close
}

impl Handshake for RequestHandshake<'_> {
    type Output = Request;
    type Error = Refusal;

    fn step(
        &mut self,
        rx: &mut HandshakeInput<'_>,
        tx: &mut HandshakeOutput<'_>,
    ) -> Result<HandshakeProgress<Request>, Refusal> {
        loop {
            let verdict = match self.scan.advance(rx.bytes()) {
                Ok(None) => {
                    let total = rx.bytes().len() + 1;
                    return Ok(HandshakeProgress::NeedMore { total });
                }
                Ok(Some(len)) => {
                    let head = subslice_mut(rx.bytes_mut(), ..len);
                    let verdict = self.decide_request(head);
                    // The caller's buffer outlives the need for the password.
                    head.zeroize();
                    rx.consume(len);
                    verdict
                }
                Err(why) => Err(why.into()),
            };
            match verdict {
                Ok(Verdict::Serve(request)) => return Ok(HandshakeProgress::Done(request)),
                Ok(Verdict::Ask) => {
                    tx.extend_from_slice(PASSWORD_CHALLENGE);
                    self.asked = true;
                    self.scan = HeadScan::for_request();
                }
                Err(why) => {
                    tx.extend_from_slice(&failure_response(why.status(), None));
                    return Err(why);
                }
            }
        }
    }
}

impl fmt::Debug for RequestHandshake<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Head")
            .field("scan", &self.scan)
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}
