//! The entry of a set that decides, for explanations.

use core::fmt;
use core::ops::RangeInclusive;

use crate::condition::Condition;
use crate::name::NameKey;
use crate::name_table::{BELOW, EXACT};
use crate::network_table::Ranges;
use crate::request::{Addresses, Request, Transport};
use crate::rule_set::{Outcome, RuleSet};

/// An entry of a set that matches a request, in the form in which it is compiled: names and networks inside
/// of others are part of those, and networks that adjoin are one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry {
    /// A condition.
    Condition(Condition),
    /// A rule of the set that consists of several conditions, or of exceptions.
    Group,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Condition(condition) => condition.fmt(f),
            Self::Group => f.write_str("a rule of several conditions"),
        }
    }
}

impl RuleSet {
    /// Returns an entry that a request matches whose name has `addresses`. Unlike a decision this takes time
    /// in proportion to the set.
    #[must_use]
    pub fn find_entry(&self, request: &Request<'_>, addresses: Addresses<'_>) -> Option<Entry> {
        if self.everything {
            return Some(Entry::Condition(Condition::Any));
        }
        let condition = self
            .find_fact(request)
            .or_else(|| self.find_name(request.name.as_ref()?))
            .or_else(|| self.find_network(request, addresses));
        if let Some(condition) = condition {
            return Some(Entry::Condition(condition));
        }
        let mut groups = self.groups.iter();
        let is_match = |outcome| outcome == Outcome::Match;
        let found = groups.any(|group| is_match(group.evaluate(request, addresses)));
        found.then_some(Entry::Group)
    }

    /// Returns a condition on something else than the target's host.
    fn find_fact(&self, request: &Request<'_>) -> Option<Condition> {
        let listed = |list: &[Box<str>], name: Option<&str>| {
            let name = name?;
            let found = list.binary_search_by(|own| (**own).cmp(name));
            found.is_ok().then(|| name.to_owned())
        };
        let transport = || {
            let known = |transport: &Transport| self.transports & transport.bit() != 0;
            request.transport.filter(known).map(Condition::Transport)
        };
        let source = || {
            let source = request.source?;
            let port = || find_ports(&self.source_ports, source.port());
            let net = self.sources.find(source.ip()).map(Condition::Source);
            net.or_else(|| port().map(Condition::SourcePorts))
        };
        transport()
            .or_else(|| find_ports(&self.ports, request.port).map(Condition::Ports))
            .or_else(source)
            .or_else(|| listed(&self.users, request.user).map(Condition::User))
            .or_else(|| listed(&self.listeners, request.listener).map(Condition::Listener))
    }

    fn find_name(&self, name: &NameKey) -> Option<Condition> {
        let text = name.text();
        if let Some((len, kind)) = self.names.find(name) {
            let entry = text.get(text.len().checked_sub(len)?..)?.to_owned();
            return Some(match kind {
                EXACT => Condition::NameExact(entry),
                BELOW => Condition::NameSuffix(entry),
                _ => Condition::Domain(entry),
            });
        }
        let mut words = self
            .keywords
            .iter()
            .filter_map(|word| core::str::from_utf8(word).ok());
        if let Some(word) = words.find(|word| text.contains(word)) {
            return Some(Condition::Keyword(word.to_owned()));
        }
        let mut globs = self.globs.iter();
        if let Some(glob) = globs.find(|glob| glob.matches(name.bytes())) {
            return Some(Condition::Glob(glob.clone()));
        }
        let mut patterns = self.patterns.iter();
        let pattern = patterns.find(|pattern| pattern.matches(text))?;
        Some(Condition::Pattern(pattern.clone()))
    }

    fn find_network(&self, request: &Request<'_>, addresses: Addresses<'_>) -> Option<Condition> {
        let net = match (request.ip, addresses) {
            (Some(ip), _) => self.networks.find(ip),
            (None, Addresses::Known(all)) => all.iter().find_map(|ip| self.networks.find(*ip)),
            (None, Addresses::Unknown) => None,
        };
        net.map(Condition::Network)
    }
}

fn find_ports(ports: &Ranges<u16>, port: u16) -> Option<RangeInclusive<u16>> {
    ports.find(port).map(|(from, to)| from..=to)
}
