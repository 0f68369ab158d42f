//! Hosts and ports.

use adit_wire::Host;
use adit_wire::substr;

use crate::text::{ConfigError, Span, Spanned};

/// Host and port, each if it is written, with their positions.
pub type Address = (Option<Spanned<Host>>, Option<Spanned<u16>>);

/// The text in place of a port, with its position.
type RawPort<'a> = (&'a str, Span);

/// Parses `host:port`, `:port` or `host`.
///
/// # Errors
///
/// The host is not valid, or the port is not a number from 0 to 65535.
pub fn parse_address(raw: &str, span: Span) -> Result<Address, ConfigError> {
    let (host, port) = split_address(raw, span)?;
    let port = port.map(|(raw, span)| parse_port(raw, span)).transpose()?;
    Ok((host, port))
}

/// Like [`parse_address`], but accepts a range `MIN-MAX` in place of the port. The end of the range is
/// returned last, unless it is equal to the port.
pub(crate) fn parse_port_range(
    raw: &str,
    span: Span,
) -> Result<(Address, Option<u16>), ConfigError> {
    let (host, port) = split_address(raw, span)?;
    let Some((raw, span)) = port else {
        return Ok(((host, None), None));
    };
    let Some((min, max)) = raw.split_once('-') else {
        return Ok(((host, Some(parse_port(raw, span)?)), None));
    };
    const FORM: &str = "write `MIN-MAX`, two numbers from 1 to 65535";
    let number = |text: &str| parse_digits(text).filter(|port| *port != 0);
    match (number(min), number(max)) {
        (Some(min), Some(max)) if min <= max => {
            let last = (min < max).then_some(max);
            Ok(((host, Some(Spanned::new(min, span))), last))
        }
        (Some(_), Some(_)) => Err(ConfigError::new(span, "the range of ports is empty")
            .with_label("its end is before its start")
            .with_help(FORM)),
        _ => Err(ConfigError::new(span, "not a range of ports").with_help(FORM)),
    }
}

/// Parses a number of digits only.
fn parse_digits(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// Parses a port.
fn parse_port(raw: &str, span: Span) -> Result<Spanned<u16>, ConfigError> {
    parse_digits(raw)
        .map(|port| Spanned::new(port, span))
        .ok_or_else(|| {
            ConfigError::new(span, "the port is not a number from 0 to 65535")
                .with_help("in a secret, write `@`, `?` and `#` as `%40`, `%3F` and `%23`")
        })
}

/// Splits an address into the host and the text in place of the port.
fn split_address(
    raw: &str,
    span: Span,
) -> Result<(Option<Spanned<Host>>, Option<RawPort<'_>>), ConfigError> {
    let bracket_end = raw.starts_with('[').then(|| raw.find(']')).flatten();
    let (host, port) = match (bracket_end, raw.rsplit_once(':')) {
        (Some(end), _) => match substr(raw, end + 1..) {
            "" => (raw, None),
            rest if rest.starts_with(':') => (raw.get(..=end).unwrap_or(raw), rest.get(1..)),
            _ => (raw, None),
        },
        (None, Some((host, port))) => (host, Some(port)),
        (None, None) => (raw, None),
    };
    let host_span = Span::of_part(span.start, host);
    let host = if host.is_empty() {
        None
    } else {
        Some(Spanned::new(parse_host(host, host_span)?, host_span))
    };
    let port = port.map(|port| (port, Span::new(host_span.end + 1, span.end)));
    Ok((host, port))
}

/// Parses a host without a port: IPv6 addresses with or without brackets.
pub(crate) fn parse_bare_host(raw: &str, span: Span) -> Result<Host, ConfigError> {
    match raw.parse() {
        Ok(ip) => Ok(Host::Ip(adit_wire::unmap_ipv4(ip))),
        Err(_) => parse_host(raw, span),
    }
}

/// Parses a host: IPv6 addresses in brackets only.
fn parse_host(raw: &str, span: Span) -> Result<Host, ConfigError> {
    let good = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
    if raw.starts_with('[') || raw.contains(':') {
        let inner = raw.strip_prefix('[').and_then(|r| r.strip_suffix(']'));
        let v6 = inner.and_then(|inner| inner.parse::<std::net::Ipv6Addr>().ok());
        return match v6 {
            Some(ip) => Ok(Host::Ip(adit_wire::unmap_ipv4(ip.into()))),
            None => Err(ConfigError::new(span, "not an IPv6 address in brackets")
                .with_help("write `[2001:db8::1]:443`")),
        };
    }
    if let Some(bad) = raw.chars().find(|c| !good(*c)) {
        let title = format!("a host name cannot contain `{bad}`");
        return Err(ConfigError::new(span, title));
    }
    Host::parse(raw).map_err(|why| ConfigError::new(span, why.to_string()))
}
