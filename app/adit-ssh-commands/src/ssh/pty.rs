//! The terminal here as the host is told of it: type, size, modes (RFC 4254 section 8, RFC 8160).

use std::os::fd::AsFd;

use adit_ssh_proto::connection::{PtyRequest, TerminalSize};
use rustix::termios::tcgetwinsize;

use crate::terminal_modes;

/// What is asked for: a terminal like this one.
pub(super) fn like(terminal: impl AsFd) -> PtyRequest {
    PtyRequest {
        term: std::env::var("TERM").unwrap_or_default(),
        size: size(&terminal).unwrap_or_default(),
        modes: terminal_modes::of(&terminal),
    }
}

/// Its size; `None` if it is no terminal.
pub(super) fn size(terminal: impl AsFd) -> Option<TerminalSize> {
    let size = tcgetwinsize(terminal).ok()?;
    Some(TerminalSize {
        columns: size.ws_col.into(),
        rows: size.ws_row.into(),
        width: size.ws_xpixel.into(),
        height: size.ws_ypixel.into(),
    })
}
