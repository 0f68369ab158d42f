//! `+kcp`, `+fec`: what brings the bytes of a dialect to its server where that is not TCP.

use core::fmt;
use core::str::FromStr;

use crate::param::{Param, Role, Roles};
use crate::scheme::{Scheme, UnknownScheme, fec, kcp};

/// What stands behind a dialect and a `+`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Carrier {
    /// Streams over a few sessions of KCP, over UDP.
    Kcp,
    /// Datagrams with forward error correction, never sent again.
    Fec,
}

impl Carrier {
    /// Every carrier, in the order of the reference.
    pub const ALL: [Self; 2] = [Self::Kcp, Self::Fec];

    /// The name as it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kcp => "kcp",
            Self::Fec => "fec",
        }
    }

    /// What it is, in a sentence or two.
    #[must_use]
    pub const fn doc(self) -> &'static str {
        match self {
            Self::Kcp => kcp::DOC,
            Self::Fec => fec::DOC,
        }
    }

    /// The keys that a scheme has besides its own with this carrier.
    #[must_use]
    pub const fn params(self) -> &'static [Param] {
        match self {
            Self::Kcp => kcp::PARAMS,
            Self::Fec => fec::PARAMS,
        }
    }

    /// The schemes it carries.
    #[must_use]
    pub const fn schemes(self) -> &'static [Scheme] {
        match self {
            Self::Kcp => &[
                Scheme::Mixed,
                Scheme::Socks5,
                Scheme::Socks4a,
                Scheme::Http,
                Scheme::Ss,
                Scheme::Ssr,
                Scheme::Tcp,
            ],
            Self::Fec => &[Scheme::Udp],
        }
    }
}

/// A scheme with its carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) scheme: Scheme,
    pub(crate) carrier: Option<Carrier>,
}

impl Written {
    /// The keys, in the order of the reference.
    pub(crate) fn params(self) -> impl Iterator<Item = &'static Param> + Clone {
        let carrier = self.carrier.map_or(&[][..], Carrier::params);
        self.scheme.params().iter().chain(carrier)
    }

    /// What it can be used as: a carrier makes a hop of a forwarder, whose target is at its end.
    pub(crate) fn roles(self) -> Roles {
        match (self.scheme, self.carrier) {
            (Scheme::Tcp | Scheme::Udp, Some(_)) => Roles::Both,
            (scheme, _) => scheme.roles(),
        }
    }

    /// How it is written in this role.
    pub(crate) fn form(self, role: Role) -> String {
        let (scheme, form) = (self.scheme.name(), self.scheme.form());
        let rest = form.strip_prefix(scheme).unwrap_or(form);
        let rest = match (self.scheme, self.carrier, role) {
            (Scheme::Tcp | Scheme::Udp, Some(_), Role::Hop) => "://HOST:PORT",
            (Scheme::Tcp | Scheme::Udp, Some(_), Role::Listener) => "://[HOST]:PORT/TARGET:PORT",
            _ => rest,
        };
        format!("{self}{rest}")
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme.name())?;
        match self.carrier {
            Some(carrier) => write!(f, "+{}", carrier.name()),
            None => Ok(()),
        }
    }
}

impl FromStr for Written {
    type Err = UnknownScheme;

    fn from_str(text: &str) -> Result<Self, UnknownScheme> {
        let unknown = match text.parse() {
            Ok(scheme) => {
                return Ok(Self {
                    scheme,
                    carrier: None,
                });
            }
            Err(unknown) => unknown,
        };
        let carried = |scheme: &Scheme, carrier: &Carrier| carrier.schemes().contains(scheme);
        text.rsplit_once('+')
            .and_then(|(scheme, name)| {
                let scheme = scheme.parse().ok()?;
                let mut all = Carrier::ALL.into_iter();
                let carrier = all.find(|carrier| carrier.name().eq_ignore_ascii_case(name))?;
                carried(&scheme, &carrier).then_some(Self {
                    scheme,
                    carrier: Some(carrier),
                })
            })
            .ok_or(unknown)
    }
}

/// The scheme of a text, whatever carries it.
pub(crate) fn dialect(text: &str) -> Option<Scheme> {
    text.parse::<Written>().ok().map(|written| written.scheme)
}

/// Every row of every table.
pub(crate) fn all_params() -> impl Iterator<Item = &'static Param> {
    let schemes = Scheme::ALL.into_iter().flat_map(Scheme::params);
    schemes.chain(Carrier::ALL.into_iter().flat_map(Carrier::params))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriers_are_read_behind_their_schemes() {
        for carrier in Carrier::ALL {
            for scheme in Scheme::ALL {
                let text = format!("{scheme}+{}", carrier.name());
                let read = text.parse::<Written>();
                assert_eq!(read.is_ok(), carrier.schemes().contains(&scheme), "{text}");
                if let Ok(read) = read {
                    assert_eq!(read.to_string(), text);
                }
            }
        }
        assert!("ss+".parse::<Written>().is_err() && "+kcp".parse::<Written>().is_err());
        assert_eq!(dialect("SS+KCP"), Some(Scheme::Ss));
        assert_eq!(dialect("tcp+udp"), Some(Scheme::TcpUdp));
    }

    #[test]
    fn no_key_is_in_both_tables() {
        for carrier in Carrier::ALL {
            for scheme in carrier.schemes() {
                let written = Written {
                    scheme: *scheme,
                    carrier: Some(carrier),
                };
                let names: Vec<_> = written.params().map(|row| row.setting.name()).collect();
                let twice = names.iter().enumerate();
                let mut twice =
                    twice.filter(|(i, name)| names.iter().skip(i + 1).any(|n| n == *name));
                assert_eq!(twice.next(), None, "{written}");
            }
        }
    }
}
