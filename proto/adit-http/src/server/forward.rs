//! Rewrites a request from absolute-form for its origin (RFC 9112 section 3.2).

use crate::Framing;
use crate::authority::{self, Authority};
use crate::head::{Fields, HopByHop, MinorVersion, RequestLine};

/// A parsed `http` URI.
#[derive(Debug)]
pub(super) struct OriginUri<'a> {
    pub(super) authority: Authority<'a>,
    /// Path and query as written; may be empty.
    path: &'a str,
}

impl<'a> OriginUri<'a> {
    /// Parses `http://host[:port][/path][?query]`. Origin-form is refused: it is meant for a
    /// server, and would make the proxy its own client.
    pub(super) fn parse(line: &RequestLine<'a>) -> Result<Self, &'static str> {
        let (scheme, rest) = line
            .target
            .split_once("://")
            .ok_or("request target: not in absolute-form")?;
        if !scheme.eq_ignore_ascii_case("http") {
            return Err("request target: scheme is not http");
        }
        if rest.contains('#') {
            return Err("request target: fragment");
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end).ok_or("request target")?;
        Ok(Self {
            authority: authority::parse_authority(authority, Some(80))?,
            path,
        })
    }
}

/// True if the request is a WebSocket handshake (RFC 6455 section 4.1). No other protocol is
/// allowed: `h2c` would carry requests that are not inspected.
pub(super) fn wants_websocket(line: &RequestLine<'_>, fields: &Fields<'_>, body: Framing) -> bool {
    line.method == "GET"
        && line.version == MinorVersion::One
        && matches!(body, Framing::None | Framing::Length(0))
        && fields.has_member("Connection", "upgrade")
        && matches!(fields.single_value("Upgrade"), Ok(Some(to)) if to.eq_ignore_ascii_case(b"websocket"))
}

/// Returns the head for the origin: origin-form, with its own `Host` first and without hop-by-hop
/// fields.
///
/// Keeps the client's version: an origin sends no chunks and no 1xx responses to HTTP/1.0 clients.
pub(super) fn rewrite_head(
    line: &RequestLine<'_>,
    fields: &Fields<'_>,
    origin: &OriginUri<'_>,
    hop: &HopByHop<'_>,
    body: Framing,
    upgrade: bool,
    via: bool,
) -> Vec<u8> {
    let path = match origin.path {
        "" if line.method == "OPTIONS" => "*",
        "" => "/",
        path => path,
    };
    let slash = if path.starts_with('?') { "/" } else { "" };
    let (method, version, host) = (line.method, line.version.as_str(), origin.authority.host);
    let mut text = format!("{method} {slash}{path} {version}\r\nHost: {host}");
    if let Some(port) = origin.authority.port {
        text.push_str(&format!(":{port}"));
    }
    text.push_str("\r\n");
    let mut out = text.into_bytes();
    for field in fields.iter() {
        let trailer = field.is_named("Trailer") && body != Framing::Chunked;
        if !field.is_named("Host") && !hop.contains(field) && !trailer {
            field.write_to(&mut out);
        }
    }
    if via {
        out.extend_from_slice(b"Via: 1.1 adit\r\n");
    }
    out.extend_from_slice(if upgrade {
        b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    } else {
        b"Connection: close\r\n\r\n"
    });
    out
}
