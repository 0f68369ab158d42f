//! The authority of a URI, `host:port` (RFC 3986 section 3.2).
//!
//! Stricter than the RFC: no userinfo, and names have only unreserved characters, since `%` and the
//! others have no meaning to a resolver but may have one to an origin.

use core::net::Ipv6Addr;

use adit_wire::{Host, Target};

/// A parsed authority.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Authority<'a> {
    /// The host as written, including brackets.
    pub(crate) host: &'a str,
    /// The port, if present.
    pub(crate) port: Option<u16>,
    /// The target it refers to.
    pub(crate) target: Target,
}

/// Parses an authority. Without a `default_port` the port is required.
pub(crate) fn parse_authority(
    text: &str,
    default_port: Option<u16>,
) -> Result<Authority<'_>, &'static str> {
    let split = match text.strip_prefix('[') {
        // The bracket belongs to the host.
        Some(rest) => rest.find(']').map_or(text.len(), |end| end + 2),
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, port) = text.split_at_checked(split).ok_or("authority")?;
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        None => return Err("authority"),
        Some("") if default_port.is_some() => None,
        Some(digits) => Some(parse_port(digits).ok_or("port")?),
    };
    let parsed = if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or("IPv6 address")?;
        let ip: Ipv6Addr = inner.parse().map_err(|_| "IPv6 address")?;
        Host::Ip(adit_wire::unmap_ipv4(ip.into()))
    } else if host.bytes().all(is_host_byte) {
        Host::parse(host).map_err(|_| "host name")?
    } else {
        return Err("host name");
    };
    let number = port.or(default_port).ok_or("authority without a port")?;
    Ok(Authority {
        host,
        port,
        target: Target::new(parsed, number),
    })
}

fn parse_port(digits: &str) -> Option<u16> {
    let decimal = digits.bytes().all(|b| b.is_ascii_digit());
    let port: u16 = decimal.then(|| digits.parse().ok())??;
    (port != 0).then_some(port)
}

/// Formats a target as an authority, with its port; `None` for a name that a URI cannot contain.
pub(crate) fn format_authority(target: &Target) -> Option<String> {
    match &target.host {
        Host::Name(name) if !name.as_str().bytes().all(is_host_byte) => None,
        // `Target` formats addresses the same way, with IPv6 in brackets.
        Host::Name(_) | Host::Ip(_) => Some(target.to_string()),
    }
}

const fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_authorities() {
        for (text, want) in [
            ("example.test:80", "example.test:80"),
            ("1.2.3.4:1", "1.2.3.4:1"),
            ("[::1]:65535", "[::1]:65535"),
            ("[::ffff:1.2.3.4]:1", "1.2.3.4:1"),
            ("a_b.~c:0080", "a_b.~c:80"),
        ] {
            let target = parse_authority(text, None).unwrap().target;
            assert_eq!(target.to_string(), want);
            assert_eq!(format_authority(&target).as_deref(), Some(want));
        }
        for (text, host, port) in [
            ("h", "h", None),
            ("h:", "h", None),
            ("h:80", "h", Some(80)),
            ("[::1]", "[::1]", None),
            ("[::1]:", "[::1]", None),
        ] {
            let found = parse_authority(text, Some(80)).unwrap();
            assert_eq!((found.host, found.port), (host, port));
            assert_eq!(found.target.port, 80);
        }
    }

    #[test]
    fn refuses_what_could_be_read_in_two_ways() {
        for text in [
            "",
            ":",
            ":80",
            "h",
            "h:",
            "h:0",
            "h:65536",
            "h:+1",
            "h: 1",
            "h:1:2",
            "::1:80",
            "u@h:80",
            "u:p@h:80",
            "h/:80",
            "h%2e:80",
            "h,b:80",
            "h\\:80",
            "[::1",
            "[::1]80",
            "[::1%25eth0]:80",
            "[1.2.3.4]:80",
            "[h]:80",
            "[]:80",
            "]:80",
            "[::1]]:80",
            "é:80",
        ] {
            assert!(parse_authority(text, None).is_err(), "{text}");
        }
        for name in ["a/b", "a@b", "ü", "a:b"] {
            let target = Target::new(Host::parse(name).unwrap(), 80);
            assert_eq!(format_authority(&target), None, "{name}");
        }
    }
}
