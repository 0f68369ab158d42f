//! An authenticated connection: each request runs in its own task, so that none delays another.

use std::net::SocketAddr;
use std::sync::Arc;

use adit_ssh::server::{Connection, Incoming};
use adit_ssh_proto::connection::OpenFailureReason;
use adit_ssh_proto::key::KeyGrant;
use adit_stream::{TrafficMeter, lane};
use tokio::sync::{mpsc, watch};
use tracing::{debug, info};

use super::direct;
use super::environment::Environment;
use super::remote_forwards::{ForwardLimits, RemoteForwards};
use super::session;
use super::settings::ServerSettings;

/// Coordination of the shutdown: its signal, and a handle that keeps the server waiting.
#[derive(Debug, Clone)]
pub(super) struct ServerShutdown {
    /// The sender is dropped when the server shuts down.
    pub(super) stopped: watch::Receiver<()>,
    /// Held by each task that the shutdown waits for.
    pub(super) _alive: mpsc::Sender<()>,
}

/// State shared by all requests of a connection.
pub(super) struct ClientConnection {
    pub(super) settings: Arc<ServerSettings>,
    /// Permissions of the user's key, restricted by the server's settings.
    pub(super) grant: KeyGrant,
    pub(super) from: SocketAddr,
    pub(super) environment: Environment,
    pub(super) meter: TrafficMeter,
    /// Limits for connections that are forwarded to the client.
    pub(super) forward_limits: ForwardLimits,
    end: ServerShutdown,
}

impl ClientConnection {
    pub(super) fn new(
        settings: Arc<ServerSettings>,
        grant: KeyGrant,
        from: SocketAddr,
        at: SocketAddr,
        end: ServerShutdown,
    ) -> Arc<Self> {
        let mut environment = Environment::new(&settings.account, from, at);
        // For each name the first value counts, as in OpenSSH.
        for (name, value) in grant.environment.iter().rev() {
            environment.set_variable(name, value);
        }
        Arc::new(Self {
            settings,
            grant,
            from,
            environment,
            meter: TrafficMeter::default(),
            forward_limits: ForwardLimits::default(),
            end,
        })
    }

    /// Serves the requests of a connection until it ends.
    pub(super) async fn serve_requests(self: Arc<Self>, mut connection: Connection) {
        let mut listening = RemoteForwards::default();
        let mut stopped = self.end.stopped.clone();
        loop {
            let incoming = tokio::select! {
                incoming = connection.accept() => incoming,
                _ = stopped.changed() => {
                    connection.disconnect("the server is shutting down");
                    break;
                }
            };
            let Some(incoming) = incoming else { break };
            let visit = Arc::clone(&self);
            let handle = connection.handle();
            match incoming {
                Incoming::Session(opening) => match opening.accept() {
                    Ok(session) => {
                        tokio::spawn(session::serve_session(visit, handle.clone(), session));
                    }
                    Err(_) => break,
                },
                Incoming::DirectTcpip {
                    host,
                    port,
                    opening,
                    ..
                } => lane::spawn_movable(direct::serve_direct_tcpip(visit, host, port, opening)),
                Incoming::DirectStreamlocal { path, opening } => {
                    lane::spawn_movable(direct::serve_direct_streamlocal(visit, path, opening));
                }
                Incoming::Forward(request) => listening.start_listening(&visit, handle, request),
                Incoming::CancelForward(request) => listening.stop_listening(request),
                Incoming::Other(opening) => {
                    opening.refuse(
                        OpenFailureReason::UnknownType,
                        "the channel type is not supported",
                    );
                }
                _ => debug!("{}: ignoring an unknown request", self.from),
            }
        }
        drop(listening);
        let end = connection.end_reason();
        info!(
            "{}: disconnected{}",
            self.from,
            end.map_or_else(String::new, |end| format!(": {end}"))
        );
    }
}
