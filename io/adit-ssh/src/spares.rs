//! Buffers that go round in one session.
//!
//! A channel's bytes are put into a buffer by one thread and taken out by another: the buffers
//! gather in the pool of the one, and the other would make new ones without end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use adit_stream::pool::Class;

use adit_stream::Buffer;

/// Buffers that are kept, at most: 2.3 MiB of the largest.
const KEEP: usize = 8;

/// Empty buffers above the smallest size. Kept while bytes flow; [`Spares::sweep`] ends that.
#[derive(Debug, Default)]
pub(super) struct Spares {
    held: Mutex<Vec<Buffer>>,
    used: AtomicBool,
}

impl Spares {
    /// An empty buffer with room for `min` bytes.
    pub(super) fn take(&self, min: usize) -> Buffer {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = held.iter().rposition(|buffer| buffer.capacity() >= min);
        let found = fits.map(|place| held.swap_remove(place));
        drop(held);
        found.unwrap_or_else(|| {
            let mut buffer = Buffer::default();
            buffer.reserve(min);
            buffer
        })
    }

    /// Takes an emptied buffer back.
    pub(super) fn put(&self, mut buffer: Buffer) {
        if buffer.capacity() <= Class::SMALL.bytes() {
            return;
        }
        buffer.clear();
        self.used.store(true, Ordering::Relaxed);
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() < KEEP {
            held.push(buffer);
        }
    }

    /// Gives all away if none came back since the last time; tells whether there are any.
    pub(super) fn sweep(&self) -> bool {
        if self.used.swap(false, Ordering::Relaxed) {
            return true;
        }
        let held = core::mem::take(&mut *self.held.lock().unwrap_or_else(PoisonError::into_inner));
        drop(held);
        false
    }

    /// Whether there are any to be swept.
    pub(super) fn is_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_go_round_and_rest_when_nothing_flows() {
        let spares = Spares::default();
        let large = Class::LARGE.bytes();
        for _ in 0..3 * KEEP {
            spares.put(spares.take(large));
        }
        let all: Vec<Buffer> = (0..3 * KEEP).map(|_| spares.take(large)).collect();
        all.into_iter().for_each(|buffer| spares.put(buffer));
        assert_eq!(spares.held.lock().unwrap().len(), KEEP);
        assert!(
            spares.take(100).capacity() >= large,
            "what there is, is taken"
        );
        assert!(spares.is_used() && spares.sweep());
        assert!(!spares.is_used() && !spares.sweep());
        assert!(spares.held.lock().unwrap().is_empty());
        spares.put(spares.take(1));
        assert!(!spares.is_used(), "small ones are not worth it");
    }
}
