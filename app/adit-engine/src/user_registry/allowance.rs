//! The bytes that the sessions of a user may move, and their charges.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use super::entry::{BLOCKED, HAS_QUOTA, HAS_RATE, LEASED, OVER_QUOTA, UserEntry};
use super::token_bucket::{QueueTicket, TokenBucket};

/// A session moves no more than 1/`QUOTA_PART` of what is left of the quota at once, so that all that are polled at
/// the same time exceed it by little.
const QUOTA_PART: i64 = 64;
/// The same for a lease. A quarter of the largest one, at which the next is requested, allows a whole pipe of 1 MiB: with a
/// 64th, a relay on one connection needed twice as many calls of `splice(2)`, and 15 % more processor time.
const LEASE_PART: i64 = 16;
/// Minimum of that number of bytes.
const MIN_PIECE: usize = 16 << 10;

impl UserEntry {
    /// Returns the number of bytes that a session may move now, or wakes the task of `cx` later. A user that is blocked
    /// may move nothing: their sessions are about to end.
    pub(crate) fn poll_allowance(
        &self,
        cx: &Context<'_>,
        is_up: bool,
        ticket: &QueueTicket,
    ) -> Poll<usize> {
        let checks = self.checks.load(Ordering::Relaxed);
        if checks == 0 {
            return Poll::Ready(usize::MAX);
        }
        if checks & BLOCKED != 0 {
            return Poll::Pending;
        }
        let mut most = usize::MAX;
        if checks & HAS_QUOTA != 0 {
            let mut left = self.budget.load(Ordering::Relaxed);
            if left <= 0
                && checks & LEASED != 0
                && let Some(part) = self.fleet.get()
            {
                let lease = || self.budget.load(Ordering::Relaxed);
                ready!(part.poll_lease(cx, lease));
                left = lease();
            }
            let part = match checks & LEASED {
                0 => QUOTA_PART,
                _ => LEASE_PART,
            };
            let piece = usize::try_from(left / part).unwrap_or_default();
            let left = usize::try_from(left).unwrap_or_default();
            most = piece.max(MIN_PIECE).min(left.max(1));
        }
        match self.bucket(checks, is_up) {
            Some(bucket) => bucket.poll_turn(cx, ticket).map(|turn| turn.min(most)),
            None => Poll::Ready(most),
        }
    }

    /// Charges bytes that a session has moved.
    pub(crate) fn charge(&self, n: usize, is_up: bool) {
        let checks = self.checks.load(Ordering::Relaxed);
        if checks == 0 {
            return;
        }
        if let Some(bucket) = self.bucket(checks, is_up) {
            bucket.take(n);
        }
        if checks & HAS_QUOTA != 0 {
            self.spend(n, checks);
        }
    }

    /// Charges a datagram; returns false if it must not pass.
    pub(crate) fn charge_datagram(&self, n: usize, is_up: bool) -> bool {
        let checks = self.checks.load(Ordering::Relaxed);
        if checks == 0 {
            return true;
        }
        if checks & BLOCKED != 0 {
            return false;
        }
        // A datagram waits for nothing, but requests a lease.
        if checks & LEASED != 0 && self.budget.load(Ordering::Relaxed) <= 0 {
            self.spend(0, checks);
            return false;
        }
        if self
            .bucket(checks, is_up)
            .is_some_and(|bucket| !bucket.try_take(n))
        {
            return false;
        }
        if checks & HAS_QUOTA != 0 {
            self.spend(n, checks);
        }
        true
    }

    fn bucket(&self, checks: u8, is_up: bool) -> Option<&Arc<TokenBucket>> {
        let rates = self.rates.get().filter(|_| checks & HAS_RATE != 0)?;
        Some(if is_up { &rates.up } else { &rates.down })
    }

    /// Takes bytes from the quota.
    fn spend(&self, n: usize, checks: u8) {
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        let before = self.budget.fetch_sub(n, Ordering::Relaxed);
        if checks & LEASED != 0 {
            if let Some(part) = self.fleet.get() {
                part.check_lease(before.saturating_sub(n));
            }
        } else if before <= n {
            self.end_quota();
        }
    }

    /// Blocks the user, whose quota is used up.
    #[cold]
    fn end_quota(&self) {
        let record = self.lock();
        // The quota may have been raised meanwhile.
        if self.budget.load(Ordering::Relaxed) > 0 {
            return;
        }
        let before = self.checks.fetch_or(OVER_QUOTA, Ordering::AcqRel);
        if before & OVER_QUOTA == 0 {
            self.interrupt_sessions(&record, OVER_QUOTA);
        }
    }
}
