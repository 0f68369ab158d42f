//! A subprocess with its log, ended by its own process id.

use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::external_tools;

/// Time that a process may take to end after SIGTERM.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(8);

/// Time that open connections may take to end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(4);

/// A running program; dropping it ends it.
#[derive(Debug)]
pub struct ChildProcess {
    name: String,
    child: Child,
    log: Arc<OutputLog>,
    reader: JoinHandle<()>,
}

#[derive(Debug)]
struct OutputLog {
    output: Mutex<CapturedOutput>,
    new_lines: Condvar,
}

/// Output read so far, and the pipes it comes from.
#[derive(Debug)]
struct CapturedOutput {
    lines: Vec<String>,
    pipes: Vec<OutputPipe>,
}

#[derive(Debug)]
struct OutputPipe {
    from: Arc<OwnedFd>,
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
    ended: bool,
}

impl OutputPipe {
    /// Reads the available output without waiting for more.
    fn read_available(&mut self, lines: &mut Vec<String>) {
        let mut some = [0; 8192];
        while !self.ended {
            match rustix::io::read(&self.from, &mut some) {
                Ok(0) => self.ended = true,
                Ok(count) => self.partial.extend(&some[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.ended = true,
            }
        }
        let mut push =
            |line: &[u8]| lines.push(String::from_utf8_lossy(line).trim_end().to_owned());
        while let Some(end) = self.partial.iter().position(|&byte| byte == b'\n') {
            push(&self.partial.drain(..=end).collect::<Vec<_>>());
        }
        if self.ended && !self.partial.is_empty() {
            push(&std::mem::take(&mut self.partial));
        }
    }
}

impl OutputLog {
    fn from_pipes(pipes: impl Iterator<Item = OwnedFd>) -> Result<Arc<Self>> {
        let pipe = |from: OwnedFd| {
            rustix::io::ioctl_fionbio(&from, true)?;
            Ok(OutputPipe {
                from: Arc::new(from),
                partial: Vec::new(),
                ended: false,
            })
        };
        let said = CapturedOutput {
            lines: Vec::new(),
            pipes: pipes.map(pipe).collect::<Result<_>>()?,
        };
        Ok(Arc::new(Self {
            output: Mutex::new(said),
            new_lines: Condvar::new(),
        }))
    }

    /// Returns the output up to now. It includes a line that the program has written, even if the
    /// reader's thread has not run since.
    fn lock_updated(&self) -> MutexGuard<'_, CapturedOutput> {
        let mut guard = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let said = &mut *guard;
        for pipe in &mut said.pipes {
            pipe.read_available(&mut said.lines);
        }
        guard
    }

    /// Reads until the pipes end, so that a full pipe never blocks the program.
    fn read_to_end(&self) {
        loop {
            let said = self.lock_updated();
            self.new_lines.notify_all();
            let open = said.pipes.iter().filter(|pipe| !pipe.ended);
            let open: Vec<_> = open.map(|pipe| Arc::clone(&pipe.from)).collect();
            drop(said);
            if open.is_empty() {
                return;
            }
            let mut watched: Vec<_> = open
                .iter()
                .map(|fd| PollFd::new(fd, PollFlags::IN))
                .collect();
            // The next look at the pipes sees what it has printed.
            let _ = poll(&mut watched, None);
        }
    }
}

impl ChildProcess {
    /// Starts a program without input; both outputs go to the log.
    pub fn spawn(mut command: Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .with_context(|| external_tools::missing_program_message(&name))?;
        let out = child.stdout.take().map(OwnedFd::from);
        let err = child.stderr.take().map(OwnedFd::from);
        let log = OutputLog::from_pipes(out.into_iter().chain(err))?;
        let reader = Arc::clone(&log);
        Ok(Self {
            name,
            child,
            log,
            reader: thread::spawn(move || reader.read_to_end()),
        })
    }

    /// Returns its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns all output so far.
    #[must_use]
    pub fn output(&self) -> String {
        self.log.lock_updated().lines.join("\n")
    }

    /// Waits for `count` lines that contain `needle`, and returns them.
    pub fn wait_lines(
        &mut self,
        needle: &str,
        count: usize,
        timeout: Duration,
    ) -> Result<Vec<String>> {
        let deadline = Instant::now() + timeout;
        loop {
            let ended = self.child.try_wait()?;
            if ended.is_some() {
                self.wait_for_output_end();
            }
            let said = self.log.lock_updated();
            let found: Vec<String> = said
                .lines
                .iter()
                .filter(|line| line.contains(needle))
                .cloned()
                .collect();
            if found.len() >= count {
                return Ok(found);
            }
            if ended.is_some() || Instant::now() > deadline {
                drop(said);
                let state =
                    ended.map_or_else(|| "still runs".to_owned(), |status| status.to_string());
                bail!(
                    "{} of {count} lines with `{needle}` from {} ({state}):\n{}",
                    found.len(),
                    self.name,
                    self.output()
                );
            }
            // A short wait, since an end without a line wakes no waiter.
            drop(
                self.log
                    .new_lines
                    .wait_timeout(said, Duration::from_millis(50)),
            );
        }
    }

    /// Sends a signal.
    pub fn send_signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.context("no process id")?, signal).context("signal")
    }

    /// Waits for its end.
    pub fn wait(&mut self, timeout: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait()? {
                self.wait_for_output_end();
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!(
                    "{} still runs after {timeout:?}:\n{}",
                    self.name,
                    self.output()
                );
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends SIGTERM, and returns how the program ended. A program that still lets connections end four
    /// seconds later is signalled again.
    pub fn terminate(&mut self) -> Result<ExitStatus> {
        self.send_signal(Signal::TERM)?;
        if let Ok(status) = self.wait(DRAIN_TIMEOUT) {
            return Ok(status);
        }
        self.send_signal(Signal::TERM)?;
        self.wait(TERMINATE_TIMEOUT)
    }

    /// Waits briefly for the last output of an ended process. Not without a limit: a child of its
    /// own may still hold the pipes.
    pub(crate) fn wait_for_output_end(&self) {
        let deadline = Instant::now() + Duration::from_secs(2);
        while !self.reader.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns the CPU time it has used, in clock ticks of 10 ms.
    pub fn cpu_ticks(&self) -> Result<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id()))?;
        let (_, rest) = stat.rsplit_once(')').context("stat")?;
        // User and system time are the 14th and 15th field; the third follows the bracket.
        let field = |n: usize| {
            rest.split_whitespace()
                .nth(n)
                .and_then(|f| f.parse::<u64>().ok())
        };
        Ok(field(11).context("utime")? + field(12).context("stime")?)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) && self.terminate().is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if thread::panicking() {
            eprintln!("--- log of {}:\n{}\n---", self.name, self.output());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ChildProcess {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        ChildProcess::spawn(command).unwrap()
    }

    #[test]
    fn lines_are_waited_for() {
        let mut process = shell("echo one; sleep 0.1; echo two one >&2; sleep 60");
        let lines = process.wait_lines("one", 2, TERMINATE_TIMEOUT).unwrap();
        assert_eq!(lines, ["one", "two one"]);
        let why = process
            .wait_lines("three", 1, Duration::from_millis(200))
            .unwrap_err();
        assert!(why.to_string().contains("still runs"), "{why}");
    }

    /// The file that it makes afterwards says that the line was written.
    #[test]
    fn a_line_that_was_written_is_in_the_log() {
        let folder = std::env::temp_dir().join(format!("adit-log-{}", std::process::id()));
        for turn in 0..50 {
            let path = folder.with_extension(turn.to_string());
            let process = shell(&format!("echo said; : > {}; exec sleep 60", path.display()));
            let deadline = Instant::now() + TERMINATE_TIMEOUT;
            while !path.exists() && Instant::now() < deadline {
                std::hint::spin_loop();
            }
            assert_eq!(process.output(), "said", "turn {turn}");
            std::fs::remove_file(path).unwrap();
        }
    }

    #[test]
    fn an_early_end_is_told_with_the_log() {
        let why = shell("echo bad luck; exit 3")
            .wait_lines("x", 1, TERMINATE_TIMEOUT)
            .unwrap_err();
        let why = why.to_string();
        assert!(
            why.contains("exit status: 3") && why.contains("bad luck"),
            "{why}"
        );
    }

    #[test]
    fn dropping_ends_even_the_deaf() {
        let mut process = shell("trap '' TERM; echo up; sleep 1 & wait; sleep 20");
        process.wait_lines("up", 1, TERMINATE_TIMEOUT).unwrap();
        let id = process.id();
        process.child.kill().unwrap();
        drop(process);
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    }

    #[test]
    fn a_missing_program_is_named_with_the_way_to_get_it() {
        let why = ChildProcess::spawn(Command::new("no-such-peer"))
            .unwrap_err()
            .to_string();
        assert!(
            why.contains("no-such-peer") && why.contains("cargo xtask install"),
            "{why}"
        );
    }
}
