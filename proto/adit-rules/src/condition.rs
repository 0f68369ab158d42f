//! Single conditions and their text.

use core::fmt;
use core::ops::RangeInclusive;

use ipnet::IpNet;

use crate::bounds::AddError;
use crate::builder::RuleSetBuilder;
use crate::glob::Glob;
use crate::name::rule_name;
use crate::network_table::parse_network;
use crate::pattern::NamePattern;
use crate::request::Transport;
use crate::rule_set::RuleSet;

/// A condition on a request. Names are compared in lower-case ASCII, without the dot at their end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// `*`: every request.
    Any,
    /// `10.0.0.0/8`: addresses of a network. Names match by their addresses if they are looked up.
    Network(IpNet),
    /// `db.lan`: this name.
    NameExact(String),
    /// `*.lan`: names below this one, not the name itself. Without the `*.`.
    NameSuffix(String),
    /// `suffix:lan`: this name and all names below.
    Domain(String),
    /// `keyword:ads`: names that contain the text.
    Keyword(String),
    /// `glob:ads*.example`: names that match a pattern with wildcards.
    Glob(Glob),
    /// `regex:^ads?[0-9]*\.`: names that contain a match of the expression.
    Pattern(NamePattern),
    /// `:25`, `:6000-6063`: ports of targets.
    Ports(RangeInclusive<u16>),
    /// `network:tcp`, `network:udp`: a transport.
    Transport(Transport),
    /// `source:10.0.0.0/8`: addresses of clients.
    Source(IpNet),
    /// `source-port:1024-65535`: ports of clients.
    SourcePorts(RangeInclusive<u16>),
    /// `user:alice`: an authenticated user.
    User(String),
    /// `listener:lan`: the listener that accepted the request.
    Listener(String),
}

impl Condition {
    /// True if names decide about it.
    #[must_use]
    pub const fn concerns_names(&self) -> bool {
        matches!(
            self,
            Self::NameExact(_)
                | Self::NameSuffix(_)
                | Self::Domain(_)
                | Self::Keyword(_)
                | Self::Glob(_)
                | Self::Pattern(_)
        )
    }

    /// Parses a condition.
    ///
    /// # Errors
    ///
    /// [`AddError`] says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, AddError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some(net) = parse_network(text) {
            return Ok(Self::Network(net));
        }
        let name = |text: &str| {
            let name = rule_name(text).ok_or(AddError::Name)?;
            Ok(name.text().to_owned())
        };
        if let Some((kind, value)) = text.split_once(':') {
            let network = || parse_network(value).ok_or(AddError::Network);
            return Ok(match kind {
                "" => Self::Ports(parse_ports(value, '-')?),
                "suffix" => Self::Domain(name(value)?),
                "keyword" => Self::Keyword(value.to_ascii_lowercase()),
                "glob" => Self::Glob(Glob::parse(value).ok_or(AddError::Glob)?),
                "regex" => Self::Pattern(NamePattern::parse(value)?),
                "network" => Self::Transport(Transport::parse(value).ok_or(AddError::Transport)?),
                "source" => Self::Source(network()?),
                "source-port" => Self::SourcePorts(parse_ports(value, '-')?),
                "user" => Self::User(value.to_owned()),
                "listener" => Self::Listener(value.to_owned()),
                _ => return Err(AddError::Condition),
            })
            .and_then(Self::checked);
        }
        let parsed = match text.strip_prefix("*.") {
            Some(suffix) => name(suffix).map(Self::NameSuffix),
            // With a dot behind it an address would pass as a name.
            None => name(text)
                .ok()
                .filter(|name| parse_network(name).is_none())
                .ok_or(AddError::Condition)
                .map(Self::NameExact),
        };
        parsed.map_err(|_| AddError::Condition)
    }

    /// Returns the condition if a set can contain it.
    fn checked(self) -> Result<Self, AddError> {
        RuleSetBuilder::new().add(self.clone())?;
        Ok(self)
    }
}

impl RuleSet {
    /// Compiles conditions, of which at least one has to match.
    ///
    /// # Errors
    ///
    /// [`AddError`] if there are too many of one kind, or a text in a condition is not valid.
    pub fn compile(conditions: impl IntoIterator<Item = Condition>) -> Result<Self, AddError> {
        let mut builder = RuleSetBuilder::new();
        for condition in conditions {
            builder.add(condition)?;
        }
        Ok(builder.build())
    }
}

/// Parses `port` or `from-to` with the given character between the ends.
pub(crate) fn parse_ports(text: &str, between: char) -> Result<RangeInclusive<u16>, AddError> {
    let (from, to) = text.split_once(between).unwrap_or((text, text));
    let port = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|_| digits)
    };
    match (port(from), port(to)) {
        (Some(from), Some(to)) if from <= to => Ok(from..=to),
        _ => Err(AddError::Ports),
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let network = |f: &mut fmt::Formatter<'_>, net: &IpNet| {
            if net.prefix_len() == net.max_prefix_len() {
                write!(f, "{}", net.addr())
            } else {
                write!(f, "{net}")
            }
        };
        let ports = |f: &mut fmt::Formatter<'_>, ports: &RangeInclusive<u16>| {
            write!(f, "{}", ports.start())?;
            if ports.start() != ports.end() {
                write!(f, "-{}", ports.end())?;
            }
            Ok(())
        };
        match self {
            Self::Any => f.write_str("*"),
            Self::Network(net) => network(f, net),
            Self::NameExact(name) => f.write_str(name),
            Self::NameSuffix(name) => write!(f, "*.{name}"),
            Self::Domain(name) => write!(f, "suffix:{name}"),
            Self::Keyword(word) => write!(f, "keyword:{word}"),
            Self::Glob(glob) => write!(f, "glob:{glob}"),
            Self::Pattern(pattern) => write!(f, "regex:{}", pattern.as_str()),
            Self::Ports(range) => {
                f.write_str(":")?;
                ports(f, range)
            }
            Self::Transport(Transport::Tcp) => f.write_str("network:tcp"),
            Self::Transport(Transport::Udp) => f.write_str("network:udp"),
            Self::Source(net) => {
                f.write_str("source:")?;
                network(f, net)
            }
            Self::SourcePorts(range) => {
                f.write_str("source-port:")?;
                ports(f, range)
            }
            Self::User(user) => write!(f, "user:{user}"),
            Self::Listener(listener) => write!(f, "listener:{listener}"),
        }
    }
}
