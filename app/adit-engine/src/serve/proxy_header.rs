//! The client's address of connections that a proxy on this machine forwards.

use std::net::SocketAddr;
use std::time::Duration;

use adit_socks::ProxyHeader;
use adit_stream::{BoxStream, HandshakeError, run_handshake};
use tokio::time::timeout;

use crate::{AcceptError, ConnectionAddrs};

/// Reads the PROXY header. Returns the client's address, if the proxy sends one.
///
/// # Errors
///
/// Returns an error if there is no header, if it does not arrive in time, or if `peer` is not a process of
/// this machine, which could claim any address.
pub(super) async fn read_client_addr(
    io: &mut BoxStream,
    peer: ConnectionAddrs,
    patience: Duration,
) -> Result<Option<SocketAddr>, AcceptError> {
    if !adit_wire::unmap_ipv4(peer.remote.ip()).is_loopback() {
        let why = "the connection does not come from this machine";
        return Err(AcceptError::Refused(why.to_owned()));
    }
    let read = timeout(patience, run_handshake(io, &mut ProxyHeader)).await;
    match read.map_err(|_| AcceptError::Deadline)? {
        Ok(client) => Ok(client),
        Err(HandshakeError::Core { error, .. }) => Err(AcceptError::Refused(error.to_string())),
        Err(HandshakeError::Eof) => Err(AcceptError::Eof),
        Err(HandshakeError::Io(why)) => Err(AcceptError::Io(why)),
    }
}
