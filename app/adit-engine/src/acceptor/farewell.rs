//! Last words to a client: what its language says of a failure, and a wrong login after a while.

use std::time::Duration;

use adit_stream::{BoxStream, RunError, Stream, fill, finish, send};
use adit_wire::Broken;
use tokio::time::{sleep, timeout};

use crate::AcceptError;

/// A wrong password is answered after this long, whatever was wrong with it.
const WRONG_LOGIN_DELAY: Duration = Duration::from_millis(500);
/// Time for a goodbye to a peer that is told something.
const FAREWELL: Duration = Duration::from_secs(1);
/// What such a peer may still say.
pub(super) const LAST_BYTES: usize = 64 << 10;

/// Ends a dialogue that failed: says what the core has to say; a wrong login waits first.
pub(super) async fn give_up<E: Into<Broken> + std::fmt::Display>(
    mut io: BoxStream,
    why: RunError<E>,
    is_login: impl Fn(&E) -> bool,
) -> AcceptError {
    match why {
        RunError::Core { error, unsent } => {
            if is_login(&error) {
                sleep(WRONG_LOGIN_DELAY).await;
                farewell(&mut io, &unsent).await;
                return AcceptError::Login(error.to_string());
            }
            farewell(&mut io, &unsent).await;
            AcceptError::Refused(error.to_string())
        }
        RunError::Eof => AcceptError::Eof,
        RunError::Io(e) => AcceptError::Io(e),
    }
}

/// Says `last` and closes so that the peer gets it: a close with unread bytes would be a reset,
/// which may overtake what was said.
pub(crate) async fn farewell(io: &mut BoxStream, last: &[u8]) {
    goodbye(io, last, LAST_BYTES).await;
}

/// The same; reads `budget` bytes at most.
pub(super) async fn goodbye(io: &mut BoxStream, last: &[u8], mut budget: usize) {
    let goodbye = async {
        send(io, last).await?;
        finish(io).await?;
        while budget > 0 {
            let n = fill(io, 1).await?;
            if n == 0 {
                break;
            }
            io.consume(n);
            budget -= n.min(budget);
        }
        Ok::<_, std::io::Error>(())
    };
    // Whether the peer stays to listen is its own affair.
    let _ = timeout(FAREWELL, goodbye).await;
}
