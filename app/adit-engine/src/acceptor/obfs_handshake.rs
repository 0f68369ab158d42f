//! The obfs handshake of a server.

use adit_net::system::ThreadRng;
use adit_obfs::{Codecs, ServerHandshake, ServerState};
use adit_stream::{Stream, fill_to};
use adit_wire::ProtocolError;
use tokio::time::timeout;

use super::header::{ConnectionProgress, drive_handshake};
use crate::AcceptError;

/// Performs the obfs handshake and returns the codecs for the rest of the connection.
pub(crate) async fn accept_obfs(
    obfs: &ServerState,
    io: &mut dyn Stream,
    seen: &mut ConnectionProgress,
) -> Result<Codecs, AcceptError> {
    let mut core = obfs.new_handshake(&mut ThreadRng);
    let Some(patience) = obfs.hello_timeout() else {
        return resolve_incomplete_handshake(drive_handshake(io, &mut core, seen).await, &mut core);
    };
    fill_to(io, 1).await?;
    let step = timeout(patience, drive_handshake(io, &mut core, seen)).await;
    resolve_incomplete_handshake(step.unwrap_or(Err(AcceptError::Deadline)), &mut core)
}

/// Treats a connection that closes or times out during the handshake as a client without obfs, if allowed.
fn resolve_incomplete_handshake(
    step: Result<Codecs, AcceptError>,
    core: &mut ServerHandshake,
) -> Result<Codecs, AcceptError> {
    match step {
        Err(AcceptError::Deadline | AcceptError::Rejected(ProtocolError::Truncated(_))) => {
            core.handle_timeout().map_err(AcceptError::Rejected)
        }
        step => step,
    }
}
