//! The limit on queued output, and wakers of tasks that wait for space.

use std::task::{Context, Waker};

use adit_stream::pool::SIZES;

/// Maximum size of the output that waits in one channel, in bytes; one buffer may exceed it. It is a
/// little more than the largest buffer, so that a second one can be queued when the first is sent.
pub(super) const MAX_OUTPUT: usize = SIZES[SIZES.len() - 1] + (4 << 10);

/// Stores the waker of the task that waits.
pub(super) fn store_waker(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(old) => old.clone_from(cx.waker()),
        none => *none = Some(cx.waker().clone()),
    }
}
