//! The peer on kcp-go, smux and snappy of today (`peers/kcppeer`), in all its roles.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{PATIENCE, Process, tool};

/// A running peer that others come to.
#[derive(Debug)]
pub struct Running {
    addr: SocketAddr,
    process: Process,
}

impl Running {
    /// Starts a program that says `ready` and its address.
    pub(crate) fn start(command: Command, name: &str) -> Result<Self> {
        let mut process = Process::spawn(command).context(tool::missing(name))?;
        let lines = process.wait_lines("ready ", 1, PATIENCE + Duration::from_secs(100))?;
        let addr = lines.first().and_then(|line| line.rsplit(' ').next());
        let addr = addr.context("no address")?.parse()?;
        Ok(Self { addr, process })
    }

    /// Where it listens: for datagrams, or as a client of a tunnel for connections.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The running program.
    pub const fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// A raw session's server, which sends back what comes.
pub fn echo(options: &[&str]) -> Result<Running> {
    start("echo", options)
}

/// A raw session's client: sends so many bytes to `server`, and they come back the same.
pub fn send(server: SocketAddr, bytes: usize, options: &[&str]) -> Result<()> {
    run(
        "send",
        server,
        &[&["-n", &bytes.to_string()], options].concat(),
    )
}

/// A client that runs to its end and says that what came back was the same.
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

/// A raw session's client: sends datagrams of every length beside the stream to `server`, which come
/// back the same.
pub fn beside(server: SocketAddr, options: &[&str]) -> Result<()> {
    run("beside", server, options)
}

/// The end of a kcptun tunnel at `target`.
pub fn server(target: SocketAddr, options: &[&str]) -> Result<Running> {
    start("server", &[&["-t", &target.to_string()], options].concat())
}

/// The other end of a kcptun tunnel to `server`.
pub fn client(server: SocketAddr, options: &[&str]) -> Result<Running> {
    start("client", &[&["-r", &server.to_string()], options].concat())
}

/// A process with so many sessions that have said one byte each to `server`.
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
