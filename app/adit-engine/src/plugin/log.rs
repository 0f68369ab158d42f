//! The output of a plugin, logged line by line at a limited rate.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

/// Maximum number of bytes logged of a line.
const LINE: usize = 1024;
/// Maximum number of lines logged per [`WINDOW`].
const LINES: u32 = 50;
/// The window of [`LINES`].
const WINDOW: Duration = Duration::from_secs(1);
/// Number of bytes read at once.
const CHUNK: usize = 16 << 10;
/// Pause after each chunk in a flood, so that discarding it does not occupy a core.
const BRAKE: Duration = Duration::from_millis(10);

/// The last line of each output, for the error message when the plugin ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Last(Arc<Mutex<[Option<String>; 2]>>);

impl Last {
    fn lock(&self) -> MutexGuard<'_, [Option<String>; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last line on standard error, otherwise that on standard output.
    pub(super) fn line(&self) -> Option<String> {
        let [out, err] = self.lock().clone();
        err.or(out)
    }
}

/// Logs both outputs until they end.
pub(super) async fn pass_on(
    name: String,
    mut stdout: impl AsyncRead + Unpin,
    mut stderr: impl AsyncRead + Unpin,
    last: Last,
) {
    let (mut out, mut err) = (Lines::default(), Lines::default());
    let mut quota = Quota::new(Instant::now());
    let mut buffers = [vec![0; CHUNK], vec![0; CHUNK]];
    let [out_buf, err_buf] = &mut buffers;
    let (mut out_open, mut err_open) = (true, true);
    while out_open || err_open {
        let flooded = tokio::select! {
            n = stdout.read(out_buf), if out_open => {
                let bytes = n.ok().and_then(|n| out_buf.get(..n)).unwrap_or_default();
                out_open = !bytes.is_empty();
                out.feed(bytes, |line| quota.say(&name, line, last.lock().first_mut()))
            }
            n = stderr.read(err_buf), if err_open => {
                let bytes = n.ok().and_then(|n| err_buf.get(..n)).unwrap_or_default();
                err_open = !bytes.is_empty();
                err.feed(bytes, |line| quota.say(&name, line, last.lock().last_mut()))
            }
            () = sleep_until(quota.until), if quota.dropped > 0 => {
                quota.turn(&name, Instant::now());
                false
            }
        };
        if flooded {
            sleep(BRAKE).await;
        }
    }
    quota.turn(&name, Instant::now());
}

/// Splits chunks of bytes into lines.
#[derive(Debug, Default)]
struct Lines {
    line: Vec<u8>,
}

impl Lines {
    /// Passes each complete line to `take`, cut to [`LINE`] bytes and made printable. An empty chunk marks
    /// the end and yields the rest. Returns true if any line was refused.
    fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(String) -> bool) -> bool {
        let mut refused = false;
        let mut pieces = bytes.split(|byte| *byte == b'\n').peekable();
        while let Some(piece) = pieces.next() {
            let room = LINE.saturating_sub(self.line.len()).min(piece.len());
            self.line.extend(piece.iter().take(room));
            let complete = pieces.peek().is_some() || bytes.is_empty();
            if complete {
                let text = printable(&self.line);
                self.line.clear();
                refused |= !text.is_empty() && !take(text);
            }
        }
        refused
    }
}

/// Replaces control characters: a terminal would execute escape sequences in a log.
fn printable(line: &[u8]) -> String {
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
struct Quota {
    until: Instant,
    said: u32,
    dropped: u64,
}

impl Quota {
    fn new(now: Instant) -> Self {
        Self {
            until: now + WINDOW,
            said: 0,
            dropped: 0,
        }
    }

    /// Logs the line and stores it as the last, unless the quota is exhausted.
    fn say(&mut self, name: &str, line: String, last: Option<&mut Option<String>>) -> bool {
        let now = Instant::now();
        if now >= self.until {
            self.turn(name, now);
        }
        let may = self.said < LINES;
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
    fn turn(&mut self, name: &str, now: Instant) {
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
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for piece in pieces.iter().chain([&&b""[..]]) {
            lines.feed(piece, |line| {
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
        let long = vec![b'x'; 5 * LINE];
        assert_eq!(
            lines(&[&long, &long, b"\nshort\n"]),
            ["x".repeat(LINE), "short".to_owned()]
        );
        assert_eq!(
            lines(&[b"\x1b[2Ja\tb\x07\xff\n"]),
            ["\u{fffd}[2Ja b\u{fffd}\u{fffd}"]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_cut_and_counted() {
        let mut quota = Quota::new(Instant::now());
        let mut last = None;
        let mut say = |quota: &mut Quota, n: u32| {
            (0..n)
                .filter(|n| quota.say("p", format!("line {n}"), Some(&mut last)))
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
        let last = Last::default();
        pass_on("p".into(), &b"out\n"[..], &b""[..], last.clone()).await;
        assert_eq!(last.line().as_deref(), Some("out"));
        pass_on("p".into(), &b"out\n"[..], &b"a\nb"[..], last.clone()).await;
        assert_eq!(last.line().as_deref(), Some("b"));
    }

    /// A flood is read slowly but completely: its writer must not block forever.
    #[tokio::test(start_paused = true)]
    async fn a_flood_comes_to_its_end() {
        let flood = b"y\n".repeat(200_000);
        let start = Instant::now();
        pass_on("p".into(), &b""[..], &flood[..], Last::default()).await;
        let took = start.elapsed();
        assert!(
            took > BRAKE * 20 && took < Duration::from_secs(2),
            "{took:?}"
        );
    }
}
