//! A log of what a replay filter has accepted, for a second filter that must agree.

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    /// The step that this thread runs, if its decisions are recorded.
    static STEP: RefCell<Option<ObservedStep>> = const { RefCell::new(None) };
}

/// A step whose decisions are recorded.
struct ObservedStep {
    /// The address of the log.
    log: usize,
    entries: Vec<Vec<u8>>,
}

/// The decisions of a replay filter in steps that another filter, in another process for example, has to confirm.
///
/// Outside of [`observe`](Self::observe) nothing is recorded. Steps are distinguished by their threads, so that those
/// of several threads can be observed at the same time. The bytes of an entry are a matter of the filter.
#[derive(Debug, Default)]
pub struct DecisionLog {
    /// Number of steps that are observed now. While it is 0, a decision costs no more than this check.
    observed: AtomicUsize,
}

impl DecisionLog {
    /// Runs a step on this thread. Also returns what the filter has accepted in it, the oldest first.
    pub fn observe<T>(&self, step: impl FnOnce() -> T) -> (T, Vec<Vec<u8>>) {
        let outer = STEP.replace(Some(ObservedStep {
            log: self.address(),
            entries: Vec::new(),
        }));
        self.observed.fetch_add(1, Ordering::Relaxed);
        let mut end = StepEnd {
            log: self,
            outer: Some(outer),
        };
        let done = step();
        let observed = end.restore_outer();
        (done, observed.map_or_else(Vec::new, |step| step.entries))
    }

    /// Records a decision; `entry` is not called unless the step is observed.
    pub fn record(&self, entry: impl FnOnce() -> Vec<u8>) {
        // A step of this thread has increased it itself.
        if self.observed.load(Ordering::Relaxed) == 0 {
            return;
        }
        STEP.with_borrow_mut(|step| {
            if let Some(step) = step.as_mut().filter(|step| step.log == self.address()) {
                step.entries.push(entry());
            }
        });
    }

    /// Returns the address, which tells logs apart: one that is borrowed does not move.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// Ends the observation of a step, also of one that panics.
struct StepEnd<'a> {
    log: &'a DecisionLog,
    /// The step around it, until it is observed again.
    outer: Option<Option<ObservedStep>>,
}

impl StepEnd<'_> {
    /// Continues the step around this one. Returns this one, the first time.
    fn restore_outer(&mut self) -> Option<ObservedStep> {
        STEP.replace(self.outer.take()?)
    }
}

impl Drop for StepEnd<'_> {
    fn drop(&mut self) {
        self.log.observed.fetch_sub(1, Ordering::Relaxed);
        self.restore_outer();
    }
}
