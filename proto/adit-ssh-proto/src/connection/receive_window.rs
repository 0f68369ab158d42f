//! Self-tuning receive window of a channel, and the budget of all channels.
//!
//! A window should hold what the peer can send in one round trip: if all of it was consumed within
//! 1.5 round trips, the link may hold more, and the window doubles. If the reader is slow, the
//! window keeps its size. It does not grow beyond what is useful: OpenSSH's server reads as much as
//! the window lets it send, which costs it nearly twice the CPU time.

use core::time::Duration;

use adit_wire::{Time, u64_from};

/// Minimum size of a window adjustment in bytes, if the window is large enough to continue
/// meanwhile.
const BATCH: u32 = 256 << 10;
/// Maximum size of a delayed window adjustment in bytes: on a path with a high delay, ungranted
/// bytes are missing in the window.
const MOST: u32 = 1 << 20;

/// Receive window of a local channel. `window + unread` never exceeds `target`.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    /// Number of bytes that the peer may still send.
    window: u32,
    /// Number of bytes received and not consumed.
    unread: u32,
    /// Maximum of the sum of both.
    target: u32,
    /// Start of the interval in which `taken` bytes were consumed.
    since: Time,
    taken: u32,
}

impl ReceiveWindow {
    pub(super) const fn new(target: u32) -> Self {
        Self {
            window: target,
            unread: 0,
            target,
            since: Time(0),
            taken: 0,
        }
    }

    /// Returns the size of the window when no data is in transit.
    pub(super) const fn target(&self) -> u32 {
        self.target
    }

    /// Returns the number of bytes received and not consumed.
    pub(super) const fn unread(&self) -> u32 {
        self.unread
    }

    /// Records received data; returns false if it exceeds the window.
    pub(super) fn receive(&mut self, now: Time, len: u32) -> bool {
        let Some(window) = self.window.checked_sub(len) else {
            return false;
        };
        if self.taken == 0 && self.unread == 0 {
            // The preceding pause was not caused by the window.
            self.since = now;
        }
        self.window = window;
        self.unread += len;
        true
    }

    /// Records consumed data, up to the unread amount.
    pub(super) fn consume(&mut self, len: u32) {
        let len = len.min(self.unread);
        self.unread -= len;
        self.taken = self.taken.saturating_add(len);
    }

    /// True if the window limits the sender. Call it after each [`ReceiveWindow::consume`].
    pub(super) fn is_tight(&mut self, now: Time, rtt: Duration) -> bool {
        let quick = now.duration_since(self.since) <= rtt.saturating_add(rtt / 2);
        if quick && self.taken < self.target {
            return false;
        }
        (self.since, self.taken) = (now, 0);
        quick && self.unread <= self.target / 2
    }

    /// Widens the window.
    pub(super) fn grow(&mut self, by: u32) {
        self.target = self.target.saturating_add(by);
    }

    /// True if an adjustment is worth a message. It always is before the sender has to stop: with
    /// everything consumed, either half of the window is left or half of it can be granted.
    pub(super) fn is_due(&self) -> bool {
        self.bytes_until_due() == 0
    }

    /// Returns the number of bytes that have to be consumed before an adjustment is worth a
    /// message.
    pub(super) fn bytes_until_due(&self) -> u32 {
        let worth = (self.target / 4).clamp(BATCH, MOST);
        let worth = worth.min(self.target / 2).max(1);
        worth.saturating_sub(self.grantable())
    }

    /// Grants all bytes that can be granted, and returns their number.
    pub(super) fn grant_all(&mut self) -> u32 {
        let more = self.grantable();
        self.window += more;
        more
    }

    const fn grantable(&self) -> u32 {
        self.target - self.window - self.unread
    }
}

/// Sum of the windows of all channels, and its limit, in bytes.
#[derive(Debug)]
pub(super) struct WindowBudget {
    limit: u64,
    given: u64,
}

impl WindowBudget {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: u64_from(limit),
            given: 0,
        }
    }

    /// Returns the window of a new channel: `wanted` or a quarter of the remaining budget, but at
    /// least `floor`.
    pub(super) fn allot_window(&mut self, wanted: u32, floor: u32) -> u32 {
        let left = self.limit.saturating_sub(self.given) / 4;
        let window = saturate_u32(left).clamp(floor, wanted.max(floor));
        self.given += u64::from(window);
        window
    }

    /// Returns by how much a window may grow: at most its size, and 0 if the step would be too
    /// small.
    pub(super) fn allot_growth(&mut self, target: u32, max: u32) -> u32 {
        let left = (self.limit - self.limit / 8).saturating_sub(self.given);
        let by = target
            .min(max.saturating_sub(target))
            .min(saturate_u32(left));
        if by < target / 8 {
            return 0;
        }
        self.given += u64::from(by);
        by
    }

    /// Returns the window of a removed channel to the budget.
    pub(super) fn release_window(&mut self, target: u32) {
        self.given = self.given.saturating_sub(u64::from(target));
    }

    #[cfg(test)]
    pub(super) const fn given(&self) -> u64 {
        self.given
    }
}

fn saturate_u32(octets: u64) -> u32 {
    u32::try_from(octets).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_window_grows_for_a_reader_that_keeps_up_and_for_no_other() {
        let rtt = Duration::from_micros(100);
        let mut intake = ReceiveWindow::new(1000);
        let fill = |intake: &mut ReceiveWindow, at: u64, used: u32| {
            assert!(intake.receive(Time(at), 1000));
            intake.consume(used);
            let tight = intake.is_tight(Time(at + 140), rtt);
            intake.grant_all();
            tight
        };
        assert!(!fill(&mut intake, 0, 999), "not all was consumed");
        intake.consume(1);
        assert!(intake.is_tight(Time(150), rtt));
        intake.grow(1000);
        assert_eq!(intake.grant_all(), 1001);
        // Twice as much within the same time, but after a pause, which is not counted.
        assert!(intake.receive(Time(9000), 2000));
        intake.consume(2000);
        assert!(intake.is_tight(Time(9150), rtt));
        // Too slow.
        intake.grant_all();
        assert!(intake.receive(Time(20_000), 2000));
        intake.consume(1000);
        assert!(!intake.is_tight(Time(20_100), rtt));
        intake.consume(1000);
        assert!(!intake.is_tight(Time(20_151), rtt));
    }

    #[test]
    fn an_adjust_is_due_when_what_lacks_was_consumed() {
        let cases = [
            (16 << 20, 1 << 20),
            (2 << 20, 512 << 10),
            (600 << 10, 256 << 10),
            (1000, 500),
        ];
        for (target, lacks) in cases {
            let mut intake = ReceiveWindow::new(target);
            assert!(intake.receive(Time(0), target));
            assert_eq!(intake.bytes_until_due(), lacks);
            intake.consume(lacks - 1);
            assert!(!intake.is_due() && intake.bytes_until_due() == 1);
            intake.consume(1);
            assert!(intake.is_due());
            assert_eq!(intake.grant_all(), lacks);
            assert_eq!(intake.bytes_until_due(), lacks, "and again");
        }
    }

    #[test]
    fn the_budget_leaves_something_for_channels_to_come() {
        let mut budget = WindowBudget::new(64 << 20);
        let mut big = budget.allot_window(2 << 20, 32 << 10);
        assert_eq!(big, 2 << 20);
        loop {
            match budget.allot_growth(big, 64 << 20) {
                0 => break,
                by => big += by,
            }
        }
        assert_eq!(big, 56 << 20);
        let rest: Vec<u32> = (0..1023)
            .map(|_| budget.allot_window(2 << 20, 32 << 10))
            .collect();
        assert_eq!(rest[0], 2 << 20);
        assert!(rest.iter().all(|window| *window >= 32 << 10));
        assert!(budget.given() <= (64 << 20) + (32 << 20));
        budget.release_window(big);
        assert_eq!(budget.allot_window(2 << 20, 32 << 10), 2 << 20);
    }

    proptest! {
        /// In any order of events, the sender always gets a window again.
        #[test]
        fn no_window_is_too_small(target in 1u32..3_000_000, steps in proptest::collection::vec(any::<u32>(), 1..60)) {
            let mut intake = ReceiveWindow::new(target);
            for step in steps {
                let before = (intake.window, intake.unread);
                prop_assert_eq!(intake.receive(Time(0), step), step <= before.0);
                if step > before.0 {
                    intake.receive(Time(0), before.0);
                }
                intake.consume(step.rotate_left(7));
                prop_assert!(intake.window + intake.unread <= target);
                if intake.is_due() {
                    intake.grant_all();
                }
                if intake.unread == 0 {
                    prop_assert!(intake.window > 0);
                }
            }
        }
    }
}
