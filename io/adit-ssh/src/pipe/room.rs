//! How much may wait, and who waits for room.

use std::task::{Context, Waker};

use adit_stream::pool::SIZES;

/// Octets that wait in one channel to be sent, a little more than the largest buffer, so that there
/// is a second one when the first has left; one buffer may go beyond.
pub(super) const MAX_OUTPUT: usize = SIZES[SIZES.len() - 1] + (4 << 10);

/// Keeps who waits.
pub(super) fn keep(place: &mut Option<Waker>, cx: &Context<'_>) {
    match place {
        Some(old) => old.clone_from(cx.waker()),
        none => *none = Some(cx.waker().clone()),
    }
}
