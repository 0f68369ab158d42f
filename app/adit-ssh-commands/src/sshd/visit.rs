//! A user who is in: each of his wishes goes to a task of its own, so that none waits for another.

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
use super::listening::{Listening, Places};
use super::session;
use super::settings::Settings;

/// The end of the server: when it is told, and who still has something to do.
#[derive(Debug, Clone)]
pub(super) struct End {
    /// Its sender is dropped when the server ends.
    pub(super) stopped: watch::Receiver<()>,
    /// Held by everybody who is waited for.
    pub(super) _alive: mpsc::Sender<()>,
}

/// What all wishes of one connection share.
pub(super) struct Visit {
    pub(super) settings: Arc<Settings>,
    /// What the user's key allows, narrowed by what the server does.
    pub(super) grant: KeyGrant,
    pub(super) from: SocketAddr,
    pub(super) environment: Environment,
    pub(super) meter: TrafficMeter,
    /// Of connections that are handed on to the client.
    pub(super) places: Places,
    end: End,
}

impl Visit {
    pub(super) fn new(
        settings: Arc<Settings>,
        grant: KeyGrant,
        from: SocketAddr,
        at: SocketAddr,
        end: End,
    ) -> Arc<Self> {
        let mut environment = Environment::new(&settings.account, from, at);
        // The first of a name counts, as in OpenSSH.
        for (name, value) in grant.environment.iter().rev() {
            environment.set(name, value);
        }
        Arc::new(Self {
            settings,
            grant,
            from,
            environment,
            meter: TrafficMeter::default(),
            places: Places::default(),
            end,
        })
    }

    /// Attends to a connection until it is over.
    pub(super) async fn attend(self: Arc<Self>, mut connection: Connection) {
        let mut listening = Listening::default();
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
                        tokio::spawn(session::serve(visit, handle.clone(), session));
                    }
                    Err(_) => break,
                },
                Incoming::DirectTcpip {
                    host,
                    port,
                    opening,
                    ..
                } => lane::spawn_movable(direct::tcpip(visit, host, port, opening)),
                Incoming::DirectStreamlocal { path, opening } => {
                    lane::spawn_movable(direct::streamlocal(visit, path, opening));
                }
                Incoming::Forward(request) => listening.begin(&visit, handle, request),
                Incoming::CancelForward(request) => listening.end(request),
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
