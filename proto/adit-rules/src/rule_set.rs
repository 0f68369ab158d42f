//! Compiled sets of conditions.

use core::net::IpAddr;

use ipnet::IpNet;

use crate::glob::Glob;
use crate::keyword_set::KeywordSet;
use crate::name::NameKey;
use crate::name_table::NameTable;
use crate::network_table::{NetworkTable, Ranges};
use crate::pattern::NamePattern;
use crate::request::{Addresses, Request};

/// An immutable set of conditions, of which at least one has to match. It has its conditions on names and
/// networks in tables, so that a decision takes the same time for ten entries as for many thousands.
///
/// Compile one with [`RuleSetBuilder`](crate::RuleSetBuilder), read a list with the functions of
/// [`read`](crate::read), or load a compiled one with [`RuleSet::from_cache`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuleSet {
    pub(crate) everything: bool,
    /// Bits of [`crate::Transport`].
    pub(crate) transports: u8,
    pub(crate) names: NameTable,
    pub(crate) keywords: KeywordSet,
    pub(crate) globs: Box<[Glob]>,
    pub(crate) patterns: Box<[NamePattern]>,
    pub(crate) networks: NetworkTable,
    pub(crate) ports: Ranges<u16>,
    pub(crate) sources: NetworkTable,
    pub(crate) source_ports: Ranges<u16>,
    /// Sorted.
    pub(crate) users: Box<[Box<str>]>,
    /// Sorted.
    pub(crate) listeners: Box<[Box<str>]>,
    pub(crate) groups: Box<[Group]>,
}

/// A condition made of sets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Group {
    /// All sets have to match.
    All(Box<[RuleSet]>),
    /// The set must not match.
    Not(Box<RuleSet>),
}

/// The numbers of sets and regular expressions inside of a set, at all levels.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Nested {
    pub(crate) sets: usize,
    pub(crate) patterns: usize,
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The request matches.
    Match,
    /// The request does not match.
    NoMatch,
    /// It depends on the addresses of the target's name.
    NeedsLookup,
}

impl Outcome {
    pub(crate) const fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Match, _) | (_, Self::Match) => Self::Match,
            (Self::NeedsLookup, _) | (_, Self::NeedsLookup) => Self::NeedsLookup,
            (Self::NoMatch, Self::NoMatch) => Self::NoMatch,
        }
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        self.not().or(other.not()).not()
    }

    const fn not(self) -> Self {
        match self {
            Self::Match => Self::NoMatch,
            Self::NoMatch => Self::Match,
            Self::NeedsLookup => Self::NeedsLookup,
        }
    }
}

impl RuleSet {
    /// True if the request matches, with names that are not looked up.
    #[must_use]
    pub fn matches(&self, request: &Request<'_>) -> bool {
        self.evaluate(request, Addresses::Known(&[])) == Outcome::Match
    }

    /// Compares a request whose name has `addresses`. The answer is [`Outcome::NeedsLookup`] only for
    /// [`Addresses::Unknown`], and only if it depends on them.
    #[must_use]
    pub fn evaluate(&self, request: &Request<'_>, addresses: Addresses<'_>) -> Outcome {
        if self.everything || self.matches_facts(request) {
            return Outcome::Match;
        }
        if request
            .name
            .as_ref()
            .is_some_and(|name| self.matches_name(name))
        {
            return Outcome::Match;
        }
        let own = match (&request.ip, addresses) {
            _ if self.networks.is_empty() => &[],
            (None, Addresses::Unknown) => {
                return self.evaluate_groups(Outcome::NeedsLookup, request, addresses);
            }
            (None, Addresses::Known(all)) => all,
            (Some(ip), _) => core::slice::from_ref(ip),
        };
        if own.iter().any(|ip| self.networks.contains(*ip)) {
            return Outcome::Match;
        }
        self.evaluate_groups(Outcome::NoMatch, request, addresses)
    }

    /// Returns the outcome of all conditions, of which those outside of groups have the given one.
    fn evaluate_groups(
        &self,
        mut outcome: Outcome,
        request: &Request<'_>,
        addresses: Addresses<'_>,
    ) -> Outcome {
        for group in &self.groups {
            outcome = outcome.or(group.evaluate(request, addresses));
            if outcome == Outcome::Match {
                break;
            }
        }
        outcome
    }

    fn matches_name(&self, name: &NameKey) -> bool {
        self.names.contains(name)
            || self.keywords.is_in(name.bytes())
            || self.globs.iter().any(|glob| glob.matches(name.bytes()))
            || (!self.patterns.is_empty() && {
                let text = name.text();
                self.patterns.iter().any(|pattern| pattern.matches(text))
            })
    }

    /// True if a condition other than those on the target's host matches.
    fn matches_facts(&self, request: &Request<'_>) -> bool {
        let listed = |list: &[Box<str>], name: Option<&str>| {
            name.is_some_and(|name| list.binary_search_by(|own| (**own).cmp(name)).is_ok())
        };
        request
            .transport
            .is_some_and(|transport| self.transports & transport.bit() != 0)
            || self.ports.contains(request.port)
            || request.source.is_some_and(|source| {
                self.sources.contains(source.ip()) || self.source_ports.contains(source.port())
            })
            || listed(&self.users, request.user)
            || listed(&self.listeners, request.listener)
    }

    /// True if a decision may depend on the addresses of a name.
    #[must_use]
    pub fn has_networks(&self) -> bool {
        let inside = |group: &Group| match group {
            Group::All(sets) => sets.iter().any(Self::has_networks),
            Group::Not(set) => set.has_networks(),
        };
        !self.networks.is_empty() || self.groups.iter().any(inside)
    }

    /// True if the set has conditions on names.
    #[must_use]
    pub fn has_names(&self) -> bool {
        let inside = |group: &Group| match group {
            Group::All(sets) => sets.iter().any(Self::has_names),
            Group::Not(set) => set.has_names(),
        };
        self.names.len() + self.keywords.len() > 0
            || !(self.globs.is_empty() && self.patterns.is_empty())
            || self.groups.iter().any(inside)
    }

    /// True if an address alone matches, by a network that no other condition restricts.
    #[must_use]
    pub fn contains_address(&self, ip: IpAddr) -> bool {
        self.networks.contains(ip)
    }

    /// Returns the networks that no other condition restricts: the fewest with the same addresses.
    pub fn networks(&self) -> impl Iterator<Item = IpNet> {
        self.networks.networks()
    }

    /// Returns the number of conditions after compilation. Names below a domain of the set, and networks
    /// inside of others, are not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        let inside = |group: &Group| match group {
            Group::All(sets) => sets.iter().map(Self::len).sum(),
            Group::Not(set) => set.len(),
        };
        usize::from(self.everything)
            + self.transports.count_ones() as usize
            + self.names.len()
            + self.keywords.len()
            + self.globs.len()
            + self.patterns.len()
            + self.networks.len()
            + self.ports.len()
            + self.sources.len()
            + self.source_ports.len()
            + self.users.len()
            + self.listeners.len()
            + self.groups.iter().map(inside).sum::<usize>()
    }

    /// True if the set has no condition, so that nothing matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the occupied memory, in bytes, without that of regular expressions.
    #[must_use]
    pub fn memory(&self) -> usize {
        let inside = |group: &Group| match group {
            Group::All(sets) => sets.iter().map(Self::memory).sum(),
            Group::Not(set) => set.memory(),
        };
        let texts = |list: &[Box<str>]| -> usize {
            list.iter().map(|text| text.len() + size_of_val(text)).sum()
        };
        size_of::<Self>()
            + self.names.memory()
            + self.keywords.memory()
            + self.globs.iter().map(Glob::memory).sum::<usize>()
            + self.networks.memory()
            + self.ports.memory()
            + self.sources.memory()
            + self.source_ports.memory()
            + texts(&self.users)
            + texts(&self.listeners)
            + self.groups.iter().map(inside).sum::<usize>()
    }

    /// Counts this set and those inside of it.
    pub(crate) fn count_all(&self) -> Nested {
        let own = Nested {
            sets: 1,
            patterns: self.patterns.len(),
        };
        let inside = self.groups.iter().flat_map(|group| match group {
            Group::All(sets) => &**sets,
            Group::Not(set) => core::slice::from_ref(&**set),
        });
        inside.map(Self::count_all).fold(own, |all, one| Nested {
            sets: all.sets + one.sets,
            patterns: all.patterns + one.patterns,
        })
    }

    /// Returns the number of levels of sets in this one.
    pub(crate) fn depth(&self) -> usize {
        let inside = |group: &Group| match group {
            Group::All(sets) => sets.iter().map(Self::depth).max().unwrap_or_default(),
            Group::Not(set) => set.depth(),
        };
        self.groups
            .iter()
            .map(inside)
            .max()
            .map_or(0, |deep| deep + 1)
    }
}

impl Group {
    pub(crate) fn evaluate(&self, request: &Request<'_>, addresses: Addresses<'_>) -> Outcome {
        match self {
            Self::Not(set) => set.evaluate(request, addresses).not(),
            Self::All(sets) => {
                let mut outcome = Outcome::Match;
                for set in sets {
                    outcome = match set.evaluate(request, addresses) {
                        Outcome::NoMatch => return Outcome::NoMatch,
                        Outcome::NeedsLookup => Outcome::NeedsLookup,
                        Outcome::Match => outcome,
                    };
                }
                outcome
            }
        }
    }
}
