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

use super::admission::{LoginFailure, PendingConnection};
use super::authorized_keys::LoginPolicy;
use super::client_connection::{ClientConnection, ServerShutdown};
use super::settings::ServerSettings;

/// Opens a listening socket.
pub(super) fn bind(addr: SocketAddr) -> Result<TcpAcceptor, StartError> {
    let listener = tcp::listen(addr).map_err(|why| StartError::Listen {
        addr: addr.to_string(),
        why,
    })?;
    Ok(TcpAcceptor::new(listener))
}

/// Accepts connections until the server shuts down.
pub(super) async fn accept_connections(
    mut listener: TcpAcceptor,
    settings: Arc<ServerSettings>,
    mut end: ServerShutdown,
) {
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
        match settings.admission.admit(from.ip()) {
            Ok(stranger) => {
                let (settings, end) = (Arc::clone(&settings), end.clone());
                tokio::spawn(handle_connection(socket, from, stranger, settings, end));
            }
            Err(why) => debug!("{from}: {why}"),
        }
    }
}

/// Performs the handshake and the login, and serves the connection.
async fn handle_connection(
    socket: TcpStream,
    from: SocketAddr,
    stranger: PendingConnection,
    settings: Arc<ServerSettings>,
    mut end: ServerShutdown,
) {
    let at = socket.local_addr().unwrap_or(from);
    let gate = LoginPolicy::new(Arc::clone(&settings.keys), from.ip());
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
            let grant = settings.restrict_grant(gate.grant());
            debug!(
                "{from}: {} {:?}",
                connection.version(),
                connection.negotiated()
            );
            ClientConnection::new(settings, grant, from, at, end)
                .serve_requests(connection)
                .await;
        }
        Err(why) => {
            let failure = classify_failure(&why, &gate);
            let line = || settings.failure_log.admit_line(system::monotonic_now());
            match (gate.attempts().describe_attempts(), failure) {
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
                (None, LoginFailure::TimedOut | LoginFailure::ProtocolError)
                    if line().is_some() =>
                {
                    info!("{from}: {why}");
                }
                // Port scans are too frequent to log.
                _ => debug!("{from}: {why}"),
            }
            stranger.record_failure(failure);
        }
    }
}

/// Classifies a failed connection.
fn classify_failure(why: &ConnectError, gate: &LoginPolicy) -> LoginFailure {
    let left = match gate.has_computed_keys() {
        true => LoginFailure::AbandonedKeyExchange,
        false => LoginFailure::Disconnected,
    };
    match why {
        _ if gate.has_refused() => LoginFailure::Refused,
        ConnectError::Timeout { .. } => LoginFailure::TimedOut,
        ConnectError::Ssh(SshError::Disconnected { .. } | SshError::NoCommon { .. }) => left,
        ConnectError::Ssh(_) => LoginFailure::ProtocolError,
        _ => left,
    }
}
