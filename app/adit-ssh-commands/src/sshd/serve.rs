//! Accepts connections and authenticates users.

use std::net::SocketAddr;
use std::sync::Arc;

use adit_engine::StartError;
use adit_net::accept::{AcceptOutcome, TcpAcceptor};
use adit_net::{system, tcp};
use adit_ssh::ConnectError;
use adit_ssh::server::Server;
use adit_ssh_proto::SshError;
use adit_stream::Tcp;
use tokio::net::TcpStream;
use tracing::{debug, info, warn};

use super::door::{Failure, Stranger};
use super::keys::Gate;
use super::settings::Settings;
use super::visit::{End, Visit};

/// Opens a listening socket.
pub(super) fn bind(addr: SocketAddr) -> Result<TcpAcceptor, StartError> {
    let listener = tcp::listen(addr).map_err(|why| StartError::Listen {
        addr: addr.to_string(),
        why,
    })?;
    Ok(TcpAcceptor::new(listener))
}

/// Accepts connections until the server shuts down.
pub(super) async fn accept(mut listener: TcpAcceptor, settings: Arc<Settings>, mut end: End) {
    loop {
        let turn = tokio::select! {
            turn = listener.next() => turn,
            _ = end.stopped.changed() => return,
        };
        let (socket, from) = match turn {
            AcceptOutcome::Connection(socket, from) => (socket, from),
            AcceptOutcome::Exhausted(why) => {
                warn!("cannot accept connections: {why}");
                continue;
            }
        };
        match settings.door.enter(from.ip()) {
            Ok(stranger) => {
                let (settings, end) = (Arc::clone(&settings), end.clone());
                tokio::spawn(greet(socket, from, stranger, settings, end));
            }
            Err(why) => debug!("{from}: {why}"),
        }
    }
}

/// Performs the handshake and the login, and serves the connection.
async fn greet(
    socket: TcpStream,
    from: SocketAddr,
    stranger: Stranger,
    settings: Arc<Settings>,
    mut end: End,
) {
    let at = socket.local_addr().unwrap_or(from);
    let gate = Gate::new(Arc::clone(&settings.keys), from.ip());
    let below = Box::new(Tcp::new(socket));
    let accepted = tokio::select! {
        accepted = Server::accept(below, &settings.server, &gate) => accepted,
        _ = end.stopped.changed() => return,
    };
    match accepted {
        Ok(connection) => {
            drop(stranger);
            let key = connection.login().key.as_ref();
            info!(
                "{from}: {} logged in with {}",
                settings.account.name,
                key.map_or_else(String::new, |key| key.key().fingerprint())
            );
            let grant = settings.narrowed(gate.grant());
            debug!(
                "{from}: {} {:?}",
                connection.version(),
                connection.negotiated()
            );
            Visit::new(settings, grant, from, at, end)
                .attend(connection)
                .await;
        }
        Err(why) => {
            let failure = judge(&why, &gate);
            let line = || settings.failures.line(system::monotonic_now());
            match (gate.tries().told(), failure) {
                (Some(tries), _) => {
                    if let Some(left_out) = line() {
                        if left_out > 0 {
                            info!(
                                "{left_out} failed logins were not logged because there are too many"
                            );
                        }
                        info!("{from}: failed login: {tries}: {why}");
                    }
                }
                (None, Failure::Slow | Failure::Broken) if line().is_some() => {
                    info!("{from}: {why}");
                }
                // Port scans are too frequent to log.
                _ => debug!("{from}: {why}"),
            }
            stranger.failed(failure);
        }
    }
}

/// Classifies a failed connection.
fn judge(why: &ConnectError, gate: &Gate) -> Failure {
    let left = match gate.has_computed() {
        true => Failure::Wasted,
        false => Failure::Left,
    };
    match why {
        _ if gate.has_refused() => Failure::Refused,
        ConnectError::Timeout { .. } => Failure::Slow,
        ConnectError::Ssh(SshError::Disconnected { .. } | SshError::NoCommon { .. }) => left,
        ConnectError::Ssh(_) => Failure::Broken,
        _ => left,
    }
}
