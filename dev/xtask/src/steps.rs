//! Named, timed steps: each prints one line, all of them run, and the results are counted.

use std::io::{IsTerminal, Write, stdout};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

use anyhow::Result;

/// Runs steps and counts their outcomes.
#[derive(Debug, Default)]
pub(crate) struct StepRunner {
    passed: usize,
    failed: Vec<FailedStep>,
}

#[derive(Debug)]
struct FailedStep {
    name: String,
    /// The first line of the error.
    why: String,
}

/// A step of a lane, for [`StepRunner::run_lanes`].
pub(crate) struct LaneStep {
    name: String,
    work: Box<dyn FnOnce() -> Result<String> + Send>,
}

impl LaneStep {
    pub(crate) fn new(
        name: impl Into<String>,
        work: impl FnOnce() -> Result<String> + Send + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            work: Box::new(work),
        }
    }
}

impl StepRunner {
    /// Runs one step. Its note is printed after its name; an error is printed below. Returns true
    /// if the step passed.
    pub(crate) fn run_step(&mut self, name: &str, work: impl FnOnce() -> Result<String>) -> bool {
        if stdout().is_terminal() {
            print!("  ..    {name}\r");
            let _ = stdout().flush();
        }
        let start = Instant::now();
        let outcome = work();
        self.report_outcome(name, outcome, start.elapsed())
    }

    /// Runs the same step for each of `names`, on all processors: for work that uses one thread
    /// each.
    pub(crate) fn run_parallel(
        &mut self,
        names: &[String],
        work: impl Fn(&str) -> Result<String> + Sync,
    ) {
        let next = AtomicUsize::new(0);
        let steps = Mutex::new(self);
        let run = || {
            while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                let start = Instant::now();
                let outcome = work(name);
                let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
                steps.report_outcome(name, outcome, start.elapsed());
            }
        };
        thread::scope(|scope| {
            for _ in 0..available_parallelism().map_or(1, usize::from) {
                scope.spawn(run);
            }
        });
    }

    /// Runs all lanes at the same time, and the steps of each lane one after the other: for builds that use one
    /// processor for most of their time. Those of different lanes have different build folders, or they would wait for
    /// each other.
    pub(crate) fn run_lanes(&mut self, lanes: Vec<Vec<LaneStep>>) {
        let steps = &Mutex::new(self);
        thread::scope(|scope| {
            for lane in lanes {
                scope.spawn(move || {
                    for LaneStep { name, work } in lane {
                        let start = Instant::now();
                        let outcome = work();
                        let mut steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
                        steps.report_outcome(&name, outcome, start.elapsed());
                    }
                });
            }
        });
    }

    fn report_outcome(&mut self, name: &str, outcome: Result<String>, took: Duration) -> bool {
        println!("{}", result_line(name, &outcome, took));
        match outcome {
            Ok(_) => {
                self.passed += 1;
                true
            }
            Err(why) => {
                let why = format!("{why:#}");
                for text in why.lines() {
                    println!("        {text}");
                }
                self.failed.push(FailedStep {
                    name: name.to_owned(),
                    why: why.lines().next().unwrap_or_default().to_owned(),
                });
                false
            }
        }
    }

    /// Prints the failed steps and, as the last line, the counts. Returns true if all steps passed.
    pub(crate) fn print_summary(&self) -> bool {
        for FailedStep { name, why } in &self.failed {
            println!("failed: {name}: {why}");
        }
        println!("{}", self.summary());
        self.failed.is_empty()
    }

    fn summary(&self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed.len())
    }
}

fn result_line(name: &str, outcome: &Result<String>, took: Duration) -> String {
    let (mark, note) = match outcome {
        Ok(note) => ("ok  ", note.as_str()),
        Err(_) => ("FAIL", ""),
    };
    let seconds = took.as_secs_f64();
    let line = format!("  {mark}  {name:<28} {seconds:>7.1} s  {note}");
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    fn names_of_failed(steps: &StepRunner) -> Vec<&str> {
        steps.failed.iter().map(|step| &*step.name).collect()
    }

    #[test]
    fn goes_on_after_a_failure_and_counts_both() {
        let mut steps = StepRunner::default();
        assert!(steps.run_step("one", || Ok(String::new())));
        assert!(!steps.run_step("two", || bail!("no\noutput")));
        assert!(steps.run_step("three", || Ok(String::new())));
        assert_eq!(steps.summary(), "2 passed, 1 failed");
        assert_eq!(steps.failed[0].why, "no");
        assert!(!steps.print_summary());
    }

    #[test]
    fn side_by_side_each_is_run_once_and_counted() {
        let mut steps = StepRunner::default();
        let names: Vec<_> = (0..9).map(|n| n.to_string()).collect();
        let ran = Mutex::new(Vec::new());
        steps.run_parallel(&names, |name| {
            ran.lock().unwrap().push(name.to_owned());
            if name == "4" {
                bail!("no")
            } else {
                Ok(String::new())
            }
        });
        let mut ran = ran.into_inner().unwrap();
        ran.sort();
        assert_eq!(ran, names);
        assert_eq!(steps.summary(), "8 passed, 1 failed");
        assert_eq!(names_of_failed(&steps), ["4"]);
    }

    #[test]
    fn lanes_run_at_the_same_time_and_each_in_order() {
        let mut steps = StepRunner::default();
        let (sender, receiver) = std::sync::mpsc::channel();
        let first = LaneStep::new("first", move || {
            // The other lane has to run meanwhile.
            receiver.recv_timeout(Duration::from_secs(20))?;
            Ok(String::new())
        });
        let second = LaneStep::new("second", || bail!("no"));
        let other = LaneStep::new("other", move || {
            sender.send(())?;
            Ok(String::new())
        });
        steps.run_lanes(vec![vec![first, second], vec![other]]);
        assert_eq!(steps.summary(), "2 passed, 1 failed");
        assert_eq!(names_of_failed(&steps), ["second"]);
    }

    #[test]
    fn a_line_has_mark_name_seconds_and_note() {
        let line = result_line(
            "fmt",
            &Ok("12 files".to_owned()),
            Duration::from_millis(1500),
        );
        assert!(line.starts_with("  ok    fmt "), "{line}");
        assert!(line.ends_with("    1.5 s  12 files"), "{line}");
    }
}
