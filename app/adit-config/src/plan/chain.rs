//! Chains: the stages of hops that a request passes.

use core::fmt;

use crate::plan::group::NamedGroup;
use crate::scheme::endpoint_types::Hop;

/// Hops in the order in which they are passed. An empty chain connects to the target directly.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// The stages, the nearest first. [`Hop::Direct`] occurs only in a group that is the first stage,
    /// [`Hop::Reject`] only as the single stage of its chain.
    pub stages: Vec<Stage>,
}

/// A step of a chain.
#[derive(Debug, PartialEq, Eq)]
pub enum Stage {
    /// A single hop.
    Single(Hop),
    /// Failover: the first hop that works, in this order; at least two.
    Group(Vec<Hop>),
    /// A group with a name.
    Named(Box<NamedGroup>),
}

impl Chain {
    /// True if UDP can pass: every stage has a hop that carries it.
    #[must_use]
    pub fn carries_udp(&self) -> bool {
        self.stages.iter().all(Stage::carries_udp)
    }
}

impl Stage {
    /// Returns the hops at the end of the stage: one, or the last of each member of the group.
    #[must_use]
    pub fn hops(&self) -> &[Hop] {
        match self {
            Self::Single(hop) => core::slice::from_ref(hop),
            Self::Group(hops) => hops,
            Self::Named(group) => &group.hops,
        }
    }

    /// Returns all hops of the stage, including those before the last one of a member.
    pub fn all_hops(&self) -> impl Iterator<Item = &Hop> + Clone {
        let leads = match self {
            Self::Named(group) => &*group.leads,
            Self::Single(_) | Self::Group(_) => &[],
        };
        leads.iter().flatten().chain(self.hops())
    }

    /// True if one of its hops carries UDP, or all hops of one member.
    #[must_use]
    pub fn carries_udp(&self) -> bool {
        match self {
            Self::Named(group) => {
                (0..group.hops.len()).any(|at| group.member_hops(at).all(Hop::carries_udp))
            }
            _ => self.hops().iter().any(Hop::carries_udp),
        }
    }
}

/// Formats the hop, the hops of the group separated by `|`, or the name of the group.
impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Named(group) = self {
            return write!(f, "group {}", group.name);
        }
        for (i, hop) in self.hops().iter().enumerate() {
            if i > 0 {
                f.write_str(" | ")?;
            }
            hop.fmt(f)?;
        }
        Ok(())
    }
}
