//! The first stage: a URL cut into its parts. Grammar only; what a part means is the scheme's.

use adit_wire::Host;

use crate::param;
use crate::scheme::carrier::dialect;
use crate::scheme::{Scheme, share, ssr};
use crate::text::{Flaw, Secret, SecretText, Span, Spanned, escape};

/// Bytes of a URL at most.
pub const MAX_URL_LEN: usize = 8 * 1024;

/// A URL, cut into parts. Percent-encoding is undone, places are kept.
#[derive(Debug)]
pub struct Endpoint {
    /// What stands before `://`, in lower case, with the carrier.
    pub scheme: Spanned<String>,
    /// The user; for `ss` the method.
    pub user: Option<Spanned<String>>,
    /// The secret, or where it is found.
    pub secret: Option<Spanned<SecretText>>,
    /// The host.
    pub host: Option<Spanned<Host>>,
    /// The port.
    pub port: Option<Spanned<u16>>,
    /// What follows the first `/` behind the host.
    pub target: Option<Spanned<String>>,
    /// The query, in the order of the text; no key twice.
    pub params: Vec<Pair>,
    /// What follows `#`.
    pub name: Option<Spanned<String>>,
    /// Host and port, or the place where they should stand.
    pub address: Span,
}

/// `key=value` of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The key.
    pub key: Spanned<String>,
    /// The value; empty if there is no `=`.
    pub value: Spanned<String>,
}

impl Endpoint {
    /// Cuts a URL into its parts.
    pub fn parse(text: &str) -> Result<Self, Flaw> {
        if text.len() > MAX_URL_LEN {
            let title = format!("a URL has at most {MAX_URL_LEN} bytes");
            return Err(Flaw::new(Span::new(0, 1), title));
        }
        let (scheme, start) = scheme(text)?;
        let (body, name) = cut(text, start, text.len(), '#');
        let (rest, query) = cut(text, start, body.end, '?');
        no_blanks(text, Span::new(start, body.end))?;
        no_split_secret(text, &scheme.value, rest)?;

        let mut endpoint = Self {
            scheme,
            user: None,
            secret: None,
            host: None,
            port: None,
            target: None,
            params: query.map_or_else(|| Ok(Vec::new()), |span| params(text, span))?,
            name: name
                .map(|span| Spanned::new(escape::decode_lossy(slice(text, span)), span))
                .filter(|name| !name.value.is_empty()),
            address: rest,
        };
        endpoint.authority(text, rest)?;
        Ok(endpoint)
    }

    /// The pair with this key.
    #[must_use]
    pub fn param(&self, key: &str) -> Option<&Pair> {
        self.params.iter().find(|pair| pair.key.value == key)
    }

    fn authority(&mut self, text: &str, rest: Span) -> Result<(), Flaw> {
        let scheme = dialect(&self.scheme.value);
        let folded = scheme == Some(Scheme::Ss);
        let raw = slice(text, rest);
        if self.scheme.value == Scheme::Ssr.name() && ssr::link::is_folded(raw) {
            return self.unfold_ssr(raw, rest);
        }
        if folded && share::is_folded(raw) {
            let unfolded = share::old_form(raw, rest)?;
            self.user = Some(unfolded.method);
            self.secret = Some(unfolded.secret);
            self.host = unfolded.host;
            self.port = Some(unfolded.port);
            return Ok(());
        }
        let mut place = rest;
        if let Some((userinfo, _)) = raw.rsplit_once('@') {
            let span = Span::of(rest.start, userinfo);
            place.start = span.end + 1;
            if scheme == Some(Scheme::Kcptun) {
                // No user: all of it is the key.
                self.secret = Some(Spanned::new(secret_text(userinfo, span)?, span));
            } else if folded {
                let (method, secret) = share::userinfo(userinfo, span)?;
                self.user = Some(method);
                self.secret = secret;
            } else {
                self.userinfo(userinfo, span)?;
            }
        }
        let (place, target) = cut(text, place.start, place.end, '/');
        self.address = place;
        (self.host, self.port) = read_address(slice(text, place), place)?;
        if let Some(span) = target.filter(|span| span.start < span.end) {
            self.target = Some(Spanned::new(decode(slice(text, span), span)?, span));
        }
        Ok(())
    }

    /// A share link of ShadowsocksR. What stands behind it in the text goes before what is in it.
    fn unfold_ssr(&mut self, raw: &str, span: Span) -> Result<(), Flaw> {
        let unfolded = ssr::link::unfold(raw, span)?;
        self.user = Some(unfolded.method);
        self.secret = Some(unfolded.secret);
        self.host = Some(unfolded.host);
        self.port = Some(unfolded.port);
        for pair in unfolded.params {
            if self.param(&pair.key.value).is_none() {
                self.params.push(pair);
            }
        }
        self.name = self.name.take().or(unfolded.name);
        Ok(())
    }

    fn userinfo(&mut self, raw: &str, span: Span) -> Result<(), Flaw> {
        let (user, secret) = match raw.split_once(':') {
            Some((user, secret)) => (user, Some(secret)),
            None => (raw, None),
        };
        let place = Span::of(span.start, user);
        if !user.is_empty() || secret.is_some() {
            self.user = Some(Spanned::new(decode(user, place)?, place));
        }
        if let Some(secret) = secret {
            let place = Span::new(place.end + 1, span.end);
            self.secret = Some(Spanned::new(secret_text(secret, place)?, place));
        }
        Ok(())
    }
}

/// Reads a secret: `@file`, `$NAME`, or the secret itself with percent-encoding.
pub(crate) fn secret_text(raw: &str, span: Span) -> Result<SecretText, Flaw> {
    if let Some(path) = raw.strip_prefix('@') {
        return Ok(SecretText::File(decode(path, span)?));
    }
    if let Some(name) = raw.strip_prefix('$') {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(good) {
            return Err(Flaw::new(
                span,
                "`$` names an environment variable, and this is no name",
            )
            .label("letters, digits and `_` only")
            .help("a secret that begins with `$` is written with `%24`"));
        }
        return Ok(SecretText::Variable(name.to_owned()));
    }
    Ok(SecretText::Literal(Secret::new(decode(raw, span)?)))
}

/// Host and port, each if it is written, with their places.
pub type Address = (Option<Spanned<Host>>, Option<Spanned<u16>>);

/// Reads `host:port`, `:port` or `host`.
pub fn read_address(raw: &str, span: Span) -> Result<Address, Flaw> {
    let bracket_end = raw.starts_with('[').then(|| raw.find(']')).flatten();
    let (host, port) = match (bracket_end, raw.rsplit_once(':')) {
        (Some(end), _) => match raw.get(end + 1..).unwrap_or_default() {
            "" => (raw, None),
            rest if rest.starts_with(':') => (raw.get(..=end).unwrap_or(raw), rest.get(1..)),
            _ => (raw, None),
        },
        (None, Some((host, port))) => (host, Some(port)),
        (None, None) => (raw, None),
    };
    let host_span = Span::of(span.start, host);
    let host = if host.is_empty() {
        None
    } else {
        Some(Spanned::new(read_host(host, host_span)?, host_span))
    };
    let Some(port) = port else {
        return Ok((host, None));
    };
    let port_span = Span::new(host_span.end + 1, span.end);
    let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    match port.parse() {
        Ok(port) if digits => Ok((host, Some(Spanned::new(port, port_span)))),
        _ => Err(
            Flaw::new(port_span, "the port is not a number from 0 to 65535")
                .help("`@`, `?` and `#` in a secret are written `%40`, `%3F` and `%23`"),
        ),
    }
}

/// A host that stands alone: IPv6 addresses with or without brackets.
pub(crate) fn bare_host(raw: &str, span: Span) -> Result<Host, Flaw> {
    match raw.parse() {
        Ok(ip) => Ok(Host::Ip(adit_wire::unmap(ip))),
        Err(_) => read_host(raw, span),
    }
}

fn read_host(raw: &str, span: Span) -> Result<Host, Flaw> {
    let good = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
    if raw.starts_with('[') || raw.contains(':') {
        let inner = raw.strip_prefix('[').and_then(|r| r.strip_suffix(']'));
        let v6 = inner.and_then(|inner| inner.parse::<std::net::Ipv6Addr>().ok());
        return match v6 {
            Some(ip) => Ok(Host::Ip(adit_wire::unmap(ip.into()))),
            None => Err(Flaw::new(span, "not an IPv6 address in brackets")
                .help("write `[2001:db8::1]:443`")),
        };
    }
    if let Some(bad) = raw.chars().find(|c| !good(*c)) {
        let title = format!("a host name cannot hold `{bad}`");
        return Err(Flaw::new(span, title));
    }
    Host::parse(raw).map_err(|why| Flaw::new(span, why.to_string()))
}

fn scheme(text: &str) -> Result<(Spanned<String>, usize), Flaw> {
    let Some((scheme, _)) = text.split_once("://") else {
        return Err(Flaw::new(
            Span::new(0, text.len()),
            "not a URL: `scheme://` is missing",
        )
        .help("an endpoint is written like `mixed://127.0.0.1:1080`"));
    };
    let span = Span::of(0, scheme);
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if scheme.is_empty() || !scheme.chars().all(good) {
        return Err(Flaw::new(span, "not a scheme").label("letters, digits and `+` only"));
    }
    let scheme = Spanned::new(scheme.to_ascii_lowercase(), span);
    Ok((scheme, span.end + 3))
}

fn no_blanks(text: &str, span: Span) -> Result<(), Flaw> {
    let bad = |c: char| c.is_whitespace() || c.is_control();
    match slice(text, span).char_indices().find(|(_, c)| bad(*c)) {
        None => Ok(()),
        Some((at, c)) => {
            let start = span.start + at;
            let span = Span::new(start, start + c.len_utf8());
            Err(Flaw::new(span, "a URL has no blanks or control characters")
                .help("a blank is written `%20`"))
        }
    }
}

/// A raw `?` or `#` in a secret would end the authority, and the user would be taken for the host:
/// the traffic would go to a wrong server, and the rest of the secret into a message.
fn no_split_secret(text: &str, scheme: &str, authority: Span) -> Result<(), Flaw> {
    let raw = slice(text, authority);
    let folded = (dialect(scheme) == Some(Scheme::Ss) && share::is_folded(raw))
        || (scheme == Scheme::Ssr.name() && ssr::link::is_folded(raw));
    if raw.contains('@') || folded {
        return Ok(());
    }
    let behind = slice(text, Span::new(authority.end, text.len()));
    let separator = behind
        .match_indices('@')
        .find(|(at, _)| !behind.get(..*at).is_some_and(param::opens_file));
    match separator {
        None => Ok(()),
        Some((at, _)) => {
            let at = authority.end + at;
            let flaw = Flaw::new(Span::new(at, at + 1), "`@` stands behind `?` or `#`");
            Err(flaw
                .help("in a secret, `?` is written `%3F` and `#` is written `%23`")
                .help("elsewhere, `@` is written `%40`"))
        }
    }
}

fn params(text: &str, span: Span) -> Result<Vec<Pair>, Flaw> {
    let mut pairs: Vec<Pair> = Vec::new();
    let mut start = span.start;
    for part in slice(text, span).split('&') {
        let whole = Span::of(start, part);
        start = whole.end + 1;
        if part.is_empty() {
            continue;
        }
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let key_span = Span::of(whole.start, key);
        let value_span = Span::new((key_span.end + 1).min(whole.end), whole.end);
        let key = Spanned::new(decode(key, key_span)?, key_span);
        if pairs.iter().any(|pair| pair.key.value == key.value) {
            let title = format!("`{}` is written twice", key.value);
            return Err(Flaw::new(key_span, title));
        }
        let value = Spanned::new(decode(value, value_span)?, value_span);
        pairs.push(Pair { key, value });
    }
    Ok(pairs)
}

pub(crate) fn decode(raw: &str, span: Span) -> Result<String, Flaw> {
    escape::decode(raw).ok_or_else(|| Flaw::new(span, "percent-encoding that is not UTF-8"))
}

/// `text[start..end]` cut at the first `mark`: what stands before it, what stands behind it.
fn cut(text: &str, start: usize, end: usize, mark: char) -> (Span, Option<Span>) {
    match slice(text, Span::new(start, end)).find(mark) {
        None => (Span::new(start, end), None),
        Some(at) => {
            let at = start + at;
            (Span::new(start, at), Some(Span::new(at + 1, end)))
        }
    }
}

fn slice(text: &str, span: Span) -> &str {
    text.get(span.start..span.end).unwrap_or_default()
}
