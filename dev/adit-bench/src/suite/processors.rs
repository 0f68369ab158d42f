//! Processors for the processes that are measured, and others for their load.
//!
//! Where both share the processors, the cost of a transfer depends on who is run when: the margin of 120 pairs was 2.8 to
//! 3.7 %, and is 1.6 % with processors of their own.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors of this machine, shared out: the last one is for what is measured, the others for this program, and for
/// what it starts. Ends with the value. A machine with one processor has nothing to share.
#[derive(Debug)]
pub(super) struct SplitProcessors {
    all: CpuSet,
    measured: CpuSet,
    load: CpuSet,
}

impl SplitProcessors {
    /// Moves the current thread to the processors for the load, with the threads and processes that it starts from now on.
    pub(super) fn new() -> Result<Self> {
        let all = sched_getaffinity(None).context("the processors of this thread")?;
        let last = (0..CpuSet::MAX_CPU).rev().find(|at| all.is_set(*at));
        let (mut measured, mut load) = (all, all);
        if let Some(last) = last.filter(|_| all.count() > 1) {
            measured = CpuSet::new();
            measured.set(last);
            load.unset(last);
        }
        let split = Self {
            all,
            measured,
            load,
        };
        move_to(&split.load)?;
        Ok(split)
    }

    /// Runs `start`, which starts processes that are measured, on their processor: they inherit it.
    pub(super) fn start_measured<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        move_to(&self.measured)?;
        let started = start();
        move_to(&self.load)?;
        started
    }
}

impl Drop for SplitProcessors {
    fn drop(&mut self) {
        // Only a processor that was taken offline is refused.
        let _ = move_to(&self.all);
    }
}

fn move_to(processors: &CpuSet) -> Result<()> {
    sched_setaffinity(None, processors).context("cannot choose processors")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn own() -> CpuSet {
        sched_getaffinity(None).unwrap()
    }

    #[test]
    fn what_is_measured_has_a_processor_of_its_own() {
        let before = own();
        let split = SplitProcessors::new().unwrap();
        let allowed = || {
            let mut grep = Command::new("grep");
            grep.args(["Cpus_allowed_list", "/proc/self/status"]);
            anyhow::Ok(String::from_utf8(grep.output()?.stdout)?)
        };
        let measured = split.start_measured(allowed).unwrap();
        if before.count() > 1 {
            assert_eq!(own().count() + 1, before.count());
            assert_ne!(measured, allowed().unwrap());
        }
        drop(split);
        assert_eq!(own(), before);
    }
}
