//! Hops: servers in a chain, each reached through the connector before it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adit_wire::Target;
use tokio::time::timeout;

use super::{Connected, Connector};
use crate::dialect::{Dialect, DialogueError, Spoken};
use crate::plugin::Host;
use crate::udp::{BoxDatagrams, OverTcp};
use crate::{BoxFuture, DialError, Health};

/// An unanswered attempt that its client gave up after at least this time is reported.
const LONG: Duration = Duration::from_secs(2);

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
    pub plugin: Option<Arc<Host>>,
    /// The observed health of the server.
    pub health: Arc<Health>,
}

impl<D: Dialect> Hop<D> {
    /// Returns the address to connect to: the server's, or its plugin's if that carries `what`. A restarted
    /// plugin has a different address.
    fn reached_at(&self, what: impl Fn(&Host) -> bool) -> Target {
        match &self.plugin {
            Some(host) if what(host) => host.local().into(),
            _ => self.server.clone(),
        }
    }

    fn late(&self) -> DialError {
        DialError::late(&self.name)
    }

    fn on_the_way(&self, why: DialError) -> DialError {
        // The carrier has the same name as this hop.
        if why.is_unreachable(&self.name) {
            self.health.unreachable(&why.why);
        }
        why.on_the_way_to(&self.name)
    }

    fn in_dialogue(&self, failed: DialogueError) -> DialError {
        failed.with(self.name.clone())
    }
}

/// An attempt to connect to the server. Dropping it reports that its client gave up.
struct Dialling<'a> {
    health: Option<&'a Health>,
    since: Instant,
}

impl Drop for Dialling<'_> {
    fn drop(&mut self) {
        let waited = self.since.elapsed();
        if let Some(health) = self.health.filter(|_| waited >= LONG) {
            let why = format!("no answer in {} s", waited.as_secs());
            health.unreachable(&std::io::Error::new(std::io::ErrorKind::TimedOut, why));
        }
    }
}

impl<D: Dialect> Connector for Hop<D> {
    fn connect<'a>(
        &'a self,
        to: &'a Target,
        first: &'a [u8],
    ) -> BoxFuture<'a, Result<Connected, DialError>> {
        Box::pin(async move {
            let open = async {
                let mut dialling = Dialling {
                    health: Some(&self.health),
                    since: Instant::now(),
                };
                let below = self
                    .via
                    .connect(&self.reached_at(|host| host.mode().tcp()), &[])
                    .await;
                dialling.health = None;
                let below = below.map_err(|e| self.on_the_way(e))?;
                let Spoken {
                    io,
                    first_wait,
                    watch,
                } = self
                    .dialect
                    .speak(below.io, to, first)
                    .await
                    .map_err(|e| self.in_dialogue(e))?;
                if watch.is_none() {
                    // The handshake has proved it.
                    self.health.proof(None);
                }
                Ok(Connected {
                    io,
                    direct: false,
                    first_wait,
                    watch: watch.or(below.watch),
                    standing: below.standing,
                })
            };
            timeout(self.deadline, open)
                .await
                .unwrap_or_else(|_| Err(self.late()))
        })
    }

    fn associate(&self) -> BoxFuture<'_, Result<BoxDatagrams, DialError>> {
        Box::pin(async move {
            if let Some(stream) = self.dialect.stream_of_datagrams() {
                // An ordinary stream: it passes through the plugin if that carries streams.
                let opened = self.connect(&stream, &[]).await?;
                return Ok(Box::new(OverTcp::client(opened.io)) as BoxDatagrams);
            }
            let server = self.reached_at(|host| host.mode().udp());
            let open = self.dialect.associate(&*self.via, &server);
            match timeout(self.deadline, open).await {
                Ok(opened) => opened.map_err(|e| self.on_the_way(e)),
                Err(_) => Err(self.late()),
            }
        })
    }
}
