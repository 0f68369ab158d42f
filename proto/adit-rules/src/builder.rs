//! Compilation of conditions.

use core::net::IpAddr;
use core::ops::RangeInclusive;

use ipnet::IpNet;

use crate::bounds::{
    AddError, LIST_PATTERN_SIZE, MAX_ALL_PATTERNS, MAX_DEPTH, MAX_GLOBS, MAX_KEYWORDS, MAX_PATTERN,
    MAX_PATTERNS, MAX_PEERS, MAX_SETS, MAX_TEXT,
};
use crate::condition::Condition;
use crate::glob::Glob;
use crate::keyword_set::KeywordSet;
use crate::name::rule_name;
use crate::name_table::{BELOW, EXACT, NameTableBuilder};
use crate::network_table::{NetworkTableBuilder, Ranges};
use crate::pattern::NamePattern;
use crate::request::Transport;
use crate::rule_set::{Group, Nested, RuleSet};

/// Conditions that become a [`RuleSet`], in any order.
#[derive(Debug, Clone, Default)]
pub struct RuleSetBuilder {
    set: RuleSet,
    names: NameTableBuilder,
    keywords: Vec<Box<[u8]>>,
    globs: Vec<Glob>,
    patterns: Vec<NamePattern>,
    networks: NetworkTableBuilder,
    ports: Vec<(u16, u16)>,
    sources: NetworkTableBuilder,
    source_ports: Vec<(u16, u16)>,
    users: Vec<Box<str>>,
    listeners: Vec<Box<str>>,
    groups: Vec<Group>,
    nested: Nested,
}

impl RuleSetBuilder {
    /// Creates a builder of an empty set, which matches nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition.
    ///
    /// # Errors
    ///
    /// [`AddError`] if the condition's text is not valid or the set is full; nothing is added then. The same
    /// applies to the other methods.
    pub fn add(&mut self, condition: Condition) -> Result<(), AddError> {
        match condition {
            Condition::Any => self.set.everything = true,
            Condition::Network(net) => self.add_network(&net),
            Condition::NameExact(name) => self.add_exact(&name)?,
            Condition::NameSuffix(name) => self.add_below(&name)?,
            Condition::Domain(name) => self.add_domain(&name)?,
            Condition::Keyword(word) => self.add_keyword(&word)?,
            Condition::Glob(glob) => self.push_glob(glob)?,
            Condition::Pattern(pattern) => self.push_pattern(pattern)?,
            Condition::Ports(ports) => self.add_ports(ports),
            Condition::Transport(transport) => self.add_transport(transport),
            Condition::Source(net) => self.add_source(&net),
            Condition::SourcePorts(ports) => self.add_source_ports(ports),
            Condition::User(user) => self.add_user(&user)?,
            Condition::Listener(listener) => self.add_listener(&listener)?,
        }
        Ok(())
    }

    /// Adds this name alone.
    pub fn add_exact(&mut self, name: &str) -> Result<(), AddError> {
        self.add_name(name, EXACT)
    }

    /// Adds the names below this one, without the name itself.
    pub fn add_below(&mut self, name: &str) -> Result<(), AddError> {
        self.add_name(name, BELOW)
    }

    /// Adds a name and all names below.
    pub fn add_domain(&mut self, name: &str) -> Result<(), AddError> {
        self.add_name(name, EXACT | BELOW)
    }

    fn add_name(&mut self, name: &str, kind: u8) -> Result<(), AddError> {
        let name = rule_name(name).ok_or(AddError::Name)?;
        let added = self.names.add(&name, kind);
        added.then_some(()).ok_or(AddError::TooMany("names"))
    }

    /// Adds names that contain this text.
    pub fn add_keyword(&mut self, word: &str) -> Result<(), AddError> {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if word.is_empty() || word.len() > MAX_TEXT || !word.chars().all(good) {
            return Err(AddError::Keyword);
        }
        if self.keywords.len() >= MAX_KEYWORDS {
            return Err(AddError::TooMany("keywords"));
        }
        let word = word.to_ascii_lowercase();
        self.keywords.push(word.into_bytes().into());
        Ok(())
    }

    /// Adds names that a pattern with wildcards matches; see [`Glob`].
    pub fn add_glob(&mut self, glob: &str) -> Result<(), AddError> {
        self.push_glob(Glob::parse(glob).ok_or(AddError::Glob)?)
    }

    fn push_glob(&mut self, glob: Glob) -> Result<(), AddError> {
        if self.globs.len() >= MAX_GLOBS {
            return Err(AddError::TooMany("patterns"));
        }
        self.globs.push(glob);
        Ok(())
    }

    /// Adds names that contain a match of a regular expression, of up to 64 KiB compiled.
    pub fn add_pattern(&mut self, pattern: &str) -> Result<(), AddError> {
        self.push_pattern(NamePattern::with_limit(pattern, LIST_PATTERN_SIZE)?)
    }

    fn push_pattern(&mut self, pattern: NamePattern) -> Result<(), AddError> {
        if pattern.as_str().len() > MAX_PATTERN {
            return Err(AddError::Pattern(format!(
                "longer than {MAX_PATTERN} bytes"
            )));
        }
        if self.patterns.len() >= MAX_PATTERNS {
            return Err(AddError::TooMany("regular expressions"));
        }
        self.patterns.push(pattern);
        Ok(())
    }

    /// Adds the addresses of a network.
    pub fn add_network(&mut self, net: &IpNet) {
        self.networks.add(net);
    }

    /// Adds the addresses from `start` to `end`, both included.
    pub fn add_range(&mut self, start: IpAddr, end: IpAddr) -> Result<(), AddError> {
        let added = self.networks.add_range(start, end);
        added.then_some(()).ok_or(AddError::Network)
    }

    /// Adds ports of targets. An empty range adds nothing.
    pub fn add_ports(&mut self, ports: RangeInclusive<u16>) {
        push_ports(&mut self.ports, &ports);
    }

    /// Adds a transport.
    pub fn add_transport(&mut self, transport: Transport) {
        self.set.transports |= transport.bit();
    }

    /// Adds a network of clients.
    pub fn add_source(&mut self, net: &IpNet) {
        self.sources.add(net);
    }

    /// Adds a range of addresses of clients.
    pub(crate) fn add_source_range(&mut self, start: IpAddr, end: IpAddr) -> Result<(), AddError> {
        let added = self.sources.add_range(start, end);
        added.then_some(()).ok_or(AddError::Network)
    }

    /// Adds ports of clients. An empty range adds nothing.
    pub fn add_source_ports(&mut self, ports: RangeInclusive<u16>) {
        push_ports(&mut self.source_ports, &ports);
    }

    /// Adds an authenticated user.
    pub fn add_user(&mut self, user: &str) -> Result<(), AddError> {
        push_text(&mut self.users, user, "users")
    }

    /// Adds a listener.
    pub fn add_listener(&mut self, listener: &str) -> Result<(), AddError> {
        push_text(&mut self.listeners, listener, "listeners")
    }

    /// Adds requests that match each of the sets. Without a set nothing is added.
    pub fn add_all(&mut self, sets: Vec<RuleSet>) -> Result<(), AddError> {
        if !sets.is_empty() {
            self.count_nested(&sets)?;
            self.groups.push(Group::All(sets.into()));
        }
        Ok(())
    }

    /// Adds requests that do not match the set.
    pub fn add_not(&mut self, set: RuleSet) -> Result<(), AddError> {
        self.count_nested(core::slice::from_ref(&set))?;
        self.groups.push(Group::Not(set.into()));
        Ok(())
    }

    fn count_nested(&mut self, sets: &[RuleSet]) -> Result<(), AddError> {
        if sets.iter().any(|set| set.depth() >= MAX_DEPTH) {
            return Err(AddError::Depth);
        }
        let mut nested = self.nested;
        for set in sets {
            nested = nested.with(set.count_all())?;
        }
        self.nested = nested;
        Ok(())
    }

    /// Moves all conditions of another builder into this one.
    pub fn append(&mut self, mut other: Self) -> Result<(), AddError> {
        let full = [
            (self.globs.len() + other.globs.len(), MAX_GLOBS, "patterns"),
            (
                self.keywords.len() + other.keywords.len(),
                MAX_KEYWORDS,
                "keywords",
            ),
            (
                self.patterns.len() + other.patterns.len(),
                MAX_PATTERNS,
                "regular expressions",
            ),
            (self.users.len() + other.users.len(), MAX_PEERS, "users"),
            (
                self.listeners.len() + other.listeners.len(),
                MAX_PEERS,
                "listeners",
            ),
        ];
        if let Some((_, _, kind)) = full.iter().find(|(sum, most, _)| sum > most) {
            return Err(AddError::TooMany(kind));
        }
        let nested = self.nested.with(other.nested)?;
        if !self.names.append(&other.names) {
            return Err(AddError::TooMany("names"));
        }
        self.nested = nested;
        self.set.everything |= other.set.everything;
        self.set.transports |= other.set.transports;
        self.keywords.append(&mut other.keywords);
        self.globs.append(&mut other.globs);
        self.patterns.append(&mut other.patterns);
        self.networks.append(&mut other.networks);
        self.ports.append(&mut other.ports);
        self.sources.append(&mut other.sources);
        self.source_ports.append(&mut other.source_ports);
        self.users.append(&mut other.users);
        self.listeners.append(&mut other.listeners);
        self.groups.append(&mut other.groups);
        Ok(())
    }

    /// True if there is no condition yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !self.set.everything
            && self.set.transports == 0
            && self.names.is_empty()
            && self.keywords.is_empty()
            && self.globs.is_empty()
            && self.patterns.is_empty()
            && self.networks.is_empty()
            && self.ports.is_empty()
            && self.sources.is_empty()
            && self.source_ports.is_empty()
            && self.users.is_empty()
            && self.listeners.is_empty()
            && self.groups.is_empty()
    }

    /// Compiles the set.
    #[must_use]
    pub fn build(mut self) -> RuleSet {
        self.globs.sort_unstable();
        self.globs.dedup();
        for list in [&mut self.users, &mut self.listeners] {
            list.sort_unstable();
            list.dedup();
        }
        RuleSet {
            names: self.names.build(),
            keywords: KeywordSet::new(self.keywords),
            globs: self.globs.into(),
            patterns: self.patterns.into(),
            networks: self.networks.build(),
            ports: Ranges::new(self.ports),
            sources: self.sources.build(),
            source_ports: Ranges::new(self.source_ports),
            users: self.users.into(),
            listeners: self.listeners.into(),
            groups: self.groups.into(),
            ..self.set
        }
    }
}

impl Nested {
    /// Returns the sum.
    const fn with(self, other: Self) -> Result<Self, AddError> {
        let sum = Self {
            sets: self.sets.saturating_add(other.sets),
            patterns: self.patterns.saturating_add(other.patterns),
        };
        if sum.sets > MAX_SETS {
            return Err(AddError::TooMany("rules of rules"));
        }
        if sum.patterns > MAX_ALL_PATTERNS {
            return Err(AddError::TooMany("regular expressions"));
        }
        Ok(sum)
    }
}

fn push_ports(list: &mut Vec<(u16, u16)>, ports: &RangeInclusive<u16>) {
    if !ports.is_empty() {
        list.push((*ports.start(), *ports.end()));
    }
}

fn push_text(list: &mut Vec<Box<str>>, text: &str, kind: &'static str) -> Result<(), AddError> {
    if text.is_empty() || text.len() > MAX_TEXT {
        return Err(AddError::Text);
    }
    if list.len() >= MAX_PEERS {
        return Err(AddError::TooMany(kind));
    }
    list.push(text.into());
    Ok(())
}
