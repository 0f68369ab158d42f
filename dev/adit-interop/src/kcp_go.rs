//! The peer on current kcp-go, smux and snappy (`peers/kcppeer`), in all its roles.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{ChildProcess, TEST_TIMEOUT, external_tools};

/// A running peer that listens.
#[derive(Debug)]
pub struct ListeningPeer {
    addr: SocketAddr,
    process: ChildProcess,
}

impl ListeningPeer {
    /// Starts a program that prints `ready` and its address.
    pub(crate) fn start(command: Command, name: &str) -> Result<Self> {
        let mut process =
            ChildProcess::spawn(command).context(external_tools::missing_program_message(name))?;
        let lines = process.wait_lines("ready ", 1, TEST_TIMEOUT + Duration::from_secs(100))?;
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
    pub const fn process(&mut self) -> &mut ChildProcess {
        &mut self.process
    }
}

/// Starts a raw session's server, which sends back what it receives.
pub fn start_echo_server(options: &[&str]) -> Result<ListeningPeer> {
    start_peer("echo", options)
}

/// Runs a raw session's client: it sends this many bytes to `server` and expects them back
/// unchanged.
pub fn run_sender(server: SocketAddr, bytes: usize, options: &[&str]) -> Result<()> {
    run_client(
        "send",
        server,
        &[&["-n", &bytes.to_string()], options].concat(),
    )
}

/// Runs a client to its end and checks that it reports the same bytes.
fn run_client(role: &str, server: SocketAddr, options: &[&str]) -> Result<()> {
    let mut command = Command::new(external_tools::peer_path("kcppeer"));
    command
        .args([role, "-r", &server.to_string()])
        .args(options);
    let ended = external_tools::run_to_end(command, TEST_TIMEOUT)
        .context(external_tools::missing_program_message("kcppeer"))?;
    let output = ended.expect_success()?;
    ensure!(output.trim() == "same", "{output}");
    Ok(())
}

/// Runs a raw session's client that sends datagrams of every length beside the stream to `server`,
/// and expects them back unchanged.
pub fn run_datagram_client(server: SocketAddr, options: &[&str]) -> Result<()> {
    run_client("beside", server, options)
}

/// Starts the server of a kcptun tunnel, in front of `target`.
pub fn start_tunnel_server(target: SocketAddr, options: &[&str]) -> Result<ListeningPeer> {
    start_peer("server", &[&["-t", &target.to_string()], options].concat())
}

/// Starts the client of a kcptun tunnel to `server`.
pub fn start_tunnel_client(server: SocketAddr, options: &[&str]) -> Result<ListeningPeer> {
    start_peer("client", &[&["-r", &server.to_string()], options].concat())
}

/// Starts a process with this many sessions, each of which has sent one byte to `server`.
pub fn start_idle_sessions(
    server: SocketAddr,
    sessions: usize,
    options: &[&str],
) -> Result<ListeningPeer> {
    let (server, sessions) = (server.to_string(), sessions.to_string());
    let ends = ["-r", &server, "-n", &sessions, "-life", "600"];
    start_peer("idle", &[&ends, options].concat())
}

fn start_peer(role: &str, options: &[&str]) -> Result<ListeningPeer> {
    let mut command = Command::new(external_tools::peer_path("kcppeer"));
    command.arg(role).args(options);
    ListeningPeer::start(command, "kcppeer")
}
