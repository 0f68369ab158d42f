//! A rate limit for frames without effect: 100 per second, in bursts of 1,000.
//!
//! Without it a peer could keep this end busy with eight bytes at a time. An honest peer sends a
//! keep-alive every few seconds.

use adit_wire::{ProtocolError, Time};

/// Maximum number of frames in a burst.
const MAX_BURST: u64 = 1000;
/// Microseconds per frame.
const FRAME_INTERVAL: u64 = 10_000;

/// The remaining frames.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameBudget {
    /// Time at which the budget is full again.
    full_at: Time,
}

impl FrameBudget {
    pub(crate) const fn new(now: Time) -> Self {
        Self { full_at: now }
    }

    /// Takes one frame from the budget.
    pub(crate) fn spend_frame(&mut self, now: Time) -> Result<(), ProtocolError> {
        let full = Time(self.full_at.max(now).0.saturating_add(FRAME_INTERVAL));
        if full.0 - now.0 > MAX_BURST * FRAME_INTERVAL {
            return Err(ProtocolError::Exhausted(
                "the budget of frames without effect",
            ));
        }
        self.full_at = full;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_at_once_then_a_hundred_in_a_second() {
        let mut budget = FrameBudget::new(Time(0));
        let spend = |budget: &mut FrameBudget, now, count: u32| {
            (0..count)
                .filter(|_| budget.spend_frame(Time(now)).is_ok())
                .count()
        };
        assert_eq!(spend(&mut budget, 5, 2000), 1000);
        assert_eq!(spend(&mut budget, 1_000_005, 2000), 100);
        assert_eq!(spend(&mut budget, 3_600_000_000, 2000), 1000);
    }
}
