//! The obfs handshake of a server.

use adit_net::ambient::Chance;
use adit_obfs::{Codecs, ServerHandshake, ServerState};
use adit_stream::{Stream, fill};
use adit_wire::Broken;
use tokio::time::timeout;

use super::header::{Seen, step_through};
use crate::AcceptError;

/// Performs the obfs handshake and returns the codecs for the rest of the connection.
pub(crate) async fn undress(
    obfs: &ServerState,
    io: &mut dyn Stream,
    seen: &mut Seen,
) -> Result<Codecs, AcceptError> {
    let mut core = obfs.handshake(&mut Chance);
    let Some(patience) = obfs.patience() else {
        return settle(step_through(io, &mut core, seen).await, &mut core);
    };
    fill(io, 1).await?;
    let step = timeout(patience, step_through(io, &mut core, seen)).await;
    settle(step.unwrap_or(Err(AcceptError::Deadline)), &mut core)
}

/// Treats a connection that closes or times out during the handshake as a client without obfs, if allowed.
fn settle(
    step: Result<Codecs, AcceptError>,
    core: &mut ServerHandshake,
) -> Result<Codecs, AcceptError> {
    match step {
        Err(AcceptError::Deadline | AcceptError::Rejected(Broken::Truncated(_))) => {
            core.expire().map_err(AcceptError::Rejected)
        }
        step => step,
    }
}
