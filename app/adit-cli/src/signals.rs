//! The signals that end a command, and SIGHUP.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::time::Duration;

use crate::CommandResult;
use crate::report::{Failure, FailureCode};

#[cfg(unix)]
pub use unix::Signals;
#[cfg(windows)]
pub use windows::Signals;

/// Time that open connections have after SIGTERM, unless the configuration says otherwise.
const DRAIN_TIME: Duration = Duration::from_secs(30);

/// The number of SIGINT.
const INTERRUPT: u8 = 2;
/// Offset that shells add to a signal number to form an exit code.
const SIGNAL_STATUS_BASE: u8 = 128;

/// A request by a signal of Unix, or by an event of the console on Windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalRequest {
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGTERM or Ctrl-Break: stop accepting, and let open connections end.
    Drain,
    /// SIGINT, Ctrl-C, or the end of the session or the machine: end immediately.
    Stop,
    /// SIGUSR2: hand over to another process.
    Upgrade,
}

/// A request to end, or to hand over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndRequest {
    /// The command ends; open connections have this time.
    End(Duration),
    /// SIGUSR2: another process continues.
    Upgrade,
}

impl Signals {
    /// Waits for a signal to end, and returns the time that open connections still have. SIGHUP is logged and
    /// ignored, because the command has no configuration file.
    ///
    /// # Cancel safety
    /// Cancel-safe: no signal is lost.
    pub async fn next_end(&mut self) -> Duration {
        loop {
            match self.next_end_or_upgrade().await {
                EndRequest::End(patience) => return patience,
                EndRequest::Upgrade => {
                    tracing::warn!(
                        "SIGUSR2 is ignored: only `adit run` and `adit server` can be upgraded"
                    );
                }
            }
        }
    }

    /// Like [`Self::next_end`], for a command that can hand over to another process.
    ///
    /// # Cancel safety
    /// Cancel-safe: no signal is lost.
    pub async fn next_end_or_upgrade(&mut self) -> EndRequest {
        loop {
            match self.next_request().await {
                SignalRequest::Drain => return EndRequest::End(DRAIN_TIME),
                SignalRequest::Stop => return EndRequest::End(Duration::ZERO),
                SignalRequest::Upgrade => return EndRequest::Upgrade,
                SignalRequest::Reload => {
                    tracing::warn!(
                        "SIGHUP is ignored: there is no configuration file to read again"
                    );
                }
            }
        }
    }

    /// Runs work that precedes serving, or answers a question. A signal ends it immediately, with the exit code of
    /// shells, because there was no result.
    pub async fn run_until_ended<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            done = work => done,
            patience = self.next_end() => Err(match patience.is_zero() {
                true => signal_failure("interrupted", INTERRUPT),
                false => signal_failure("terminated", 15),
            }),
        }
    }
}

/// Returns the result of a command that served until a signal, for the time that [`Signals::next_end`] returned:
/// an interrupt has the exit code of shells, 130, and no message, while SIGTERM is the ordinary end.
///
/// # Errors
/// The command was interrupted.
pub fn result_of_end(patience: Duration) -> CommandResult {
    match patience.is_zero() {
        true => Err(Failure::Exit {
            status: SIGNAL_STATUS_BASE + INTERRUPT,
            why: None,
        }),
        false => Ok(()),
    }
}

/// Returns the failure for a signal.
fn signal_failure(what: &str, number: u8) -> Failure {
    Failure::new(FailureCode::Failure, what).with_status(SIGNAL_STATUS_BASE + number)
}
