//! The output of a plugin, logged line by line at a limited rate.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use adit_net::child::guarded::{ChildErrors, ChildOutput};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

/// Maximum number of bytes logged of a line.
const MAX_LINE_BYTES: usize = 1024;
/// Maximum number of lines logged per [`WINDOW`].
const MAX_LINES: u32 = 50;
/// The window of [`MAX_LINES`].
const WINDOW: Duration = Duration::from_secs(1);
/// Number of bytes read at once.
const CHUNK: usize = 16 << 10;
/// Pause after each chunk in a flood, so that discarding it does not occupy a core.
const FLOOD_PAUSE: Duration = Duration::from_millis(10);

/// The task that logs the outputs of a plugin. Dropping it ends the task.
#[derive(Debug)]
pub(super) struct PluginLog {
    name: String,
    last: LastLines,
    state: LogState,
}

type Outputs = (ChildOutput, ChildErrors);

#[derive(Debug)]
enum LogState {
    /// Returns the outputs when the sender is dropped.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "the sender is dropped with the state")
    )]
    Reading(JoinHandle<Outputs>, oneshot::Sender<()>),
    Paused(Outputs),
    /// Both outputs have ended.
    Ended,
}

impl PluginLog {
    pub(super) fn start(name: String, stdout: ChildOutput, stderr: ChildErrors) -> Self {
        let mut log = Self {
            name,
            last: LastLines::default(),
            state: LogState::Paused((stdout, stderr)),
        };
        log.resume();
        log
    }

    /// Starts to read.
    pub(super) fn resume(&mut self) {
        self.state = match std::mem::replace(&mut self.state, LogState::Ended) {
            LogState::Paused(outputs) => {
                let (running, paused) = oneshot::channel();
                let read = read_until(self.name.clone(), outputs, self.last.clone(), paused);
                LogState::Reading(tokio::spawn(read), running)
            }
            state => state,
        };
    }

    /// Stops to read. The plugin can still write as much as its pipes hold.
    #[cfg(target_os = "linux")]
    pub(super) async fn pause(&mut self) {
        self.state = match std::mem::replace(&mut self.state, LogState::Ended) {
            LogState::Reading(task, running) => {
                drop(running);
                task.await.map_or(LogState::Ended, LogState::Paused)
            }
            state => state,
        };
    }

    /// Returns the outputs of a paused log.
    #[cfg(target_os = "linux")]
    pub(super) const fn outputs(&self) -> Option<(&ChildOutput, &ChildErrors)> {
        match &self.state {
            LogState::Paused((stdout, stderr)) => Some((stdout, stderr)),
            _ => None,
        }
    }

    /// Waits until both outputs have ended.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(super) async fn wait_for_end(&mut self) {
        if let LogState::Reading(task, _) = &mut self.state {
            // It was aborted with its runtime, or had ended by a panic that was reported then.
            let _ = task.await;
            self.state = LogState::Ended;
        }
    }

    /// Returns the last line on standard error, otherwise that on standard output.
    pub(super) fn last_line(&self) -> Option<String> {
        self.last.last_line()
    }
}

impl Drop for PluginLog {
    fn drop(&mut self) {
        if let LogState::Reading(task, _) = &self.state {
            task.abort();
        }
    }
}

/// Logs both outputs until they end, or the sender of `paused` is dropped.
async fn read_until(
    name: String,
    mut outputs: Outputs,
    last: LastLines,
    paused: oneshot::Receiver<()>,
) -> Outputs {
    let (stdout, stderr) = &mut outputs;
    tokio::select! {
        () = log_output(name, stdout, stderr, last) => {}
        _ = paused => {}
    }
    outputs
}

/// The last line of each output, for the error message when the plugin ends.
#[derive(Debug, Clone, Default)]
struct LastLines(Arc<Mutex<[Option<String>; 2]>>);

impl LastLines {
    fn lock_lines(&self) -> MutexGuard<'_, [Option<String>; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last line on standard error, otherwise that on standard output.
    fn last_line(&self) -> Option<String> {
        let [out, err] = self.lock_lines().clone();
        err.or(out)
    }
}

/// Logs both outputs until they end.
async fn log_output(
    name: String,
    mut stdout: impl AsyncRead + Unpin,
    mut stderr: impl AsyncRead + Unpin,
    last: LastLines,
) {
    let (mut out, mut err) = (LineSplitter::default(), LineSplitter::default());
    let mut quota = LogQuota::new(Instant::now());
    let mut buffers = [vec![0; CHUNK], vec![0; CHUNK]];
    let [out_buf, err_buf] = &mut buffers;
    let (mut out_open, mut err_open) = (true, true);
    while out_open || err_open {
        let flooded = tokio::select! {
            n = stdout.read(out_buf), if out_open => {
                let bytes = n.ok().and_then(|n| out_buf.get(..n)).unwrap_or_default();
                out_open = !bytes.is_empty();
                out.split_lines(bytes, |line| quota.log_line(&name, line, last.lock_lines().first_mut()))
            }
            n = stderr.read(err_buf), if err_open => {
                let bytes = n.ok().and_then(|n| err_buf.get(..n)).unwrap_or_default();
                err_open = !bytes.is_empty();
                err.split_lines(bytes, |line| quota.log_line(&name, line, last.lock_lines().last_mut()))
            }
            () = sleep_until(quota.until), if quota.dropped > 0 => {
                quota.start_window(&name, Instant::now());
                false
            }
        };
        if flooded {
            sleep(FLOOD_PAUSE).await;
        }
    }
    quota.start_window(&name, Instant::now());
}

/// Splits chunks of bytes into lines.
#[derive(Debug, Default)]
struct LineSplitter {
    line: Vec<u8>,
}

impl LineSplitter {
    /// Passes each complete line to `take`, cut to [`MAX_LINE_BYTES`] bytes and made printable. An empty chunk marks
    /// the end and yields the rest. Returns true if any line was refused.
    fn split_lines(&mut self, bytes: &[u8], mut take: impl FnMut(String) -> bool) -> bool {
        let mut refused = false;
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            let room = MAX_LINE_BYTES
                .saturating_sub(self.line.len())
                .min(piece.len());
            self.line.extend(piece.iter().take(room));
            let complete = pieces.peek().is_some() || bytes.is_empty();
            if complete {
                let text = make_printable(&self.line);
                self.line.clear();
                refused |= !text.is_empty() && !take(text);
            }
        }
        refused
    }
}

/// Replaces control characters: a terminal would execute escape sequences in a log.
fn make_printable(line: &[u8]) -> String {
    String::from_utf8_lossy(line)
        .trim_end()
        .chars()
        .map(|c| match c {
            '\t' => ' ',
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}

/// Limits the number of lines per window.
#[derive(Debug)]
struct LogQuota {
    until: Instant,
    said: u32,
    dropped: u64,
}

impl LogQuota {
    fn new(now: Instant) -> Self {
        Self {
            until: now + WINDOW,
            said: 0,
            dropped: 0,
        }
    }

    /// Logs the line and stores it as the last, unless the quota is exhausted.
    fn log_line(&mut self, name: &str, line: String, last: Option<&mut Option<String>>) -> bool {
        let now = Instant::now();
        if now >= self.until {
            self.start_window(name, now);
        }
        let may = self.said < MAX_LINES;
        if may {
            self.said += 1;
            info!("plugin {name}: {line}");
        } else {
            self.dropped += 1;
        }
        if let Some(last) = last {
            *last = Some(line);
        }
        may
    }

    /// Starts a new window, and reports the number of lines dropped in the last one.
    fn start_window(&mut self, name: &str, now: Instant) {
        if self.dropped > 0 {
            warn!("plugin {name}: {} lines omitted", self.dropped);
        }
        *self = Self::new(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let (mut lines, mut found) = (LineSplitter::default(), Vec::new());
        for piece in pieces.iter().chain([&&b""[..]]) {
            lines.split_lines(piece, |line| {
                found.push(line);
                true
            });
        }
        found
    }

    #[test]
    fn lines_are_put_together_and_cut() {
        assert_eq!(
            lines(&[b"one\ntw", b"o\r\n\n", b"three"]),
            ["one", "two", "three"]
        );
        let long = vec![b'x'; 5 * MAX_LINE_BYTES];
        assert_eq!(
            lines(&[&long, &long, b"\nshort\n"]),
            ["x".repeat(MAX_LINE_BYTES), "short".to_owned()]
        );
        assert_eq!(
            lines(&[b"\x1b[2Ja\tb\x07\xff\n"]),
            ["\u{fffd}[2Ja b\u{fffd}\u{fffd}"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_cut_and_counted() {
        let mut quota = LogQuota::new(Instant::now());
        let mut last = None;
        let mut say = |quota: &mut LogQuota, n: u32| {
            (0..n)
                .filter(|n| quota.log_line("p", format!("line {n}"), Some(&mut last)))
                .count()
        };
        assert_eq!(say(&mut quota, 1000), 50);
        assert_eq!(quota.dropped, 950);
        tokio::time::advance(WINDOW).await;
        assert_eq!(say(&mut quota, 10), 10);
        assert_eq!(quota.dropped, 0, "a new window");
        assert_eq!(last.as_deref(), Some("line 9"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_words_are_those_on_standard_error() {
        let last = LastLines::default();
        log_output("p".into(), &b"out\n"[..], &b""[..], last.clone()).await;
        assert_eq!(last.last_line().as_deref(), Some("out"));
        log_output("p".into(), &b"out\n"[..], &b"a\nb"[..], last.clone()).await;
        assert_eq!(last.last_line().as_deref(), Some("b"));
    }

    /// A flood is read slowly but completely: its writer must not block forever.
    #[tokio::test(start_paused = true)]
    async fn a_flood_comes_to_its_end() {
        let flood = b"y\n".repeat(200_000);
        let start = Instant::now();
        log_output("p".into(), &b""[..], &flood[..], LastLines::default()).await;
        let took = start.elapsed();
        assert!(
            took > FLOOD_PAUSE * 20 && took < Duration::from_secs(2),
            "{took:?}"
        );
    }
}
