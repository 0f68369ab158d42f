//! The signals that end a command, and the one that does not.

use std::time::Duration;

use crate::report::{Code, Failure};

/// How long open connections may go on after SIGTERM.
const DRAIN: Duration = Duration::from_secs(3);

/// What a shell adds to the number of a signal.
const BY_SIGNAL: u8 = 128;

/// The signals. Caught from before anything listens: who sees a listener may already end it.
pub struct Signals {
    #[cfg(unix)]
    term: tokio::signal::unix::Signal,
    #[cfg(unix)]
    int: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hup: tokio::signal::unix::Signal,
    /// It was started at a terminal.
    #[cfg(unix)]
    at_terminal: bool,
}

#[cfg(unix)]
impl Signals {
    /// Catches them from now on.
    ///
    /// # Errors
    /// Those of the system.
    pub fn catch() -> std::io::Result<Self> {
        use std::io::IsTerminal;
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
            at_terminal: std::io::stdin().is_terminal(),
        })
    }

    /// Comes when it is to end, with the time that open connections still have. SIGHUP ends it if the
    /// terminal at which it was started is gone; other programs read their configuration again, which
    /// this one does not. Cancel-safe.
    pub async fn next(&mut self) -> Duration {
        use std::io::IsTerminal;
        loop {
            tokio::select! {
                _ = self.term.recv() => return DRAIN,
                _ = self.int.recv() => return Duration::ZERO,
                _ = self.hup.recv() => {}
            }
            if self.at_terminal && !std::io::stdin().is_terminal() {
                return DRAIN;
            }
            tracing::warn!("SIGHUP is ignored: restart adit to apply a changed configuration");
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Catches them from now on.
    ///
    /// # Errors
    /// Those of the system.
    pub fn catch() -> std::io::Result<Self> {
        Ok(Self {})
    }

    pub async fn next(&mut self) -> Duration {
        // Without a console there is nothing to wait for.
        let _ = tokio::signal::ctrl_c().await;
        Duration::ZERO
    }
}

impl Signals {
    /// Does what goes before serving, or answers a question. An end meanwhile is obeyed at once, with
    /// the exit code of shells: there was no answer.
    pub async fn unless_ended<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            done = work => done,
            patience = self.next() => Err(match patience.is_zero() {
                true => ended("interrupted", 2),
                false => ended("terminated", 15),
            }),
        }
    }
}

fn ended(what: &str, number: u8) -> Failure {
    Failure::new(Code::Failure, what).with_status(BY_SIGNAL + number)
}
