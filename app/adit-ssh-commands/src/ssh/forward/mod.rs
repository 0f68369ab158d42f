//! Forwards: local ports and sockets (`local`), ports and sockets of the host (`remote`), SOCKS in both
//! directions (`forward_target`), and the agent (`agent`).
//!
//! Each connection has its own channel and relay.

mod agent;
mod connection_counter;
mod forward_target;
mod local;
mod remote;

use std::path::PathBuf;
use std::sync::Arc;

use crate::ssh_config::{SshDestination, SshForward, SshSettings};
use adit_cli::{Failure, FailureCode};
use adit_ssh::client::Session;
use adit_ssh::{Channel, OpenError};
use adit_stream::{EndReason, RelayTimeouts, Stream, TrafficMeter, relay};
use tokio::task::JoinSet;
use tracing::debug;

use super::connect::{ConnectedHost, local_originator};
use super::terminal;
use connection_counter::ConnectionCounter;

pub(super) use agent::offer_local_agent as offer_agent;

/// No timeouts: connections last until one end closes them.
const NO_TIMEOUTS: RelayTimeouts = RelayTimeouts::NEVER;

/// The active forwards of a session.
#[derive(Debug, Default)]
pub(super) struct Forwards {
    listeners: JoinSet<()>,
    counter: ConnectionCounter,
    /// Unix sockets to remove at the end.
    sockets: Vec<PathBuf>,
}

/// Context shared by all forwards.
#[derive(Debug, Clone)]
struct ForwardContext {
    session: Session,
    counter: ConnectionCounter,
    quiet: bool,
}

impl Forwards {
    /// Opens all configured forwards. A failure is reported or, with `ExitOnForwardFailure`, returned.
    pub(super) async fn open_all(reached: &ConnectedHost) -> Result<Self, Failure> {
        let settings = &reached.settings;
        let mut forwards = Self::default();
        let shared = Arc::new(ForwardContext {
            session: reached.session.clone(),
            counter: forwards.counter.clone(),
            quiet: super::connect::is_quiet(settings),
        });
        let wanted = [
            &settings.local_forwards,
            &settings.dynamic_forwards,
            &settings.remote_forwards,
        ];
        if !reached.trusted {
            if wanted.iter().any(|list| !list.is_empty()) {
                forwards.report_failure(
                    settings,
                    "nothing is forwarded because the host key does not match the known one",
                )?;
            }
            return Ok(forwards);
        }
        for forward in wanted[0].iter().chain(wanted[1]) {
            if let Err(why) = forwards
                .open_local_forward(forward, settings, &shared)
                .await
            {
                forwards.report_failure(
                    settings,
                    &format!("cannot listen on {}: {why}", describe_listener(forward)),
                )?;
            }
        }
        for forward in wanted[2] {
            if let Err(why) =
                remote::open_remote_forward(&mut forwards.listeners, forward, &shared).await
            {
                let text = format!(
                    "{} cannot listen on {}: {why}",
                    settings.host_name,
                    describe_listener(forward)
                );
                forwards.report_failure(settings, &text)?;
            }
        }
        Ok(forwards)
    }

    /// Opens the listeners of a local forward and starts to serve them.
    async fn open_local_forward(
        &mut self,
        forward: &SshForward,
        settings: &SshSettings,
        shared: &Arc<ForwardContext>,
    ) -> std::io::Result<()> {
        let listeners = local::open_listeners(&forward.listen, settings.gateway_ports).await?;
        let to = Arc::new(forward_target::ForwardTarget::new(&forward.to, shared));
        for listener in listeners {
            self.sockets.extend(listener.socket_path());
            self.listeners.spawn(local::serve_local_forward(
                listener,
                Arc::clone(&to),
                Arc::clone(shared),
            ));
        }
        Ok(())
    }

    /// Reports a failed forward, or returns it as an error (`ExitOnForwardFailure`).
    fn report_failure(&self, settings: &SshSettings, text: &str) -> Result<(), Failure> {
        if settings.exit_on_forward_failure {
            return Err(Failure::new(FailureCode::Network, text));
        }
        if !super::connect::is_quiet(settings) {
            terminal::print_message(&format!("warning: {text}"));
        }
        Ok(())
    }

    /// Stops listening, and waits until all open connections have ended.
    pub(super) async fn close_and_drain(&mut self) {
        self.listeners.abort_all();
        self.counter.wait_until_empty().await;
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
fn describe_listener(forward: &SshForward) -> String {
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
fn describe_destination(to: &SshDestination) -> String {
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
                .open_direct_tcpip(host.as_str(), *port, local_originator())
                .await
        }
        SshDestination::Socks => session.open_direct_tcpip("", 0, local_originator()).await,
    }
}

/// Relays a connection until its end.
async fn relay_connection(near: &mut dyn Stream, far: &mut dyn Stream, about: &str) {
    let outcome = relay(near, far, &NO_TIMEOUTS, &TrafficMeter::default()).await;
    match outcome.end {
        EndReason::Finished | EndReason::Idle => {
            debug!("{about}: {} up, {} down", outcome.up, outcome.down);
        }
        EndReason::Near(why) | EndReason::Far(why) => debug!("{about}: {why}"),
    }
}
