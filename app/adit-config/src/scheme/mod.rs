//! The schemes: a closed set. Each has a file with its table and its way to a typed value.

pub(crate) mod carrier;
mod ends;
mod fec;
mod forward;
mod http;
mod kcp;
mod kcptun;
pub(crate) mod keys;
mod mixed;
pub(crate) mod share;
mod socks5;
pub(crate) mod ss;
pub(crate) mod ssh;
pub(crate) mod ssr;
mod transparent;

use core::fmt;
use core::str::FromStr;

use crate::draft::Draft;
use crate::param::{Param, Role, Roles};
use crate::plan::{Hop, Listen, Steering};
use crate::text::nearest;

pub use carrier::Carrier;
pub(crate) use carrier::Written;

/// What stands before `://`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scheme {
    /// SOCKS and HTTP on one port, told apart by the first byte.
    Mixed,
    /// SOCKS5.
    Socks5,
    /// SOCKS4a, as a hop.
    Socks4a,
    /// HTTP CONNECT and plain requests.
    Http,
    /// Shadowsocks.
    Ss,
    /// ShadowsocksR.
    Ssr,
    /// A TCP port that leads to one target.
    Tcp,
    /// A UDP port that leads to one target.
    Udp,
    /// Both.
    TcpUdp,
    /// The tunnel of kcptun.
    Kcptun,
    /// SSH.
    Ssh,
    /// TCP that the firewall redirects.
    Redir,
    /// TCP and UDP that the firewall hands over as they are.
    Tproxy,
    /// The end of a chain: straight to the target.
    Direct,
    /// The end of a chain: nowhere.
    Reject,
}

/// A text that is no scheme.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown scheme `{name}`")]
pub struct UnknownScheme {
    /// What was written.
    pub name: String,
    /// The scheme that was probably meant.
    pub nearest: Option<&'static str>,
}

impl Scheme {
    /// Every scheme, in the order of the reference.
    pub const ALL: [Self; 15] = [
        Self::Mixed,
        Self::Socks5,
        Self::Socks4a,
        Self::Http,
        Self::Ss,
        Self::Ssr,
        Self::Ssh,
        Self::Tcp,
        Self::Udp,
        Self::TcpUdp,
        Self::Kcptun,
        Self::Redir,
        Self::Tproxy,
        Self::Direct,
        Self::Reject,
    ];

    /// The name as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Socks5 => "socks5",
            Self::Socks4a => "socks4a",
            Self::Http => "http",
            Self::Ss => "ss",
            Self::Ssr => "ssr",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::TcpUdp => "tcp+udp",
            Self::Kcptun => "kcptun",
            Self::Ssh => "ssh",
            Self::Redir => "redir",
            Self::Tproxy => "tproxy",
            Self::Direct => "direct",
            Self::Reject => "reject",
        }
    }

    /// True if foreign links are written with it, and the same URL on both ends.
    #[must_use]
    pub(crate) const fn is_shared(self) -> bool {
        matches!(self, Self::Ss | Self::Ssr)
    }

    /// What it can be used as.
    #[must_use]
    pub const fn roles(self) -> Roles {
        match self {
            Self::Mixed | Self::Tcp | Self::Udp | Self::TcpUdp => Roles::Listener,
            Self::Redir | Self::Tproxy => Roles::Listener,
            Self::Socks4a | Self::Direct | Self::Reject => Roles::Hop,
            Self::Socks5 | Self::Http | Self::Ss | Self::Ssr | Self::Ssh | Self::Kcptun => {
                Roles::Both
            }
        }
    }

    /// The keys, in the order of the reference.
    #[must_use]
    pub const fn params(self) -> &'static [Param] {
        match self {
            Self::Mixed => mixed::PARAMS,
            Self::Socks5 => socks5::PARAMS,
            Self::Socks4a => socks5::PARAMS_4A,
            Self::Http => http::PARAMS,
            Self::Ss => ss::PARAMS,
            Self::Ssr => ssr::PARAMS,
            Self::Tcp => forward::PARAMS_TCP,
            Self::Udp => forward::PARAMS_UDP,
            Self::TcpUdp => forward::PARAMS,
            Self::Kcptun => kcptun::PARAMS,
            Self::Ssh => ssh::PARAMS,
            Self::Redir => transparent::PARAMS_REDIR,
            Self::Tproxy => transparent::PARAMS_TPROXY,
            Self::Direct | Self::Reject => ends::PARAMS,
        }
    }

    /// How it is written.
    #[must_use]
    pub const fn form(self) -> &'static str {
        match self {
            Self::Mixed => "mixed://[USER:PASSWORD@][HOST]:PORT",
            Self::Socks5 => "socks5://[USER:PASSWORD@][HOST]:PORT",
            Self::Socks4a => "socks4a://[USER@]HOST:PORT",
            Self::Http => "http://[USER:PASSWORD@][HOST]:PORT",
            Self::Ss => "ss://METHOD:KEY@[HOST]:PORT",
            Self::Ssr => "ssr://METHOD:PASSWORD@[HOST]:PORT",
            Self::Ssh => "ssh://[USER[:PASSWORD]@][HOST][:PORT]",
            Self::Tcp => "tcp://[HOST]:PORT[/TARGET:PORT]",
            Self::Udp => "udp://[HOST]:PORT[/TARGET:PORT]",
            Self::TcpUdp => "tcp+udp://[HOST]:PORT/TARGET:PORT",
            Self::Kcptun => "kcptun://[KEY@][HOST]:PORT[/TARGET:PORT]",
            Self::Redir => "redir://[HOST]:PORT",
            Self::Tproxy => "tproxy://[HOST]:PORT",
            Self::Direct => "direct://",
            Self::Reject => "reject://",
        }
    }

    /// Lists behind [`Self::doc`], each with its name.
    pub(crate) fn lists(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Ss => {
                let (methods, legacy) = ss::method_names();
                vec![
                    ("Methods", methods),
                    ("Legacy methods, broken and for old peers alone", legacy),
                ]
            }
            Self::Ssh => ssh::lists(),
            _ => Vec::new(),
        }
    }

    /// What it is, in a sentence or two.
    #[must_use]
    pub const fn doc(self) -> &'static str {
        match self {
            Self::Mixed => mixed::DOC,
            Self::Socks5 => socks5::DOC,
            Self::Socks4a => socks5::DOC_4A,
            Self::Http => http::DOC,
            Self::Ss => ss::DOC,
            Self::Ssr => ssr::DOC,
            Self::Ssh => ssh::DOC,
            Self::Tcp => forward::DOC_TCP,
            Self::Udp => forward::DOC_UDP,
            Self::TcpUdp => forward::DOC,
            Self::Kcptun => kcptun::DOC,
            Self::Redir => transparent::DOC_REDIR,
            Self::Tproxy => transparent::DOC_TPROXY,
            Self::Direct => ends::DOC_DIRECT,
            Self::Reject => ends::DOC_REJECT,
        }
    }
}

/// The name of a mode of KCP.
pub(crate) fn mode_name(config: &adit_kcp_proto::Config) -> &'static str {
    kcp::text::Mode::of(config).name()
}

/// Every scheme: with [`Scheme::params`], all that a completion needs.
#[must_use]
pub const fn schemes() -> &'static [Scheme] {
    &Scheme::ALL
}

impl FromStr for Scheme {
    type Err = UnknownScheme;
    fn from_str(text: &str) -> Result<Self, UnknownScheme> {
        let names = || Self::ALL.into_iter().map(Self::name);
        Self::ALL
            .into_iter()
            .find(|scheme| scheme.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownScheme {
                name: text.to_owned(),
                nearest: nearest(text, names()),
            })
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The endpoint as a listener; `None` if it is none, with the reasons on the desk.
pub(crate) fn listen(draft: &mut Draft<'_, '_>) -> Option<Listen> {
    let listen = match draft.scheme() {
        Scheme::Mixed => mixed::listen(draft),
        Scheme::Socks5 => socks5::listen(draft),
        Scheme::Http => http::listen(draft),
        Scheme::Ss => ss::listen(draft),
        Scheme::Ssr => ssr::listen(draft),
        Scheme::Ssh => ssh::listen(draft),
        Scheme::Tcp => forward::listen(draft, true, false),
        Scheme::Udp => forward::listen(draft, false, true),
        Scheme::TcpUdp => forward::listen(draft, true, true),
        Scheme::Kcptun => kcptun::listen(draft),
        Scheme::Redir => transparent::listen(draft, Steering::Redirect),
        Scheme::Tproxy => transparent::listen(draft, Steering::Tproxy),
        Scheme::Socks4a | Scheme::Direct | Scheme::Reject => draft.wrong_role(Role::Listener),
    }?;
    match draft.carrier() {
        None => Some(listen),
        Some(Carrier::Kcp) => kcp::listen(draft, listen),
        Some(Carrier::Fec) => fec::listen(draft, listen),
    }
}

/// The endpoint as a hop.
pub(crate) fn hop(draft: &mut Draft<'_, '_>) -> Option<Hop> {
    let hop = match (draft.scheme(), draft.carrier()) {
        (Scheme::Socks5, _) => socks5::hop(draft),
        (Scheme::Socks4a, _) => socks5::hop_4a(draft),
        (Scheme::Http, _) => http::hop(draft),
        (Scheme::Ss, _) => ss::hop(draft),
        (Scheme::Ssr, _) => ssr::hop(draft),
        (Scheme::Ssh, _) => ssh::hop(draft),
        (Scheme::Kcptun, _) => kcptun::hop(draft),
        (Scheme::Tcp | Scheme::Udp, Some(_)) => forward::hop(draft),
        (Scheme::Direct, _) => ends::hop(draft, Hop::Direct),
        (Scheme::Reject, _) => ends::hop(draft, Hop::Reject),
        (Scheme::Mixed | Scheme::Tcp | Scheme::Udp | Scheme::TcpUdp, _)
        | (Scheme::Redir | Scheme::Tproxy, _) => draft.wrong_role(Role::Hop),
    }?;
    match (draft.carrier(), hop) {
        (Some(Carrier::Kcp), Hop::Server(server)) => kcp::hop(draft, server),
        (Some(Carrier::Fec), Hop::Server(server)) => fec::hop(draft, server),
        (_, hop) => Some(hop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for scheme in Scheme::ALL {
            assert_eq!(scheme.name().parse(), Ok(scheme));
            assert!(scheme.form().starts_with(scheme.name()));
        }
        let why = "sock5".parse::<Scheme>().unwrap_err();
        assert_eq!(why.nearest, Some("socks5"));
    }

    #[test]
    fn tables_are_sound() {
        for scheme in Scheme::ALL {
            let mut seen = Vec::new();
            for param in scheme.params() {
                let name = param.setting.name();
                assert!(!seen.contains(&name), "{scheme}: {name} twice");
                seen.push(name);
                let doc = param.setting.doc();
                assert!(doc.ends_with('.'), "{name}");
                for role in [Role::Listener, Role::Hop] {
                    assert!(
                        scheme.roles().has(role) || !param.roles.has(role),
                        "{scheme}: {name} is for a role the scheme does not have"
                    );
                }
            }
        }
    }

    #[test]
    fn written_defaults_are_canonical() {
        for param in Scheme::ALL.iter().flat_map(|scheme| scheme.params()) {
            let text = param.setting.default_text();
            if let Ok(canonical) = param.setting.canonical(&text) {
                assert_eq!(canonical, text, "{param:?}");
            }
        }
    }
}
