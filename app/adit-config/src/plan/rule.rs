//! Conditions of rules.

use core::ops::RangeInclusive;

use adit_wire::{Host, Target};
use ipnet::IpNet;
use regex_lite::{Regex, RegexBuilder};

use crate::text::{format_network, parse_network};

/// The prefix of a regular expression.
const REGEX_PREFIX: &str = "regex:";

/// A condition on a target. Names are compared without regard to ASCII case.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// `*`: every target.
    Any,
    /// `10.0.0.0/8`: addresses of a network. Names match by their addresses if the rule has
    /// `resolve`, otherwise never.
    Cidr(IpNet),
    /// `*.lan`: names below this one, not the name itself. In lower case, without the `*.`.
    NameSuffix(String),
    /// `db.lan`: this name. In lower case.
    NameExact(String),
    /// `regex:^ads?[0-9]*\.`: names that contain a match of the expression.
    NamePattern(NamePattern),
    /// `:25`, `:6000-6063`: ports.
    Port(RangeInclusive<u16>),
}

/// A regular expression for names, in the syntax of the crate `regex-lite`. Names are ASCII on the wire,
/// and the tables and automata of the crate `regex` would be a tenth of the program. Matching ignores
/// case and takes time linear in the length of the name.
#[derive(Debug, Clone)]
pub struct NamePattern(Regex);

/// Maximum memory of one expression, in bytes.
const PATTERN_SIZE: usize = 256 * 1024;

impl NamePattern {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// A text that says why the expression is wrong or too large.
    pub fn parse(text: &str) -> Result<Self, String> {
        let built = RegexBuilder::new(text)
            .case_insensitive(true)
            .size_limit(PATTERN_SIZE)
            .build();
        built.map(Self).map_err(|why| why.to_string())
    }
}

impl PartialEq for NamePattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for NamePattern {}

impl Condition {
    /// True if the target meets the condition.
    #[must_use]
    pub fn matches(&self, target: &Target) -> bool {
        match (self, &target.host) {
            (Self::Any, _) => true,
            (Self::Cidr(net), Host::Ip(ip)) => net.contains(ip),
            (Self::NameSuffix(suffix), Host::Name(name)) => {
                let name = name.as_str().trim_end_matches('.');
                name.len()
                    .checked_sub(suffix.len())
                    .and_then(|at| name.split_at_checked(at))
                    .is_some_and(|(head, tail)| {
                        head.len() > 1 && head.ends_with('.') && tail.eq_ignore_ascii_case(suffix)
                    })
            }
            (Self::NameExact(exact), Host::Name(name)) => name
                .as_str()
                .trim_end_matches('.')
                .eq_ignore_ascii_case(exact),
            (Self::NamePattern(pattern), Host::Name(name)) => {
                pattern.0.is_match(name.as_str().trim_end_matches('.'))
            }
            (Self::Port(ports), _) => ports.contains(&target.port),
            (Self::Cidr(_), Host::Name(_))
            | (Self::NameSuffix(_) | Self::NameExact(_) | Self::NamePattern(_), Host::Ip(_)) => {
                false
            }
        }
    }

    /// Parses a condition.
    ///
    /// # Errors
    ///
    /// A text that says what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = || {
            "expected a network, a name, `*.suffix`, `regex:…`, `:port`, `:from-to` or `*`"
                .to_owned()
        };
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some(pattern) = text.strip_prefix(REGEX_PREFIX) {
            return NamePattern::parse(pattern).map(Self::NamePattern);
        }
        if let Some(net) = parse_network(text) {
            return Ok(Self::Cidr(net));
        }
        if let Some(ports) = text.strip_prefix(':') {
            let (from, to) = ports.split_once('-').unwrap_or((ports, ports));
            let port = |text: &str| {
                let digits = text.bytes().all(|b| b.is_ascii_digit());
                text.parse::<u16>().ok().filter(|_| digits)
            };
            return match (port(from), port(to)) {
                (Some(from), Some(to)) if from <= to => Ok(Self::Port(from..=to)),
                _ => Err("expected `:port` or `:from-to`".to_owned()),
            };
        }
        let (name, suffix) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let good = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name = name.trim_end_matches('.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(good) {
            return Err(expected());
        }
        let name = name.to_ascii_lowercase();
        Ok(if suffix {
            Self::NameSuffix(name)
        } else {
            Self::NameExact(name)
        })
    }
}

impl core::fmt::Display for Condition {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Cidr(net) => f.write_str(&format_network(net)),
            Self::NameSuffix(suffix) => write!(f, "*.{suffix}"),
            Self::NameExact(name) => f.write_str(name),
            Self::NamePattern(pattern) => write!(f, "{REGEX_PREFIX}{}", pattern.0),
            Self::Port(ports) if ports.start() == ports.end() => write!(f, ":{}", ports.start()),
            Self::Port(ports) => write!(f, ":{}-{}", ports.start(), ports.end()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_match_what_they_say() {
        for (rule, target, matches) in [
            ("*", "a:1", true),
            ("*.lan", "db.lan:1", true),
            ("*.lan", "DB.LAN.:1", true),
            ("*.lan", "lan:1", false),
            ("*.lan", ".lan:1", false),
            ("*.lan", "dblan:1", false),
            ("*.lan", "10.0.0.1:1", false),
            ("*.bücher.example", "www.bücher.example:1", true),
            ("*.lan", "ü:1", false),
            ("DB.lan", "db.LAN:1", true),
            (r"regex:^ads?\d*\.", "AD7.example:1", true),
            (r"regex:^ads?\d*\.", "www.ad7.example:1", false),
            ("regex:.", "10.0.0.1:1", false),
            (r"regex:\.lan$", "a.lan.:1", true),
            ("db.lan", "x.db.lan:1", false),
            ("10.0.0.0/8", "10.1.2.3:1", true),
            ("10.0.0.0/8", "11.1.2.3:1", false),
            ("10.0.0.0/8", "10.lan:1", false),
            ("::1", "[::1]:1", true),
            (":25", "a:25", true),
            (":25", "a:26", false),
            (":6000-6063", "[::1]:6063", true),
            (":6000-6063", "[::1]:6064", false),
        ] {
            let read = Condition::parse(rule).unwrap();
            assert_eq!(
                read.matches(&target.parse().unwrap()),
                matches,
                "{rule} {target}"
            );
            assert_eq!(Condition::parse(&read.to_string()), Ok(read));
        }
    }

    #[test]
    fn wrong_conditions_are_refused() {
        for text in [
            "",
            "*lan",
            "*.",
            "a b",
            ":",
            ":2-1",
            ":70000",
            "10.0.0.0/33",
            ":+1",
            "http://a",
        ] {
            assert!(Condition::parse(text).is_err(), "{text}");
        }
    }
}
