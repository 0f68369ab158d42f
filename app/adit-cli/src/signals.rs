//! The signals that end a command, and SIGHUP.

use std::time::Duration;

use crate::CommandResult;
use crate::report::{Failure, FailureCode};

/// Time that open connections have after SIGTERM, unless the configuration says otherwise.
const DRAIN_TIME: Duration = Duration::from_secs(30);

/// The number of SIGINT.
const INTERRUPT: u8 = 2;
/// Offset that shells add to a signal number to form an exit code.
const SIGNAL_STATUS_BASE: u8 = 128;

/// A request by a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalRequest {
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGTERM: stop accepting, and let open connections end.
    Drain,
    /// SIGINT: end immediately.
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

/// Handlers of the signals that end a command. Install them before anything listens: as soon as a listener is
/// visible, a signal may be sent.
pub struct Signals {
    #[cfg(unix)]
    term: tokio::signal::unix::Signal,
    #[cfg(unix)]
    int: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hup: tokio::signal::unix::Signal,
    #[cfg(unix)]
    usr2: tokio::signal::unix::Signal,
    /// True if the command was started at a terminal.
    #[cfg(unix)]
    at_terminal: bool,
}

#[cfg(unix)]
impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// The error of the system.
    pub fn install() -> std::io::Result<Self> {
        use std::io::IsTerminal;
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
            usr2: signal(SignalKind::user_defined2())?,
            at_terminal: std::io::stdin().is_terminal(),
        })
    }

    /// Waits for a signal. SIGHUP ends the command if the terminal at which it was started is gone.
    ///
    /// # Cancel safety
    /// Cancel-safe: no signal is lost.
    pub async fn next_request(&mut self) -> SignalRequest {
        use std::io::IsTerminal;
        tokio::select! {
            _ = self.term.recv() => SignalRequest::Drain,
            _ = self.int.recv() => SignalRequest::Stop,
            _ = self.usr2.recv() => SignalRequest::Upgrade,
            _ = self.hup.recv() => match self.at_terminal && !std::io::stdin().is_terminal() {
                true => SignalRequest::Drain,
                false => SignalRequest::Reload,
            },
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// The error of the system.
    pub fn install() -> std::io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for Ctrl-C.
    pub async fn next_request(&mut self) -> SignalRequest {
        // Without a console there is nothing to wait for.
        let _ = tokio::signal::ctrl_c().await;
        SignalRequest::Stop
    }
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
