//! The local terminal as described to the host: type, size and modes (RFC 4254 section 8, RFC 8160).

use adit_ssh_proto::connection::PtyRequest;

use super::platform;
use crate::channel_pipes::AsStream;

pub(super) use platform::terminal_size;

/// Returns a request for a terminal like the local one.
pub(super) fn pty_request_like(terminal: impl AsStream) -> PtyRequest {
    PtyRequest {
        term: platform::terminal_type(),
        size: terminal_size(&terminal).unwrap_or_default(),
        modes: platform::read_modes(&terminal),
    }
}
