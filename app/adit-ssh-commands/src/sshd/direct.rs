//! Outgoing connections for clients (`-L`, `-D`, `-W`, `-J`), through the relay.

use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adit_net::dial::{self, Family};
use adit_net::names::LookupOrigin;
use adit_ssh::IncomingChannel;
use adit_ssh_proto::connection::OpenFailureReason;
use adit_stream::Buffered;
use adit_stream::{Stream, Tcp, relay};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tracing::debug;

use super::client_connection::ClientConnection;

/// Time limit for a connection.
const DIAL_TIMEOUT: Duration = Duration::from_secs(20);

/// Connects to a host and relays bytes in both directions.
pub(super) async fn serve_direct_tcpip(
    visit: Arc<ClientConnection>,
    host: String,
    port: u16,
    opening: IncomingChannel,
) {
    let from = visit.from;
    if !visit.grant.may_open(&host, port) {
        debug!("{from}: not allowed to connect to {host:?} port {port}");
        return opening.refuse(
            OpenFailureReason::Prohibited,
            "this key does not allow the destination",
        );
    }
    let asker = LookupOrigin::Client {
        user: 0,
        source: from.ip(),
    };
    match asker.scope(connect(&host, port)).await {
        Ok(socket) => accept_and_relay(&visit, opening, &mut Tcp::new(socket)).await,
        Err(why) => {
            debug!("{from}: cannot connect to {host:?} port {port}: {why}");
            opening.refuse(OpenFailureReason::ConnectFailed, why.to_string());
        }
    }
}

/// Connects to the first address of a host that answers.
async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let addresses = match bare.unwrap_or(host).parse::<IpAddr>() {
        Ok(ip) => vec![SocketAddr::new(ip, port)],
        Err(_) => dial::resolve(host, port, Family::Any).await?,
    };
    dial::connect_first(&addresses, DIAL_TIMEOUT).await
}

/// Connects to a Unix socket and relays bytes in both directions.
pub(super) async fn serve_direct_streamlocal(
    visit: Arc<ClientConnection>,
    path: Vec<u8>,
    opening: IncomingChannel,
) {
    // `permitopen` lists all permitted destinations, and cannot contain a socket.
    if !visit.grant.port_forwarding || visit.grant.permit_open.is_some() {
        return opening.refuse(
            OpenFailureReason::Prohibited,
            "this key does not allow the destination",
        );
    }
    let path = Path::new(OsStr::from_bytes(&path));
    let connected = timeout(DIAL_TIMEOUT, UnixStream::connect(path)).await;
    match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(socket) => accept_and_relay(&visit, opening, &mut Buffered::from_tokio(socket)).await,
        Err(why) => {
            debug!(
                "{}: cannot connect to {}: {why}",
                visit.from,
                path.display()
            );
            opening.refuse(OpenFailureReason::ConnectFailed, why.to_string());
        }
    }
}

/// Accepts a channel and relays its bytes.
async fn accept_and_relay(
    visit: &ClientConnection,
    opening: IncomingChannel,
    far: &mut dyn Stream,
) {
    // An error means that the connection has ended.
    if let Ok(mut channel) = opening.accept() {
        let limits = &visit.settings.limits;
        let outcome = relay(&mut channel, far, limits, &visit.meter).await;
        debug!(
            "{}: {} bytes up, {} down: {:?}",
            visit.from, outcome.up, outcome.down, outcome.end
        );
    }
}
