//! Forwards: local ports and sockets (`local`), ports and sockets of the host (`remote`), SOCKS in both
//! directions (`way`), and the agent (`agent`).
//!
//! Each connection has its own channel and relay.

mod agent;
mod local;
mod remote;
mod tally;
mod way;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::ssh_config::{SshDestination, SshForward, SshSettings};
use adit_cli::{Code, Failure};
use adit_ssh::client::Session;
use adit_ssh::{Channel, OpenError};
use adit_stream::{EndReason, RelayTimeouts, Stream, TrafficMeter, relay};
use tokio::task::JoinSet;
use tracing::debug;

use super::connect::{Reached, nobody};
use super::terminal;
use tally::Tally;

pub(super) use agent::offer as offer_agent;

/// No timeouts: connections last until one end closes them.
const FOR_EVER: RelayTimeouts = RelayTimeouts {
    idle: Duration::ZERO,
    half_close_idle: Duration::ZERO,
};

/// The active forwards of a session.
#[derive(Debug, Default)]
pub(super) struct Forwards {
    doors: JoinSet<()>,
    tally: Tally,
    /// Unix sockets to remove at the end.
    sockets: Vec<PathBuf>,
}

/// Context shared by all forwards.
#[derive(Debug, Clone)]
struct Shared {
    session: Session,
    tally: Tally,
    quiet: bool,
}

impl Forwards {
    /// Opens all configured forwards. A failure is reported or, with `ExitOnForwardFailure`, returned.
    pub(super) async fn start(reached: &Reached) -> Result<Self, Failure> {
        let settings = &reached.settings;
        let mut forwards = Self::default();
        let shared = Arc::new(Shared {
            session: reached.session.clone(),
            tally: forwards.tally.clone(),
            quiet: super::connect::is_quiet(settings),
        });
        let wanted = [
            &settings.local_forwards,
            &settings.dynamic_forwards,
            &settings.remote_forwards,
        ];
        if !reached.trusted {
            if wanted.iter().any(|list| !list.is_empty()) {
                forwards.failed(
                    settings,
                    "nothing is forwarded because the host key does not match the known one",
                )?;
            }
            return Ok(forwards);
        }
        for forward in wanted[0].iter().chain(wanted[1]) {
            if let Err(why) = forwards.open_here(forward, settings, &shared).await {
                forwards.failed(
                    settings,
                    &format!("cannot listen on {}: {why}", here(forward)),
                )?;
            }
        }
        for forward in wanted[2] {
            if let Err(why) = remote::open(&mut forwards.doors, forward, &shared).await {
                let text = format!(
                    "{} cannot listen on {}: {why}",
                    settings.host_name,
                    here(forward)
                );
                forwards.failed(settings, &text)?;
            }
        }
        Ok(forwards)
    }

    /// Opens the listeners of a local forward and starts to serve them.
    async fn open_here(
        &mut self,
        forward: &SshForward,
        settings: &SshSettings,
        shared: &Arc<Shared>,
    ) -> std::io::Result<()> {
        let doors = local::open(&forward.listen, settings.gateway_ports).await?;
        let to = Arc::new(way::Way::new(&forward.to, shared));
        for door in doors {
            self.sockets.extend(door.path());
            self.doors
                .spawn(local::serve(door, Arc::clone(&to), Arc::clone(shared)));
        }
        Ok(())
    }

    /// Reports a failed forward, or returns it as an error (`ExitOnForwardFailure`).
    fn failed(&self, settings: &SshSettings, text: &str) -> Result<(), Failure> {
        if settings.exit_on_forward_failure {
            return Err(Failure::new(Code::Network, text));
        }
        if !super::connect::is_quiet(settings) {
            terminal::say(&format!("warning: {text}"));
        }
        Ok(())
    }

    /// Stops listening, and waits until all open connections have ended.
    pub(super) async fn finish(&mut self) {
        self.doors.abort_all();
        self.tally.empty().await;
    }
}

impl Drop for Forwards {
    fn drop(&mut self) {
        for path in &self.sockets {
            // The socket may have been removed already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Describes the listening end of a forward.
fn here(forward: &SshForward) -> String {
    use crate::ssh_config::SshBind;
    match &forward.listen {
        SshBind::Port {
            address: Some(address),
            port,
        } => format!("{address} port {port}"),
        SshBind::Port {
            address: None,
            port,
        } => format!("port {port}"),
        SshBind::Socket(path) => path.clone(),
    }
}

/// Describes the destination of a forward.
fn there(to: &SshDestination) -> String {
    match to {
        SshDestination::Port { host, port } => format!("{host} port {port}"),
        SshDestination::Socket(path) => path.clone(),
        SshDestination::Socks => "SOCKS".to_owned(),
    }
}

/// Opens a channel to `to`, as seen from the host; must not be SOCKS.
pub(super) async fn open_channel(
    session: &Session,
    to: &SshDestination,
) -> Result<Channel, OpenError> {
    match to {
        SshDestination::Socket(path) => session.open_direct_streamlocal(path.as_str()).await,
        SshDestination::Port { host, port } => {
            session
                .open_direct_tcpip(host.as_str(), *port, nobody())
                .await
        }
        SshDestination::Socks => session.open_direct_tcpip("", 0, nobody()).await,
    }
}

/// Relays a connection until its end.
async fn carry(near: &mut dyn Stream, far: &mut dyn Stream, about: &str) {
    let outcome = relay(near, far, &FOR_EVER, &TrafficMeter::default()).await;
    match outcome.end {
        EndReason::Finished | EndReason::Idle => {
            debug!("{about}: {} up, {} down", outcome.up, outcome.down);
        }
        EndReason::Near(why) | EndReason::Far(why) => debug!("{about}: {why}"),
    }
}
