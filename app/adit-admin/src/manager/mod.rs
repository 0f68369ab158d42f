//! Many servers in one process, started and stopped by datagrams: the protocol of ss-manager.
//!
//! ```text
//! datagram ─▶ Command ─▶ Route ─▶ Engine        ok, err, a list, counters ─▶ datagrams
//! ```
//!
//! Any program that reaches the [`CommandListener`] may start servers and read all their passwords, because the
//! protocol has no authentication. So the listener is a Unix socket of its owner or a loopback port,
//! unless the owner allows other addresses.

mod answer;
mod build;
mod command;
mod command_listener;

use std::collections::BTreeMap;
use std::sync::Arc;

use adit_engine::{Engine, StartError};
use tracing::{info, warn};

use self::answer::ListedServer;
use self::command::{AddServerRequest, Command, NoCommand};

pub use build::{Mode, Settings};
pub use command_listener::{CommandListener, CommandListenerError};

/// Handles the commands of datagrams.
#[derive(Debug)]
pub struct Manager {
    engine: Arc<Engine>,
    settings: Settings,
    servers: BTreeMap<u16, Managed>,
}

/// A server that was added.
#[derive(Debug)]
struct Managed {
    add: Box<AddServerRequest>,
    /// Bytes that earlier servers on this port carried, which this one replaced.
    before: u64,
}

/// The reason why a server was not added.
#[derive(Debug, thiserror::Error)]
enum AddServerError {
    #[error(transparent)]
    Spec(#[from] build::ServerSpecError),
    #[error(transparent)]
    Start(#[from] StartError),
}

impl AddServerError {
    /// Returns the answer to the client.
    fn answer(&self) -> String {
        match self {
            // The answer of shadowsocks-libev.
            Self::Start(StartError::Listen { .. }) => "port is not available".to_owned(),
            other => other.to_string(),
        }
    }
}

impl Manager {
    /// Creates a manager without servers. The engine must have no other routes: they are named by ports.
    #[must_use]
    pub const fn new(engine: Arc<Engine>, settings: Settings) -> Self {
        Self {
            engine,
            settings,
            servers: BTreeMap::new(),
        }
    }

    /// Executes the command of a datagram. Returns the datagrams of the answer, none for noise.
    pub async fn handle(&mut self, datagram: &[u8]) -> Vec<String> {
        match command::read(datagram) {
            Ok(Command::Add(add)) => {
                let port = add.port;
                let answer = match self.add(add).await {
                    Ok(()) => "ok".to_owned(),
                    Err(why) => {
                        warn!("cannot add a server on port {port}: {why}");
                        why.answer()
                    }
                };
                vec![answer]
            }
            Ok(Command::Remove(port)) => {
                let answer = if self.remove(port).await { "ok" } else { "err" };
                vec![answer.to_owned()]
            }
            Ok(Command::List) => self.list(),
            Ok(Command::Ping) => self.stat(),
            Err(NoCommand::Mistake) => vec!["err".to_owned()],
            Err(NoCommand::Silence) => Vec::new(),
        }
    }

    /// Starts a server, which replaces the one on its port. If it cannot be started, the old one
    /// stays, or starts again if it had to be stopped.
    async fn add(&mut self, add: Box<AddServerRequest>) -> Result<(), AddServerError> {
        let port = add.port;
        // Panels repeat their commands: sessions continue, and nothing is built or logged.
        if self.servers.get(&port).is_some_and(|old| old.add == add) {
            return Ok(());
        }
        let route = build::route(&add, &self.settings)?;
        let Some(old) = self.servers.get(&port) else {
            self.engine.add_route(&route).await?;
            info!("added a server on port {port}");
            self.servers.insert(port, Managed { add, before: 0 });
            return Ok(());
        };
        let before = self.carried(port, old);
        self.engine.remove_route_and_wait(&route.name).await;
        if let Err(why) = self.engine.add_route(&route).await {
            self.restore(port, before).await;
            return Err(why.into());
        }
        info!("replaced the server on port {port}");
        self.servers.insert(port, Managed { add, before });
        Ok(())
    }

    /// Starts the old server again after its replacement failed to start.
    async fn restore(&mut self, port: u16, before: u64) {
        let Some(old) = self.servers.get_mut(&port) else {
            return;
        };
        old.before = before;
        let begun = match build::route(&old.add, &self.settings) {
            Ok(route) => self
                .engine
                .add_route(&route)
                .await
                .map_err(AddServerError::from),
            Err(why) => Err(why.into()),
        };
        if let Err(why) = begun {
            warn!("cannot restart the server on port {port}, which is removed: {why}");
            self.servers.remove(&port);
        }
    }

    /// Stops a server and its sessions. Returns true if there was one.
    async fn remove(&mut self, port: u16) -> bool {
        if self.servers.remove(&port).is_none() {
            return false;
        }
        self.engine.remove_route_and_wait(&port.to_string()).await;
        info!("removed the server on port {port}");
        true
    }

    fn list(&self) -> Vec<String> {
        answer::list(self.servers.iter().map(|(port, managed)| ListedServer {
            server_port: port.to_string(),
            password: managed.add.password.expose(),
            method: build::method_name(&managed.add, &self.settings),
        }))
    }

    fn stat(&self) -> Vec<String> {
        let mut sums: BTreeMap<u16, u64> = BTreeMap::new();
        for (listening, counts) in self.engine.listener_counts() {
            if let Ok(port) = listening.route.parse() {
                let sum: &mut u64 = sums.entry(port).or_default();
                *sum = sum.saturating_add(counts.up).saturating_add(counts.down);
            }
        }
        answer::stat(self.servers.iter().map(|(port, managed)| {
            let now = sums.get(port).copied().unwrap_or_default();
            (*port, managed.before.saturating_add(now))
        }))
    }

    /// Returns the bytes that a port has carried, including those of replaced servers.
    fn carried(&self, port: u16, managed: &Managed) -> u64 {
        let route = port.to_string();
        let traffic = self.engine.listener_counts().into_iter();
        traffic
            .filter(|(listening, _)| listening.route == route)
            .fold(managed.before, |sum, (_, counts)| {
                sum.saturating_add(counts.up).saturating_add(counts.down)
            })
    }
}
