//! Translates values of `-L`, `-R` and `-D`, in the form of OpenSSH, to values of the configuration.
//!
//! On the command line all parts are separated by colons; in the configuration the two ends are separated by
//! a blank. The parser of the configuration checks the ends themselves.

use crate::ssh_config::SshDestination;
use adit_cli::{Failure, FailureCode};

/// Returns the ends of a forward, given the value of `-L`, `-R` or `-D` and the keyword of the configuration.
pub(super) fn forward_words(keyword: &str, value: &str) -> Result<Vec<String>, Failure> {
    let (letter, form) = match keyword {
        "LocalForward" => (
            'L',
            "expected [BIND:]PORT:HOST:HOSTPORT, with a socket path possible for either end",
        ),
        "RemoteForward" => (
            'R',
            "expected [BIND:]PORT:HOST:HOSTPORT, or [BIND:]PORT for SOCKS",
        ),
        _ => ('D', "expected [BIND:]PORT"),
    };
    let parts = split_at_colons(value).unwrap_or_default();
    let parts: Vec<&str> = parts.iter().map(|part| &**part).collect();
    let path = |part: &str| part.contains('/');
    let join = |a: &str, b: &str| format!("{a}:{b}");
    let found = match (letter, parts.as_slice()) {
        ('D' | 'R', [port]) => vec![(*port).to_owned()],
        ('D', [bind, port]) => vec![join(bind, port)],
        ('L' | 'R', [listen, to]) if path(to) => vec![(*listen).to_owned(), (*to).to_owned()],
        ('R', [bind, port]) if !path(bind) => vec![join(bind, port)],
        ('L' | 'R', [bind, port, to]) if path(to) => vec![join(bind, port), (*to).to_owned()],
        ('L' | 'R', [listen, host, port]) => vec![(*listen).to_owned(), join(host, port)],
        ('L' | 'R', [bind, port, host, to]) => vec![join(bind, port), join(host, to)],
        _ => {
            let what = format!("-{letter} `{value}` is not a valid forward");
            return Err(Failure::new(FailureCode::Usage, what).with_hint(form));
        }
    };
    Ok(found)
}

/// Splits at colons, except inside brackets. Returns `None` if a bracket is not closed.
fn split_at_colons(value: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut inside = false;
    for c in value.chars() {
        match c {
            '[' if !inside => inside = true,
            ']' if inside => inside = false,
            ':' if !inside => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut()?.push(c);
    }
    (!inside).then_some(parts)
}

/// Parses the destination of `-W`.
pub(super) fn parse_stdio_destination(value: &str) -> Result<SshDestination, Failure> {
    if value.contains('/') {
        return Ok(SshDestination::Socket(value.to_owned()));
    }
    let read = || {
        let (host, port) = value.rsplit_once(':')?;
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let port = port.parse().ok().filter(|port| *port > 0)?;
        (!host.is_empty()).then(|| SshDestination::Port {
            host: host.to_owned(),
            port,
        })
    };
    read().ok_or_else(|| {
        let what = format!("-W `{value}` is not a valid destination");
        Failure::new(FailureCode::Usage, what)
            .with_hint("expected HOST:PORT, or the path of a socket")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_in_all_forms() {
        for (keyword, value, wanted) in [
            ("LocalForward", "1:h:2", "1 h:2"),
            ("LocalForward", "*:1:h:2", "*:1 h:2"),
            ("LocalForward", "[::1]:1:[fe80::1]:2", "[::1]:1 [fe80::1]:2"),
            ("LocalForward", "/a/b:h:2", "/a/b h:2"),
            ("LocalForward", "1:/a/b", "1 /a/b"),
            ("LocalForward", "h:1:/a/b", "h:1 /a/b"),
            ("LocalForward", "/a:/b", "/a /b"),
            ("RemoteForward", "0:h:2", "0 h:2"),
            ("RemoteForward", "1080", "1080"),
            ("RemoteForward", "h:1080", "h:1080"),
            ("DynamicForward", "1080", "1080"),
            ("DynamicForward", "[::1]:1080", "[::1]:1080"),
        ] {
            let found = forward_words(keyword, value).unwrap();
            assert_eq!(found.join(" "), wanted, "{value}");
        }
        for (keyword, value) in [
            ("LocalForward", "1"),
            ("LocalForward", "1:2"),
            ("LocalForward", "a:b:c:d:e"),
            ("LocalForward", "[::1:1:h:2"),
            ("DynamicForward", "a:b:c"),
        ] {
            forward_words(keyword, value).unwrap_err();
        }
    }

    #[test]
    fn destinations_of_streams() {
        let port = |host: &str, port| SshDestination::Port {
            host: host.to_owned(),
            port,
        };
        assert_eq!(parse_stdio_destination("h:1").unwrap(), port("h", 1));
        assert_eq!(parse_stdio_destination("[::1]:1").unwrap(), port("::1", 1));
        let socket = SshDestination::Socket("/run/x".to_owned());
        assert_eq!(parse_stdio_destination("/run/x").unwrap(), socket);
        for text in ["h", ":1", "h:0", "h:x"] {
            parse_stdio_destination(text).unwrap_err();
        }
    }
}
