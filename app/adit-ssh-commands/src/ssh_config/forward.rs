//! Values of `LocalForward`, `RemoteForward` and `DynamicForward`.

use super::value;

/// A forward: a listener and the destination of its connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshForward {
    /// Address or socket that is listened on.
    pub listen: SshBind,
    /// Destination of the connections.
    pub to: SshDestination,
}

/// Listening address of a forward.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SshBind {
    /// A port.
    Port {
        /// The address; empty or `*` means all. If absent, `GatewayPorts` decides.
        address: Option<String>,
        /// The port; with 0 the server chooses (`RemoteForward` only).
        port: u16,
    },
    /// Path of a Unix socket.
    Socket(String),
}

/// Destination of a forward's connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SshDestination {
    /// A port of a host.
    Port {
        /// A name, or an address without brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// Path of a Unix socket.
    Socket(String),
    /// The destination that the client requests with SOCKS.
    Socks,
}

impl SshForward {
    /// Parses the two arguments of `LocalForward`.
    pub(super) fn parse_local(words: &[String]) -> Result<Self, String> {
        match words {
            [listen, to] => Ok(Self {
                listen: parse_bind(listen, value::parse_port)?,
                to: parse_destination(to)?,
            }),
            _ => Err("expected `[address:]port host:port`".to_owned()),
        }
    }

    /// Parses the arguments of `RemoteForward`; a single argument means SOCKS.
    pub(super) fn parse_remote(words: &[String]) -> Result<Self, String> {
        let or_zero = |text: &str| match text {
            "0" => Ok(0),
            _ => value::parse_port(text),
        };
        match words {
            [listen, to] => Ok(Self {
                listen: parse_bind(listen, or_zero)?,
                to: parse_destination(to)?,
            }),
            [listen] => Ok(Self {
                listen: parse_bind(listen, or_zero)?,
                to: SshDestination::Socks,
            }),
            _ => Err("expected `[address:]port [host:port]`".to_owned()),
        }
    }

    /// Parses the argument of `DynamicForward`.
    pub(super) fn parse_dynamic(words: &[String]) -> Result<Self, String> {
        match words {
            [listen] => Ok(Self {
                listen: match parse_bind(listen, value::parse_port)? {
                    SshBind::Socket(_) => return Err("expected `[address:]port`".to_owned()),
                    bind @ SshBind::Port { .. } => bind,
                },
                to: SshDestination::Socks,
            }),
            _ => Err("expected `[address:]port`".to_owned()),
        }
    }
}

fn parse_bind(text: &str, port: impl Fn(&str) -> Result<u16, String>) -> Result<SshBind, String> {
    if is_path(text) {
        return Ok(SshBind::Socket(text.to_owned()));
    }
    let (address, number) = match split_host_port(text) {
        Some((address, number)) => (Some(address.to_owned()), number),
        None => (None, text),
    };
    Ok(SshBind::Port {
        address,
        port: port(number)?,
    })
}

fn parse_destination(text: &str) -> Result<SshDestination, String> {
    if is_path(text) {
        return Ok(SshDestination::Socket(text.to_owned()));
    }
    match split_host_port(text) {
        Some((host, number)) if !host.is_empty() => Ok(SshDestination::Port {
            host: host.to_owned(),
            port: value::parse_port(number)?,
        }),
        _ => Err("expected `host:port`, or the path of a socket".to_owned()),
    }
}

/// Returns true if `text` is a path, even before `~` and `%d` are replaced.
fn is_path(text: &str) -> bool {
    text.contains('/')
}

/// Splits `host:port`, removing brackets around the host.
fn split_host_port(text: &str) -> Option<(&str, &str)> {
    let (host, port) = text.rsplit_once(':')?;
    match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').map(|host| (host, port)),
        None if host.contains(':') => None,
        None => Some((host, port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn port(address: Option<&str>, port: u16) -> SshBind {
        SshBind::Port {
            address: address.map(str::to_owned),
            port,
        }
    }

    #[test]
    fn forwards_in_all_forms() {
        let local = |text| SshForward::parse_local(&words(text));
        let to = |host: &str, port| SshDestination::Port {
            host: host.to_owned(),
            port,
        };
        for (text, listen, target) in [
            ("8080 web:80", port(None, 8080), to("web", 80)),
            ("*:8080 [::1]:80", port(Some("*"), 8080), to("::1", 80)),
            (
                "[::1]:1 127.0.0.1:2",
                port(Some("::1"), 1),
                to("127.0.0.1", 2),
            ),
            (
                "/run/a ~/b",
                SshBind::Socket("/run/a".to_owned()),
                SshDestination::Socket("~/b".to_owned()),
            ),
        ] {
            let found = local(text).unwrap();
            assert_eq!((found.listen, found.to), (listen, target), "{text}");
        }
        for text in [
            "8080",
            "0 web:80",
            "a b",
            "1 ::1:80",
            "1 :80",
            "1:2:3 web:80",
            "1 web:80 x",
        ] {
            assert!(local(text).is_err(), "{text}");
        }
        let socks = SshForward::parse_remote(&words("0")).unwrap();
        assert_eq!(
            (socks.listen, socks.to),
            (port(None, 0), SshDestination::Socks)
        );
        assert!(SshForward::parse_dynamic(&words("localhost:1080")).is_ok());
        assert!(SshForward::parse_dynamic(&words("/run/a")).is_err());
    }
}
