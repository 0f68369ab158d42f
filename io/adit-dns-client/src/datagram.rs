//! Queries in datagrams.

use std::time::Duration;

use adit_dns::{Answer, AnswerError, UpstreamQuery};
use adit_wire::Target;
use tokio::time::{Instant, sleep_until};

use crate::error::ServerError;
use crate::path::DnsPath;

/// Time after which the same query is sent again, since it or its answer may be lost; the next pause is twice as long.
const RESEND_AFTER: Duration = Duration::from_millis(700);
/// Maximum number of times that a query is sent again (RFC 9520 section 3.1).
const MAX_RESENDS: u32 = 2;
/// Number of datagrams that do not answer the query after which it is sent over a stream: they are
/// attempts to guess its number.
const MAX_UNRELATED: u32 = 16;

/// Sends a query in a datagram, through an association of its own. Returns `None` if it has to be sent over a
/// stream: the answer does not fit, or forged answers arrive.
///
/// It ends only with an answer or an error of the path; the caller has a time limit.
pub(crate) async fn ask(
    path: &dyn DnsPath,
    server: &Target,
    query: &UpstreamQuery,
) -> Result<Option<Answer>, ServerError> {
    let bytes = query.to_bytes();
    let mut link = path
        .open_datagrams(server)
        .await
        .map_err(ServerError::Path)?;
    link.send(&bytes).await.map_err(ServerError::Path)?;
    let (mut resends, mut pause) = (0, RESEND_AFTER);
    let mut resend_at = Instant::now() + pause;
    let mut unrelated = 0;
    while unrelated < MAX_UNRELATED {
        // A late answer to the first datagram counts, so the association stays.
        let received = tokio::select! {
            received = link.receive() => Some(received.map_err(ServerError::Path)?),
            () = sleep_until(resend_at), if resends < MAX_RESENDS => None,
        };
        let Some(message) = received else {
            link.send(&bytes).await.map_err(ServerError::Path)?;
            (resends, pause) = (resends + 1, pause * 2);
            resend_at += pause;
            continue;
        };
        match query.check_answer(&message) {
            Ok(answer) if answer.is_truncated() => return Ok(None),
            Ok(answer) => return Ok(Some(answer)),
            // Number and question are right.
            Err(why @ (AnswerError::Aliases | AnswerError::TooManyRecords)) => {
                return Err(why.into());
            }
            // Also a malformed one: a forged datagram must not end the query.
            Err(_) => unrelated += 1,
        }
    }
    Ok(None)
}
