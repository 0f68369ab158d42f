//! Debian's kcptun as either end.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Result;

use crate::port::{Transport, free_port, loopback, wait_port};
use crate::{PATIENCE, Process};

/// A running end of a tunnel.
#[derive(Debug)]
pub struct Running {
    addr: SocketAddr,
    process: Process,
}

impl Running {
    /// Returns the address it listens on: for datagrams on the server, for connections on the
    /// client.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the running program.
    pub const fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// Starts a server in front of `target`, with these additional options.
pub fn server(target: SocketAddr, options: &[&str]) -> Result<Running> {
    server_at(loopback(free_port()), target, options)
}

/// Starts a server at this address, in front of `target`.
pub fn server_at(at: SocketAddr, target: SocketAddr, options: &[&str]) -> Result<Running> {
    start("kcptun-server", at, ("-t", target), options, Transport::Udp)
}

/// Starts a client of `server`, with these additional options.
pub fn client(server: SocketAddr, options: &[&str]) -> Result<Running> {
    let at = loopback(free_port());
    start("kcptun-client", at, ("-r", server), options, Transport::Tcp)
}

fn start(
    program: &str,
    addr: SocketAddr,
    (flag, to): (&str, SocketAddr),
    options: &[&str],
    transport: Transport,
) -> Result<Running> {
    let mut command = Command::new(program);
    command.args(["-l", &addr.to_string(), flag, &to.to_string()]);
    command.args(options);
    let process = Process::spawn(command)?;
    wait_port(transport, addr.port(), PATIENCE)?;
    Ok(Running { addr, process })
}
