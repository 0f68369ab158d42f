//! A log of what a replay filter has accepted, for a second filter that must agree.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The decisions of a replay filter while another filter, in another process for example, has to confirm each of them.
///
/// The log is off at first: nothing is recorded. The bytes of an entry are a matter of the filter.
#[derive(Debug, Default)]
pub struct DecisionLog {
    is_on: AtomicBool,
    entries: Mutex<Vec<Vec<u8>>>,
}

impl DecisionLog {
    /// Starts or stops to record. What was recorded before is dropped.
    pub fn set_recording(&self, is_on: bool) {
        let mut entries = self.lock_entries();
        entries.clear();
        self.is_on.store(is_on, Ordering::Release);
    }

    /// Records a decision; `entry` is not called while the log is off.
    pub fn record(&self, entry: impl FnOnce() -> Vec<u8>) {
        if self.is_on.load(Ordering::Acquire) {
            self.lock_entries().push(entry());
        }
    }

    /// Takes all entries, the oldest first.
    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.lock_entries())
    }

    /// Ignores poisoning: an entry is complete when it is added.
    fn lock_entries(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_happens_meanwhile_is_recorded() {
        let log = DecisionLog::default();
        log.record(|| unreachable!("it is off"));
        assert!(log.take().is_empty());
        log.set_recording(true);
        log.record(|| vec![1]);
        log.record(|| vec![2]);
        assert_eq!(log.take(), [[1], [2]]);
        log.record(|| vec![3]);
        log.set_recording(false);
        log.record(|| unreachable!("it is off"));
        assert!(log.take().is_empty());
    }
}
