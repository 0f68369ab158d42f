//! The counter of a session, as one direction sees it.

use std::task::{Context, Poll};

use crate::CountBytes;

/// Counts the bytes of one direction.
pub(super) trait DirectionCounter {
    fn add(&self, n: usize);
    /// Returns the number of bytes that may be moved next.
    fn poll_allowance(&self, cx: &Context<'_>) -> Poll<usize>;
}

/// Counts the bytes from near to far.
pub(super) struct UpCounter<'a>(pub(super) &'a dyn CountBytes);

/// Counts the bytes from far to near.
pub(super) struct DownCounter<'a>(pub(super) &'a dyn CountBytes);

impl DirectionCounter for UpCounter<'_> {
    fn add(&self, n: usize) {
        self.0.add_up(n);
    }

    fn poll_allowance(&self, cx: &Context<'_>) -> Poll<usize> {
        self.0.poll_allowance_up(cx)
    }
}

impl DirectionCounter for DownCounter<'_> {
    fn add(&self, n: usize) {
        self.0.add_down(n);
    }

    fn poll_allowance(&self, cx: &Context<'_>) -> Poll<usize> {
        self.0.poll_allowance_down(cx)
    }
}
