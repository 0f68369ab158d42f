//! An implementation: its roles, how it is found, and how a process of it is started.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::shadowsocks::{KEYRINGS, Method};
use adit_interop::ssr::Setup;
use adit_interop::{Folder, PATIENCE, Process, Transport, free_port, loopback, wait_port};
use anyhow::{Context, Result, bail, ensure};

use super::ssh_common;
use super::start_recipe::StartRecipe;
use crate::locations;

/// An implementation.
#[derive(Debug)]
pub(crate) struct PeerKind {
    /// As in tables and in `--only`.
    pub(crate) name: &'static str,
    /// The programs it needs; the first is asked for its version.
    pub(super) programs: &'static [&'static str],
    pub(super) version: fn(&ProgramPaths) -> String,
    /// None where it cannot play this role.
    pub(super) recipe: fn(&PeerRole, SocketAddr) -> Option<StartRecipe>,
    /// The environment variable that says on how many threads it works; None if there is none.
    pub(super) threads: Option<&'static str>,
    /// Open files for each connection that it relays as it is: two sockets, and with Go's
    /// `splice(2)` a pipe for each direction, held while it waits.
    pub(super) relay_files: u32,
    /// The most connections it can be asked to hold on an ordinary machine, and why no more.
    pub(super) max_held: Option<(u32, &'static str)>,
    /// By what the bytes of a transfer are divided, so that a run ends within the day; 1 for most.
    pub(super) transfer_divisor: u64,
    /// It only shows what the task costs at least; no one runs it to serve people.
    pub(super) is_floor: bool,
    /// No registry that we can ask has it: it takes part where somebody has put it. All others are
    /// brought by `cargo xtask install --rivals`.
    pub(crate) installed_by_hand: bool,
}

/// What a process is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PeerRole {
    /// SOCKS5, straight to the destination.
    Relay,
    /// A Shadowsocks server, TCP and UDP, whose clients may reach loopback.
    Server(Method),
    /// An entry, TCP and UDP, that leads through a server to one destination.
    Forwarder {
        method: Method,
        server: SocketAddr,
        to: SocketAddr,
    },
    /// A relay that finds the way by identity headers and holds its own key, that of the
    /// method's keyring.
    Passage { method: Method, to: SocketAddr },
    /// An entry that leads through such a relay and a server behind it.
    Behind {
        method: Method,
        relay: SocketAddr,
        to: SocketAddr,
    },
    /// SOCKS5 through a server.
    Client { method: Method, server: SocketAddr },
    /// A ShadowsocksR server whose clients may reach loopback, over TCP.
    SsrServer(Setup<'static>),
    /// The end of a kcptun tunnel at its target.
    KcptunServer {
        to: SocketAddr,
        options: &'static str,
    },
    /// The other end, an entry.
    KcptunClient {
        server: SocketAddr,
        options: &'static str,
    },
    /// SOCKS5 through a ShadowsocksR server.
    SsrClient {
        setup: Setup<'static>,
        server: SocketAddr,
    },
    /// An SSH server that lets the calling user in.
    SshServer(ssh_common::SshSuite),
    /// A client of it.
    SshClient {
        suite: ssh_common::SshSuite,
        server: SocketAddr,
        what: ssh_common::SshUse,
    },
}

impl PeerRole {
    pub(super) const fn has_udp(&self) -> bool {
        matches!(
            self,
            Self::Server(_) | Self::Forwarder { .. } | Self::KcptunServer { .. }
        )
    }

    pub(super) const fn has_tcp(&self) -> bool {
        !matches!(self, Self::KcptunServer { .. })
    }
}

/// The key of a relay; none where the method has no identity headers.
pub(super) fn relay_key(method: Method) -> Option<&'static str> {
    let ring = KEYRINGS.iter().find(|ring| ring.method == method)?;
    ring.relays.first().copied()
}

/// Where the programs of one implementation are.
#[derive(Debug)]
pub(super) struct ProgramPaths(Vec<(&'static str, PathBuf)>);

impl ProgramPaths {
    pub(super) fn path(&self, name: &str) -> Option<&PathBuf> {
        self.0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, path)| path)
    }

    /// What the first of them prints when it is asked.
    pub(super) fn output_of(&self, args: &[&str]) -> String {
        self.0
            .first()
            .map_or_else(String::new, |(_, path)| locations::output_of(path, args))
    }

    /// The first line of it.
    pub(super) fn first_line(&self, args: &[&str]) -> String {
        self.output_of(args)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    }
}

/// An implementation that is here.
#[derive(Debug)]
pub(crate) struct InstalledPeer {
    kind: &'static PeerKind,
    programs: ProgramPaths,
    version: String,
}

impl PeerKind {
    /// What each leaves as it is where nothing else is said.
    pub(super) const DEFAULT: Self = Self {
        name: "",
        programs: &[],
        version: |programs| programs.first_line(&["--version"]),
        recipe: |_, _| None,
        threads: None,
        relay_files: 2,
        max_held: None,
        transfer_divisor: 1,
        is_floor: false,
        installed_by_hand: false,
    };

    /// Looks for its programs with `find`.
    pub(crate) fn locate(
        &'static self,
        find: impl Fn(&str) -> Option<PathBuf>,
    ) -> Option<InstalledPeer> {
        let programs = self.programs.iter().map(|name| Some((*name, find(name)?)));
        let programs = ProgramPaths(programs.collect::<Option<_>>()?);
        let mut version = (self.version)(&programs);
        if version.is_empty() {
            "version unknown".clone_into(&mut version);
        }
        Some(InstalledPeer {
            kind: self,
            programs,
            version,
        })
    }
}

impl InstalledPeer {
    /// As in tables.
    pub(crate) const fn name(&self) -> &'static str {
        self.kind.name
    }

    /// The first of its programs.
    pub(crate) fn program(&self) -> Option<&Path> {
        self.programs.0.first().map(|(_, path)| path.as_path())
    }

    /// What it says of itself.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Whether it can play this role.
    pub(crate) fn supports(&self, role: &PeerRole) -> bool {
        (self.kind.recipe)(role, loopback(1)).is_some()
    }

    /// Why it is not asked to hold so many connections; None if it is.
    pub(crate) fn hold_limit_reason(&self, connections: u32) -> Option<&'static str> {
        let (most, why) = self.kind.max_held?;
        (connections > most).then_some(why)
    }

    /// Open files for each connection that it relays as it is.
    pub(crate) const fn relay_files(&self) -> u32 {
        self.kind.relay_files
    }

    /// By what the bytes of a transfer are divided.
    pub(crate) const fn transfer_divisor(&self) -> u64 {
        self.kind.transfer_divisor
    }

    /// Whether people run it.
    pub(crate) fn is_real_program(&self) -> bool {
        !self.kind.is_floor
    }

    /// Whether the number of its threads can be chosen.
    pub(crate) const fn has_threads(&self) -> bool {
        self.kind.threads.is_some()
    }

    /// Starts it on a free port, on so many threads if a number is given, and waits until it
    /// listens there.
    pub(crate) fn start(&self, role: &PeerRole, threads: Option<u32>) -> Result<RunningPeer> {
        self.start_at(role, loopback(free_port()), threads)
    }

    /// The same at this address.
    pub(crate) fn start_at(
        &self,
        role: &PeerRole,
        at: SocketAddr,
        threads: Option<u32>,
    ) -> Result<RunningPeer> {
        let PreparedCommand {
            command,
            folder,
            shown,
        } = self.prepare_command(role, at, threads)?;
        let mut process = Process::spawn(command)?;
        if role.has_tcp() {
            wait_listening(&mut process, Transport::Tcp, at.port())?;
        }
        if role.has_udp() {
            wait_listening(&mut process, Transport::Udp, at.port())?;
        }
        Ok(RunningPeer {
            process,
            at,
            shown,
            _folder: folder,
        })
    }

    /// A command that is to be started by the caller, for a role that listens nowhere.
    pub(crate) fn command(&self, role: &PeerRole) -> Result<PreparedCommand> {
        self.prepare_command(role, loopback(0), None)
    }

    fn prepare_command(
        &self,
        role: &PeerRole,
        at: SocketAddr,
        threads: Option<u32>,
    ) -> Result<PreparedCommand> {
        let mut recipe = (self.kind.recipe)(role, at)
            .with_context(|| format!("{} cannot be {role:?}", self.name()))?;
        recipe.threads = self.kind.threads.zip(threads);
        let program = self
            .programs
            .path(recipe.program)
            .context("a program it does not need")?;
        let folder = Folder::new("bench")?;
        let mut command = Command::new(program);
        command.args(&recipe.args).current_dir(folder.path());
        // Some leave something in the home directory.
        command.env("HOME", folder.path());
        if let Some((variable, count)) = recipe.threads {
            command.env(variable, count.to_string());
        }
        if recipe.keys {
            ssh_common::place_keys(folder.path())?;
        }
        if let Some(config) = &recipe.config {
            let config = config.replace("FOLDER", &folder.path().to_string_lossy());
            command.arg(folder.write("config", config)?);
        }
        Ok(PreparedCommand {
            command,
            folder,
            shown: recipe.to_shell(),
        })
    }

    /// Whether the program has a command of this name.
    pub(crate) fn has_command(&self, name: &str) -> bool {
        !self.programs.output_of(&[name, "--help"]).is_empty()
    }
}

/// What is to be started.
#[derive(Debug)]
pub(crate) struct PreparedCommand {
    pub(crate) command: Command,
    /// Where it is started; to be kept as long as it runs.
    pub(crate) folder: Folder,
    pub(crate) shown: String,
}

/// Waits until somebody has the port, but not for a process that has ended.
fn wait_listening(process: &mut Process, transport: Transport, port: u16) -> Result<()> {
    let start = Instant::now();
    while let Err(why) = wait_port(transport, port, Duration::from_millis(100)) {
        if let Ok(status) = process.wait(Duration::ZERO) {
            bail!("it ended with {status} and said:\n{}", process.log());
        }
        ensure!(
            start.elapsed() < PATIENCE,
            "{why}; it said:\n{}",
            process.log()
        );
    }
    Ok(())
}

/// A started process; dropping it ends it.
#[derive(Debug)]
pub(crate) struct RunningPeer {
    process: Process,
    at: SocketAddr,
    shown: String,
    _folder: Folder,
}

impl RunningPeer {
    /// Where it listens.
    pub(crate) const fn at(&self) -> SocketAddr {
        self.at
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// How it was started.
    pub(crate) fn command_line(&self) -> &str {
        &self.shown
    }

    /// What it has printed so far.
    pub(crate) fn log(&self) -> String {
        self.process.log()
    }
}
