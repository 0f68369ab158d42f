//! The arrangement of an implementation's processes between client and origin.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use adit_interop::loopback_addr;
use adit_interop::shadowsocks::MethodKey;
use adit_interop::ssr::SsrSetup;
use anyhow::{Context, Error, Result};

use crate::figures::{Figures, Quantity, figures_with_sum};
use crate::load::OriginRoute;
use crate::peers::ssh_common::{self, SshUse};
use crate::peers::{InstalledPeer, PeerRole, RunningPeer};
use crate::process_cost::{self, ProcessMemory};

/// Number of log lines shown with a failure.
const LAST_LINES: usize = 5;

/// An arrangement of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topology {
    /// One: SOCKS5 in, directly out.
    Relay,
    /// Two: an entry that leads through a server to one destination.
    Tunnel(MethodKey),
    /// Three: an entry that leads through a relay, by identity header, and a server behind it.
    Relayed(MethodKey),
    /// Two: SOCKS5 in, out through a server.
    Client(MethodKey),
    /// Two: an entry of a kcptun tunnel, and its other end, with these options.
    Kcptun(&'static str),
    /// Two: SOCKS5 in, out through a ShadowsocksR server.
    Ssr(SsrSetup<'static>),
    /// Two: an SSH client with `-L`, and its server.
    SshForward(ssh_common::SshSuite),
    /// Two: an SSH client with `-D`, and its server.
    SshDynamic(ssh_common::SshSuite),
    /// An SSH server; a client is started for each command.
    SshServer(ssh_common::SshSuite),
}

impl Topology {
    /// Returns the part and the role of process number `n`, the nearest to the origin first. `next`
    /// is the address of the previous process.
    const fn role_of(
        self,
        n: usize,
        next: SocketAddr,
        origin: SocketAddr,
    ) -> Option<(&'static str, PeerRole)> {
        let (server, relay, to) = (next, next, origin);
        Some(match (self, n) {
            (Self::Relay, 0) => ("", PeerRole::Relay),
            (Self::Tunnel(method) | Self::Relayed(method) | Self::Client(method), 0) => {
                ("server", PeerRole::Server(method))
            }
            (Self::Tunnel(method), 1) => ("client", PeerRole::Forwarder { method, server, to }),
            (Self::Relayed(method), 1) => ("relay", PeerRole::Passage { method, to: next }),
            (Self::Relayed(method), 2) => ("client", PeerRole::Behind { method, relay, to }),
            (Self::Client(method), 1) => ("client", PeerRole::Client { method, server }),
            (Self::Kcptun(options), 0) => ("server", PeerRole::KcptunServer { to, options }),
            (Self::Kcptun(options), 1) => ("client", PeerRole::KcptunClient { server, options }),
            (Self::Ssr(setup), 0) => ("server", PeerRole::SsrServer(setup)),
            (Self::Ssr(setup), 1) => ("client", PeerRole::SsrClient { setup, server }),
            (Self::SshForward(suite) | Self::SshDynamic(suite) | Self::SshServer(suite), 0) => {
                ("server", PeerRole::SshServer(suite))
            }
            (Self::SshForward(suite), 1) => {
                let what = SshUse::Forward(to);
                (
                    "client",
                    PeerRole::SshClient {
                        suite,
                        server,
                        what,
                    },
                )
            }
            (Self::SshDynamic(suite), 1) => {
                let what = SshUse::Dynamic;
                (
                    "client",
                    PeerRole::SshClient {
                        suite,
                        server,
                        what,
                    },
                )
            }
            _ => return None,
        })
    }

    /// Returns the method of Shadowsocks, if any.
    pub(crate) const fn method(self) -> Option<MethodKey> {
        match self {
            Self::Tunnel(method) | Self::Relayed(method) | Self::Client(method) => Some(method),
            _ => None,
        }
    }

    /// Returns true if the client names the destination.
    const fn is_socks(self) -> bool {
        matches!(
            self,
            Self::Relay | Self::Client(_) | Self::Ssr(_) | Self::SshDynamic(_)
        )
    }

    /// Returns true if the implementation supports all roles.
    pub(crate) fn is_supported_by(self, peer: &InstalledPeer) -> bool {
        // Clients for its commands are started later.
        let whole = match self {
            Self::SshServer(suite) => Self::SshDynamic(suite),
            whole => whole,
        };
        whole.roles().all(|role| peer.supports(&role))
    }

    /// Returns all roles, with placeholder addresses.
    pub(crate) fn roles(self) -> impl Iterator<Item = PeerRole> {
        let somewhere = loopback_addr(1);
        let role = move |n| self.role_of(n, somewhere, somewhere);
        (0..).map_while(role).map(|(_, role)| role)
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relay => write!(f, "SOCKS5 relay"),
            Self::Kcptun(_) => write!(f, "client and server of kcptun, fast3, aes, FEC 10+3"),
            Self::Tunnel(method) => write!(f, "forwarder and server, {}", method.name),
            Self::Relayed(method) => write!(f, "forwarder, relay and server, {}", method.name),
            Self::Ssr(SsrSetup {
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

/// The running processes of one implementation and the route through them.
#[derive(Debug)]
pub(crate) struct ProcessRig {
    members: Vec<RigMember>,
    route: OriginRoute,
}

/// A process of a rig.
#[derive(Debug)]
pub(crate) struct RigMember {
    /// `client`, `relay` or `server`; empty if it is the only one.
    pub(crate) part: &'static str,
    pub(crate) running: RunningPeer,
}

impl ProcessRig {
    /// Starts everything that leads to `origin`, each process with `threads` threads if given.
    pub(crate) fn start(
        peer: &InstalledPeer,
        topology: Topology,
        origin: SocketAddr,
        threads: Option<u32>,
    ) -> Result<Self> {
        Self::start_each(topology, origin, |_, role| {
            let started = peer.start(role, threads);
            started.with_context(|| format!("cannot start {}", peer.name()))
        })
    }

    /// Starts everything that leads to `origin`; the caller starts each part.
    pub(crate) fn start_each(
        topology: Topology,
        origin: SocketAddr,
        start: impl Fn(&'static str, &PeerRole) -> Result<RunningPeer>,
    ) -> Result<Self> {
        let (mut members, mut next) = (Vec::new(), origin);
        while let Some((part, role)) = topology.role_of(members.len(), next, origin) {
            let running = start(part, &role)?;
            next = running.at();
            members.push(RigMember { part, running });
        }
        members.reverse();
        let way = match topology.is_socks() {
            true => OriginRoute::Socks {
                proxy: next,
                to: origin,
            },
            false => OriginRoute::Entry(next),
        };
        Ok(Self {
            members,
            route: way,
        })
    }

    /// Returns a rig without processes between client and origin.
    pub(crate) const fn direct(origin: SocketAddr) -> Self {
        Self {
            members: Vec::new(),
            route: OriginRoute::Entry(origin),
        }
    }

    /// Returns the processes, the nearest to the client first.
    pub(crate) fn members(&self) -> &[RigMember] {
        &self.members
    }

    /// Returns the route through them to the origin.
    pub(crate) const fn route(&self) -> OriginRoute {
        self.route
    }

    /// Returns the route to another origin, if the client names the destination.
    pub(crate) const fn route_to(&self, origin: SocketAddr) -> OriginRoute {
        match self.route {
            OriginRoute::Socks { proxy, .. } => OriginRoute::Socks { proxy, to: origin },
            OriginRoute::Login { proxy, login, .. } => OriginRoute::Login {
                proxy,
                to: origin,
                login,
            },
            OriginRoute::Entry(_) if self.members.is_empty() => OriginRoute::Entry(origin),
            entry @ OriginRoute::Entry(_) => entry,
        }
    }

    /// Returns the processor time of each process so far.
    pub(crate) fn cpu_times(&self) -> Result<Vec<Duration>> {
        self.members
            .iter()
            .map(|member| process_cost::cpu_time(member.running.pid()))
            .collect()
    }

    /// Returns the processor time of each process since `before`, in seconds.
    pub(crate) fn cpu_since(&self, before: &[Duration]) -> Result<Vec<f64>> {
        let now = self.cpu_times()?;
        Ok(now
            .iter()
            .zip(before)
            .map(|(now, then)| now.saturating_sub(*then).as_secs_f64())
            .collect())
    }

    /// Returns the processor time of each process since `before`, divided by `count`.
    pub(crate) fn costs(
        &self,
        before: &[Duration],
        quantity: Quantity,
        count: f64,
    ) -> Result<Figures> {
        let spent = self.cpu_since(before)?;
        let each_of = spent.into_iter().map(|seconds| seconds / count);
        Ok(figures_with_sum(quantity, &self.label_parts(each_of)))
    }

    /// Returns the command lines of the processes.
    pub(crate) fn commands(&self) -> Vec<String> {
        let shown = self
            .members
            .iter()
            .map(|member| member.running.command_line());
        shown.map(str::to_owned).collect()
    }

    /// Pairs a value of each process with its part.
    pub(crate) fn label_parts(
        &self,
        values: impl IntoIterator<Item = f64>,
    ) -> Vec<(&'static str, f64)> {
        self.members
            .iter()
            .map(|member| member.part)
            .zip(values)
            .collect()
    }

    /// Lets the peak of each process's memory begin anew.
    pub(crate) fn forget_peaks(&self) -> Result<()> {
        let mut pids = self.members.iter().map(|member| member.running.pid());
        pids.try_for_each(process_cost::forget_peak)
    }

    /// Returns the memory of each process.
    pub(crate) fn memory(&self) -> Result<Vec<ProcessMemory>> {
        self.members
            .iter()
            .map(|member| process_cost::memory_usage(member.running.pid()))
            .collect()
    }

    /// Adds the last output of the processes to an error.
    pub(crate) fn with_last_output(&self, why: &Error) -> Error {
        let mut told = format!("{why:#}");
        for RigMember { part, running } in &self.members {
            let log = running.log();
            let lines: Vec<&str> = log.lines().collect();
            for line in lines.iter().skip(lines.len().saturating_sub(LAST_LINES)) {
                told.push_str(&format!("\n  {part} {line}"));
            }
        }
        Error::msg(told)
    }
}
