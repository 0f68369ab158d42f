//! iperf3, which users measure their tunnels with.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::port::{Transport, free_port, loopback, wait_port};
use crate::{PATIENCE, Process, tool};

/// Longest run of one client.
const LIMIT: Duration = Duration::from_secs(40);

/// A server on 127.0.0.1, for one client at a time. It ends with the value.
#[derive(Debug)]
pub struct Iperf {
    port: u16,
    _process: Process,
}

impl Iperf {
    /// Starts it.
    pub fn start() -> Result<Self> {
        let port = free_port();
        let mut command = Command::new("iperf3");
        command.args(["-s", "-B", "127.0.0.1", "-p", &port.to_string()]);
        let process = Process::spawn(command)?;
        wait_port(Transport::Tcp, port, PATIENCE)?;
        Ok(Self {
            port,
            _process: process,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        loopback(self.port)
    }
}

/// Runs a client with these options more against what is reached at `entry`; something must
/// arrive.
pub fn client(entry: SocketAddr, options: &[&str]) -> Result<()> {
    let mut command = Command::new("iperf3");
    let (host, port) = (entry.ip().to_string(), entry.port().to_string());
    command.args(["-c", &host, "-p", &port]).args(options);
    let told = tool::run(command, LIMIT)?
        .success()
        .with_context(|| format!("iperf3 {options:?}"))?;
    let moved = told.lines().rev().find(|line| line.contains("receiver"));
    let moved = moved.with_context(|| format!("iperf3 {options:?} tells no sum:\n{told}"))?;
    ensure!(
        !moved.contains(" 0.00 Bytes"),
        "iperf3 {options:?}: nothing arrived: {moved}"
    );
    Ok(())
}

/// A megabyte down through `entry`.
///
/// Not up: a server that is told of the end while data is still on its way resets what carries it.
pub fn down(entry: SocketAddr) -> Result<()> {
    client(entry, &["-n", "1M", "-R"])
}
