//! The hello of an obfs, on a server.

use adit_net::ambient::Chance;
use adit_obfs::{Codecs, ServerHandshake, ServerState};
use adit_stream::{Stream, fill};
use adit_wire::Broken;
use tokio::time::timeout;

use super::header::{Seen, step_through};
use crate::AcceptError;

/// Takes the obfs off a connection: gives what it is to be read and written with.
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

/// Whoever ends, or is late, in the middle of a hello may be a client without obfs.
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
