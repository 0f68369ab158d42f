//! Jump hosts (`ProxyJump`).

use super::value;

/// Maximum number of hosts.
const MAX_JUMPS: usize = 16;

/// A jump host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshJump {
    /// The user, if specified.
    pub user: Option<String>,
    /// A name, an alias of the configuration, or an address without brackets.
    pub host: String,
    /// The port, if specified.
    pub port: Option<u16>,
}

impl SshJump {
    /// Parses a comma-separated list of `[user@]host[:port]` or `ssh://[user@]host[:port]`; `none` is an
    /// empty list.
    pub(super) fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        if text.eq_ignore_ascii_case("none") {
            return Ok(Vec::new());
        }
        let jumps: Vec<Self> = text.split(',').map(Self::parse).collect::<Result<_, _>>()?;
        if jumps.len() > MAX_JUMPS {
            return Err(format!("expected at most {MAX_JUMPS} hosts"));
        }
        Ok(jumps)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "expected `[user@]host[:port]`, separated by commas".to_owned();
        let text = match text.strip_prefix("ssh://") {
            Some(rest) => rest.strip_suffix('/').unwrap_or(rest),
            None => text,
        };
        // A user name may contain an `@`, like a mail address.
        let (user, place) = match text.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, text),
        };
        let (host, port) = match place.strip_prefix('[') {
            Some(rest) => {
                let (host, tail) = rest.split_once(']').ok_or_else(wrong)?;
                match tail {
                    "" => (host, None),
                    _ => (host, Some(tail.strip_prefix(':').ok_or_else(wrong)?)),
                }
            }
            None => match place.split_once(':') {
                Some((host, port)) if !port.contains(':') => (host, Some(port)),
                // An IPv6 address without brackets.
                _ => (place, None),
            },
        };
        let odd = |c: char| c.is_whitespace() || c.is_control() || c == '/';
        // A program started with this host could take a leading `-` for an option.
        if host.is_empty() || host.starts_with('-') || host.contains(odd) {
            return Err(wrong());
        }
        if user.is_some_and(|user| user.is_empty() || user.starts_with('-')) {
            return Err(wrong());
        }
        Ok(Self {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port: port.map(value::parse_port).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_in_all_forms() {
        let jump = |user: Option<&str>, host: &str, port| SshJump {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
        };
        assert_eq!(SshJump::parse_list("none"), Ok(vec![]));
        assert_eq!(
            SshJump::parse_list("a@b:2222,c,[::1]:22,ssh://u@v@d:1/,fe80::1"),
            Ok(vec![
                jump(Some("a"), "b", Some(2222)),
                jump(None, "c", None),
                jump(None, "::1", Some(22)),
                jump(Some("u@v"), "d", Some(1)),
                jump(None, "fe80::1", None),
            ])
        );
        for text in [
            "", "a,,b", "a:0", "@b", "[::1", "[::1]x", "-oX", "a b", "-u@h",
        ] {
            assert!(SshJump::parse_list(text).is_err(), "{text}");
        }
    }
}
