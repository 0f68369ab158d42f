//! Hosts and ports.

use adit_wire::Host;

use crate::text::{Flaw, Span, Spanned};

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
