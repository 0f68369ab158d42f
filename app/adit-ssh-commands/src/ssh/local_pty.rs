//! The local terminal as described to the host: type, size and modes (RFC 4254 section 8, RFC 8160).

use std::os::fd::AsFd;

use adit_ssh_proto::connection::{PtyRequest, TerminalSize};
use rustix::termios::tcgetwinsize;

use crate::terminal_modes;

/// Returns a request for a terminal like the local one.
pub(super) fn pty_request_like(terminal: impl AsFd) -> PtyRequest {
    PtyRequest {
        term: std::env::var("TERM").unwrap_or_default(),
        size: terminal_size(&terminal).unwrap_or_default(),
        modes: terminal_modes::read_modes(&terminal),
    }
}

/// Returns the size of the terminal, or `None` if it is not a terminal.
pub(super) fn terminal_size(terminal: impl AsFd) -> Option<TerminalSize> {
    let size = tcgetwinsize(terminal).ok()?;
    Some(TerminalSize {
        columns: size.ws_col.into(),
        rows: size.ws_row.into(),
        width: size.ws_xpixel.into(),
        height: size.ws_ypixel.into(),
    })
}
