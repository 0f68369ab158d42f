//! A test run: its output is parsed, and failed tests run once more, alone.
//!
//! Eight tests run at a time, most of them with several processes each, on machines that others use
//! too. A test that waits for a process can fail there although nothing is broken. A second run, of
//! the failed tests alone and one at a time, distinguishes the two: a broken test fails again, and
//! a test that passes only then is named in the result of the step.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;

use anyhow::{Result, bail};

use crate::command::{CommandRun, log_path};

/// Number of lines shown of a test's panic.
const PANIC_LINES: usize = 6;
/// Maximum number of failed tests that run again. More than these have a common cause.
const MAX_RETRIES: usize = 6;

/// The tests that passed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PassedTests {
    count: usize,
    /// Names of the tests that passed only when they ran alone.
    passed_on_retry: Vec<String>,
}

impl PassedTests {
    pub(crate) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.passed_on_retry.extend(other.passed_on_retry);
    }
}

impl fmt::Display for PassedTests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tests", self.count)?;
        if self.passed_on_retry.is_empty() {
            return Ok(());
        }
        write!(
            f,
            "; passed only alone, on the second try: {}",
            self.passed_on_retry.join(", ")
        )
    }
}

/// Runs tests with `all`, and the failed ones once more with `alone`, which receives their names.
///
/// # Errors
/// Returns the failed tests, with the place and the message of each panic.
pub(crate) fn run_tests(
    log: &str,
    all: impl FnOnce() -> CommandRun,
    alone: impl FnOnce(&[String]) -> CommandRun,
) -> Result<PassedTests> {
    let why = match all().run_captured(log) {
        Ok(output) => {
            return Ok(PassedTests {
                count: count_passed(&output),
                passed_on_retry: Vec::new(),
            });
        }
        Err(why) => why,
    };
    let output = fs::read_to_string(log_path(log)).unwrap_or_default();
    let names = failed_tests(&output);
    // Without a failed test, the cause is a build, a crash or the time limit.
    if names.is_empty() {
        let unfinished = unfinished_tests(&output);
        return match unfinished.is_empty() {
            true => Err(why),
            false => Err(why.context(format!("not ended: {}", unfinished.join(", ")))),
        };
    }
    let shown = failure_report(&output);
    let place = log_path(log);
    if names.len() > MAX_RETRIES || has_crashed(&output) {
        bail!("{shown}\nsee the output in {}", place.display());
    }
    let again = format!("{log}-again");
    let run = alone(&names).env("RUST_TEST_THREADS", "1");
    match run.run_captured(&again) {
        // Several tests may have the same name.
        Ok(told) if count_passed(&told) >= names.len() => Ok(PassedTests {
            count: count_passed(&output) + names.len(),
            passed_on_retry: names,
        }),
        _ => {
            let place_again = log_path(&again);
            let output = fs::read_to_string(&place_again).unwrap_or_default();
            bail!(
                "{shown}\n{}; see the output in {} and {}",
                second_failure(&failed_tests(&output)),
                place.display(),
                place_again.display()
            )
        }
    }
}

/// Says which tests are broken: others may have failed beside them, and passed alone.
fn second_failure(names: &[String]) -> String {
    match names {
        [] => "did not run again alone".to_owned(),
        names => format!("failed again alone: {}", names.join(", ")),
    }
}

/// Returns the names of the failed tests, each once: a test that runs itself again in a namespace is reported by both
/// processes.
fn failed_tests(output: &str) -> Vec<String> {
    let names = output.lines().filter_map(|line| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        // `(line 3)` of a doctest, and ` - should panic`, are part of the printed name.
        Some(name.trim_end_matches(" - should panic").to_owned())
    });
    let mut known = BTreeSet::new();
    names.filter(|name| known.insert(name.clone())).collect()
}

/// Returns true if a test program ended without a result: it crashed, or it was ended at the time limit.
fn has_crashed(output: &str) -> bool {
    let has_failed =
        |line: &str| line.contains("(signal: ") || line.starts_with("error: could not compile");
    let is_start = |line: &&str| {
        // Behind the name of a test, in a run with one thread.
        let Some((_, rest)) = line.rsplit_once("running ") else {
            return false;
        };
        let count = rest
            .strip_suffix(" tests")
            .or_else(|| rest.strip_suffix(" test"));
        count.is_some_and(|count| count.parse::<usize>().is_ok())
    };
    output.lines().any(has_failed)
        || output.lines().filter(is_start).count() > output.matches("test result: ").count()
}

/// Returns the tests of which libtest has said that they take long, and that have not ended.
fn unfinished_tests(output: &str) -> Vec<&str> {
    let ended = |name: &str| output.contains(&format!("test {name} ... "));
    let slow = output.lines().filter_map(|line| {
        let (name, rest) = line
            .strip_prefix("test ")?
            .split_once(" has been running ")?;
        rest.starts_with("for over ").then_some(name)
    });
    slow.filter(|name| !ended(name)).collect()
}

/// Returns the lines of the failed tests of all binaries, with the place and the message of each
/// panic.
fn failure_report(output: &str) -> String {
    let mut shown: Vec<&str> = Vec::new();
    let mut more = 0;
    for line in output.lines() {
        if line.contains("panicked at ") {
            more = PANIC_LINES;
        }
        if more > 0 && !line.is_empty() || line.starts_with("test ") && line.ends_with(" FAILED") {
            shown.push(line);
        }
        more = more.saturating_sub(1);
    }
    if shown.iter().any(|line| line.ends_with(" FAILED")) {
        shown.join("\n")
    } else {
        String::new()
    }
}

/// Returns the sum of the passed tests over all `test result:` lines.
fn count_passed(output: &str) -> usize {
    let passed = |line: &str| -> Option<usize> {
        let (_, rest) = line.split_once("test result: ")?;
        rest.split_once(". ")?
            .1
            .split_once(" passed")?
            .0
            .parse()
            .ok()
    };
    output.lines().filter_map(passed).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_are_summed() {
        let output = "running 2 tests\n\
            test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\
            test result: FAILED. 40 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(count_passed(output), 42);
    }

    #[test]
    fn failed_tests_are_shown_with_their_reason() {
        let output = "test a ... ok\ntest b ... FAILED\n\n---- b stdout ----\n\n\
            thread 'b' panicked at x.rs:1:2:\nassertion failed: c\n\nfailures:\n    b\n";
        let shown = failure_report(output);
        assert!(
            shown.starts_with("test b ... FAILED\nthread 'b' panicked"),
            "{shown}"
        );
        assert!(
            shown.contains("assertion failed: c") && !shown.contains("test a"),
            "{shown}"
        );
        assert_eq!(failure_report("error: could not compile `x`\n"), "");
    }

    /// A run that prints these lines and ends with this exit code.
    fn script(lines: &str, code: i32) -> CommandRun {
        CommandRun::new("sh", ["-c", &format!("printf '{lines}'; exit {code}")])
    }

    const ONE_FAILED: &str = "test a ... ok\\ntest b ... FAILED\\n\
        test result: FAILED. 1 passed; 1 failed; 0 ignored\\n";

    #[test]
    fn a_test_that_passes_alone_is_named() {
        let alone = |names: &[String]| {
            assert_eq!(names, ["b"]);
            script("test b ... ok\\ntest result: ok. 1 passed; 0 failed\\n", 0)
        };
        let passed = run_tests("suite-alone", || script(ONE_FAILED, 101), alone).unwrap();
        assert_eq!(
            passed.to_string(),
            "2 tests; passed only alone, on the second try: b"
        );
    }

    #[test]
    fn a_test_that_two_processes_report_has_failed_once() {
        let inner = format!("test b ... FAILED\\n{ONE_FAILED}");
        let alone = |names: &[String]| {
            assert_eq!(names, ["b"]);
            script("test result: ok. 1 passed; 0 failed\\n", 0)
        };
        let passed = run_tests("suite-inner", || script(&inner, 101), alone).unwrap();
        assert_eq!(passed.count, 2);
    }

    #[test]
    fn a_test_that_fails_twice_fails() {
        let fails = |_: &[String]| script(ONE_FAILED, 101);
        let why = run_tests("suite-twice", || script(ONE_FAILED, 101), fails).unwrap_err();
        let why = why.to_string();
        assert!(why.contains("test b ... FAILED"), "{why}");
        assert!(why.contains("failed again alone: b;"), "{why}");
    }

    #[test]
    fn a_second_run_without_the_test_is_a_failure() {
        let nothing = |_: &[String]| script("test result: ok. 0 passed; 0 failed\\n", 0);
        assert!(run_tests("suite-nothing", || script(ONE_FAILED, 101), nothing).is_err());
    }

    #[test]
    fn many_failures_and_crashes_get_no_second_run() {
        let none = |_: &[String]| -> CommandRun { panic!("a second run") };
        let many = (0..=MAX_RETRIES).map(|n| format!("test b{n} ... FAILED\\n"));
        let many: String = many.collect();
        assert!(run_tests("suite-many", || script(&many, 101), none).is_err());
        let crash = "test b ... FAILED\\nprocess did not exit (signal: 11)\\n";
        assert!(run_tests("suite-crash", || script(crash, 101), none).is_err());
        assert!(run_tests("suite-no-test", || script("error\\n", 101), none).is_err());
    }

    /// The others of the program did not run, or their results are not known.
    #[test]
    fn a_failed_test_of_a_program_without_a_result_gets_no_second_run() {
        let none = |_: &[String]| -> CommandRun { panic!("a second run") };
        let cut = "running 1 test\ntest a ... ok\ntest result: ok. 1 passed; 0 failed\n\
            running 2 tests\ntest b ... FAILED\n";
        assert!(run_tests("suite-cut", || script(cut, 101), none).is_err());
        assert!(!has_crashed(
            "test a ... running 1 test\ntest result: ok. 1 passed; 0 failed\n"
        ));
    }

    #[test]
    fn a_test_that_does_not_end_is_named() {
        let slow = "test a has been running for over 60 seconds\n\
            test b has been running for over 60 seconds\ntest a ... ok\n";
        let none = |_: &[String]| -> CommandRun { panic!("a second run") };
        let why = run_tests("suite-slow", || script(slow, 101), none).unwrap_err();
        assert!(format!("{why:#}").starts_with("not ended: b: "), "{why:#}");
    }
}
