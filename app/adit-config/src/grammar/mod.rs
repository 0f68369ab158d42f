//! The first stage: splits a URL into its parts, and puts them together again. The scheme defines the
//! meaning of the parts, and a [`UrlSyntax`] describes how its URLs differ from those of others.

mod host;
mod syntax;
mod write;

use adit_wire::Host;
use adit_wire::substr;

pub use host::{Address, parse_address};
pub(crate) use host::{parse_bare_host, parse_port_range};
pub(crate) use syntax::{EncodedUser, LinkForm, ParsedLink, SchemeLookups, UrlSyntax, UserInfo};

use crate::text::{ConfigError, Secret, SecretText, Span, Spanned, escape};

/// Maximum length of a URL, in bytes.
pub const MAX_URL_LEN: usize = 8 * 1024;

/// A URL, split into parts. Percent-encoding is decoded, and positions are kept.
#[derive(Debug)]
pub struct Endpoint {
    /// The part before `://`, in lower case, with the carrier.
    pub scheme: Spanned<String>,
    /// The user, or the method with some schemes.
    pub user: Option<Spanned<String>>,
    /// The secret, or a reference to it.
    pub secret: Option<Spanned<SecretText>>,
    /// The host.
    pub host: Option<Spanned<Host>>,
    /// The port.
    pub port: Option<Spanned<u16>>,
    /// The end of the range of ports that begins with `port`, for schemes with ranges. It is greater
    /// than `port`, whose position is that of the range.
    pub last_port: Option<u16>,
    /// The part after the first `/` behind the host.
    pub target: Option<Spanned<String>>,
    /// The query, in the order of the text; no key twice.
    pub params: Vec<QueryPair>,
    /// The part after `#`.
    pub name: Option<Spanned<String>>,
    /// The position of host and port, even if they are missing.
    pub address: Span,
}

/// `key=value` of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryPair {
    /// The key.
    pub key: Spanned<String>,
    /// The value; empty if there is no `=`.
    pub value: Spanned<String>,
}

impl Endpoint {
    /// Splits a URL into its parts.
    pub(crate) fn parse_with(text: &str, dialects: SchemeLookups) -> Result<Self, ConfigError> {
        if text.len() > MAX_URL_LEN {
            let title = format!("a URL has at most {MAX_URL_LEN} bytes");
            let help = "write long secrets and lists into files: `@FILE`";
            return Err(ConfigError::new(Span::new(0, 1), title).with_help(help));
        }
        let (scheme, start) = parse_scheme(text)?;
        let (body, name) = split_at_mark(text, start, text.len(), '#');
        let (rest, query) = split_at_mark(text, start, body.end, '?');
        check_no_blanks(text, Span::new(start, body.end))?;
        let syntax = (dialects.syntax)(&scheme.value);
        let link = syntax.link.filter(|link| {
            let applies = link.with_carrier || !scheme.value.contains('+');
            applies && (link.matches)(slice_of(text, rest))
        });
        if link.is_none() {
            check_split_secret(text, rest, dialects.opens_file)?;
        }

        let mut endpoint = Self {
            scheme,
            user: None,
            secret: None,
            host: None,
            port: None,
            last_port: None,
            target: None,
            params: query.map_or_else(|| Ok(Vec::new()), |span| parse_query(text, span))?,
            name: name
                .map(|span| Spanned::new(escape::decode_lossy(slice_of(text, span)), span))
                .filter(|name| !name.value.is_empty()),
            address: rest,
        };
        match link {
            Some(link) => endpoint.apply_link((link.parse)(slice_of(text, rest), rest)?),
            None => endpoint.parse_authority(text, rest, syntax)?,
        }
        Ok(endpoint)
    }

    /// Returns the pair with this key.
    #[must_use]
    pub fn param(&self, key: &str) -> Option<&QueryPair> {
        self.params.iter().find(|pair| pair.key.value == key)
    }

    /// Parses user, secret, host, port and target.
    fn parse_authority(
        &mut self,
        text: &str,
        rest: Span,
        syntax: &UrlSyntax,
    ) -> Result<(), ConfigError> {
        let mut place = rest;
        if let Some((userinfo, _)) = slice_of(text, rest).rsplit_once('@') {
            let span = Span::of_part(rest.start, userinfo);
            place.start = span.end + 1;
            (self.user, self.secret) = match &syntax.encoded_user {
                Some(folded) => (folded.read)(userinfo, span)?,
                None if syntax.secret_only => {
                    let secret = parse_secret(userinfo, span)?;
                    (None, Some(Spanned::new(secret, span)))
                }
                None => parse_login(userinfo, span)?,
            };
        }
        let (place, target) = split_at_mark(text, place.start, place.end, '/');
        self.address = place;
        let address = slice_of(text, place);
        if syntax.port_range {
            ((self.host, self.port), self.last_port) = parse_port_range(address, place)?;
        } else {
            (self.host, self.port) = parse_address(address, place)?;
        }
        if let Some(span) = target.filter(|span| span.start < span.end) {
            self.target = Some(Spanned::new(decode_text(slice_of(text, span), span)?, span));
        }
        Ok(())
    }

    /// Applies the content of a link. Keys and a name written after the link override those inside it.
    fn apply_link(&mut self, link: ParsedLink) {
        self.user = Some(link.method);
        self.secret = Some(link.secret);
        self.host = link.host;
        self.port = Some(link.port);
        for pair in link.params {
            if self.param(&pair.key.value).is_none() {
                self.params.push(pair);
            }
        }
        self.name = self.name.take().or(link.name);
    }
}

/// Parses `user:secret`, or a user alone.
fn parse_login(raw: &str, span: Span) -> Result<UserInfo, ConfigError> {
    let (name, secret) = match raw.split_once(':') {
        Some((name, secret)) => (name, Some(secret)),
        None => (raw, None),
    };
    let place = Span::of_part(span.start, name);
    let mut user = None;
    if !name.is_empty() || secret.is_some() {
        user = Some(Spanned::new(decode_text(name, place)?, place));
    }
    let Some(secret) = secret else {
        return Ok((user, None));
    };
    let place = Span::new(place.end + 1, span.end);
    let secret = Spanned::new(parse_secret(secret, place)?, place);
    Ok((user, Some(secret)))
}

/// Parses a secret: `@file`, `$NAME`, or the secret itself with percent-encoding.
pub(crate) fn parse_secret(raw: &str, span: Span) -> Result<SecretText, ConfigError> {
    if let Some(path) = raw.strip_prefix('@') {
        return Ok(SecretText::File(decode_text(path, span)?));
    }
    if let Some(name) = raw.strip_prefix('$') {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(good) {
            return Err(ConfigError::new(
                span,
                "`$` must be followed by the name of an environment variable",
            )
            .with_label("letters, digits and `_` only")
            .with_help("if the secret begins with `$`, write `%24`"));
        }
        return Ok(SecretText::Variable(name.to_owned()));
    }
    Ok(SecretText::Literal(Secret::new(decode_text(raw, span)?)))
}

/// Parses the scheme, and returns the position after `://`.
fn parse_scheme(text: &str) -> Result<(Spanned<String>, usize), ConfigError> {
    let Some((scheme, _)) = text.split_once("://") else {
        return Err(ConfigError::new(
            Span::new(0, text.len()),
            "not a URL: `scheme://` is missing",
        )
        .with_help(
            "write an endpoint like `mixed://127.0.0.1:1080`; a listener can be a port: `1080`",
        ));
    };
    let span = Span::of_part(0, scheme);
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    if scheme.is_empty() || !scheme.chars().all(good) {
        return Err(
            ConfigError::new(span, "not a scheme").with_label("letters, digits and `+` only")
        );
    }
    let scheme = Spanned::new(scheme.to_ascii_lowercase(), span);
    Ok((scheme, span.end + 3))
}

/// Returns an error if the URL contains whitespace or control characters.
fn check_no_blanks(text: &str, span: Span) -> Result<(), ConfigError> {
    let bad = |c: char| c.is_whitespace() || c.is_control();
    match slice_of(text, span).char_indices().find(|(_, c)| bad(*c)) {
        None => Ok(()),
        Some((at, c)) => {
            let start = span.start + at;
            let span = Span::new(start, start + c.len_utf8());
            Err(
                ConfigError::new(span, "a URL cannot contain spaces or control characters")
                    .with_help("write a space as `%20`"),
            )
        }
    }
}

/// Returns an error if a raw `?` or `#` is in a secret. It would end the authority, and the user would be
/// parsed as the host: the traffic would be sent to a wrong server, and the rest of the secret would
/// appear in a message.
fn check_split_secret(
    text: &str,
    authority: Span,
    opens_file: fn(&str) -> bool,
) -> Result<(), ConfigError> {
    if slice_of(text, authority).contains('@') {
        return Ok(());
    }
    let behind = slice_of(text, Span::new(authority.end, text.len()));
    let separator = behind
        .match_indices('@')
        .find(|(at, _)| !behind.get(..*at).is_some_and(opens_file));
    match separator {
        None => Ok(()),
        Some((at, _)) => {
            let at = authority.end + at;
            let flaw = ConfigError::new(Span::new(at, at + 1), "`@` after `?` or `#`");
            Err(flaw
                .with_help("in a secret, write `?` as `%3F` and `#` as `%23`")
                .with_help("elsewhere, write `@` as `%40`"))
        }
    }
}

/// Parses the query.
fn parse_query(text: &str, span: Span) -> Result<Vec<QueryPair>, ConfigError> {
    let mut pairs: Vec<QueryPair> = Vec::new();
    let mut start = span.start;
    for part in slice_of(text, span).split('&') {
        let whole = Span::of_part(start, part);
        start = whole.end + 1;
        if part.is_empty() {
            continue;
        }
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let key_span = Span::of_part(whole.start, key);
        let value_span = Span::new((key_span.end + 1).min(whole.end), whole.end);
        let key = Spanned::new(decode_text(key, key_span)?, key_span);
        if pairs.iter().any(|pair| pair.key.value == key.value) {
            let title = format!("`{}` is written twice", key.value);
            return Err(ConfigError::new(key_span, title).with_help("remove one of them"));
        }
        let value = Spanned::new(decode_text(value, value_span)?, value_span);
        pairs.push(QueryPair { key, value });
    }
    Ok(pairs)
}

/// Decodes percent-encoding.
pub(crate) fn decode_text(raw: &str, span: Span) -> Result<String, ConfigError> {
    escape::decode(raw).ok_or_else(|| ConfigError::new(span, "percent-encoding that is not UTF-8"))
}

/// Splits `text[start..end]` at the first `mark`, and returns the parts before and after it.
fn split_at_mark(text: &str, start: usize, end: usize, mark: char) -> (Span, Option<Span>) {
    match slice_of(text, Span::new(start, end)).find(mark) {
        None => (Span::new(start, end), None),
        Some(at) => {
            let at = start + at;
            (Span::new(start, at), Some(Span::new(at + 1, end)))
        }
    }
}

/// Returns the text of a span.
fn slice_of(text: &str, span: Span) -> &str {
    substr(text, span.start..span.end)
}
