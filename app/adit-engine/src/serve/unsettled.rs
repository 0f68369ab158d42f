//! Dialling for a request about which other nodes of a fleet have not decided yet.

use std::pin::pin;

use adit_stream::write_all;

use super::OpeningClient;
use crate::connector::ConnectedStream;
use crate::{BoxFuture, DialError, DialStage};

/// The result of dialling a target.
type Dialled = Result<ConnectedStream, DialError>;

/// Dials until the other nodes have decided about a request. If it is new, returns the rest of the dialling, at whose end
/// the client's first bytes are sent; `None` if it is a replay.
///
/// The client is not watched meanwhile: if it is a replay, what it has sent is left to the reject policy.
pub(super) async fn settle_and_dial<'a>(
    mut dial: BoxFuture<'a, Dialled>,
    client: &mut OpeningClient,
    first: &'a [u8],
) -> Option<BoxFuture<'a, Dialled>> {
    let mut dialled = None;
    let is_new = {
        let mut settled = pin!(client.settle());
        loop {
            tokio::select! {
                is_new = &mut settled => break is_new,
                done = &mut dial, if dialled.is_none() => dialled = Some(done),
            }
        }
    };
    is_new.then(|| {
        Box::pin(async move {
            let mut far = match dialled {
                Some(done) => done?,
                None => dial.await?,
            };
            let sent = write_all(&mut *far.io, first).await;
            sent.map_err(|e| DialError::new(DialStage::Connect, e))?;
            Ok(far)
        }) as BoxFuture<'a, Dialled>
    })
}
