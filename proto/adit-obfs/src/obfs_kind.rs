//! The kinds of obfuscation: names and sizes.

use core::fmt;
use core::str::FromStr;

/// A way to disguise a connection. Names are those of ShadowsocksR's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ObfsKind {
    /// `plain`: no change.
    Plain,
    /// `http_simple`: a GET request.
    HttpSimple,
    /// `http_post`: a POST request.
    HttpPost,
    /// `random_head`: random bytes first.
    RandomHead,
    /// `tls1.2_ticket_auth`: a resumed TLS 1.2 session.
    TicketAuth,
    /// `tls1.2_ticket_fastauth`: the same without waiting for the server.
    TicketFastAuth,
    /// `go_quiet`: a browser's TLS 1.2 session, compatible with GoQuiet.
    GoQuiet,
}

/// A server's policy for clients that do not use its obfuscation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnrecognizedPolicy {
    /// Refuses the client; the caller drains the connection or relays it to a decoy.
    Refuse,
    /// Treats the client as `plain` (a name that ends in `_compatible`): received bytes are passed
    /// unchanged.
    PassOn,
}

/// The error for a name that is not an obfuscation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown obfs `{0}`")]
pub struct UnknownObfs(pub String);

const COMPATIBLE: &str = "_compatible";

impl ObfsKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Plain,
        Self::HttpSimple,
        Self::HttpPost,
        Self::RandomHead,
        Self::TicketAuth,
        Self::TicketFastAuth,
        Self::GoQuiet,
    ];

    /// Returns the name as written in links and configuration files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::HttpSimple => "http_simple",
            Self::HttpPost => "http_post",
            Self::RandomHead => "random_head",
            Self::TicketAuth => "tls1.2_ticket_auth",
            Self::TicketFastAuth => "tls1.2_ticket_fastauth",
            Self::GoQuiet => "go_quiet",
        }
    }

    /// Returns the number of bytes that this layer adds to each record; the auth_chain protocols
    /// take them into account.
    #[must_use]
    pub const fn overhead(self) -> usize {
        match self {
            Self::TicketAuth | Self::TicketFastAuth | Self::GoQuiet => 5,
            _ => 0,
        }
    }

    /// Parses a server's name, which may end in `_compatible` if the kind supports that.
    ///
    /// # Errors
    ///
    /// Returns [`UnknownObfs`] for any other name.
    pub fn parse_server_name(name: &str) -> Result<(Self, UnrecognizedPolicy), UnknownObfs> {
        let unknown = || UnknownObfs(name.to_owned());
        let (bare, strangers) = match name.strip_suffix(COMPATIBLE) {
            Some(bare) => (bare, UnrecognizedPolicy::PassOn),
            None => (name, UnrecognizedPolicy::Refuse),
        };
        let kind = Self::ALL.into_iter().find(|kind| kind.name() == bare);
        match kind.ok_or_else(unknown)? {
            Self::Plain | Self::GoQuiet if strangers == UnrecognizedPolicy::PassOn => {
                Err(unknown())
            }
            kind => Ok((kind, strangers)),
        }
    }
}

impl FromStr for ObfsKind {
    type Err = UnknownObfs;

    /// Parses a client's name: `_compatible` applies to servers and is ignored.
    fn from_str(name: &str) -> Result<Self, UnknownObfs> {
        Self::parse_server_name(name).map(|(kind, _)| kind)
    }
}

impl fmt::Display for ObfsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for kind in ObfsKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(
                ObfsKind::parse_server_name(kind.name()),
                Ok((kind, UnrecognizedPolicy::Refuse))
            );
            assert_eq!(kind.to_string(), kind.name());
        }
    }

    #[test]
    fn the_suffix_is_for_some_servers() {
        assert_eq!(
            ObfsKind::parse_server_name("http_simple_compatible"),
            Ok((ObfsKind::HttpSimple, UnrecognizedPolicy::PassOn))
        );
        assert_eq!(
            "tls1.2_ticket_auth_compatible".parse(),
            Ok(ObfsKind::TicketAuth)
        );
        for none in [
            "",
            "plain_compatible",
            "go_quiet_compatible",
            "tls",
            "Plain",
        ] {
            assert_eq!(
                ObfsKind::parse_server_name(none),
                Err(UnknownObfs(none.into())),
                "{none}"
            );
        }
    }
}
