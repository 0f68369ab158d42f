//! Many servers in one process, begun and ended by datagrams: the protocol of ss-manager.
//!
//! ```text
//! datagram ─▶ Command ─▶ Route ─▶ Engine        ok, err, a list, counters ─▶ datagrams
//! ```
//!
//! Whoever reaches the [`Door`] may begin servers, and read the passwords of all of them: the
//! protocol knows no keys. So the door is a Unix socket of its owner, or a port of this machine,
//! unless its owner insists.

mod answer;
mod build;
mod command;
mod door;

use std::collections::BTreeMap;
use std::sync::Arc;

use adit_engine::{Engine, StartError};
use tracing::{info, warn};

use self::answer::Listed;
use self::command::{Add, Command, NoCommand};

pub use build::{Mode, Settings};
pub use door::{Door, DoorError};

/// Answers datagrams.
#[derive(Debug)]
pub struct Manager {
    engine: Arc<Engine>,
    settings: Settings,
    servers: BTreeMap<u16, Managed>,
}

/// A server that was added.
#[derive(Debug)]
struct Managed {
    add: Box<Add>,
    /// Bytes that the servers carried which this one replaced.
    before: u64,
}

/// Why a server was not added.
#[derive(Debug, thiserror::Error)]
enum NotAdded {
    #[error(transparent)]
    Unfit(#[from] build::Unfit),
    #[error(transparent)]
    Start(#[from] StartError),
}

impl NotAdded {
    /// As a client is told.
    fn answer(&self) -> String {
        match self {
            // What shadowsocks-libev says.
            Self::Start(StartError::Listen { .. }) => "port is not available".to_owned(),
            other => other.to_string(),
        }
    }
}

impl Manager {
    /// A manager without servers. The engine is its own: routes are named by their ports.
    #[must_use]
    pub const fn new(engine: Arc<Engine>, settings: Settings) -> Self {
        Self {
            engine,
            settings,
            servers: BTreeMap::new(),
        }
    }

    /// Does what a datagram asks for; gives the datagrams of the answer, none for noise.
    pub async fn handle(&mut self, datagram: &[u8]) -> Vec<String> {
        match command::read(datagram) {
            Ok(Command::Add(add)) => {
                let port = add.port;
                let answer = match self.add(add).await {
                    Ok(()) => "ok".to_owned(),
                    Err(why) => {
                        warn!("no server on port {port}: {why}");
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

    /// Begins a server in the place of the one on its port. If it cannot be begun, that one stays
    /// (or begins anew, where the two could not be there at once).
    async fn add(&mut self, add: Box<Add>) -> Result<(), NotAdded> {
        let port = add.port;
        // Panels say all of it again now and then: sessions go on, and nothing is built or logged.
        if self.servers.get(&port).is_some_and(|old| old.add == add) {
            return Ok(());
        }
        let route = build::route(&add, &self.settings)?;
        let Some(old) = self.servers.get(&port) else {
            self.engine.add_route(&route).await?;
            info!("a server on port {port}");
            self.servers.insert(port, Managed { add, before: 0 });
            return Ok(());
        };
        let before = self.carried(port, old);
        self.engine.remove_route_and_wait(&route.name).await;
        if let Err(why) = self.engine.add_route(&route).await {
            self.restore(port, before).await;
            return Err(why.into());
        }
        info!("another server on port {port}");
        self.servers.insert(port, Managed { add, before });
        Ok(())
    }

    /// Begins the server again that was ended for one that does not run.
    async fn restore(&mut self, port: u16, before: u64) {
        let Some(old) = self.servers.get_mut(&port) else {
            return;
        };
        old.before = before;
        let begun = match build::route(&old.add, &self.settings) {
            Ok(route) => self.engine.add_route(&route).await.map_err(NotAdded::from),
            Err(why) => Err(why.into()),
        };
        if let Err(why) = begun {
            warn!("the server on port {port} is gone: {why}");
            self.servers.remove(&port);
        }
    }

    /// Ends a server and its sessions; says whether there was one.
    async fn remove(&mut self, port: u16) -> bool {
        if self.servers.remove(&port).is_none() {
            return false;
        }
        self.engine.remove_route_and_wait(&port.to_string()).await;
        info!("no server on port {port} any more");
        true
    }

    fn list(&self) -> Vec<String> {
        answer::list(self.servers.iter().map(|(port, managed)| Listed {
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

    /// Bytes that a port has carried, replaced servers included.
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
