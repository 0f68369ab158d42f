//! How the processes of one implementation stand between client and origin.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use adit_interop::loopback;
use adit_interop::shadowsocks::Method;
use adit_interop::ssr::Setup;
use anyhow::{Context, Error, Result};

use crate::account::{self, Memory};
use crate::load::Way;
use crate::peers::ssh::{self, Use};
use crate::peers::{Peer, Role, Running};

/// Lines of a log that are shown with a failure.
const LAST_LINES: usize = 5;

/// What stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One process: SOCKS5 in, straight out.
    Relay,
    /// Two: an entry that leads through a server to one destination.
    Tunnel(Method),
    /// Three: an entry that leads through a relay, by identity header, and a server behind it.
    Relayed(Method),
    /// Two: the ends of records without a protocol.
    Records(Method),
    /// Two: SOCKS5 in, out through a server.
    Client(Method),
    /// Two: an entry of a kcptun tunnel, and its other end.
    Kcptun,
    /// Two: SOCKS5 in, out through a ShadowsocksR server.
    Ssr(Setup<'static>),
    /// Two: an SSH client with `-L`, and its server.
    SshForward(ssh::Suite),
    /// Two: an SSH client with `-D`, and its server.
    SshDynamic(ssh::Suite),
    /// An SSH server; a client is started for each command.
    SshServer(ssh::Suite),
}

impl Topology {
    /// Whether the implementation can be all of it.
    pub(crate) fn suits(self, peer: &Peer) -> bool {
        let somewhere = loopback(1);
        match self {
            Self::Relay => peer.plays(&Role::Relay),
            Self::Tunnel(method) => {
                let forwarder = Role::Forwarder {
                    method,
                    server: somewhere,
                    to: somewhere,
                };
                peer.plays(&Role::Server(method)) && peer.plays(&forwarder)
            }
            Self::Relayed(method) => {
                let (relay, to) = (somewhere, somewhere);
                let behind = Role::Behind { method, relay, to };
                peer.plays(&Role::Server(method))
                    && peer.plays(&Role::Passage { method, to })
                    && peer.plays(&behind)
            }
            Self::Records(method) => peer.plays(&Role::RecordsExit(method)),
            Self::Client(method) => {
                let client = Role::Client {
                    method,
                    server: somewhere,
                };
                peer.plays(&Role::Server(method)) && peer.plays(&client)
            }
            Self::Kcptun => {
                let client = Role::KcptunClient { server: somewhere };
                peer.plays(&Role::KcptunServer { to: somewhere }) && peer.plays(&client)
            }
            Self::Ssr(setup) => {
                let client = Role::SsrClient {
                    setup,
                    server: somewhere,
                };
                peer.plays(&Role::SsrServer(setup)) && peer.plays(&client)
            }
            Self::SshForward(suite) | Self::SshDynamic(suite) | Self::SshServer(suite) => {
                let client = Role::SshClient {
                    suite,
                    server: somewhere,
                    what: Use::Dynamic,
                };
                peer.plays(&Role::SshServer(suite)) && peer.plays(&client)
            }
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relay => write!(f, "SOCKS5 relay"),
            Self::Kcptun => write!(f, "client and server of kcptun, fast3, aes, FEC 10+3"),
            Self::Tunnel(method) => write!(f, "forwarder and server, {}", method.name),
            Self::Records(method) => write!(f, "records without a protocol, {}", method.name),
            Self::Relayed(method) => write!(f, "forwarder, relay and server, {}", method.name),
            Self::Ssr(Setup {
                method,
                protocol,
                obfs,
                ..
            }) => write!(f, "SOCKS5 client and server, {method}, {protocol}, {obfs}"),
            Self::Client(method) => write!(f, "SOCKS5 client and server, {}", method.name),
            Self::SshForward(suite) => write!(f, "ssh -L, {}", suite.name()),
            Self::SshDynamic(suite) => write!(f, "ssh -D, {}", suite.name()),
            Self::SshServer(suite) => write!(f, "ssh server, {}", suite.name()),
        }
    }
}

/// The running processes of one implementation and the way through them.
#[derive(Debug)]
pub(crate) struct Rig {
    members: Vec<Member>,
    way: Way,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Member {
    /// `client`, `relay` or `server`; empty if it is alone.
    pub(crate) part: &'static str,
    pub(crate) running: Running,
}

impl Rig {
    /// Starts everything that leads to `origin`, each process on so many threads if a number is
    /// given.
    pub(crate) fn start(
        peer: &Peer,
        topology: Topology,
        origin: SocketAddr,
        threads: Option<u32>,
    ) -> Result<Self> {
        let member = |part, role: Role| -> Result<Member> {
            let running = peer
                .start(&role, threads)
                .with_context(|| format!("starting {}", peer.name()))?;
            Ok(Member { part, running })
        };
        let socks = |member: &Member| Way::Socks {
            proxy: member.running.at(),
            to: origin,
        };
        let (members, way) = match topology {
            Topology::Relay => {
                let relay = member("", Role::Relay)?;
                let way = socks(&relay);
                (vec![relay], way)
            }
            Topology::Tunnel(method) => {
                let server = member("server", Role::Server(method))?;
                let at = server.running.at();
                let client = member(
                    "client",
                    Role::Forwarder {
                        method,
                        server: at,
                        to: origin,
                    },
                )?;
                let way = Way::Entry(client.running.at());
                (vec![client, server], way)
            }
            Topology::Relayed(method) => {
                let server = member("server", Role::Server(method))?;
                let to = server.running.at();
                let passage = member("relay", Role::Passage { method, to })?;
                let relay = passage.running.at();
                let to = origin;
                let client = member("client", Role::Behind { method, relay, to })?;
                let way = Way::Entry(client.running.at());
                (vec![client, passage, server], way)
            }
            Topology::Records(method) => {
                let server = member("server", Role::RecordsExit(method))?;
                let entry = Role::RecordsEntry {
                    method,
                    server: server.running.at(),
                    to: origin,
                };
                let client = member("client", entry)?;
                let way = Way::Entry(client.running.at());
                (vec![client, server], way)
            }
            Topology::Client(method) => {
                let server = member("server", Role::Server(method))?;
                let client = member(
                    "client",
                    Role::Client {
                        method,
                        server: server.running.at(),
                    },
                )?;
                let way = socks(&client);
                (vec![client, server], way)
            }
            Topology::Kcptun => {
                let server = member("server", Role::KcptunServer { to: origin })?;
                let at = server.running.at();
                let client = member("client", Role::KcptunClient { server: at })?;
                let way = Way::Entry(client.running.at());
                (vec![client, server], way)
            }
            Topology::Ssr(setup) => {
                let server = member("server", Role::SsrServer(setup))?;
                let client = member(
                    "client",
                    Role::SsrClient {
                        setup,
                        server: server.running.at(),
                    },
                )?;
                let way = socks(&client);
                (vec![client, server], way)
            }
            Topology::SshForward(suite) => {
                let (server, client) = ssh_pair(&member, suite, Use::Forward(origin))?;
                let way = Way::Entry(client.running.at());
                (vec![client, server], way)
            }
            Topology::SshDynamic(suite) => {
                let (server, client) = ssh_pair(&member, suite, Use::Dynamic)?;
                let way = socks(&client);
                (vec![client, server], way)
            }
            Topology::SshServer(suite) => {
                let server = member("server", Role::SshServer(suite))?;
                let way = Way::Entry(server.running.at());
                (vec![server], way)
            }
        };
        Ok(Self { members, way })
    }

    /// Nothing between client and origin.
    pub(crate) const fn straight(origin: SocketAddr) -> Self {
        Self {
            members: Vec::new(),
            way: Way::Entry(origin),
        }
    }

    /// The processes, the nearest to the client first.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The way through them to the origin.
    pub(crate) const fn way(&self) -> Way {
        self.way
    }

    /// The way to another origin, where the client says where to go.
    pub(crate) const fn way_to(&self, origin: SocketAddr) -> Way {
        match self.way {
            Way::Socks { proxy, .. } => Way::Socks { proxy, to: origin },
            Way::Entry(_) if self.members.is_empty() => Way::Entry(origin),
            entry @ Way::Entry(_) => entry,
        }
    }

    /// Processor time of each so far.
    pub(crate) fn cpu(&self) -> Result<Vec<Duration>> {
        self.members
            .iter()
            .map(|member| account::cpu_time(member.running.pid()))
            .collect()
    }

    /// Processor time of each since then, in seconds.
    pub(crate) fn cpu_since(&self, before: &[Duration]) -> Result<Vec<f64>> {
        let now = self.cpu()?;
        Ok(now
            .iter()
            .zip(before)
            .map(|(now, then)| now.saturating_sub(*then).as_secs_f64())
            .collect())
    }

    /// A value of each, by its part.
    pub(crate) fn parts(&self, values: impl IntoIterator<Item = f64>) -> Vec<(&'static str, f64)> {
        self.members
            .iter()
            .map(|member| member.part)
            .zip(values)
            .collect()
    }

    /// Memory of each.
    pub(crate) fn memory(&self) -> Result<Vec<Memory>> {
        self.members
            .iter()
            .map(|member| account::memory(member.running.pid()))
            .collect()
    }

    /// A failure with the last words of the processes.
    pub(crate) fn blame(&self, why: &Error) -> Error {
        let mut told = format!("{why:#}");
        for Member { part, running } in &self.members {
            let log = running.log();
            let lines: Vec<&str> = log.lines().collect();
            for line in lines.iter().skip(lines.len().saturating_sub(LAST_LINES)) {
                told.push_str(&format!("\n  {part} {line}"));
            }
        }
        Error::msg(told)
    }
}

/// A server, and a client that has logged in.
fn ssh_pair(
    member: &impl Fn(&'static str, Role) -> Result<Member>,
    suite: ssh::Suite,
    what: Use,
) -> Result<(Member, Member)> {
    let server = member("server", Role::SshServer(suite))?;
    let client = Role::SshClient {
        suite,
        server: server.running.at(),
        what,
    };
    Ok((server, member("client", client)?))
}
