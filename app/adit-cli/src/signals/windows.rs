//! Events of the console on Windows, which take the place of signals.

use std::io;

use tokio::signal::windows::{self, CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown};

use super::SignalRequest;

/// Handlers of the events that end a command. Install them before anything listens: as soon as a listener is
/// visible, an event may arrive.
pub struct Signals {
    c: CtrlC,
    r#break: CtrlBreak,
    close: CtrlClose,
    logoff: CtrlLogoff,
    shutdown: CtrlShutdown,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// # Errors
    /// The error of the system.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            c: windows::ctrl_c()?,
            r#break: windows::ctrl_break()?,
            close: windows::ctrl_close()?,
            logoff: windows::ctrl_logoff()?,
            shutdown: windows::ctrl_shutdown()?,
        })
    }

    /// Waits for an event. If the window is closed, the user logs off or the machine shuts down, the system kills the
    /// process after a few seconds: too few to let connections end.
    ///
    /// # Cancel safety
    /// Cancel-safe: no event is lost.
    pub async fn next_request(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.r#break.recv() => SignalRequest::Drain,
            _ = self.c.recv() => SignalRequest::Stop,
            _ = self.close.recv() => SignalRequest::Stop,
            _ = self.logoff.recv() => SignalRequest::Stop,
            _ = self.shutdown.recv() => SignalRequest::Stop,
        }
    }
}
