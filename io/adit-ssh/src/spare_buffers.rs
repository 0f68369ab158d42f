//! Buffers that circulate within one session.
//!
//! One thread fills a channel's buffers and another empties them. With per-thread pools the buffers
//! would pile up in one pool while the other thread kept allocating.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use adit_stream::pool::SizeClass;

use adit_stream::PooledBuffer;

/// Maximum number of buffers kept: 2.3 MiB at the largest size.
const MAX_KEPT: usize = 8;

/// Empty buffers above the smallest size, kept while bytes flow and released by [`SpareBuffers::release_unused`].
#[derive(Debug, Default)]
pub(super) struct SpareBuffers {
    held: Mutex<Vec<PooledBuffer>>,
    used: AtomicBool,
}

impl SpareBuffers {
    /// Returns an empty buffer with a capacity of at least `min` bytes.
    pub(super) fn take_buffer(&self, min: usize) -> PooledBuffer {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = held.iter().rposition(|buffer| buffer.capacity() >= min);
        let found = fits.map(|place| held.swap_remove(place));
        drop(held);
        found.unwrap_or_else(|| {
            let mut buffer = PooledBuffer::default();
            buffer.reserve(min);
            buffer
        })
    }

    /// Takes back an emptied buffer.
    pub(super) fn put_buffer(&self, mut buffer: PooledBuffer) {
        if buffer.capacity() <= SizeClass::SMALL.bytes() {
            return;
        }
        buffer.clear();
        self.used.store(true, Ordering::Relaxed);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() < MAX_KEPT {
            held.push(buffer);
        }
    }

    /// Releases all buffers if none came back since the last call; returns true if there are any left.
    pub(super) fn release_unused(&self) -> bool {
        if self.used.swap(false, Ordering::Relaxed) {
            return true;
        }
        let held = core::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        drop(held);
        false
    }

    /// Returns true if there may be buffers to release.
    pub(super) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_go_round_and_rest_when_nothing_flows() {
        let spares = SpareBuffers::default();
        let large = SizeClass::LARGE.bytes();
        for _ in 0..3 * MAX_KEPT {
            spares.put_buffer(spares.take_buffer(large));
        }
        let all: Vec<PooledBuffer> = (0..3 * MAX_KEPT)
            .map(|_| spares.take_buffer(large))
            .collect();
        all.into_iter().for_each(|buffer| spares.put_buffer(buffer));
        assert_eq!(spares.held.lock().unwrap().len(), MAX_KEPT);
        assert!(
            spares.take_buffer(100).capacity() >= large,
            "a kept buffer is reused"
        );
        assert!(spares.is_used() && spares.release_unused());
        assert!(!spares.is_used() && !spares.release_unused());
        assert!(spares.held.lock().unwrap().is_empty());
        spares.put_buffer(spares.take_buffer(1));
        assert!(!spares.is_used(), "small buffers are not kept");
    }
}
