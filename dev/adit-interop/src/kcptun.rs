//! Debian's kcptun as either end.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Result;

use crate::ports::{Transport, free_port, loopback_addr, wait_port};
use crate::{ChildProcess, TEST_TIMEOUT};

/// A running end of a tunnel.
#[derive(Debug)]
pub struct KcptunProcess {
    addr: SocketAddr,
    process: ChildProcess,
}

impl KcptunProcess {
    /// Returns the address it listens on: for datagrams on the server, for connections on the
    /// client.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the running program.
    pub const fn process(&mut self) -> &mut ChildProcess {
        &mut self.process
    }
}

/// Starts a server in front of `target`, with these additional options.
pub fn start_server(target: SocketAddr, options: &[&str]) -> Result<KcptunProcess> {
    start_server_at(loopback_addr(free_port()), target, options)
}

/// Starts a server at this address, in front of `target`.
pub fn start_server_at(
    at: SocketAddr,
    target: SocketAddr,
    options: &[&str],
) -> Result<KcptunProcess> {
    start_program("kcptun-server", at, ("-t", target), options, Transport::Udp)
}

/// Starts a client of `server`, with these additional options.
pub fn start_client(server: SocketAddr, options: &[&str]) -> Result<KcptunProcess> {
    let at = loopback_addr(free_port());
    start_program("kcptun-client", at, ("-r", server), options, Transport::Tcp)
}

fn start_program(
    program: &str,
    addr: SocketAddr,
    (flag, to): (&str, SocketAddr),
    options: &[&str],
    transport: Transport,
) -> Result<KcptunProcess> {
    let mut command = Command::new(program);
    command.args(["-l", &addr.to_string(), flag, &to.to_string()]);
    command.args(options);
    let process = ChildProcess::spawn(command)?;
    wait_port(transport, addr.port(), TEST_TIMEOUT)?;
    Ok(KcptunProcess { addr, process })
}
