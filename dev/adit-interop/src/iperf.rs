//! iperf3, a common tool to measure tunnels.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::ports::{Transport, free_port, loopback_addr, wait_port};
use crate::{ChildProcess, TEST_TIMEOUT, external_tools};

/// Longest run of one client.
const LIMIT: Duration = Duration::from_secs(40);

/// A server on 127.0.0.1, for one client at a time. It ends when it is dropped.
#[derive(Debug)]
pub struct IperfServer {
    port: u16,
    process: ChildProcess,
    /// Number of clients so far.
    clients: usize,
}

impl IperfServer {
    /// Starts the server.
    pub fn start() -> Result<Self> {
        let port = free_port();
        let mut command = Command::new("iperf3");
        command.args([
            "-s",
            "-B",
            "127.0.0.1",
            "-p",
            &port.to_string(),
            "--forceflush",
        ]);
        let process = ChildProcess::spawn(command)?;
        wait_port(Transport::Tcp, port, TEST_TIMEOUT)?;
        Ok(Self {
            port,
            process,
            clients: 0,
        })
    }

    /// Returns its address.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        loopback_addr(self.port)
    }

    /// Runs a client with these additional options against this server behind `entry`. Fails if no data
    /// arrives.
    pub fn run_client(&mut self, entry: SocketAddr, options: &[&str]) -> Result<()> {
        // After each client, the server opens its port anew, and refuses connections until then.
        self.clients += 1;
        self.process
            .wait_lines("Server listening on", self.clients, TEST_TIMEOUT)?;
        run_client(entry, options)
    }

    /// Transfers a megabyte down through `entry`.
    ///
    /// Not up: a server that learns of the end while data is still in flight resets the stream that
    /// carries it.
    pub fn download_megabyte(&mut self, entry: SocketAddr) -> Result<()> {
        self.run_client(entry, &["-n", "1M", "-R"])
    }
}

fn run_client(entry: SocketAddr, options: &[&str]) -> Result<()> {
    let mut command = Command::new("iperf3");
    let (host, port) = (entry.ip().to_string(), entry.port().to_string());
    command.args(["-c", &host, "-p", &port]).args(options);
    let output = external_tools::run_to_end(command, LIMIT)?
        .expect_success()
        .with_context(|| format!("iperf3 {options:?}"))?;
    let moved = output.lines().rev().find(|line| line.contains("receiver"));
    let moved = moved.with_context(|| format!("iperf3 {options:?} printed no sum:\n{output}"))?;
    ensure!(
        !moved.contains(" 0.00 Bytes"),
        "iperf3 {options:?}: no data arrived: {moved}"
    );
    Ok(())
}
