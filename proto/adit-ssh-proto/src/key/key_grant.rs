//! Permissions of an authenticated user.

use super::pattern::matches_glob;
use super::verify::UserPresence;

/// Permissions of an accepted key, from its line in `authorized_keys`, its certificate, or both.
///
/// The permissions of a session are those of the key that signed last.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyGrant {
    /// Terminals are allowed.
    pub pty: bool,
    /// Forwarding of ports and of Unix sockets is allowed.
    pub port_forwarding: bool,
    /// Agent forwarding is allowed.
    pub agent_forwarding: bool,
    /// X11 forwarding is allowed.
    pub x11_forwarding: bool,
    /// `~/.ssh/rc` is executed.
    pub user_rc: bool,
    /// Command that is executed instead of any other.
    pub command: Option<String>,
    /// Names and values of environment variables.
    pub environment: Vec<(String, String)>,
    /// Allowed targets of connections; `None` allows any.
    pub permit_open: Option<Vec<ForwardRule>>,
    /// Allowed addresses to listen on; `None` allows any.
    pub permit_listen: Option<Vec<ForwardRule>>,
    /// A security key must have been touched.
    pub touch_required: bool,
    /// A security key must have verified its user.
    pub verify_required: bool,
}

impl KeyGrant {
    /// Returns all permissions, as for a key without options.
    #[must_use]
    pub const fn allow_all() -> Self {
        Self::with_flags(true)
    }

    /// Returns no permissions, as after `restrict`.
    #[must_use]
    pub const fn deny_all() -> Self {
        Self::with_flags(false)
    }

    const fn with_flags(flag: bool) -> Self {
        Self {
            pty: flag,
            port_forwarding: flag,
            agent_forwarding: flag,
            x11_forwarding: flag,
            user_rc: flag,
            command: None,
            environment: Vec::new(),
            permit_open: None,
            permit_listen: None,
            touch_required: true,
            verify_required: false,
        }
    }

    /// True if the reported user presence suffices; always true for a key that is not in a security
    /// key.
    #[must_use]
    pub fn accepts_presence(&self, presence: Option<UserPresence>) -> bool {
        presence.is_none_or(|p| {
            (p.touched || !self.touch_required) && (p.verified || !self.verify_required)
        })
    }

    /// True if a connection to `host` and `port` may be opened.
    #[must_use]
    pub fn may_open(&self, host: &str, port: u16) -> bool {
        self.port_forwarding && list_allows(self.permit_open.as_deref(), host, port)
    }

    /// True if listening on `host` and `port` is allowed.
    #[must_use]
    pub fn may_listen(&self, host: &str, port: u16) -> bool {
        self.port_forwarding && list_allows(self.permit_listen.as_deref(), host, port)
    }

    /// Returns the intersection of both; `None` if they force different commands.
    #[must_use]
    pub fn intersect(self, other: Self) -> Option<Self> {
        let command = match (self.command, other.command) {
            (Some(a), Some(b)) if a != b => return None,
            (a, b) => a.or(b),
        };
        let mut environment = self.environment;
        environment.extend(other.environment);
        // Only lines contain lists; certificates do not.
        Some(Self {
            pty: self.pty && other.pty,
            port_forwarding: self.port_forwarding && other.port_forwarding,
            agent_forwarding: self.agent_forwarding && other.agent_forwarding,
            x11_forwarding: self.x11_forwarding && other.x11_forwarding,
            user_rc: self.user_rc && other.user_rc,
            command,
            environment,
            permit_open: self.permit_open.or(other.permit_open),
            permit_listen: self.permit_listen.or(other.permit_listen),
            touch_required: self.touch_required || other.touch_required,
            verify_required: self.verify_required || other.verify_required,
        })
    }
}

fn list_allows(list: Option<&[ForwardRule]>, host: &str, port: u16) -> bool {
    list.is_none_or(|list| list.iter().any(|forward| forward.allows(host, port)))
}

/// A host pattern and a port, either of which may match anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardRule {
    /// Name or address, with the wildcards `*` and `?`.
    pub host: String,
    /// Port; `None` matches any.
    pub port: Option<u16>,
}

impl ForwardRule {
    /// Parses `host:port` or `[address]:port`, with `*` for any port.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        let host = match bare {
            Some(inside) => inside,
            None if host.contains([':', '[', ']']) => return None,
            None => host,
        };
        let port = match port {
            "*" => None,
            digits => Some(digits.parse().ok().filter(|port| *port != 0)?),
        };
        (!host.is_empty()).then(|| Self {
            host: host.to_owned(),
            port,
        })
    }

    /// True if this host and port match.
    #[must_use]
    pub fn allows(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|p| p == port) && matches_glob(&self.host, host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards() {
        for (text, host, port, fine) in [
            ("localhost:80", "LOCALHOST", 80, true),
            ("localhost:80", "localhost", 81, false),
            ("localhost:*", "localhost", 81, true),
            ("*:80", "::1", 80, true),
            ("[::1]:80", "::1", 80, true),
            ("[::1]:80", "::2", 80, false),
        ] {
            let forward = ForwardRule::parse(text).unwrap();
            assert_eq!(forward.allows(host, port), fine, "{text}");
        }
        for bad in [
            "", "80", "a:", ":80", "::1:80", "a:0", "a:65536", "a:+1x", "[a:1",
        ] {
            assert_eq!(ForwardRule::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn both_is_no_more_than_either() {
        let mut a = KeyGrant::allow_all();
        a.command = Some("ls".into());
        let mut b = KeyGrant::allow_all();
        b.pty = false;
        b.touch_required = false;
        let both = a.clone().intersect(b.clone()).unwrap();
        assert!(!both.pty && both.touch_required && both.x11_forwarding);
        assert_eq!(both.command.as_deref(), Some("ls"));
        b.command = Some("rm".into());
        assert_eq!(a.intersect(b), None);
    }

    #[test]
    fn tokens_have_to_be_touched() {
        let said = |touched, verified| {
            Some(UserPresence {
                touched,
                verified,
                counter: 0,
            })
        };
        let mut grant = KeyGrant::allow_all();
        assert!(grant.accepts_presence(None) && grant.accepts_presence(said(true, false)));
        assert!(!grant.accepts_presence(said(false, true)));
        grant.touch_required = false;
        grant.verify_required = true;
        assert!(
            grant.accepts_presence(said(false, true)) && !grant.accepts_presence(said(true, false))
        );
    }
}
