//! Signals of Unix.

use std::io::{self, IsTerminal};

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::SignalRequest;

/// Handlers of the signals that end a command. Install them before anything listens: as soon as a listener is
/// visible, a signal may be sent.
pub struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
    usr2: Signal,
    /// True if the command was started at a terminal.
    at_terminal: bool,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// The error of the system.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
            usr2: signal(SignalKind::user_defined2())?,
            at_terminal: io::stdin().is_terminal(),
        })
    }

    /// Waits for a signal. SIGHUP ends the command if the terminal at which it was started is gone.
    ///
    /// # Cancel safety
    /// Cancel-safe: no signal is lost.
    pub async fn next_request(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.term.recv() => SignalRequest::Drain,
            _ = self.int.recv() => SignalRequest::Stop,
            _ = self.usr2.recv() => SignalRequest::Upgrade,
            _ = self.hup.recv() => match self.at_terminal && !io::stdin().is_terminal() {
                true => SignalRequest::Drain,
                false => SignalRequest::Reload,
            },
        }
    }
}
