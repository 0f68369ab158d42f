//! An implementation: its roles, how it is found, and how a process of it is started.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use adit_interop::shadowsocks::{IDENTITY_KEYS, MethodKey};
use adit_interop::ssr::SsrSetup;
use adit_interop::{
    ChildProcess, TEST_TIMEOUT, TempFolder, Transport, free_port, loopback_addr, wait_port,
};
use anyhow::{Context, Result, bail, ensure};

use super::ssh_common;
use super::start_recipe::StartRecipe;
use crate::locations;

/// An implementation.
#[derive(Debug)]
pub(crate) struct PeerKind {
    /// Name in tables and in `--only`.
    pub(crate) name: &'static str,
    /// The implementation that it is an earlier build of: it participates where that one does.
    pub(super) earlier_build_of: Option<&'static str>,
    /// The programs it needs; the first one reports the version.
    pub(super) programs: &'static [&'static str],
    pub(super) version: fn(&ProgramPaths) -> String,
    /// Returns how to start a role; `None` if it does not support the role.
    pub(super) recipe: fn(&PeerRole, SocketAddr) -> Option<StartRecipe>,
    /// Environment variable that sets the number of threads; `None` if there is none.
    pub(super) threads: Option<&'static str>,
    /// Open files per connection that it relays unchanged: two sockets, and with Go's `splice(2)` a
    /// pipe for each direction, held while it waits.
    pub(super) relay_files: u32,
    /// Maximum number of held connections on an ordinary machine, with the reason for the limit.
    pub(super) max_held: Option<(u32, &'static str)>,
    /// Divisor of the bytes of a transfer, so that a run ends within the day; 1 for most.
    pub(super) transfer_divisor: u64,
    /// True if it only shows the minimum cost of the task; it is not used in production.
    pub(super) is_floor: bool,
    /// True if no package registry that we can access offers it: it participates if its binary is
    /// installed by hand. `cargo xtask install --rivals` installs all others.
    pub(crate) installed_by_hand: bool,
}

/// The role of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PeerRole {
    /// SOCKS5, directly to the destination.
    Relay,
    /// A Shadowsocks server, TCP and UDP, whose clients may reach loopback.
    Server(MethodKey),
    /// An entry, TCP and UDP, that leads through a server to one destination.
    Forwarder {
        method: MethodKey,
        server: SocketAddr,
        to: SocketAddr,
    },
    /// A relay that routes by identity headers and has its own key, that of the method's keyring.
    Passage { method: MethodKey, to: SocketAddr },
    /// An entry that leads through such a relay and a server behind it.
    Behind {
        method: MethodKey,
        relay: SocketAddr,
        to: SocketAddr,
    },
    /// SOCKS5 through a server.
    Client {
        method: MethodKey,
        server: SocketAddr,
    },
    /// A ShadowsocksR server whose clients may reach loopback, over TCP.
    SsrServer(SsrSetup<'static>),
    /// The end of a kcptun tunnel in front of its target.
    KcptunServer {
        to: SocketAddr,
        options: &'static str,
    },
    /// The other end, with the entry.
    KcptunClient {
        server: SocketAddr,
        options: &'static str,
    },
    /// SOCKS5 through a ShadowsocksR server.
    SsrClient {
        setup: SsrSetup<'static>,
        server: SocketAddr,
    },
    /// An SSH server that accepts the calling user.
    SshServer(ssh_common::SshSuite),
    /// A client of such a server.
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

/// Returns the key of a relay; `None` if the method has no identity headers.
pub(super) fn relay_key(method: MethodKey) -> Option<&'static str> {
    let ring = IDENTITY_KEYS.iter().find(|ring| ring.method == method)?;
    ring.relays.first().copied()
}

/// Paths of the programs of one implementation.
#[derive(Debug)]
pub(super) struct ProgramPaths(Vec<(&'static str, PathBuf)>);

impl ProgramPaths {
    pub(super) fn path(&self, name: &str) -> Option<&PathBuf> {
        self.0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, path)| path)
    }

    /// Returns the output of the first program with these arguments.
    pub(super) fn output_of(&self, args: &[&str]) -> String {
        self.0
            .first()
            .map_or_else(String::new, |(_, path)| locations::output_of(path, args))
    }

    /// Returns the first line of that output.
    pub(super) fn first_line(&self, args: &[&str]) -> String {
        self.output_of(args)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    }
}

/// An installed implementation.
#[derive(Debug)]
pub(crate) struct InstalledPeer {
    kind: &'static PeerKind,
    programs: ProgramPaths,
    version: String,
}

impl PeerKind {
    /// Default values of an implementation.
    pub(super) const DEFAULT: Self = Self {
        name: "",
        earlier_build_of: None,
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

    /// Searches for its programs with `find`.
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
    /// Returns the name in tables.
    pub(crate) const fn name(&self) -> &'static str {
        self.kind.name
    }

    /// Returns true if `names` has its name, or the name of what it is an earlier build of.
    pub(crate) fn is_one_of(&self, names: &[&str]) -> bool {
        names.contains(&self.kind.earlier_build_of.unwrap_or(self.kind.name))
    }

    /// Returns the path of its first program.
    pub(crate) fn program(&self) -> Option<&Path> {
        self.programs.0.first().map(|(_, path)| path.as_path())
    }

    /// Returns the version that it reports.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Returns true if it supports this role.
    pub(crate) fn supports(&self, role: &PeerRole) -> bool {
        (self.kind.recipe)(role, loopback_addr(1)).is_some()
    }

    /// Returns the reason why it cannot hold this many connections; `None` if it can.
    pub(crate) fn hold_limit_reason(&self, connections: u32) -> Option<&'static str> {
        let (most, why) = self.kind.max_held?;
        (connections > most).then_some(why)
    }

    /// Returns the open files per connection that it relays unchanged.
    pub(crate) const fn relay_files(&self) -> u32 {
        self.kind.relay_files
    }

    /// Returns the divisor of the bytes of a transfer.
    pub(crate) const fn transfer_divisor(&self) -> u64 {
        self.kind.transfer_divisor
    }

    /// Returns true if it is used in production.
    pub(crate) fn is_real_program(&self) -> bool {
        !self.kind.is_floor
    }

    /// Returns true if the number of its threads can be set.
    pub(crate) const fn has_threads(&self) -> bool {
        self.kind.threads.is_some()
    }

    /// Starts the role on a free port, with `threads` threads if given, and waits until it listens
    /// there.
    pub(crate) fn start(&self, role: &PeerRole, threads: Option<u32>) -> Result<RunningPeer> {
        self.start_at(role, loopback_addr(free_port()), threads)
    }

    /// Starts the role at this address.
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
        let mut process = ChildProcess::spawn(command)?;
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

    /// Returns a command that the caller starts, for a role that does not listen.
    pub(crate) fn command(&self, role: &PeerRole) -> Result<PreparedCommand> {
        self.prepare_command(role, loopback_addr(0), None)
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
            .context("the recipe starts a program that is not in the list")?;
        let folder = TempFolder::new("bench")?;
        let mut command = Command::new(program);
        command.args(&recipe.args).current_dir(folder.path());
        // Some programs write into the home directory.
        command.env("HOME", folder.path());
        if let Some((variable, count)) = recipe.threads {
            command.env(variable, count.to_string());
        }
        if recipe.keys {
            ssh_common::place_keys(folder.path())?;
        }
        if let Some(config) = &recipe.config {
            let config = config.replace("FOLDER", &folder.path().to_string_lossy());
            command.arg(folder.write_file("config", config)?);
        }
        Ok(PreparedCommand {
            command,
            folder,
            shown: recipe.to_shell(),
        })
    }

    /// Returns true if the program has a command of this name.
    pub(crate) fn has_command(&self, name: &str) -> bool {
        !self.programs.output_of(&[name, "--help"]).is_empty()
    }
}

/// A command that is ready to start.
#[derive(Debug)]
pub(crate) struct PreparedCommand {
    pub(crate) command: Command,
    /// Its working directory, which must be kept for as long as it runs.
    pub(crate) folder: TempFolder,
    pub(crate) shown: String,
}

/// Waits until the port is in use, but not for a process that has ended.
fn wait_listening(process: &mut ChildProcess, transport: Transport, port: u16) -> Result<()> {
    let start = Instant::now();
    while let Err(why) = wait_port(transport, port, Duration::from_millis(100)) {
        if let Ok(status) = process.wait(Duration::ZERO) {
            bail!(
                "the process ended with {status}; its output:\n{}",
                process.output()
            );
        }
        ensure!(
            start.elapsed() < TEST_TIMEOUT,
            "{why}; its output:\n{}",
            process.output()
        );
    }
    Ok(())
}

/// A started process; dropping it ends it.
#[derive(Debug)]
pub(crate) struct RunningPeer {
    process: ChildProcess,
    at: SocketAddr,
    shown: String,
    _folder: TempFolder,
}

impl RunningPeer {
    /// Returns the address it listens on.
    pub(crate) const fn at(&self) -> SocketAddr {
        self.at
    }

    /// Returns its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Returns the command line that started it.
    pub(crate) fn command_line(&self) -> &str {
        &self.shown
    }

    /// Returns all output so far.
    pub(crate) fn log(&self) -> String {
        self.process.output()
    }
}
