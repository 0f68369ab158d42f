//! The way of a request: stages of hops, and what can pass them.

use core::fmt;

use crate::scheme::typed::Hop;

/// Hops in the order they are passed. Empty means: straight to the target.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// The stages, from the near end to the far one. [`Hop::Direct`] occurs only in a group that
    /// is the first stage, [`Hop::Reject`] only as the one stage of its chain.
    pub hops: Vec<Stage>,
}

/// One step of a chain.
#[derive(Debug, PartialEq, Eq)]
pub enum Stage {
    /// One hop.
    One(Hop),
    /// Failover: the first that works, in this order; at least two.
    Group(Vec<Hop>),
}

impl Chain {
    /// True if UDP can pass: every stage has a hop that carries it.
    #[must_use]
    pub fn carries_udp(&self) -> bool {
        self.hops.iter().all(Stage::carries_udp)
    }
}

impl Stage {
    /// The hops of the stage: one, or those of the group.
    #[must_use]
    pub fn hops(&self) -> &[Hop] {
        match self {
            Self::One(hop) => core::slice::from_ref(hop),
            Self::Group(hops) => hops,
        }
    }

    /// True if one of its hops carries UDP.
    #[must_use]
    pub fn carries_udp(&self) -> bool {
        self.hops().iter().any(Hop::carries_udp)
    }
}

/// The hop, or the hops of the group with `|` between them.
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
