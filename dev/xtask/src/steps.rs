//! Steps with a name and a time: one line each, all of them run, counted at the end.

use std::io::{IsTerminal, Write, stdout};
use std::time::{Duration, Instant};

use anyhow::Result;

/// Runs steps and counts how they ended.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    passed: usize,
    failed: Vec<String>,
}

impl Steps {
    /// Runs one step. What it returns stands behind its name; what it fails with stands below.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<String>) -> bool {
        if stdout().is_terminal() {
            print!("  ..    {name}\r");
            let _ = stdout().flush();
        }
        let start = Instant::now();
        let outcome = work();
        println!("{}", line(name, &outcome, start.elapsed()));
        match outcome {
            Ok(_) => {
                self.passed += 1;
                true
            }
            Err(why) => {
                for text in format!("{why:#}").lines() {
                    println!("        {text}");
                }
                self.failed.push(name.to_owned());
                false
            }
        }
    }

    /// Prints the count, which is the last line; whether all steps passed.
    pub(crate) fn finish(&self) -> bool {
        if !self.failed.is_empty() {
            println!("failed: {}", self.failed.join(", "));
        }
        println!("{}", self.count());
        self.failed.is_empty()
    }

    fn count(&self) -> String {
        format!("{} passed, {} failed", self.passed, self.failed.len())
    }
}

fn line(name: &str, outcome: &Result<String>, took: Duration) -> String {
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

    #[test]
    fn goes_on_after_a_failure_and_counts_both() {
        let mut steps = Steps::default();
        assert!(steps.step("one", || Ok(String::new())));
        assert!(!steps.step("two", || bail!("no")));
        assert!(steps.step("three", || Ok(String::new())));
        assert_eq!(steps.count(), "2 passed, 1 failed");
        assert!(!steps.finish());
    }

    #[test]
    fn a_line_has_mark_name_seconds_and_note() {
        let line = line(
            "fmt",
            &Ok("12 files".to_owned()),
            Duration::from_millis(1500),
        );
        assert!(line.starts_with("  ok    fmt "), "{line}");
        assert!(line.ends_with("    1.5 s  12 files"), "{line}");
    }
}
