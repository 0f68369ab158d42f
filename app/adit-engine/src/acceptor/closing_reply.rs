//! The last reply to a client: a protocol's error reply, and the delayed reply to a wrong login.

use std::time::Duration;

use adit_stream::{BoxStream, HandshakeError, Stream, fill_to, finish_stream, write_and_flush};
use adit_wire::ProtocolError;
use tokio::time::{sleep, timeout};

use crate::AcceptError;

/// Delay of the reply to a wrong login, whichever part of it was wrong.
const WRONG_LOGIN_DELAY: Duration = Duration::from_millis(500);
/// Time limit for sending the last reply and closing.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of bytes that are still read from such a peer.
pub(super) const MAX_UNREAD_BYTES: usize = 64 << 10;

/// Ends a failed handshake: sends the reply of the protocol core, after a delay if a login was wrong.
pub(super) async fn end_failed_handshake<E: Into<ProtocolError> + std::fmt::Display>(
    mut io: BoxStream,
    why: HandshakeError<E>,
    is_login: impl Fn(&E) -> bool,
) -> AcceptError {
    match why {
        HandshakeError::Core { error, unsent } => {
            if is_login(&error) {
                sleep(WRONG_LOGIN_DELAY).await;
                close_with_reply(&mut io, &unsent).await;
                return AcceptError::Login(error.to_string());
            }
            close_with_reply(&mut io, &unsent).await;
            AcceptError::Refused(error.to_string())
        }
        HandshakeError::Eof => AcceptError::Eof,
        HandshakeError::Io(e) => AcceptError::Io(e),
    }
}

/// Sends `last` and closes the connection so that the peer receives it. Closing with unread bytes would
/// send a reset, which may overtake the reply.
pub(crate) async fn close_with_reply(io: &mut BoxStream, last: &[u8]) {
    close_with_reply_and_budget(io, last, MAX_UNREAD_BYTES).await;
}

/// Does the same as [`close_with_reply`], reading at most `budget` bytes.
pub(super) async fn close_with_reply_and_budget(
    io: &mut BoxStream,
    last: &[u8],
    mut budget: usize,
) {
    let goodbye = async {
        write_and_flush(io, last).await?;
        finish_stream(io).await?;
        while budget > 0 {
            let n = fill_to(io, 1).await?;
            if n == 0 {
                break;
            }
            io.consume(n);
            budget -= n.min(budget);
        }
        Ok::<_, std::io::Error>(())
    };
    // A peer that does not wait for the reply loses it.
    let _ = timeout(CLOSE_TIMEOUT, goodbye).await;
}
