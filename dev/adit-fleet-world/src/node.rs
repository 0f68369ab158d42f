//! A node: a process of adit with a membership, at an address that it keeps when it is killed and started again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use adit_fleet::Membership;
use adit_interop::{AditProcess, TEST_TIMEOUT, TempFolder, free_port, loopback_addr};
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

/// The setting that lets a node reach the sinks.
const ALLOW: &str = "allow_private=127.0.0.0/8,10.0.0.0/8";

/// The settings of a node.
#[derive(Debug, Clone, Default)]
pub struct NodeOptions {
    /// Lines of `[fleet]` beside the membership and the state.
    pub fleet: String,
    /// Further listeners.
    pub listeners: Vec<String>,
    /// The program that runs the node, such as `nsenter`, with its first arguments.
    pub wrapper: Vec<String>,
    /// The address of the SOCKS5 listener; a free port of 127.0.0.1 for `None`.
    pub listen: Option<SocketAddr>,
}

/// A node.
#[derive(Debug)]
pub struct FleetNode {
    adit: Option<AditProcess>,
    /// Processes that have taken over, the last of which runs.
    successors: Vec<Pid>,
    folder: TempFolder,
    program: PathBuf,
    options: NodeOptions,
    addr: SocketAddr,
    /// The number in the realm.
    pub id: u32,
}

impl FleetNode {
    /// Starts a node.
    pub fn start(program: &Path, membership: &Membership, options: NodeOptions) -> Result<Self> {
        let folder = TempFolder::new("node")?;
        membership.write(&folder.path().join("membership.json"))?;
        let addr = options.listen.unwrap_or_else(|| loopback_addr(free_port()));
        let own = format!("mixed://{addr}?users=fleet&{ALLOW}");
        let listeners = std::iter::once(&own).chain(&options.listeners);
        let listeners: Vec<String> = listeners.map(|url| format!("{url:?}")).collect();
        let config = format!(
            "[fleet]\nmembership = \"membership.json\"\nstate = \"state\"\n{}\n\
             [admin]\nlisten = \"admin.sock\"\npublic_host = \"127.0.0.1\"\n\n[route.a]\nlisten = [{}]\n",
            options.fleet,
            listeners.join(", ")
        );
        folder.write_file("adit.toml", config)?;
        let mut node = Self {
            adit: None,
            successors: Vec::new(),
            folder,
            program: program.to_owned(),
            options,
            addr,
            id: membership.node_id.context("a node has a number")?,
        };
        node.start_process()?;
        Ok(node)
    }

    /// Starts the process again.
    pub fn start_process(&mut self) -> Result<()> {
        let mut words = self.options.wrapper.iter();
        let mut command = match words.next() {
            Some(wrapper) => {
                let mut command = Command::new(wrapper);
                command.args(words).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        let file = self.folder.path().join("adit.toml");
        command.args(["run", "-c"]).arg(file);
        let count = 1 + self.options.listeners.len();
        self.adit = Some(AditProcess::start_command(command, count)?);
        Ok(())
    }

    /// Returns the address of the SOCKS5 listener.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns all addresses it listens on.
    pub fn addrs(&self) -> Result<&[SocketAddr]> {
        Ok(self.adit.as_ref().context("the node does not run")?.addrs())
    }

    /// Returns true if it runs.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.adit.is_some()
    }

    /// Returns the folder with its files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the process.
    pub fn process(&mut self) -> Result<&mut adit_interop::ChildProcess> {
        Ok(self
            .adit
            .as_mut()
            .context("the node does not run")?
            .process())
    }

    /// Returns its log so far; empty if it does not run.
    pub fn log(&mut self) -> String {
        self.process()
            .map_or_else(|_| String::new(), |process| process.output())
    }

    /// Returns the resident memory, in KiB.
    pub fn resident(&mut self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process()?.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.context("no RssAnon")?.parse().context("RssAnon")
    }

    /// Kills the process, without a chance to write anything. Returns its log.
    pub fn kill(&mut self) -> Result<String> {
        let Some(mut adit) = self.adit.take() else {
            return Ok(String::new());
        };
        self.end_successors();
        let process = adit.process();
        process.send_signal(Signal::KILL)?;
        process.wait(TEST_TIMEOUT)?;
        Ok(process.output())
    }

    /// Ends the process with SIGTERM, so that it reports everything. Returns its log.
    pub fn stop(&mut self) -> Result<String> {
        let Some(mut adit) = self.adit.take() else {
            return Ok(String::new());
        };
        adit.process().terminate()?;
        Ok(adit.process().output())
    }

    /// Waits for the next process that takes over.
    pub fn wait_for_successor(&mut self, limit: Duration) -> Result<()> {
        let needle = "upgraded: process ";
        let known = self.successors.len();
        let lines = self.process()?.wait_lines(needle, known + 1, limit)?;
        let line = lines.last().context("a line")?;
        let id = line
            .split(needle)
            .nth(1)
            .and_then(|rest| rest.split(',').next());
        let id = id
            .and_then(|id| id.trim().parse().ok())
            .and_then(Pid::from_raw);
        self.successors.push(id.with_context(|| line.clone())?);
        Ok(())
    }

    /// Ends the processes that have taken over.
    fn end_successors(&mut self) {
        for id in self.successors.drain(..) {
            // It may have ended, handing over to the next.
            let _ = kill_process(id, Signal::KILL);
        }
    }

    /// Waits for a line of the log.
    pub fn wait_for(&mut self, text: &str, limit: Duration) -> Result<()> {
        self.process()?.wait_lines(text, 1, limit).map(drop)
    }
}

impl Drop for FleetNode {
    fn drop(&mut self) {
        self.end_successors();
    }
}
