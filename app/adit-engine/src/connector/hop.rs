//! Hops: servers in a chain, each reached through the connector before it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_wire::Target;
use tokio::time::timeout;

use super::{ConnectedStream, Connector};
use crate::clock_steps;
use crate::dialect::{HopDialect, HopError, RequestedStream};
use crate::plugin::PluginHost;
use crate::session_span::{hop_span, run_step};
use crate::udp::{BoxDatagramPath, UdpOverTcp};
use crate::{BoxFuture, DialError, DialStage, FailureCause, ServerHealth};

/// An unanswered attempt that its client gave up after at least this time is reported.
const REPORT_AFTER: Duration = Duration::from_secs(2);

/// Reaches targets through a server, and the server through `via`.
pub struct Hop<D> {
    /// The protocol of the server.
    pub dialect: D,
    /// The server.
    pub server: Target,
    /// The name for errors and logs, as `dialect://host:port`.
    pub name: String,
    /// Time limit for connecting and the handshake together.
    pub deadline: Duration,
    /// The connector that leads to the server.
    pub via: Arc<dyn Connector>,
    /// The plugin in front of the server (SIP003), which listens on a loopback address.
    pub plugin: Option<Arc<PluginHost>>,
    /// The observed health of the server.
    pub health: Arc<ServerHealth>,
}

impl<D: HopDialect> Hop<D> {
    /// Returns the address to connect to: the server's, or its plugin's if that carries `what`. A restarted
    /// plugin has a different address.
    fn connect_addr(&self, what: impl Fn(&PluginHost) -> bool) -> Target {
        match &self.plugin {
            Some(host) if what(host) => host.local_addr().into(),
            _ => self.server.clone(),
        }
    }

    fn timeout_error(&self) -> DialError {
        DialError::hop_timed_out(&self.name)
    }

    fn connect_error(&self, why: DialError) -> DialError {
        // The carrier has the same name as this hop.
        if why.is_hop_unreachable(&self.name) {
            self.health.report_unreachable(&why.source_error);
        }
        why.attribute_to_hop(&self.name)
    }

    /// Returns the error of a connection that would fail like those before it; `why` says how.
    fn paced_error(&self, why: &str) -> DialError {
        let hop = self.name.clone();
        let why = format!(
            "the server {why}, and has not accepted this client so far: it is tried at most once a second"
        );
        DialError {
            stage: DialStage::Dialect { hop },
            cause: FailureCause::Closed,
            source_error: std::io::Error::new(std::io::ErrorKind::UnexpectedEof, why),
        }
    }

    fn handshake_error(&self, failed: HopError) -> DialError {
        failed.into_dial_error(self.name.clone())
    }
}

/// An attempt to connect to the server. Dropping it reports that its client gave up.
struct PendingDial<'a> {
    health: Option<&'a ServerHealth>,
    since: Instant,
}

impl Drop for PendingDial<'_> {
    fn drop(&mut self) {
        let waited = self.since.elapsed();
        if let Some(health) = self.health.filter(|_| waited >= REPORT_AFTER) {
            let why = format!("no answer in {} s", waited.as_secs());
            health.report_unreachable(&std::io::Error::new(std::io::ErrorKind::TimedOut, why));
        }
    }
}

impl<D: HopDialect> Connector for Hop<D> {
    fn server_health(&self) -> Option<Arc<ServerHealth>> {
        Some(self.health.clone())
    }

    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<ConnectedStream, DialError>> {
        Box::pin(async move {
            clock_steps::record_wall_clock();
            let open = async {
                if let Some(pacer) = self.health.pacer() {
                    let admitted = pacer.admit().await;
                    admitted.map_err(|why| self.paced_error(&why))?;
                }
                let mut dialling = PendingDial {
                    health: Some(&self.health),
                    since: Instant::now(),
                };
                let below = self
                    .via
                    .connect(&self.connect_addr(|host| host.mode().carries_tcp()), &[])
                    .await;
                dialling.health = None;
                let below = below.map_err(|e| self.connect_error(e))?;
                let RequestedStream {
                    io,
                    first_wait,
                    watch,
                } = self
                    .dialect
                    .request_target(below.io, to, first)
                    .await
                    .map_err(|e| self.handshake_error(e))?;
                match (&watch, self.health.pacer()) {
                    // The handshake has proved it.
                    (None, _) => self.health.record_proof(None),
                    (Some(watch), Some(pacer)) => pacer.watch(&watch.progress),
                    (Some(_), None) => {}
                }
                Ok(ConnectedStream {
                    io,
                    is_direct: false,
                    first_wait,
                    watch: watch.or(below.watch),
                })
            };
            let open = async {
                timeout(self.deadline, open)
                    .await
                    .unwrap_or_else(|_| Err(self.timeout_error()))
            };
            run_step(hop_span(&self.name), open).await
        })
    }

    fn open_datagrams(&self) -> BoxFuture<'_, Result<BoxDatagramPath, DialError>> {
        Box::pin(async move {
            clock_steps::record_wall_clock();
            if let Some(stream) = self.dialect.udp_over_tcp_target() {
                // An ordinary stream: it passes through the plugin if that carries streams.
                let opened = self.connect(&stream, &[]).await?;
                return Ok(Box::new(UdpOverTcp::new_client(opened.io)) as BoxDatagramPath);
            }
            let server = self.connect_addr(|host| host.mode().carries_udp());
            let open = self.dialect.open_datagrams(&*self.via, &server);
            let open = async {
                match timeout(self.deadline, open).await {
                    Ok(opened) => opened.map_err(|e| self.connect_error(e)),
                    Err(_) => Err(self.timeout_error()),
                }
            };
            run_step(hop_span(&self.name), open).await
        })
    }
}
