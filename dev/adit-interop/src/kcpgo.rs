//! The peer on current kcp-go, smux and snappy (`peers/kcppeer`), in all its roles.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{PATIENCE, Process, tool};

/// A running peer that listens.
#[derive(Debug)]
pub struct Running {
    addr: SocketAddr,
    process: Process,
}

impl Running {
    /// Starts a program that prints `ready` and its address.
    pub(crate) fn start(command: Command, name: &str) -> Result<Self> {
        let mut process = Process::spawn(command).context(tool::missing(name))?;
        let lines = process.wait_lines("ready ", 1, PATIENCE + Duration::from_secs(100))?;
        let addr = lines.first().and_then(|line| line.rsplit(' ').next());
        let addr = addr.context("no address")?.parse()?;
        Ok(Self { addr, process })
    }

    /// Returns the address it listens on: for datagrams, or as the client of a tunnel for
    /// connections.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the running program.
    pub const fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// Starts a raw session's server, which sends back what it receives.
pub fn echo(options: &[&str]) -> Result<Running> {
    start("echo", options)
}

/// Runs a raw session's client: it sends this many bytes to `server` and expects them back
/// unchanged.
pub fn send(server: SocketAddr, bytes: usize, options: &[&str]) -> Result<()> {
    run(
        "send",
        server,
        &[&["-n", &bytes.to_string()], options].concat(),
    )
}

/// Runs a client to its end and checks that it reports the same bytes.
fn run(role: &str, server: SocketAddr, options: &[&str]) -> Result<()> {
    let mut command = Command::new(tool::peer("kcppeer"));
    command
        .args([role, "-r", &server.to_string()])
        .args(options);
    let ended = tool::run(command, PATIENCE).context(tool::missing("kcppeer"))?;
    let told = ended.success()?;
    ensure!(told.trim() == "same", "{told}");
    Ok(())
}

/// Runs a raw session's client that sends datagrams of every length beside the stream to `server`,
/// and expects them back unchanged.
pub fn beside(server: SocketAddr, options: &[&str]) -> Result<()> {
    run("beside", server, options)
}

/// Starts the server of a kcptun tunnel, in front of `target`.
pub fn server(target: SocketAddr, options: &[&str]) -> Result<Running> {
    start("server", &[&["-t", &target.to_string()], options].concat())
}

/// Starts the client of a kcptun tunnel to `server`.
pub fn client(server: SocketAddr, options: &[&str]) -> Result<Running> {
    start("client", &[&["-r", &server.to_string()], options].concat())
}

/// Starts a process with this many sessions, each of which has sent one byte to `server`.
pub fn idle(server: SocketAddr, sessions: usize, options: &[&str]) -> Result<Running> {
    let (server, sessions) = (server.to_string(), sessions.to_string());
    let ends = ["-r", &server, "-n", &sessions, "-life", "600"];
    start("idle", &[&ends, options].concat())
}

fn start(role: &str, options: &[&str]) -> Result<Running> {
    let mut command = Command::new(tool::peer("kcppeer"));
    command.arg(role).args(options);
    Running::start(command, "kcppeer")
}
