//! Processors for the processes that are measured, and others for their load, or one for both.
//!
//! Where both share several processors, the cost of a transfer depends on who is run when: the margin of 120 pairs was 2.8
//! to 3.7 %, and is 1.6 % with processors of their own.

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors of this machine, assigned to what is measured, and to this program with what it starts. Ends with the
/// value.
#[derive(Debug)]
pub(super) struct AssignedProcessors {
    all: CpuSet,
    measured: CpuSet,
    load: CpuSet,
}

impl AssignedProcessors {
    /// Assigns the last one to what is measured, and the others to the load: the current thread, with the threads and
    /// processes that it starts from now on. A machine with one processor has nothing to split.
    pub(super) fn split() -> Result<Self> {
        let (all, last) = own_and_last()?;
        let mut load = all;
        if all.count() > 1 {
            load.unset(last);
        }
        Self::assign(all, last, load)
    }

    /// Assigns the last one to both.
    pub(super) fn single() -> Result<Self> {
        let (all, last) = own_and_last()?;
        Self::assign(all, last, set_of_one(last))
    }

    fn assign(all: CpuSet, last: usize, load: CpuSet) -> Result<Self> {
        let assigned = Self {
            all,
            measured: set_of_one(last),
            load,
        };
        move_to(&assigned.load)?;
        Ok(assigned)
    }

    /// Runs `start`, which starts processes that are measured, on their processor: they inherit it.
    pub(super) fn start_measured<T>(&self, start: impl FnOnce() -> Result<T>) -> Result<T> {
        move_to(&self.measured)?;
        let started = start();
        move_to(&self.load)?;
        started
    }
}

impl Drop for AssignedProcessors {
    fn drop(&mut self) {
        // Only a processor that was taken offline is refused.
        let _ = move_to(&self.all);
    }
}

/// Returns the processors of this thread, and the last of them.
fn own_and_last() -> Result<(CpuSet, usize)> {
    let all = sched_getaffinity(None).context("the processors of this thread")?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|at| all.is_set(*at));
    Ok((all, last.context("this thread has no processor")?))
}

fn set_of_one(processor: usize) -> CpuSet {
    let mut one = CpuSet::new();
    one.set(processor);
    one
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
        let split = AssignedProcessors::split().unwrap();
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
        let single = AssignedProcessors::single().unwrap();
        let measured = single.start_measured(allowed).unwrap();
        assert_eq!(own().count(), 1);
        assert_eq!(measured, allowed().unwrap());
        drop(single);
        assert_eq!(own(), before);
    }
}
