//! Groups with a name, which several chains can use.

use core::fmt;

use adit_wire::Target;

use crate::scheme::endpoint_types::Hop;

/// The way that the members of a group are chosen. A member that has failed is last in every kind but `manual`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupKind {
    /// The first that works, in the order of the list.
    #[default]
    Failover,
    /// The one that answers fastest.
    Fastest,
    /// The one with the fewest open streams and associations.
    LeastLoaded,
    /// Each connection uses the next one.
    Spread,
    /// Each destination has one of its own.
    SpreadByDestination,
    /// The one that is selected, even if it has failed.
    Manual,
}

/// All kinds with their names.
const KINDS: [(&str, GroupKind); 6] = [
    ("failover", GroupKind::Failover),
    ("fastest", GroupKind::Fastest),
    ("least-loaded", GroupKind::LeastLoaded),
    ("spread", GroupKind::Spread),
    ("spread-by-destination", GroupKind::SpreadByDestination),
    ("manual", GroupKind::Manual),
];

impl GroupKind {
    /// Returns the names of all kinds.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|(name, _)| *name)
    }

    /// Returns the kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let found = KINDS.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = KINDS.iter().find(|(_, kind)| *kind == self);
        found.map_or("", |(name, _)| name)
    }
}

/// Formats the name.
impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A group with a name.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedGroup {
    /// The name: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// The way that members are chosen.
    pub kind: GroupKind,
    /// The member that a manual group uses at first, from 0.
    pub selected: usize,
    /// The target that probes request.
    pub check: Option<Target>,
    /// The names of the members; unique.
    pub member_names: Vec<String>,
    /// The last hop of each member; at least one.
    pub hops: Vec<Hop>,
    /// The hops before it, of each member.
    pub leads: Vec<Vec<Hop>>,
}

impl NamedGroup {
    /// Returns the hops of a member, in the order in which they are passed.
    pub fn member_hops(&self, at: usize) -> impl Iterator<Item = &Hop> {
        let leads = self.leads.get(at).into_iter().flatten();
        leads.chain(self.hops.get(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_names() {
        assert_eq!(GroupKind::names().count(), KINDS.len());
        for name in GroupKind::names() {
            assert_eq!(GroupKind::from_name(name).unwrap().to_string(), name);
        }
        assert_eq!(GroupKind::from_name("fallback"), None);
    }
}
