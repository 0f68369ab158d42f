//! Chains: the stages of hops that a request passes.

use core::fmt;

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
}

impl Chain {
    /// True if UDP can pass: every stage has a hop that carries it.
    #[must_use]
    pub fn carries_udp(&self) -> bool {
        self.stages.iter().all(Stage::carries_udp)
    }
}

impl Stage {
    /// Returns the hops of the stage: one, or those of the group.
    #[must_use]
    pub fn hops(&self) -> &[Hop] {
        match self {
            Self::Single(hop) => core::slice::from_ref(hop),
            Self::Group(hops) => hops,
        }
    }

    /// True if one of its hops carries UDP.
    #[must_use]
    pub fn carries_udp(&self) -> bool {
        self.hops().iter().any(Hop::carries_udp)
    }
}

/// Formats the hop, or the hops of the group separated by `|`.
impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, hop) in self.hops().iter().enumerate() {
            if i > 0 {
                f.write_str(" | ")?;
            }
            hop.fmt(f)?;
        }
        Ok(())
    }
}
